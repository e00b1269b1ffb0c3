"""The cost of memory, in tokens: what was really sent, as the journal noted it line by line.

Tokens are estimated as bytes / 4, of the lines that were printed or told. What reading everything
would have cost is no saving, because nobody would read everything; it is not claimed here.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

_ENOUGH = 10  # recalls; fewer say nothing about a habit
_MANY_OPENS, _MANY_TOKENS = 3, 200  # for each recall, as in Loki Mode's documents
_ASKED = "recall"  # the surface of somebody who asked; the others tell unasked


class Sent(NamedTuple):
    """The lines that one surface sent: hooks, context, continuity, recall."""

    surface: str
    times: int
    tokens: int


class Economics(NamedTuple):
    """The cost of memory for its readers."""

    recalls: int  # times that memory was asked or told something
    opens: int
    offered: int  # tokens of the lines that were sent
    opened: int  # tokens of the memories that were then read whole
    sent: list[Sent]  # by surface, the costliest first
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
    """The cost from the day `first` on; the caller gives the sums of what was opened."""
    sent = _by_surface(total for total in totals(lines) if total.day >= first)
    recalls, offered = sum(entry.times for entry in sent), sum(entry.tokens for entry in sent)
    return Economics(
        recalls=recalls,
        opens=opens,
        offered=offered,
        opened=opened,
        sent=sent,
        ratio=round(opened / offered, 3) if offered else 0.0,
        outcomes=dict(sorted(outcomes.items())),
        advice=_advice(sent, opens),
    )


def _by_surface(shown: Iterable[Total]) -> list[Sent]:
    sums: dict[str, Sent] = {}
    for total in shown:
        known = sums.get(total.surface, Sent(total.surface, 0, 0))
        sums[total.surface] = known._replace(
            times=known.times + total.recalls, tokens=known.tokens + total.offered
        )
    return sorted(sums.values(), key=lambda entry: (-entry.tokens, entry.surface))


def _advice(sent: Iterable[Sent], opens: int) -> list[str]:
    """Sentences that the numbers support; none before somebody has asked often enough."""
    asked = next((entry for entry in sent if entry.surface == _ASKED), None)
    if asked is None or asked.times < _ENOUGH:
        return []
    advice = []
    if opens > _MANY_OPENS * asked.times:
        advice.append("More than 3 memories are opened for each recall: ask narrower questions.")
    if asked.tokens > _MANY_TOKENS * asked.times:
        advice.append("A recall offers over 200 tokens: give it a --budget.")
    return advice
