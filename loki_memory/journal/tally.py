"""The sums of a journal: how often and when each memory was used, and the tasks of each day."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from math import inf, log2
from typing import Any

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
            self.log2w = _sum(self.log2w, half_lives(when))
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


def _sum(a: float, b: float) -> float:
    """log2(2**a + 2**b), which never overflows."""
    low, high = (a, b) if a < b else (b, a)
    return high + log2(1 + 2.0 ** (low - high))
