"""What verifying costs, and what the witness adds to a write.

    python benchmarks/history/verify.py [--size 10000] [--rounds 7] [--json FILE]

A repository with so many memories, a tenth of them corrected once, committed in ten commits that
anchor the chain of writes. `verify` reads every record and every line; its floor is to read and
hash the same files. The rows "write" time one durable write with and without its line in the chain,
in turns.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from table import Row, compared, in_turns, limited, machine, print_table, say, write_json

import loki_memory
from loki_memory import Fact, Workspace
from loki_memory.integrity import write_log
from loki_memory.integrity.verify import verify
from loki_memory.models import parse

HERE = Path(__file__).resolve().parent
COMMITS = 10
SECONDS = 2.0  # as long as somebody waits for an answer without wondering
SLOWER = 1.05  # a write may take with its line in the chain
WRITES = 300


def repository(root: Path, size: int) -> Workspace:
    """A workspace whose memories were written and committed in several runs."""
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "config", "user.name", "Bench")
    git(root, "config", "user.email", "bench@example.org")
    workspace = Workspace.init(root)
    for run in range(COMMITS):
        facts = [fact(number) for number in range(run, size, COMMITS)]
        with workspace.store.change() as change:
            for one in facts:
                change.put(one)
        with workspace.store.change() as change:
            for one in facts[: len(facts) // 10]:
                change.put(one.changed(category="corrected"))
        head = write_log.publish(workspace.store)
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "-m", f"run {run}", "--trailer", f"Loki-Head: {head}")
    workspace.sync()
    return workspace


def fact(number: int) -> Fact:
    text = f"Service {number} of the payment platform answers on port {number} and needs a token"
    return parse(Fact, {"statement": text, "category": "ports", "origin": "agent"})


def git(root: Path, *args: str) -> None:
    subprocess.run(["git", *args], cwd=root, check=True)


def hash_all(workspace: Workspace) -> None:
    for path in workspace.layout.memory.rglob("*"):
        if path.suffix in {".json", ".jsonl"}:
            hashlib.sha256(path.read_bytes()).digest()


def verifying(workspace: Workspace, size: int, rounds: int) -> Row:
    def ours(_: int) -> None:
        found = verify(workspace)
        if not found.well or found.records != size or found.anchors != COMMITS:
            raise SystemExit(f"this is not how it was written: {found}")

    seconds, floor = in_turns([ours, lambda _: hash_all(workspace)], rounds)
    return limited(compared("verify", size, seconds, floor), SECONDS)


def writing(workspace: Workspace, size: int) -> Row:
    """One write, as it is and with the witness looking away."""
    note = write_log.note

    def write(number: int, noting: Callable[..., None]) -> None:
        write_log.note = noting
        workspace.store.write(fact(number))

    def ours(number: int) -> None:
        write(size + 2 * number, note)

    def floor(number: int) -> None:
        write(size + 2 * number + 1, lambda *_: None)

    try:
        a, b = in_turns([ours, floor], WRITES, warm=10)
    finally:
        write_log.note = note
    return compared("write, with its line in the chain", size, a, b, at_most=SLOWER)


def main() -> None:
    options = _options()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="loki-memory-", dir=options.folder) as name:
        folder = Path(name)
        os.environ["LOKI_HOME"] = str(folder / "home" / ".loki")
        where = machine(folder)
        say(f"writing {options.size:,} memories …")
        with repository(folder / "repository", options.size) as workspace:
            say("verifying …")
            rows = [verifying(workspace, options.size, options.rounds)]
            rows.append(writing(workspace, options.size))
    print_table(rows)
    seconds = round(time.perf_counter() - start)
    about = {"version": loki_memory.__version__, "machine": where, "seconds": seconds}
    write_json(options.json, rows, about)
    sys.exit(any(row.ok is False for row in rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time the verification of memory.")
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", help="where the repository is made, instead of /tmp")
    parser.add_argument("--json", type=Path, default=HERE.parent / "results" / "verify.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
