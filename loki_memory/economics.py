"""What reading memory cost and saved, in tokens, counted from the journal's lines.

Tokens are estimated as bytes / 4. Nothing else is: what would have been read without recall is
the size that the store had at each recall, as the journal noted it then.
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
    """What reading cost.

    `available` is the size of the store at the last recall. `whole` is what the same recalls
    would have cost if each had read the whole store as it was then; `saved` is what is left of
    that after all that was offered and opened.
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
    """What one surface offered on one day."""

    day: str
    surface: str
    recalls: int
    offered: int
    whole: int

    def line(self) -> dict[str, Any]:
        """As it stands in a journal that was folded."""
        counts = {"recalls": self.recalls, "offered": self.offered, "whole": self.whole}
        return {"act": "offered", "at": self.day, "surface": self.surface, **counts}


def totals(lines: Iterable[Any]) -> list[Total]:
    """The lines of shown.jsonl, added up by day and surface."""
    sums: dict[tuple[str, str], Total] = {}
    for line in lines:
        with suppress(KeyError, TypeError, ValueError):
            one = _total(line)
            sums[one[:2]] = _sum(sums.get(one[:2]), one)
    return list(sums.values())


def _total(line: dict[str, Any]) -> Total:
    """A line as a total; raises for lines of other kinds."""
    day, surface, offered = str(line["at"])[:10], str(line["surface"]), int(line["offered"])
    if line["act"] == "offered":
        return Total(day, surface, int(line["recalls"]), offered, int(line["whole"]))
    # Where nobody counted the store, nothing is said to be saved.
    return Total(day, surface, 1, offered, int(line["available"]) or offered)


def _sum(a: Total | None, b: Total) -> Total:
    if a is None:
        return b
    return Total(*a[:2], a.recalls + b.recalls, a.offered + b.offered, a.whole + b.whole)


def economics(
    lines: list[Any], first: str, opens: int, opened: int, outcomes: dict[str, int]
) -> Economics:
    """The balance from the day `first` on; what was opened since then is added up already."""
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
    """What the store held when somebody last counted."""
    counts = (line.get("available") for line in reversed(lines))
    return next((count for count in counts if isinstance(count, int) and count), 0)


def _advice(shown: list[Total], opens: int, opened: int) -> list[str]:
    """Sentences that the numbers support; none before there are enough of them."""
    recalls, offered, whole = _sums(shown)
    if recalls < _ENOUGH or whole == offered:  # nobody counted the store
        return []
    saved = whole - offered - opened
    searched, found, _ = _sums(total for total in shown if total.surface == "recall")
    said = []
    if opened > _LONG_BODIES * whole:
        said.append("What was opened is over 15 % of a whole reading: keep memories shorter.")
    if saved < _LITTLE_SAVED * whole:
        said.append("Less than half of a whole reading was saved: recall fewer at a time (-k).")
    if opens > _MANY_OPENS * recalls:
        said.append("More than 3 memories are opened for each recall: ask narrower questions.")
    if found > _MANY_TOKENS * searched:
        said.append("A recall offers over 200 tokens: give it a --budget.")
    if saved < _HARDLY_ANYTHING:
        said.append("Less than 1,000 tokens were saved in all: this store can be read whole.")
    return said
