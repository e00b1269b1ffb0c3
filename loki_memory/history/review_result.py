"""A review: the changes between two states of memory, and the episodes behind them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from loki_memory.history.belief_diff import Shift
from loki_memory.history.commit_message import phrases
from loki_memory.history.file_changes import FieldChange, FileChange, RecordChange, untold

CANDIDATES = "candidates of this machine"  # what a review of them compares with


class Cause(NamedTuple):
    """An episode that caused a change, in one line."""

    id: str
    goal: str
    outcome: str
    agent: str


class Unreadable(NamedTuple):
    """A file that is no record, and why."""

    path: str
    reason: str


class Review(NamedTuple):
    """The compared states, the changes, and their evidence."""

    before: str
    after: str
    shifts: list[Shift]
    evidence: dict[str, Cause]  # by the ids in `caused_by`; missing if it was not found
    invalid: list[Unreadable]
    records: Sequence[RecordChange] = ()  # every field that differs, of every memory
    files: Sequence[FileChange] = ()  # every other file below `.loki` that differs

    @property
    def is_of_candidates(self) -> bool:
        """Check if it compares what is published with the candidates of this machine."""
        return self.after == CANDIDATES

    @property
    def is_empty(self) -> bool:
        return not (self.shifts or self.invalid or self.records or self.files)

    def fields(self, shift: Shift) -> list[FieldChange]:
        """The fields of a changed memory that the words of its shift do not tell."""
        return [
            field
            for change in self.records
            if change.id == shift.id
            for field in untold(change, shift)
        ]

    def quiet(self) -> list[RecordChange]:
        """The memories that differ only in fields about which no shift speaks."""
        told = {shift.id for shift in self.shifts}
        left = (change for change in self.records if change.id not in told)
        return [change._replace(fields=untold(change, None)) for change in left]

    def counts(self) -> dict[str, int]:
        """Count the changes by their word, in the order of the shifts."""
        return {word: len(shifts) for word, shifts in self.by_word().items()}

    def by_word(self) -> dict[str, list[Shift]]:
        """Group the shifts by their word, in their order."""
        groups: dict[str, list[Shift]] = {}
        for shift in self.shifts:
            groups.setdefault(shift.what, []).append(shift)
        return groups

    def summary(self, *, without: Collection[str] = ()) -> str:
        """`2 patterns learned, 1 superseded`; some words may be left out."""
        return ", ".join(phrases(shift for shift in self.shifts if shift.what not in without))
