"""What consolidation sees: memory as it is, frozen, and the day for which it is consolidated."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.models import AntiPattern, Episode, Fact, Learning, Link, Memory, Pattern, Skill

if TYPE_CHECKING:
    from typing import TypeVar

    M = TypeVar("M", bound=Memory)


class Thresholds(NamedTuple):
    """Where likeness becomes sameness, and when an episode is old. Lexical likeness."""

    cluster: float = 0.30  # likeness of episodes that belong together
    merge: float = 0.70  # likeness of statements that say the same
    confident: float = 0.80  # confidence from which on a belief is active
    summarise_days: int = 7
    archive_days: int = 30


class Snapshot:
    """Episodes and records by id, rejected values, and a day. Never changed: see `Changes`."""

    def __init__(
        self,
        records: Iterable[Memory],
        day: str = "",
        rejected: Iterable[str] = (),
        thresholds: Thresholds = Thresholds(),  # noqa: B008 - a value
        archived: Iterable[Memory] = (),
    ) -> None:
        kept = {one.id: one for one in archived}
        both = {**kept, **{one.id: one for one in records}}
        self.records: dict[str, Memory] = {name: both[name] for name in sorted(both)}
        # Episodes in the archive are evidence still; beliefs there are not made again.
        self.archived = {name: one for name, one in kept.items() if both[name] is one}
        self.day = day or max((one.when()[:10] for one in self.episodes), default="")
        self.rejected = frozenset(rejected)  # ids of tombstones
        self.thresholds = thresholds

    def of(self, model: type[M]) -> list[M]:
        """All records of a kind, in the order of their ids."""
        return [one for one in self.records.values() if isinstance(one, model)]

    @cached_property
    def episodes(self) -> list[Episode]:
        """In the order of time, then of ids."""
        return sorted(self.of(Episode), key=lambda one: (one.timestamp, one.id))

    def with_changes(self, changes: Changes) -> Snapshot:
        """The snapshot as it is once changes are made."""
        records = {**self.records, **{one.id: one for one in changes.put}}
        for gone in changes.archive:
            records.pop(gone, None)
        live = (one for name, one in records.items() if name not in self.archived)
        return Snapshot(live, self.day, self.rejected, self.thresholds, self.archived.values())


class Step(NamedTuple):
    """One line of the report: what was done with which memory, and from which episodes."""

    what: (
        str  # learned, strengthened, weakened, merged, superseded, archived, summarised, refused, …
    )
    id: str
    title: str
    evidence: tuple[str, ...] = ()
    why: str = ""


class Changes(NamedTuple):
    """What a phase wants done: records to write (whole), ids to archive, and what to report."""

    put: tuple[Memory, ...] = ()
    archive: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.put or self.archive)


__all__ = [
    "AntiPattern",
    "Changes",
    "Episode",
    "Fact",
    "Learning",
    "Link",
    "Memory",
    "Pattern",
    "Skill",
    "Snapshot",
    "Step",
    "Thresholds",
]
