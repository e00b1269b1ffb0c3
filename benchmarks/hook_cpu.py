"""The CPU time of hooks beside their bars: `python benchmarks/hooks.py --cpu`.

CPU time and not the clock, so that a busy machine changes little. All commands are run in turns, so
that a busy minute slows the floor as much as the hooks. A hook is a process as a client starts it,
in a session of its own; what it hands over to a process of its own is not counted. Measured are a
folder without memory, a small memory and a large one, each without a daemon and, where there is
memory, with one. The daemon keeps count of what it answered: a hook that ran alone beside it would
show there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from table import print_lines

_BARE = [sys.executable, "-c", "pass"]
_NUMPY = [sys.executable, "-c", "import numpy"]
_PROGRAM = str(Path(sys.executable).with_name("loki-mem"))
_TRANSCRIPT = "/nowhere/session.jsonl"  # clients keep one
_START_MS, _NO_MEMORY_MS = 300.0, 45.0
_TIMES_NUMPY, _TIMES_BARE = 1.4, 1.6
# A prompt that no lesson bears on, as most are, and one that shares words with some.
_EVENTS: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup"},
    "UserPromptSubmit": {
        "prompt": "The billing export fails with a timeout, find out why and fix it"
    },
    "UserPromptSubmit, lines": {
        "prompt": "HTTP 409 again: the store was changed by another request, and order is lost"
    },
    "PreToolUse": {"tool_name": "Edit", "tool_input": {"file_path": "src/billing/export.py"}},
}

Key = TypeVar("Key")
Environment = Mapping[str, str]
Command = tuple[list[str], str, Mapping[str, Any]]  # words, folder, fields of the event


class CpuRow(NamedTuple):
    """The median CPU time of a hook, and the most that it should be."""

    memory: str
    event: str
    daemon: str
    ms: float
    bar_ms: float

    def cells(self) -> tuple[str, ...]:
        said = "met" if self.ms <= self.bar_ms else "MISSED"
        times = (f"{self.ms:.0f} ms", f"{self.bar_ms:.0f} ms")
        return (self.memory, self.event, self.daemon, *times, said)


def measure(
    folders: Mapping[str, Path], rounds: int, environment: Callable[[], Environment]
) -> bool:
    """Measure the hooks in each folder and print a table; returns True if all bars are met.

    `folders` are named after the memory in them; one without memory has the name "none".
    """
    quiet = {**environment(), "CI": "1"}  # a session starts no daemon
    bare, numpy, rows = _without_daemon(folders, rounds, quiet)
    print(f"CPU, median of {rounds}: bare python {bare:.0f} ms, with numpy {numpy:.0f} ms")
    for name, folder in folders.items():
        if name != "none":
            rows += _with_daemon(name, folder, rounds, quiet)
    print_lines(("memory", "hook", "daemon", "CPU", "at most", ""), [row.cells() for row in rows])
    return all(row.ms <= row.bar_ms for row in rows)


def _without_daemon(
    folders: Mapping[str, Path], rounds: int, environment: Environment
) -> tuple[float, float, list[CpuRow]]:
    commands = {("", "bare"): _floor(_BARE), ("", "numpy"): _floor(_NUMPY)}
    for name, folder in folders.items():
        commands |= {(name, event): _hook(folder, event) for event in _EVENTS}
    found = _medians(commands, rounds, environment)
    bare, numpy = found.pop(("", "bare")), found.pop(("", "numpy"))
    rows = [
        CpuRow(name, event, "no", ms, _bar(name, event, numpy))
        for (name, event), ms in found.items()
    ]
    return bare, numpy, rows


def _bar(name: str, event: str, numpy: float) -> float:
    if name == "none":
        return _NO_MEMORY_MS
    return _START_MS if event == "SessionStart" else _TIMES_NUMPY * numpy


def _with_daemon(
    name: str, folder: Path, rounds: int, environment: Environment
) -> Iterator[CpuRow]:
    """The hooks that a daemon answers, beside a bare Python; SessionStart always runs alone."""
    program = [_PROGRAM, "-C", str(folder), "--json", "daemon"]
    subprocess.run([*program, "start"], check=True, env=environment, capture_output=True)
    events = [event for event in _EVENTS if event != "SessionStart"]
    try:
        commands = {event: _hook(folder, event) for event in events} | {"bare": _floor(_BARE)}
        before = _answered(program, environment)
        found = _medians(commands, rounds, environment)
        answered = _answered(program, environment) - before
    finally:
        subprocess.run([*program, "stop"], check=True, env=environment, capture_output=True)
    asked = len(events) * (rounds + 1)
    print(f"{name} memories: the daemon answered {answered} of {asked} hooks")
    bare = found.pop("bare")
    for event, ms in found.items():
        yield CpuRow(name, event, "yes", ms, _TIMES_BARE * bare)


def _answered(program: Sequence[str], environment: Environment) -> int:
    """The number of commands that a daemon has answered."""
    said = subprocess.run([*program, "status"], check=True, env=environment, capture_output=True)
    number: int = json.loads(said.stdout)["state"]["answered"]
    return number


def _floor(command: list[str]) -> Command:
    return command, "/", {}


def _hook(folder: Path, event: str) -> Command:
    fields = {"cwd": str(folder), "transcript_path": _TRANSCRIPT, **_EVENTS[event]}
    return [_PROGRAM, "hook", event.partition(",")[0]], str(folder), fields


def _medians(
    commands: Mapping[Key, Command], rounds: int, environment: Environment
) -> dict[Key, float]:
    """The median CPU time of each command in ms, run in turns; the first turn fills caches."""
    times: dict[Key, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, (words, folder, fields) in commands.items():
            data = json.dumps({"session_id": str(UUID(int=turn)), **fields}).encode()
            times[name].append(_cpu_ms(words, folder, data, environment))
    return {name: median(each[1:]) for name, each in times.items()}


def _cpu_ms(command: Sequence[str], folder: str, data: bytes, environment: Environment) -> float:
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=environment,
    )
    if process.stdin:
        with suppress(BrokenPipeError), process.stdin as stdin:  # the floor reads nothing
            stdin.write(data)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return 1000 * (used.ru_utime + used.ru_stime)
