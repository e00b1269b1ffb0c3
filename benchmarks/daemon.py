"""What the watcher in the background costs, and what it saves.

    python benchmarks/daemon.py [--memories 10000] [--rounds 30] [--idle 20] [--json FILE]

Answered: commands as an agent's hook runs them, from the start of the process to its end, while a
watcher answers. The floor is a Python that does nothing. For comparison the same without a watcher.
Idle: processor time of a watcher while nothing happens. Memory: what 50 commands and 50 new files
add to it. Taken in: from a new file until a recall finds it. Stop: from SIGTERM to the end.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from table import Row, Spread, compared, in_turns, limited, machine, print_table, say, write_json

from loki_memory import Workspace

HERE = Path(__file__).resolve().parent
PROGRAM = str(Path(sys.executable).parent / "loki-mem")
BARE = [sys.executable, "-c", "pass"]
PROMPT = "Why do deployments of service 42 fail after the migration?"
EVENT = {"hook_event_name": "UserPromptSubmit", "prompt": PROMPT}
SESSIONS = count()  # a session is told each memory once
COMMANDS = {
    "hook UserPromptSubmit": ["hook", "UserPromptSubmit"],
    "recall": ["recall", PROMPT],
    "context": ["context", PROMPT],
    "status": ["status"],
}
ON_THE_WAY = ("hook UserPromptSubmit", "recall")  # to every answer of an agent: these have a bar
TIMES_BARE, IDLE_PERCENT, STOP_SECONDS, GROWTH_KIB = 2, 1, 2, 5 * 1024
CHURN = 50
REST_SECONDS = 10  # until views are rendered and nothing is left to do
SUBJECTS = ("Deployments", "Migrations", "Contract tests", "Caches", "Releases", "Backups")
REASONS = ("the schema is locked", "a worker still runs", "the token expired", "disks fill up")


def fill(project: Path, memories: int) -> None:
    """Write memories as an agent would: files."""
    folder = project / ".loki" / "memory" / "semantic" / "facts"
    for number in range(memories):
        write(folder, number)


def write(folder: Path, number: int) -> None:
    subject, reason = SUBJECTS[number % len(SUBJECTS)], REASONS[number % len(REASONS)]
    text = f"{subject} of service {number} fail on host {number % 97} when {reason}"
    (folder / f"fact-bench{number}.json").write_text(json.dumps({"statement": text}))


def run(project: Path, words: list[str]) -> str:
    session = f"bench-{next(SESSIONS)}"
    told = {"cwd": str(project), "session_id": session, "transcript_path": f"/{session}.jsonl"}
    event = json.dumps({**EVENT, **told})
    done = subprocess.run(
        [PROGRAM, *words], cwd=project, input=event, capture_output=True, text=True, check=True
    )
    return done.stdout


@contextmanager
def watched(project: Path) -> Iterator[int]:
    """A watcher in the background, once it is at rest; its process."""
    state = json.loads(run(project, ["daemon", "start", "--json"]))["state"]
    try:
        for words in (["recall", PROMPT], ["context", PROMPT]) * 2:
            run(project, words)
        time.sleep(REST_SECONDS)
        yield int(state["process"])
    finally:
        run(project, ["daemon", "stop"])


def answered(project: Path, memories: int, rounds: int, *, is_watched: bool) -> list[Row]:
    """Each command against a bare Python; a bar only where a watcher answers."""
    rows = []
    for what, words in available().items():
        tasks = [lambda _, w=words: run(project, w), lambda _: subprocess.run(BARE, check=True)]  # type: ignore[misc]
        ours, floor = in_turns(tasks, rounds, warm=2)
        name = f"{what}, {'answered by the watcher' if is_watched else 'alone'}"
        at_most = TIMES_BARE if is_watched and what in ON_THE_WAY else None
        rows.append(compared(name, memories, ours, floor, at_most=at_most))
    return rows


def available() -> dict[str, list[str]]:
    from loki_memory.cli.main import GROUPS

    known = {name for group in GROUPS.values() for name in group}
    return {what: words for what, words in COMMANDS.items() if words[0] in known}


def idle(process: int, memories: int, seconds: float) -> Row:
    """In thousandths of a percent, so that little is not nothing."""
    before, start = processor_seconds(process), time.monotonic()
    time.sleep(seconds)
    used = (processor_seconds(process) - before) / (time.monotonic() - start)
    return limited(
        Row("processor at rest, in 1/1000 %", memories, "", Spread.of([used * 100_000])),
        IDLE_PERCENT * 1000,
    )


def processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(process: int) -> int:
    """KiB of memory."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def grown(project: Path, process: int, memories: int) -> Row:
    """What a second lot of commands and files adds, after a first one."""
    folder = project / ".loki" / "memory" / "semantic" / "facts"
    sizes = []
    for lot in range(2):
        for number in range(CHURN):
            write(folder, memories + lot * CHURN + number)
            run(project, ["recall", f"service {number}"])
        sizes.append(resident(process))
    say(f"resident: {sizes[-1]:,} KiB")
    row = Row("memory that 50 commands and files add", memories, "KiB", Spread.of(_growth(sizes)))
    return limited(row, GROWTH_KIB)


def _growth(sizes: list[int]) -> list[float]:
    return [float(max(0, sizes[1] - sizes[0]))]


def taken_in(project: Path, memories: int, rounds: int) -> Row:
    folder = project / ".loki" / "memory" / "semantic" / "facts"
    seconds = []
    for number in range(rounds):
        start = time.perf_counter()
        statement = json.dumps({"statement": f"The word of round {number} is xylophone{number}"})
        (folder / f"fact-round{number}.json").write_text(statement)
        while f"xylophone{number}" not in run(project, ["recall", f"xylophone{number}"]):
            pass
        seconds.append(time.perf_counter() - start)
    return Row("a new file until a recall finds it", memories, "s", Spread.of(seconds))


def stopped(project: Path, memories: int, rounds: int) -> Row:
    seconds = []
    for _ in range(rounds):
        process = json.loads(run(project, ["daemon", "start", "--json"]))["state"]["process"]
        handle, start = os.pidfd_open(process), time.perf_counter()
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        _wait_for_end(handle)
        seconds.append(time.perf_counter() - start)
        os.close(handle)
    return limited(Row("stop, after SIGTERM", memories, "s", Spread.of(seconds)), STOP_SECONDS)


def _wait_for_end(handle: int) -> None:
    import select

    select.select([handle], [], [], 60)


def measured(project: Path, given: Any) -> list[Row]:
    with watched(project) as process:
        say("at rest")
        rows = [idle(process, given.memories, given.idle)]
        say("answered by the watcher")
        rows += answered(project, given.memories, given.rounds, is_watched=True)
        rows += [taken_in(project, given.memories, 5), grown(project, process, given.memories)]
    say("alone")
    rows += answered(project, given.memories, max(3, given.rounds // 5), is_watched=False)
    return [*rows, stopped(project, given.memories, 3)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--idle", type=float, default=20)
    parser.add_argument("--json", type=Path, default=HERE / "results" / "daemon.json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=HERE.parent.parent) as folder:
        os.environ["HOME"] = folder
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # modules are compiled once, as installed
        project = Path(folder) / "project"
        with Workspace.init(project) as workspace:
            say(f"{given.memories} memories")
            fill(project, given.memories)
            workspace.sync()
            workspace.recall("deployments")
        rows = measured(project, given)
        print_table(rows)
        write_json(given.json, rows, machine(Path(folder)))
    return int(any(row.ok is False for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
