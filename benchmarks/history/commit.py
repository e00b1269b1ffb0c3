"""What a commit of memory costs beside the same done by plain git.

    python benchmarks/history/commit.py [--sizes 10000,100000] [--rounds 15] [--json FILE]

A repository of so many files, a thousand of them memory. In each round ten records change and are
committed, once by us and once by `git commit --only -- .loki/memory`, in turns and in the same
repository. Ours also checks the records for secrets and half merges, says in the message what
changed in terms of belief, publishes the chain of writes, and is flushed to the disk.

The rows "in process" count what a commit adds to a command that runs already (`consolidate`); the
rows "whole command" count `loki-mem commit` from its start to its end, imports and sync included.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from table import Row, compared, machine, print_table, say, write_json

import loki_memory
from loki_memory import Workspace
from loki_memory.history.commit import commit

HERE = Path(__file__).resolve().parent
SIZES = (10_000, 100_000)
MEMORIES, CHANGED = 1_000, 10
AT_MOST = 1.3
PLAIN = ("git", "commit", "--quiet", "--only", "-m", "memory", "--", ".loki/memory")


def repository(folder: Path, files: int) -> Path:
    """A repository with so many files, of which a thousand are memory."""
    root = folder / f"repository-{files}"
    root.mkdir()
    for command in (
        ("init", "--quiet", "--initial-branch=main"),
        ("config", "user.name", "Bench"),
        ("config", "user.email", "bench@example.org"),
    ):
        git(root, *command)
    stream = b"".join(_stream(files - MEMORIES))
    subprocess.run(["git", "fast-import", "--quiet"], cwd=root, input=stream, check=True)
    git(root, "reset", "--quiet", "--hard")
    return root


def _stream(files: int) -> list[bytes]:
    """One commit of so many files in two thousand folders, as fast-import reads it."""
    head = b"commit refs/heads/main\ncommitter Bench <bench@example.org> 1767225600 +0000\ndata 0\n"
    lines = [head]
    for number in range(files):
        data = b"# line of file %d\n" % number * 20
        name = b"src/%02d/%02d/file%06d.py" % (number % 50, number // 50 % 40, number)
        lines.append(b"M 100644 inline %b\ndata %d\n%b\n" % (name, len(data), data))
    return lines


def git(root: Path, *args: str) -> None:
    subprocess.run(["git", *args], cwd=root, check=True)


def learned(workspace: Workspace) -> list[str]:
    """A thousand episodes; their ids."""
    told = [
        {
            "goal": f"Make part {number} of the service faster",
            "outcome": "success",
            "task_id": f"task-{number}",
            "timestamp": "2026-01-06T10:00:00Z",
        }
        for number in range(MEMORIES)
    ]
    return [one.id for one in workspace.record(told)]


class Rounds:
    """Ten records change, then somebody commits them; only the commit is timed."""

    def __init__(self, workspace: Workspace, ids: list[str]) -> None:
        self._workspace, self._ids, self._turn = workspace, ids, 0

    def change(self) -> None:
        self._turn += 1
        start = self._turn * CHANGED % len(self._ids)
        for name in self._ids[start : start + CHANGED]:
            self._workspace.correct(name, duration_seconds=self._turn)
        self._workspace.sync()

    def time(self, rounds: int, *ways: Callable[[], object]) -> list[list[float]]:
        """The seconds of each way; every other round in reverse, the first does not count."""
        seconds: list[list[float]] = [[] for _ in ways]
        order = list(range(len(ways)))
        for _ in range(rounds + 1):
            for way in order:
                self.change()
                start = time.perf_counter()
                ways[way]()
                seconds[way].append(time.perf_counter() - start)
            order.reverse()
        return [times[1:] for times in seconds]


def measured(folder: Path, size: int, rounds: int) -> list[Row]:
    say(f"making a repository of {size:,} files …")
    root = repository(folder, size)
    with Workspace.init(root) as workspace:
        ids = learned(workspace)
        commit(workspace)

        def ours() -> None:
            done = commit(workspace)
            if len(done.paths) < CHANGED or not done.commit:
                raise SystemExit(f"nothing was committed: {done}")

        def whole() -> None:
            subprocess.run([_program(), "commit"], cwd=root, check=True, capture_output=True)

        def plain() -> None:
            subprocess.run(PLAIN, cwd=root, check=True)

        say(f"committing in {size:,} files …")
        turns = Rounds(workspace, ids)
        a, b = turns.time(rounds, ours, plain)
        c, d = turns.time(max(3, rounds // 3), whole, plain)
    shutil.rmtree(root)
    return [
        compared("commit, in process", size, a, b, at_most=AT_MOST),
        compared("commit, whole command", size, c, d),
    ]


def _program() -> str:
    beside = Path(sys.executable).parent / "loki-mem"
    return str(beside) if beside.exists() else "loki-mem"


def main() -> None:
    options = _options()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="loki-memory-", dir=options.folder) as name:
        folder = Path(name)
        os.environ["LOKI_HOME"] = str(folder / "home" / ".loki")
        where = machine(folder)
        rows = [row for size in options.sizes for row in measured(folder, size, options.rounds)]
    print_table(rows)
    seconds = round(time.perf_counter() - start)
    about = {"version": loki_memory.__version__, "machine": where, "seconds": seconds}
    write_json(options.json, rows, about)
    sys.exit(any(row.ok is False for row in rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time commits of memory.")
    parser.add_argument(
        "--sizes", type=lambda text: [int(n) for n in text.split(",")], default=SIZES
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--folder", help="where the repositories are made, instead of /tmp")
    parser.add_argument("--json", type=Path, default=HERE.parent / "results" / "commit.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
