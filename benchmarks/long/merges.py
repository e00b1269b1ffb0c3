"""Do the laws of merging hold for ten thousand random families of records?

    python benchmarks/long/merges.py [--families 10000] [--seed 1] [--json FILE]

A family is a record of any kind and three branches of it, or three records with no common
beginning. The records and the laws are those of `tests/test_history_merge.py`, which tries 500
of each: a merge does not depend on whose side is whose, nor on the order in which branches are
merged; who changed nothing has no say; nothing that either side said is lost; trust is not raised.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import test_history_merge as laws
from table import machine, print_lines, say

LAWS: dict[str, Callable[[Any], None]] = {
    name.removeprefix("test_").replace("_", " "): test.hypothesis.inner_test
    for name, test in vars(laws).items()
    if hasattr(test, "hypothesis")
}


class Tried(NamedTuple):
    """How often a law was tried, on which kinds, and how often it did not hold."""

    law: str
    families: int
    kinds: Counter[str]
    broken: int
    seconds: float


def tried(law: str, families: int, number: int) -> Tried:
    kinds: Counter[str] = Counter()
    broken: list[Any] = []

    @seed(number)
    @settings(
        max_examples=families,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(laws.families())
    def once(family: tuple[Any, ...]) -> None:
        try:
            LAWS[law](family)
        except AssertionError:
            broken.append(family)
        kinds[family[1].kind] += 1

    start = time.perf_counter()
    once()
    for family in broken[:3]:
        documents = [one.document() if one else None for one in family]
        say(f"{law}: {json.dumps(documents)}")
    return Tried(law, kinds.total(), kinds, len(broken), time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    for law in LAWS:
        rows.append(tried(law, options.families, options.seed))
        say(f"{law}: {rows[-1].broken} of {rows[-1].families:,} broken")
    print_lines(
        ("law", "families", "kinds", "broken", "seconds"),
        [
            (
                one.law,
                f"{one.families:,}",
                str(len(one.kinds)),
                str(one.broken),
                f"{one.seconds:.0f}",
            )
            for one in rows
        ],
    )
    if options.json:
        told = {"machine": machine(Path(__file__).parent), "rows": [one._asdict() for one in rows]}
        options.json.write_text(f"{json.dumps(told, indent=2)}\n", encoding="utf-8")
    if any(one.broken for one in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
