"""Cut the power of a disk while memory is written, and see that everything acknowledged is there.

    sudo python benchmarks/long/power_cut.py [--cuts 20] [--seed 1] [--without-flush]

The disk is a file with ext4 on it, mounted by a loop device; hence root, and Linux. An agent
writes, corrects and commits on it, and says what was acknowledged. At a random moment it is
stopped and the file copied: the copy has what reached the disk, and lacks what the kernel still
kept in memory. The copy is mounted, as after a power cut. Every acknowledged fact must be in it
whole, the repository must be sound, the index must equal one that is built anew, and memory must
take another fact. Exits with 1 otherwise. `--without-flush` is the control: without fsync facts
are lost.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2] / "tests"))
SIZE = 96 << 20
# The kernel writes its journal when it is asked to, not every five seconds.
OPTIONS = "loop,commit=600"


class Cut(NamedTuple):
    """What one cut left."""

    acknowledged: int
    lost: list[str]
    troubles: list[str]


def agent(root: str, seed: str, flushes: str) -> None:
    """Write until stopped; print each fact once it is acknowledged."""
    from loki_memory import Workspace

    if flushes == "no":
        os.fsync = lambda _: None  # type: ignore[assignment]
        os.sync = lambda: None
    chance = random.Random(int(seed))
    with Workspace.open(root) as workspace:
        for number in range(1_000_000):
            fact = workspace.remember(f"Fact {number} of {seed}")
            print(f"Fact {number} of {seed}", flush=True)
            if chance.random() < 0.2:
                workspace.correct(fact.id, statement=f"Corrected {number} of {seed}")
                print(f"-Fact {number} of {seed}\nCorrected {number} of {seed}", flush=True)
            if chance.random() < 0.05:
                workspace.record({"goal": f"Goal {number}", "outcome": "success"})
                workspace.history.commit()


@contextlib.contextmanager
def mounted(disk: Path, folder: Path) -> Iterator[Path]:
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", OPTIONS, str(disk), str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def new_disk(disk: Path) -> None:
    with disk.open("wb") as file:
        file.truncate(SIZE)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(disk)], check=True)


def prepared(root: Path) -> None:
    from loki_memory import Workspace

    subprocess.run(["git", "init", "-q", str(root)], check=True)
    Workspace.init(root).close()
    os.sync()


def said_before_the_cut(place: Path, copy: Path, seed: int, flushes: str, wait: float) -> list[str]:
    """Let an agent work on a disk for a while, and copy the disk; returns what it said."""
    disk, log = place / "disk", place / "said"
    new_disk(disk)
    with mounted(disk, place / "before") as folder:
        prepared(folder / "project")
        call = [sys.executable, str(HERE), "agent", str(folder / "project"), str(seed), flushes]
        with log.open("wb") as output:
            process = subprocess.Popen(call, stdout=output)
        while not log.stat().st_size:  # it has begun
            time.sleep(0.05)
        time.sleep(wait)
        process.send_signal(signal.SIGSTOP)
        said = log.read_text().splitlines()
        subprocess.run(["cp", "--sparse=always", str(disk), str(copy)], check=True)
        process.kill()
        process.wait()
    return said


def cut(place: Path, seed: int, flushes: str, wait: float) -> Cut:
    copy = place / "copy"
    said = said_before_the_cut(place, copy, seed, flushes, wait)
    replaced = {line[1:] for line in said if line.startswith("-")}
    facts = {line for line in said if not line.startswith("-")} - replaced
    try:
        with mounted(copy, place / "after") as folder:
            found, troubles = state(folder / "project")
    except subprocess.CalledProcessError as error:
        return Cut(len(facts), sorted(facts), [str(error)])
    # The agent may have corrected the last fact, and not have said so yet.
    last = said[-1].removeprefix("Fact ") if said else ""
    known = found | ({f"Fact {last}"} if f"Corrected {last}" in found else set())
    return Cut(len(facts), sorted(facts - known), troubles)


def state(root: Path) -> tuple[set[str], list[str]]:
    """The facts of a memory, and what is wrong with it."""
    from processes import rebuilt_digest

    from loki_memory import Workspace
    from loki_memory.errors import LokiMemoryError

    troubles = []
    try:
        with Workspace.open(root) as workspace:
            workspace.remember("Written after the cut")
            workspace.sync()
            titles = {memory.title() for memory in workspace.list(kind="fact", status="all")}
            troubles += [str(problem) for problem in workspace.care.problems()]
            if workspace.index.digest() != rebuilt_digest(workspace):
                troubles.append("the index differs from a rebuilt one")
    except LokiMemoryError as error:
        return set(), [str(error)]
    call = ["git", "-C", str(root), "fsck"]
    checked = subprocess.run(call, capture_output=True, text=True, check=False)
    return titles, troubles + ([checked.stderr] if checked.returncode else [])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without-flush", action="store_true")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    cuts: list[Cut] = []
    for number in range(options.cuts):
        with tempfile.TemporaryDirectory() as place:
            os.environ.update(LOKI_HOME=f"{place}/home", HOME=place, CI="1")
            for who in ("AUTHOR", "COMMITTER"):
                os.environ.update({f"GIT_{who}_NAME": "ana", f"GIT_{who}_EMAIL": "a@example.org"})
            flushes = "no" if options.without_flush else "yes"
            cuts.append(cut(Path(place), number, flushes, chance.uniform(0.2, 4)))
        for trouble in cuts[-1].troubles:
            print(f"cut {number}: {trouble}", flush=True)
    lost = sum(len(each.lost) for each in cuts)
    troubles = sum(len(each.troubles) for each in cuts)
    acknowledged = sum(each.acknowledged for each in cuts)
    print(f"{len(cuts)} cuts: {acknowledged} acknowledged, {lost} lost, {troubles} troubles")
    return int(bool(lost or troubles))


if __name__ == "__main__":
    if sys.argv[1:2] == ["agent"]:
        agent(*sys.argv[2:])
    else:
        sys.exit(main())
