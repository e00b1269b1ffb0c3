"""What the benchmarks of recall share: a place of their own, bars, tables and JSON."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1]))  # the scripts are no package
from table import (
    Row,
    Spread,
    compared,
    in_turns,
    limited,
    machine,
    print_lines,
    print_table,
    say,
)

import loki_memory

__all__ = [
    "Bar",
    "Row",
    "Spread",
    "add_options",
    "at_least",
    "at_most",
    "compared",
    "finish",
    "in_turns",
    "limited",
    "machine",
    "number",
    "print_lines",
    "print_table",
    "say",
    "workplace",
]


class Bar(NamedTuple):
    """What was to be reached, and what was."""

    what: str
    wanted: str
    got: float
    met: bool


def at_least(what: str, got: float, wanted: float) -> Bar:
    return Bar(what, f">= {wanted:g}", got, round(got, 4) >= wanted)


def at_most(what: str, got: float, wanted: float) -> Bar:
    return Bar(what, f"<= {wanted:g}", got, round(got, 4) <= wanted)


def number(value: float) -> str:
    """A share, as retrieval papers print them: .726"""
    return f"{value:.3f}".removeprefix("0")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, help="write all results to this file, as JSON")
    parser.add_argument("--quick", action="store_true", help="a small part of it, without bars")


@contextmanager
def workplace(parent: Path | None = None) -> Iterator[Path]:
    """A temporary folder for stores. The user's own memory and settings play no part."""
    kept = {"LOKI_BENCH_DATA", "LOKI_EMBEDDING_MODEL", "LOKI_RECALL_FLOOR"}
    for name in [name for name in os.environ if name.startswith("LOKI_") and name not in kept]:
        del os.environ[name]
    if parent:
        parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="loki-memory-", dir=parent) as name:
        os.environ["LOKI_HOME"] = str(Path(name) / "home" / ".loki")
        yield Path(name)


def finish(
    bars: Sequence[Bar],
    results: dict[str, Any],
    options: argparse.Namespace,
    started: float,
) -> None:
    """Print the bars, write the JSON, and exit with 1 if a bar was missed."""
    if options.quick:
        bars = ()
    if bars:
        print()
        print_lines(("bar", "wanted", "got", ""), _bar_lines(bars))
    seconds = round(time.perf_counter() - started)
    where = machine(Path(tempfile.gettempdir()))
    print(f"\n{', '.join(f'{name} {value}' for name, value in where.items())}; {seconds} s in all")
    if options.out:
        about = {"version": loki_memory.__version__, "machine": where, "seconds": seconds}
        document = {**about, "bars": [bar._asdict() for bar in bars], **results}
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(f"{json.dumps(document, indent=1)}\n", encoding="utf-8")
    sys.exit(any(not bar.met for bar in bars))


def _bar_lines(bars: Iterable[Bar]) -> Iterator[tuple[str, ...]]:
    for bar in bars:
        yield bar.what, bar.wanted, f"{bar.got:.3f}", "met" if bar.met else "MISSED"
