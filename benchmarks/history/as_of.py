"""What it costs to recall from the memory of a commit, without a checkout.

    python benchmarks/history/as_of.py [--size 10000] [--changed 1000] [--rounds 5] [--json FILE]

A store of so many records in two commits, between which so many beliefs changed. Asked is the
older commit: cold, when its memory is laid out for the first time; and again, when that is kept.
The floor is the same question to the present memory. The way without this verb is measured too: a
worktree of the commit and an index that is built from nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from diff import change, commit, git, store
from table import Row, compared, in_turns, limited, machine, print_table, say, write_json

import loki_memory
from loki_memory import Workspace

HERE = Path(__file__).resolve().parent
BAR = 3.0  # seconds for ten thousand memories, cold
QUERY, REVISION = "word12 word77", "HEAD^"


def laid_out(workspace: Workspace) -> Path:
    """Where the memory of commits is kept once somebody asked for it."""
    return workspace.layout.cache / "as-of"


def asked(workspace: Workspace, *, cold: bool) -> list[str]:
    if cold:
        shutil.rmtree(laid_out(workspace), ignore_errors=True)
    with Workspace.open(workspace.layout.root) as fresh, fresh.history.as_of(REVISION) as past:
        return [hit.id for hit in past.recall(QUERY)]


def present(workspace: Workspace) -> list[str]:
    with Workspace.open(workspace.layout.root) as fresh:
        return [hit.id for hit in fresh.recall(QUERY)]


def by_worktree(workspace: Workspace) -> list[str]:
    """A checkout of the commit, and an index of its own."""
    root = workspace.layout.root
    place = root.with_name("worktree")
    git(root, "worktree", "add", "--quiet", "--detach", str(place), REVISION)
    try:
        with Workspace.open(place) as there:
            return [hit.id for hit in there.recall(QUERY)]
    finally:
        git(root, "worktree", "remove", "--force", str(place))


def command(workspace: Workspace, *, cold: bool) -> None:
    if cold:
        shutil.rmtree(laid_out(workspace), ignore_errors=True)
    program = str(Path(sys.executable).with_name("loki-mem"))
    line = [program, "recall", QUERY, "--as-of", REVISION]
    subprocess.run(line, cwd=workspace.layout.root, check=True, stdout=subprocess.DEVNULL)


def measure(workspace: Workspace, size: int, rounds: int) -> list[Row]:
    tasks: dict[str, Callable[[int], object]] = {
        "as-of, cold": lambda _: asked(workspace, cold=True),
        "as-of, again": lambda _: asked(workspace, cold=False),
        "as-of, cold, whole command": lambda _: command(workspace, cold=True),
        "as-of, again, whole command": lambda _: command(workspace, cold=False),
        "worktree and rebuild": lambda _: by_worktree(workspace),
    }
    times = in_turns([*tasks.values(), lambda _: present(workspace)], rounds)
    rows = [compared(name, size, one, times[-1]) for name, one in zip(tasks, times, strict=False)]
    return [limited(row, BAR) if "cold" in row.what else row for row in rows]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--size", type=int, default=10_000)
    options.add_argument("--changed", type=int, default=1_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--json", type=Path, default=HERE.parent / "results" / "as-of.json")
    given = options.parse_args()
    os.environ["LOKI_RECALL_FLOOR"] = "0"  # generated words answer nothing
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR"), prefix="as-of-") as folder:
        root = Path(folder) / "project"
        root.mkdir()
        workspace = store(root, given.size)
        change(workspace, given.changed)
        commit(root)
        found = asked(workspace, cold=True)
        if not found or found != by_worktree(workspace):
            say("as-of and a checkout disagree")
            return 1
        rows = measure(workspace, given.size, given.rounds)
        about = {"version": loki_memory.__version__, "machine": machine(Path(folder))}
    print_table(rows)
    write_json(given.json, rows, about)
    return int(any(row.ok is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
