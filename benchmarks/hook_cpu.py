"""The CPU time of hooks beside their bars: `python benchmarks/hooks.py --cpu`.

CPU time and not the clock, so that a busy machine changes little. A hook is a process as a client
starts it; what it hands over to a process of its own is not counted. Measured are a folder without
memory, a small memory and a large one, each without a daemon and, where there is memory, with one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from table import print_lines

_BARE = [sys.executable, "-c", "pass"]
_NUMPY = [sys.executable, "-c", "import numpy"]
_PROGRAM = str(Path(sys.executable).with_name("loki-mem"))
_START_MS, _NO_MEMORY_MS = 300.0, 45.0
_TIMES_NUMPY, _TIMES_BARE = 1.4, 1.6
_EVENTS: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup"},
    "UserPromptSubmit": {
        "prompt": "The billing export fails with a timeout, find out why and fix it"
    },
    "PreToolUse": {"tool_name": "Edit", "tool_input": {"file_path": "src/billing/export.py"}},
}

Environment = Mapping[str, str]


class CpuRow(NamedTuple):
    """The median CPU time of a hook, and the most that it should be."""

    memory: str
    event: str
    daemon: str
    ms: float
    bar_ms: float

    def cells(self) -> tuple[str, ...]:
        said = "met" if self.ms <= self.bar_ms else "MISSED"
        return (
            self.memory,
            self.event,
            self.daemon,
            f"{self.ms:.0f} ms",
            f"{self.bar_ms:.0f} ms",
            said,
        )


def measure(
    folders: Mapping[str, Path], rounds: int, environment: Callable[[], Environment]
) -> bool:
    """Measure the hooks in each folder and print a table; returns True if all bars are met.

    `folders` are named after the memory in them; one without memory has the name "none".
    """
    quiet = {**environment(), "CI": "1"}  # a session starts no daemon
    bare = _median_ms(_BARE, b"", rounds, quiet)
    numpy = _median_ms(_NUMPY, b"", rounds, quiet)
    rows: list[CpuRow] = []
    for name, folder in folders.items():
        rows += _rows(name, folder, rounds, quiet, _bars(name, numpy))
        if name != "none":
            rows += _with_daemon(name, folder, rounds, quiet, bare)
    print(f"CPU, median of {rounds}: bare python {bare:.0f} ms, with numpy {numpy:.0f} ms\n")
    print_lines(("memory", "hook", "daemon", "CPU", "at most", ""), [row.cells() for row in rows])
    return all(row.ms <= row.bar_ms for row in rows)


def _bars(name: str, numpy: float) -> dict[str, float]:
    if name == "none":
        return dict.fromkeys(_EVENTS, _NO_MEMORY_MS)
    return {**dict.fromkeys(_EVENTS, _TIMES_NUMPY * numpy), "SessionStart": _START_MS}


def _rows(
    name: str, folder: Path, rounds: int, environment: Environment, bars: Mapping[str, float]
) -> Iterator[CpuRow]:
    for event, fields in _EVENTS.items():
        given = {"session_id": "session", "cwd": str(folder), **fields}
        data = json.dumps(given).encode()
        ms = _median_ms([_PROGRAM, "hook", event], data, rounds, environment)
        yield CpuRow(name, event, "no", ms, bars[event])


def _with_daemon(
    name: str, folder: Path, rounds: int, environment: Environment, bare: float
) -> Iterator[CpuRow]:
    program = [_PROGRAM, "-C", str(folder), "daemon"]
    subprocess.run([*program, "start"], check=True, env=environment, capture_output=True)
    try:
        bars = {**dict.fromkeys(_EVENTS, _TIMES_BARE * bare), "SessionStart": _START_MS}
        for row in _rows(name, folder, rounds, environment, bars):
            yield row._replace(daemon="yes")
    finally:
        subprocess.run([*program, "stop"], check=True, env=environment, capture_output=True)


def _median_ms(command: Sequence[str], data: bytes, rounds: int, environment: Environment) -> float:
    """The median CPU time of a command; it is run once before, to fill caches."""
    times = [_cpu_ms(command, data, environment) for _ in range(rounds + 1)]
    return median(times[1:])


def _cpu_ms(command: Sequence[str], data: bytes, environment: Environment) -> float:
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    if process.stdin:
        with process.stdin as stdin:
            stdin.write(data)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return 1000 * (used.ru_utime + used.ru_stime)
