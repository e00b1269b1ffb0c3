"""What it costs to say in terms of belief what changed.

    python benchmarks/history/diff.py [--size 10000] [--changed 1000] [--rounds 7] [--json FILE]

A store of so many records, committed. Then so many beliefs change: of four, two get another
episode as evidence, one gets other words, and one moves to the archive. Measured are `diff` with
the change in the working tree, and between two commits once it is committed; `check` of the same
span; and the whole command as a process. The floor is `git diff` of the same: the text that a
reviewer would have to read instead.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from foundation import write_records
from table import Row, compared, in_turns, limited, machine, print_table, say, write_json

import loki_memory
from loki_memory import Workspace
from loki_memory.files.codec import decode, encode
from loki_memory.files.layout import place
from loki_memory.history.check import check
from loki_memory.history.review import diff

HERE = Path(__file__).resolve().parent
BAR = 2.0  # seconds for a thousand changed records
SPAN = "HEAD^..HEAD"


def git(root: Path, *args: str) -> bytes:
    command = ["git", "-c", "user.name=Bench", "-c", "user.email=bench@example.org", *args]
    return subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE).stdout


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "--quiet", "-m", "memory")


def store(folder: Path, size: int) -> Workspace:
    """A repository with so many records, committed."""
    say(f"building a repository of {size:,} records …")
    git(folder, "init", "--quiet")
    workspace = Workspace.init(folder)
    write_records(workspace, size)
    commit(folder)
    return workspace


def change(workspace: Workspace, number: int) -> None:
    """Change so many beliefs, always the same ones."""
    memory = workspace.layout.memory
    episodes = sorted(
        f"ep-{path.parent.name}-{path.stem.rpartition('-')[2]}"
        for path in memory.glob("episodic/*/*.json")
    )
    for count, path in enumerate(_beliefs(memory, number)):
        record = decode(path, (memory / path).read_bytes())
        if count % 4 == 3:
            target = memory / "archive" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            (memory / path).rename(target)
            continue
        known = getattr(record, "source_episodes", [])
        fields = {"source_episodes": [*known, episodes[count % len(episodes)]], "confidence": 0.9}
        new = record.changed(**(fields if count % 4 < 2 else {"category": "changed", "why": "x"}))
        (memory / place(record)).write_bytes(encode(new))


def _beliefs(memory: Path, number: int) -> Iterator[str]:
    found = (path.relative_to(memory).as_posix() for path in memory.glob("semantic/*/*.json"))
    yield from sorted(found)[:number]


def measure(workspace: Workspace, changed: int, rounds: int) -> list[Row]:
    root = workspace.layout.root
    rows = _timed("diff, working tree", workspace, None, changed, rounds)
    commit(root)
    rows += _timed("diff, two commits", workspace, SPAN, changed, rounds)
    return rows


def _timed(what: str, ws: Workspace, span: str | None, changed: int, rounds: int) -> list[Row]:
    root = ws.layout.root
    asked = ("diff", "HEAD") if span is None else ("diff", *span.split(".."))
    program = [str(Path(sys.executable).with_name("loki-mem")), "diff", span or "HEAD"]
    tasks: dict[str, Callable[[int], object]] = {
        what: lambda _: diff(ws, span),
        f"{what}, as Markdown": lambda _: diff(ws, span).markdown(),
        f"{what}, whole command": lambda _: subprocess.run(
            program, cwd=root, check=True, stdout=subprocess.DEVNULL
        ),
        what.replace("diff", "check"): lambda _: check(ws, span or "HEAD"),
    }
    times = in_turns([*tasks.values(), lambda _: git(root, *asked, "--", ".loki/memory")], rounds)
    rows = [
        compared(name, changed, one, times[-1]) for name, one in zip(tasks, times, strict=False)
    ]
    return [limited(row, BAR) if row.what.startswith("diff") else row for row in rows]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--size", type=int, default=10_000)
    options.add_argument("--changed", type=int, default=1_000)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--json", type=Path, default=HERE.parent / "results" / "diff.json")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR"), prefix="diff-") as folder:
        workspace = store(Path(folder), given.size)
        change(workspace, given.changed)
        shifts = len(diff(workspace).shifts)
        say(f"{shifts:,} shifts of {given.changed:,} changed records")
        rows = measure(workspace, given.changed, given.rounds)
        about = {"version": loki_memory.__version__, "machine": machine(Path(folder))}
    print_table(rows)
    write_json(given.json, rows, about)
    return int(any(row.ok is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
