"""The sums of a journal: how often and when each memory was used, the tasks of each day, and what
memory cost its readers.

Tokens are estimated as bytes / 4, of the lines that were printed or told. What reading everything
would have cost is no saving, because nobody would read everything; it is not claimed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from math import inf, log2
from typing import Any, NamedTuple

_DAY = 86_400
_HALF_LIFE = 30 * _DAY  # of 7, 14, 30 and 90 days, 14 and 30 predicted the next need best
_START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
STRONGEST = 64.0  # log2 of a strength; only a wrong clock can give more
_SAME_SESSION = 7 * _DAY  # a session that goes on for longer uses a memory anew
_SKEW = _DAY  # how far the clocks of two writers may differ without a use being counted twice


class MemorySums:
    """The sums of one memory."""

    __slots__ = ("helpful", "last", "log2w", "seen", "times", "unhelpful", "verdict")

    def __init__(self) -> None:
        self.times = self.helpful = self.unhelpful = 0
        self.log2w = -inf
        self.last = ""
        self.verdict = ""  # the last word on whether it helped: helpful, unhelpful, or nothing
        self.seen: dict[str, int] = {}  # act and session (or day) -> when it was counted

    def take(self, act: str, session: str | None, at: str) -> None:
        """Count an act, once per session."""
        when, session = seconds_of(at), session or at[:10]
        if act != "opened":
            self.verdict = act
        if act == "helpful":
            self.helpful += self._is_new(f"+{session}", when)
        if act == "unhelpful":
            self.unhelpful += self._is_new(f"-{session}", when)
        elif self._is_new(f"={session}", when):
            self.times += 1
            self.log2w = _log_sum(self.log2w, half_lives(when))
            self.last = max(self.last, at)

    def _is_new(self, key: str, when: int) -> bool:
        if key in self.seen and when < self.seen[key] + _SAME_SESSION:
            return False
        self.seen[key] = when
        return True

    def line(self, memory_id: str, now: int) -> dict[str, Any]:
        """The sums as a line; sessions that cannot come back are left out."""
        lately = now - _SAME_SESSION - _SKEW
        return {
            "act": "used",
            "id": memory_id,
            "n": self.times,
            "log2w": self.log2w if self.times else None,
            "last": self.last,
            "helpful": self.helpful,
            "unhelpful": self.unhelpful,
            "verdict": self.verdict,
            "seen": {key: when for key, when in self.seen.items() if when > lately},
        }

    @classmethod
    def from_line(cls, line: dict[str, Any]) -> MemorySums:
        record = cls()
        record.times, record.last = int(line["n"]), str(line["last"])
        record.log2w = line["log2w"] + 0.0 if record.times else -inf  # text raises TypeError
        record.helpful, record.unhelpful = int(line["helpful"]), int(line["unhelpful"])
        record.verdict = str(line.get("verdict", ""))
        record.seen = {str(key): int(when) for key, when in line["seen"].items()}
        return record


class DaySums:
    """The opened memories of one day, and the outcomes of its tasks."""

    __slots__ = ("opens", "outcomes", "tokens")

    def __init__(self) -> None:
        self.opens = self.tokens = 0
        self.outcomes: dict[str, int] = {}

    def add(self, opens: int, tokens: int, outcomes: dict[str, int]) -> None:
        self.opens += opens
        self.tokens += tokens
        for name, number in outcomes.items():
            self.outcomes[name] = self.outcomes.get(name, 0) + number


class Tally:
    """The sums of uses.jsonl."""

    def __init__(self) -> None:
        self.records: dict[str, MemorySums] = {}
        self.days: dict[str, DaySums] = {}

    def take_all(self, lines: Iterable[Any]) -> None:
        for line in lines:
            try:
                self._take(line)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
                continue  # a foreign line

    def _take(self, line: dict[str, Any]) -> None:
        act = line["act"]
        if act in {"opened", "helpful", "unhelpful"}:
            at, tokens = str(line["at"]), int(line["tokens"]) if act == "opened" else 0
            self._record(str(line["id"])).take(act, line.get("session"), at)
            if act == "opened":
                self._day(at).add(1, tokens, {})
        elif act == "outcome":
            at = str(line["at"])
            seconds_of(at)
            self._day(at).add(0, 0, {str(line["outcome"]): 1})
        elif act == "used":
            self.records[str(line["id"])] = MemorySums.from_line(line)
        elif act == "day":
            outcomes = {str(name): int(number) for name, number in line["outcomes"].items()}
            self._day(str(line["at"])).add(int(line["opens"]), int(line["tokens"]), outcomes)

    def _record(self, memory_id: str) -> MemorySums:
        found = self.records.get(memory_id)
        if found is None:
            found = self.records[memory_id] = MemorySums()
        return found

    def _day(self, at: str) -> DaySums:
        found = self.days.get(at[:10])
        if found is None:
            found = self.days[at[:10]] = DaySums()
        return found

    def lines(self, now: str) -> Iterator[dict[str, Any]]:
        when = seconds_of(now)
        yield from (record.line(name, when) for name, record in self.records.items())
        for at, day in self.days.items():
            counts = {"opens": day.opens, "tokens": day.tokens, "outcomes": day.outcomes}
            yield {"act": "day", "at": at, **counts}


def seconds_of(at: str) -> int:
    """Seconds of a moment in UTC; raises ValueError."""
    return int(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp())


def half_lives(seconds: int) -> float:
    return (seconds - _START) / _HALF_LIFE


def _log_sum(a: float, b: float) -> float:
    """log2(2**a + 2**b), which never overflows."""
    low, high = (a, b) if a < b else (b, a)
    return high + log2(1 + 2.0 ** (low - high))


# -- the cost, in tokens that were really sent -----------------------------------------------------


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
