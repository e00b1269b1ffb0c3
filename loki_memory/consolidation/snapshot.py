"""What consolidation sees: memory as it is, frozen, and the day for which it is consolidated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.models import AntiPattern, Episode, Fact, Learning, Link, Memory, Pattern, Skill

if TYPE_CHECKING:
    from typing import TypeVar

    M = TypeVar("M", bound=Memory)
    T = TypeVar("T")


class Thresholds(NamedTuple):
    """Where likeness becomes sameness, how often is often enough, and when something is old.

    The settings `consolidation.*` of a workspace, and their defaults.
    """

    cluster: float = 0.45  # likeness of goals that are of one kind
    merge: float = 0.50  # likeness of statements that say the same
    confident: float = 0.80  # confidence from which on a belief is active
    support: int = 2  # sessions that make a belief active
    pattern_episodes: int = 2  # that had a lesson
    skill_successes: int = 3  # that share steps
    resolutions: int = 3  # that an anti-pattern keeps
    error_names: int = 3  # with which an error has come before it is one error
    topic_members: int = 5  # beliefs that make a category a topic
    links: int = 3  # of ours per memory
    link_half_life_days: int = 45
    summarise_days: int = 7
    archive_days: int = 30
    superseded_days: int = 90


def cached_by_episodes(derive: Callable[[Snapshot], T]) -> Callable[[Snapshot], T]:
    """Derive what follows from episodes alone once, for as long as these stay the same."""

    @wraps(derive)
    def cached(snapshot: Snapshot) -> T:
        if derive not in snapshot.derived:
            snapshot.derived[derive] = derive(snapshot)
        found: T = snapshot.derived[derive]
        return found

    return cached


class Snapshot:
    """Episodes and records by id, rejected values, and a day. Never changed: see `Changes`.

    What is asked for by kind comes in the order of ids; `records` is for looking up.
    """

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
        self._of: dict[type[Memory], list[Any]] = {}  # asked for again and again
        self._types: dict[type[Memory], dict[str, Memory]] = defaultdict(dict)
        for name, one in self.records.items():
            self._types[type(one)][name] = one
        self.derived: dict[Callable[[Snapshot], Any], Any] = {}  # see `cached_by_episodes`
        # Episodes in the archive are evidence still; beliefs there are not made again.
        self.archived = {name: one for name, one in kept.items() if both[name] is one}
        self.day = day or max((one.when()[:10] for one in self.episodes), default="")
        self.rejected = frozenset(rejected)  # ids of tombstones
        self.thresholds = thresholds

    def of(self, model: type[M]) -> list[M]:
        """All records of a kind, in the order of their ids; of what was archived, only episodes."""
        if model not in self._of:
            found: dict[str, Memory] = {}
            for kind in self._types:
                if issubclass(kind, model):
                    found.update(self._types[kind])
            hidden = {
                name
                for name in found.keys() & self.archived
                if not isinstance(found[name], Episode)
            }
            self._of[model] = [found[name] for name in sorted(found) if name not in hidden]
        return self._of[model]

    @property
    @cached_by_episodes
    def episodes(self) -> list[Episode]:
        """In the order of time, then of ids."""
        return in_time(self.of(Episode))

    def with_changes(self, changes: PhaseChanges) -> Snapshot:
        """The snapshot as it is once changes are made; what they do not concern is taken over."""
        put = {one.id: one for one in changes.put}
        names = dict.fromkeys((*changes.archive, *put))
        gone = [self.records[name] for name in names if name in self.records]
        after: Snapshot = copy(self)
        after.records = {**self.records, **put}
        for name in changes.archive:
            after.records.pop(name, None)
        after.archived = {name: one for name, one in self.archived.items() if name not in put}
        after._regroup(gone, [one for name, one in put.items() if name in after.records])
        if any(isinstance(one, Episode) for one in (*changes.put, *gone)):
            after.derived = {}
        return after

    def _regroup(self, gone: Iterable[Memory], put: Iterable[Memory]) -> None:
        kinds = {type(one) for one in (*gone, *put)}
        self._types = defaultdict(dict, self._types)
        self._types.update({kind: dict(self._types[kind]) for kind in kinds})
        for one in gone:
            del self._types[type(one)][one.id]
        for one in put:
            self._types[type(one)][one.id] = one
        asked = self._of.items()
        self._of = {
            model: those
            for model, those in asked
            if not any(issubclass(kind, model) for kind in kinds)
        }


def in_time(episodes: Iterable[Episode]) -> list[Episode]:
    """In the order of time, then of ids."""
    return sorted(episodes, key=lambda one: (one.timestamp, one.id))


class Touched(NamedTuple):
    """What is new to memory that a run left as it should be: the next one looks at no more.

    To a run that is not told, everything is new; it comes to the same.
    """

    ids: frozenset[str]  # of records that were added, and of those that this run has changed
    clusters: frozenset[str] | None = None  # marks of those that the last run looked at; None: all
    strangers: str = ""  # the mark of the episodes that stood for all others
    chance: tuple[tuple[int, float], ...] = ()  # what as many of these share by chance is worth
    found: Mapping[str, Any] = MappingProxyType({})  # what successes do alike and these do not
    learned: frozenset[str] = frozenset()  # of the new ones: the first phases ran for these

    def holds(self, ids: Iterable[str]) -> bool:
        return not self.ids.isdisjoint(ids)

    def with_(self, ids: Iterable[str]) -> Touched:
        return self._replace(ids=self.ids.union(ids))


class BeliefChange(NamedTuple):
    """One line of the report: what was done with which memory, and from which episodes."""

    what: (
        str  # learned, strengthened, weakened, merged, superseded, archived, summarised, refused, …
    )
    id: str
    title: str
    evidence: tuple[str, ...] = ()
    why: str = ""


class PhaseChanges(NamedTuple):
    """What a phase wants done: records to write (whole), ids to archive, and what to report."""

    put: tuple[Memory, ...] = ()
    archive: tuple[str, ...] = ()
    steps: tuple[BeliefChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.put or self.archive)


__all__ = [
    "AntiPattern",
    "BeliefChange",
    "Episode",
    "Fact",
    "Learning",
    "Link",
    "Memory",
    "Pattern",
    "PhaseChanges",
    "Skill",
    "Snapshot",
    "Thresholds",
    "Touched",
]
