"""The cost and savings of reading memory, in tokens, computed from the journal's lines.

Tokens are estimated as bytes / 4. Nothing else is: the cost without recall is the size of the
store at each recall, as the journal noted it then.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

_ENOUGH = 10  # recalls; fewer say nothing about a habit
# The bars of Loki Mode's documents: parts of a whole reading, numbers for each recall, tokens.
_LONG_BODIES, _LITTLE_SAVED = 0.15, 0.5
_MANY_OPENS, _MANY_TOKENS = 3, 200
_HARDLY_ANYTHING = 1000


class Economics(NamedTuple):
    """The balance of reading memory.

    `available` is the size of the store at the last recall. `whole` is the cost of the same recalls
    if each had read the whole store as it was then; `saved` is `whole` less all that was offered
    and opened.
    """

    recalls: int
    opens: int
    offered: int
    opened: int
    available: int
    whole: int
    saved: int
    ratio: float  # opened / offered
    outcomes: dict[str, int]
    advice: list[str]


class Total(NamedTuple):
    """The offers of one surface on one day."""

    day: str
    surface: str
    recalls: int
    offered: int
    whole: int

    def line(self) -> dict[str, Any]:
        """A line for a folded journal."""
        counts = {"recalls": self.recalls, "offered": self.offered, "whole": self.whole}
        return {"act": "offered", "at": self.day, "surface": self.surface, **counts}


def totals(lines: Iterable[Any]) -> list[Total]:
    """Sum the lines of shown.jsonl by day and surface."""
    sums: dict[tuple[str, str], Total] = {}
    for line in lines:
        with suppress(KeyError, TypeError, ValueError):
            total = _total(line)
            sums[total[:2]] = _sum(sums.get(total[:2]), total)
    return list(sums.values())


def _total(line: dict[str, Any]) -> Total:
    """Parse a line as a total; raises for lines of other kinds."""
    day, surface, offered = str(line["at"])[:10], str(line["surface"]), int(line["offered"])
    if line["act"] == "offered":
        return Total(day, surface, int(line["recalls"]), offered, int(line["whole"]))
    # Where the size of the store is unknown, nothing counts as saved.
    return Total(day, surface, 1, offered, int(line["available"]) or offered)


def _sum(a: Total | None, b: Total) -> Total:
    if a is None:
        return b
    return Total(*a[:2], a.recalls + b.recalls, a.offered + b.offered, a.whole + b.whole)


def economics(
    lines: list[Any], first: str, opens: int, opened: int, outcomes: dict[str, int]
) -> Economics:
    """The balance from the day `first` on; the caller gives the sums of what was opened."""
    shown = [total for total in totals(lines) if total.day >= first]
    recalls, offered, whole = _sums(shown)
    return Economics(
        recalls=recalls,
        opens=opens,
        offered=offered,
        opened=opened,
        available=_available(lines),
        whole=whole,
        saved=whole - offered - opened,
        ratio=round(opened / offered, 3) if offered else 0.0,
        outcomes=dict(sorted(outcomes.items())),
        advice=_advice(shown, opens, opened),
    )


def _sums(shown: Iterable[Total]) -> tuple[int, int, int]:
    """Recalls, tokens offered, tokens of a whole reading."""
    found = list(shown)
    return (
        sum(total.recalls for total in found),
        sum(total.offered for total in found),
        sum(total.whole for total in found),
    )


def _available(lines: list[Any]) -> int:
    """The size of the store when it was last counted."""
    counts = (line.get("available") for line in reversed(lines))
    return next((count for count in counts if isinstance(count, int) and count), 0)


def _advice(shown: list[Total], opens: int, opened: int) -> list[str]:
    """Sentences that the numbers support; none before there are enough of them."""
    recalls, offered, whole = _sums(shown)
    if recalls < _ENOUGH or whole == offered:  # the size of the store is unknown
        return []
    saved = whole - offered - opened
    searched, found, _ = _sums(total for total in shown if total.surface == "recall")
    advice = []
    if opened > _LONG_BODIES * whole:
        advice.append("What was opened is over 15 % of a whole reading: keep memories shorter.")
    if saved < _LITTLE_SAVED * whole:
        advice.append("Less than half of a whole reading was saved: recall fewer at a time (-k).")
    if opens > _MANY_OPENS * recalls:
        advice.append("More than 3 memories are opened for each recall: ask narrower questions.")
    if found > _MANY_TOKENS * searched:
        advice.append("A recall offers over 200 tokens: give it a --budget.")
    if saved < _HARDLY_ANYTHING:
        advice.append("Less than 1,000 tokens were saved in all: this store can be read whole.")
    return advice
