"""A review: what changed between two states of memory, and the episodes behind it."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from loki_memory.history.difference import Shift
from loki_memory.history.message import phrases


class Cause(NamedTuple):
    """An episode that caused a shift, in one line."""

    id: str
    goal: str
    outcome: str
    agent: str


class Unreadable(NamedTuple):
    """A file that is no record, and why."""

    path: str
    reason: str


class Review(NamedTuple):
    """What was compared, what changed, and what that rests on."""

    before: str
    after: str
    shifts: list[Shift]
    evidence: dict[str, Cause]  # by the ids in `caused_by`; what is not here was not found
    invalid: list[Unreadable]

    def counts(self) -> dict[str, int]:
        """How often each thing happened, in the order of the shifts."""
        return {what: len(shifts) for what, shifts in self.by_word().items()}

    def by_word(self) -> dict[str, list[Shift]]:
        """The shifts under what happened, in their order."""
        groups: dict[str, list[Shift]] = {}
        for shift in self.shifts:
            groups.setdefault(shift.what, []).append(shift)
        return groups

    def summary(self, *, without: Collection[str] = ()) -> str:
        """`2 patterns learned, 1 superseded`; some words may be left out."""
        return ", ".join(phrases(one for one in self.shifts if one.what not in without))
