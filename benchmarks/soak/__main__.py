"""Many agents work on one repository at random, and some are killed: is everything there?

    python benchmarks/soak [--agents 6] [--seconds 60] [--seed 1]

Each agent is a process that writes, corrects, recalls, consolidates and commits at random, and says
what was acknowledged; every few seconds one is killed and another takes its place. Only the first
one lives to the end, to show whether a process grows. Half of the agents work in a second clone,
which pulls and pushes memory by its own branch. In the end both clones are joined, and every
acknowledged fact must be in both, and the index must equal one that is built anew. Exits with 1
otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2] / "tests"))


def agent(root: str, seed: str) -> None:
    """Work until killed or told to stop; print one JSON line for each operation."""
    from loki_memory import Workspace
    from loki_memory.errors import LokiMemoryError

    chance = random.Random(int(seed))
    with Workspace.open(root) as workspace:
        for number in range(1_000_000):
            name, began = f"Agent {seed} learned thing {number}", time.monotonic()
            what, fact = (
                chance.choices(
                    ["remember", "record", "recall", "consolidate", "exchange"], [50, 15, 30, 1, 2]
                )[0],
                "",
            )
            try:
                if what == "remember":
                    workspace.remember(name)
                    fact = name
                elif what == "record":
                    workspace.record({"goal": f"Goal {number} of {seed}", "outcome": "success"})
                elif what == "recall":
                    workspace.recall(f"thing {number // 2}")
                elif what == "consolidate":
                    workspace.consolidate()
                else:
                    workspace.history.commit()
                    workspace.history.pull()
                    workspace.history.push()
                trouble = ""
            except LokiMemoryError as error:
                trouble = f"{type(error).__name__}: {error}"
            said = {"what": what, "fact": fact if not trouble else "", "trouble": trouble}
            took = round((time.monotonic() - began) * 1000, 1)
            print(json.dumps({**said, "ms": took, **_size()}), flush=True)


def _size() -> dict[str, int]:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "mb": pages * os.sysconf("SC_PAGESIZE") >> 20,
        "files": len(os.listdir("/proc/self/fd")),
    }


class Agents:
    """The agents at work, and the files with what each of them said."""

    def __init__(self, folder: Path, roots: list[Path]) -> None:
        self._folder, self._roots, self._count = folder, roots, 0
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        root = self._roots[self._count % len(self._roots)]
        self._count += 1
        with (self._folder / f"agent-{self._count}.jsonl").open("wb") as log:
            call = [sys.executable, str(HERE), "agent", str(root), str(self._count)]
            self.running.append(subprocess.Popen(call, stdout=log, stderr=log))

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        self.running.remove(process)

    def said(self) -> list[list[dict[str, Any]]]:
        """The operations of each agent; a line that a kill cut off was not acknowledged."""
        logs = sorted(self._folder.glob("agent-*.jsonl"))
        return [
            [line for text in log.read_text().splitlines() if (line := _line(text))] for log in logs
        ]


def _line(text: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError:
        return (
            {}
            if text.startswith("{")
            else {"what": "crash", "trouble": text, "fact": "", "ms": 0.0}
        )
    return found


def clones(folder: Path) -> list[Path]:
    """Two clones of one remote, whose memory is on a branch of its own."""
    from loki_memory import Workspace

    remote, found = folder / "remote", []
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    for name in ("first", "second"):
        clone = folder / name
        subprocess.run(
            ["git", "clone", "-q", str(remote), str(clone)], check=True, capture_output=True
        )
        with Workspace.init(clone) as workspace:
            workspace.home.set_config("git.mode", "branch")
        found.append(clone)
    return found


def facts(root: Path) -> tuple[set[str], bool]:
    """The facts of a clone, and whether its index equals one that is built anew."""
    from processes import rebuilt_digest

    from loki_memory import Workspace

    with Workspace.open(root) as workspace:
        workspace.sync()
        found = {memory.title() for memory in workspace.list(kind="fact", status="all")}
        return found, workspace.index.digest() == rebuilt_digest(workspace)


def join(roots: list[Path]) -> None:
    from loki_memory import Workspace

    for root in [*roots, *roots]:
        with Workspace.open(root) as workspace:
            workspace.history.commit()
            workspace.history.pull()
            workspace.history.push()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance, kills = random.Random(options.seed), 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        folder = Path(place)
        os.environ.update(LOKI_HOME=str(folder / "home"), HOME=str(folder), CI="1")
        for who in ("AUTHOR", "COMMITTER"):
            os.environ.update({f"GIT_{who}_NAME": "soak", f"GIT_{who}_EMAIL": "soak@example.org"})
        roots = clones(folder)
        agents = Agents(folder, roots)
        for _ in range(options.agents):
            agents.start()
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            time.sleep(min(chance.uniform(1, 5), max(0.0, end - time.monotonic())))
            agents.kill(chance.choice(agents.running[1:] or agents.running))
            agents.start()
            kills += 1
        for process in list(agents.running):
            agents.kill(process)
        join(roots)
        return report(agents.said(), [facts(root) for root in roots], kills, options)


def report(
    said: list[list[dict[str, Any]]],
    found: list[tuple[set[str], bool]],
    kills: int,
    options: argparse.Namespace,
) -> int:
    lines = [line for log in said for line in log]
    acknowledged = {line["fact"] for line in lines if line["fact"]}
    lost = [acknowledged - titles for titles, _ in found]
    crashes = [line["trouble"] for line in lines if line["what"] == "crash"]
    refused = [line for line in lines if line["trouble"] and line["what"] != "crash"]
    print(f"{options.agents} agents, {options.seconds:g} s, {kills} kills, {len(lines)} operations")
    print(f"acknowledged {len(acknowledged)} facts; lost per clone: {[len(some) for some in lost]}")
    print(f"index equals a rebuilt one: {[is_equal for _, is_equal in found]}")
    print(f"refused {len(refused)}: {sorted({line['trouble'].split(':')[0] for line in refused})}")
    for what in sorted({line["what"] for line in lines}):
        times = sorted(line["ms"] for line in lines if line["what"] == what)
        middle, late = statistics.median(times), times[int(len(times) * 0.95)]
        print(f"{what}: {len(times)} times, median {middle:.0f} ms, p95 {late:.0f} ms")
    print_growth(max(said, key=len))
    for text in crashes[-5:]:
        print(f"crash: {text}")
    return int(any(lost) or bool(crashes) or not all(is_equal for _, is_equal in found))


def print_growth(log: list[dict[str, Any]]) -> None:
    """Print the size of the agent that lived longest, at each quarter of its work.

    Each first use of a feature loads its libraries, so what an operation added is printed too.
    """
    sized = [line for line in log if "mb" in line]
    if len(sized) < 2:
        return
    for name in ("mb", "files"):
        at = [sized[len(sized) * part // 4][name] for part in range(4)]
        print(f"{name} of an agent with {len(sized)} operations: {[*at, sized[-1][name]]}")
    added: dict[str, int] = {}
    for before, line in pairwise(sized):
        added[line["what"]] = added.get(line["what"], 0) + line["mb"] - before["mb"]
    print(f"mb added by operation: {added}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["agent"]:
        agent(*sys.argv[2:])
    else:
        sys.exit(main())
