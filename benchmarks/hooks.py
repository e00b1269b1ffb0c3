"""How long a session waits for a hook, beside the least that a hook could take.

    python benchmarks/hooks.py [--memories 10000] [--rounds 15] [--daemon] [--json FILE]
    python benchmarks/hooks.py --cpu [--memories 10000] [--rounds 25]

`--cpu` prints CPU times beside their bars (`hook_cpu.py`); the rest is about the clock.

`UserPromptSubmit` runs before every prompt: a process is started, recalls among so many memories,
and prints a few lines. Its floor is a Python that imports numpy, which recall needs, and does
nothing. `--daemon` starts `loki-mem daemon` for the store and measures the same once more; then the
floor is a Python that does nothing at all. The other rows are hooks in which a session waits too.
All of them are measured in turns, as processes of their own, held to one BLAS thread.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hook_cpu
from foundation import Stores
from table import Row, Task, compared, in_turns, limited, machine, print_table, say, write_json

import loki_memory
from loki_memory import Workspace

HERE = Path(__file__).resolve().parent
BARE = [sys.executable, "-c", "pass"]
NUMPY = [sys.executable, "-c", "import numpy"]
PROMPT = "The billing export fails with a timeout, find out why and fix it"
ERROR = "HTTP 409: the record was changed by another request"
AT_MOST, WITH_DAEMON = 1.5, 2.0  # times the floor
PATIENCE_SECONDS = 60
SMALL = 30  # memories of a project that has just begun
END_SECONDS = 0.75  # half of what Claude Code gives a plugin's SessionEnd


class Session:
    """A harness that fires hooks at a project."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self._program = [str(Path(sys.executable).with_name("loki-mem")), "hook"]

    def fire(self, name: str, number: int, **fields: Any) -> str:
        """A hook as a process; every session is a new one, so that nothing was told before."""
        given = {
            "session_id": f"session-{number}",
            "cwd": str(self.project),
            "transcript_path": "/nowhere/session.jsonl",
            **fields,
        }
        return run([*self._program, name], json.dumps(given).encode())

    def task(self, name: str, **fields: Any) -> Task:
        return lambda number: self.fire(name, number, **fields)


def run(command: Sequence[str], data: bytes = b"") -> str:
    done = subprocess.run(command, input=data, check=True, capture_output=True, env=environment())
    if done.stderr:
        sys.exit(f"{command}: {done.stderr.decode()}")
    return done.stdout.decode()


def environment() -> dict[str, str]:
    """Compiled modules are read, as an installed program does."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def bare(_: int) -> object:
    return run(BARE)


def numpy(_: int) -> object:
    return run(NUMPY)


def cold(session: Session, size: int, rounds: int) -> list[Row]:
    """Hooks without a daemon, all in one run."""
    tasks = {
        "bare": bare,
        "numpy": numpy,
        "UserPromptSubmit": session.task("UserPromptSubmit", prompt=PROMPT),
        "PostToolUse": session.task("PostToolUse", tool_name="Bash"),
        "PostToolUseFailure": session.task("PostToolUseFailure", tool_name="Bash", error=ERROR),
        "SessionStart": session.task("SessionStart", source="startup"),
    }
    found = dict(zip(tasks, in_turns(list(tasks.values()), rounds), strict=True))
    floor, prompt = found["numpy"], found["UserPromptSubmit"]
    return [
        compared("python + numpy (floor: python)", size, floor, found["bare"]),
        compared("UserPromptSubmit (floor: python + numpy)", size, prompt, floor, at_most=AT_MOST),
        compared("PostToolUse (floor: python)", size, found["PostToolUse"], found["bare"]),
        compared(
            "PostToolUseFailure (floor: python)", size, found["PostToolUseFailure"], found["bare"]
        ),
        compared("SessionStart (floor: python + numpy)", size, found["SessionStart"], floor),
    ]


def ended(session: Session, local: Path, size: int, rounds: int) -> Row:
    """Apart from the others: what it hands over goes on while the next one is measured."""
    ours, floor = in_turns([session.task("SessionEnd", reason="other"), bare], rounds, warm=1)
    until = time.monotonic() + PATIENCE_SECONDS
    while (local / "hooks.log").read_text(encoding="utf-8").count("not taken") <= rounds:
        if time.monotonic() > until:
            sys.exit("what SessionEnd handed over has not come to its end")
        time.sleep(0.1)
    return limited(compared("SessionEnd (floor: python)", size, ours, floor), END_SECONDS)


def with_daemon(session: Session, size: int, rounds: int) -> Row:
    """The same question, answered by a process that is there already."""
    program = [str(Path(sys.executable).with_name("loki-mem")), "-C", str(session.project)]
    subprocess.run([*program, "daemon", "start"], check=True, env=environment())
    try:
        ask = session.task("UserPromptSubmit", prompt=PROMPT)
        ours, floor = in_turns([ask, bare], rounds, warm=3)
    finally:
        subprocess.run([*program, "daemon", "stop"], check=True, env=environment())
    what = "UserPromptSubmit, daemon (floor: python)"
    return compared(what, size, ours, floor, at_most=WITH_DAEMON)


def prepared(folder: Path, size: int) -> Workspace:
    """A store whose vectors are there, as after the first recall."""
    stores = Stores(folder)
    workspace = stores.indexed(size)
    workspace.recall(PROMPT)
    stores.settle(workspace)
    return workspace


def main() -> int:
    given = _options()
    compileall.compile_dir(Path(loki_memory.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory(prefix="loki-memory-", dir=given.folder) as name:
        os.environ["LOKI_HOME"] = f"{name}/home/.loki"
        if given.cpu:
            return int(not _cpu(Path(name), given.memories, given.rounds))
        workspace = prepared(Path(name), given.memories)
        session = Session(workspace.layout.root)
        if "additionalContext" not in session.fire("UserPromptSubmit", 0, prompt=PROMPT):
            sys.exit("the prompt is told nothing: this would measure nothing")
        say("hooks …")
        rows = cold(session, given.memories, given.rounds)
        rows.append(ended(session, workspace.layout.local, given.memories, given.rounds))
        if given.daemon:
            rows.append(with_daemon(session, given.memories, given.rounds))
        where = machine(Path(name))
    print_table(rows)
    print(f"\n{', '.join(f'{name} {value}' for name, value in where.items())}")
    write_json(given.json, rows, {"version": loki_memory.__version__, "machine": where})
    return int(any(row.ok is False for row in rows))


def _cpu(folder: Path, size: int, rounds: int) -> bool:
    """CPU times without memory, with a small memory and with a large one."""
    folders = {"none": folder / "none"}
    folders["none"].mkdir()
    for memories in (SMALL, size):
        say(f"a store of {memories:,} memories …")
        place = folder / str(memories)
        place.mkdir()
        workspace = prepared(place, memories)
        folders[f"{memories:,}"] = workspace.layout.root
        workspace.close()
    return hook_cpu.measure(folders, rounds, environment)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--daemon", action="store_true", help="also with a daemon")
    parser.add_argument("--cpu", action="store_true", help="CPU times beside their bars")
    parser.add_argument("--json", type=Path, default=HERE / "results" / "hooks.json")
    parser.add_argument("--folder", type=Path, default=HERE.parent.parent)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
