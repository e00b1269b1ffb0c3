"""What benchmarks share: timing things in turns, rows with a bar, a table, and JSON.

Machines are noisy, and what slows one measurement down should slow its floor down too. So a thing
and its floor are timed in turns, each round gives one ratio, and the median of the ratios counts.
"""

from __future__ import annotations

import gc
import json
import math
import os
import platform
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Task = Callable[[int], object]  # is given the number of the round


class Spread(NamedTuple):
    """Several measurements of one thing."""

    median: float
    min: float
    p95: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        ordered = sorted(values)
        rank = math.ceil(0.95 * len(ordered)) - 1
        return cls(statistics.median(ordered), ordered[0], ordered[rank])


class Row(NamedTuple):
    """One line of the table. Values are seconds, or what `unit` says."""

    what: str
    size: int
    unit: str
    ours: Spread
    floor: Spread | None = None
    ratio: float | None = None  # median of the rounds' ratios, not ratio of the medians
    bar: str = ""
    ok: bool | None = None  # None where there is no bar


def compared(
    what: str,
    size: int,
    ours: Sequence[float],
    floor: Sequence[float],
    *,
    at_most: float | None = None,
    unit: str = "s",
) -> Row:
    """A row whose bar, if it has one, is a multiple of its floor."""
    ratio = statistics.median(a / b for a, b in zip(ours, floor, strict=True))
    bar, ok = ("", None) if at_most is None else (f"<= {at_most:g} x", ratio <= at_most)
    return Row(what, size, unit, Spread.of(ours), Spread.of(floor), ratio, bar, ok)


def limited(row: Row, at_most: float) -> Row:
    """The row with a bar on its own median instead."""
    return row._replace(bar=f"<= {_shown(at_most, row.unit)}", ok=bool(row.ours.median <= at_most))


def in_turns(tasks: Sequence[Task], rounds: int, warm: int = 1) -> list[list[float]]:
    """Time each task once per round; return the seconds of each task.

    Every other round runs in reverse, so that none always follows the same other one. The first
    `warm` rounds fill caches and do not count.
    """
    seconds: list[list[float]] = [[] for _ in tasks]
    order = list(range(len(tasks)))
    gc.collect()
    gc.freeze()  # what the benchmark itself holds is no part of what is measured
    for number in range(warm + rounds):
        for task in order:
            start = time.perf_counter()
            tasks[task](number)
            seconds[task].append(time.perf_counter() - start)
        order.reverse()
    gc.unfreeze()
    return [times[warm:] for times in seconds]


def print_table(rows: Iterable[Row]) -> None:
    """Print rows as a Markdown table that is also readable as it stands."""
    head = ("what", "size", "median", "min", "p95", "floor", "ratio", "min/min", "bar", "ok")
    print_lines(head, map(_cells, rows))


def print_lines(head: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    """Print any lines of text as such a table."""
    lines = [head, *lines]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for number, line in enumerate(lines):
        print(f"| {' | '.join(_aligned(line, widths))} |")
        if number == 0:
            print(
                f"|{'|'.join('-' * (width + 1) + '-:'[i > 0] for i, width in enumerate(widths))}|"
            )


def _aligned(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    """The first column to the left, numbers to the right."""
    return [
        cell.rjust(width) if column else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.what,
        f"{row.size:,}",
        *(_shown(value, row.unit) for value in row.ours),
        _shown(row.floor.median, row.unit) if row.floor else "",
        "" if row.ratio is None else f"{row.ratio:.2f}",
        "" if row.floor is None else f"{row.ours.min / row.floor.min:.2f}",
        row.bar,
        {None: "", True: "ok", False: "MISSED"}[row.ok],
    )


def _shown(value: float, unit: str) -> str:
    if unit != "s":
        return f"{value:,.0f} {unit}"
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.1f} ms" if value >= 0.01 else f"{value * 1e3:.2f} ms"


def write_json(path: Path, rows: Iterable[Row], about: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**about, "rows": [_as_json(row) for row in rows]}, indent=2)
    path.write_text(f"{text}\n", encoding="utf-8")


def _as_json(row: Row) -> dict[str, Any]:
    floor = row.floor._asdict() if row.floor else None
    return {**row._asdict(), "ours": row.ours._asdict(), "floor": floor}


def machine(folder: Path) -> dict[str, Any]:
    """What the numbers depend on, without what would tell whose machine it is."""
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "file_system": file_system(folder),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "load": round(os.getloadavg()[0], 1),
    }


def _processor() -> str:
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def file_system(folder: Path) -> str:
    """The type of the file system that a folder lies on; empty where nothing tells."""
    mounts = Path("/proc/self/mounts")
    if not mounts.exists():
        return ""
    lines = (line.split() for line in mounts.read_text(encoding="utf-8").splitlines())
    points = {line[1].replace("\\040", " "): line[2] for line in lines}
    above = (folder.resolve(), *folder.resolve().parents)
    return next((points[str(parent)] for parent in above if str(parent) in points), "")


def say(text: str) -> None:
    """Tell whoever waits what is going on, apart from the results."""
    print(text, file=sys.stderr, flush=True)
