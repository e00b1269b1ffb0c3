"""What consolidation sees: memory as it is, frozen, and the day for which it is consolidated."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.models import AntiPattern, Episode, Fact, Learning, Link, Memory, Pattern, Skill

if TYPE_CHECKING:
    from typing import TypeVar

    M = TypeVar("M", bound=Memory)


class Thresholds(NamedTuple):
    """Where likeness becomes sameness, how often is often enough, and when something is old.

    The settings `consolidation.*` of a workspace, and their defaults.
    """

    cluster: float = 0.30  # likeness of episodes that belong together
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


class Outline(Episode):
    """An episode as far as the index tells at a glance; the whole is read when more is asked for.

    A common error has thousands of episodes behind it. To count them it takes their sessions and
    outcomes, which are fields like any other here: whoever asks for another one gets it too.
    """

    @classmethod
    def of(cls, read: Callable[[], Episode], **known: Any) -> Outline:
        """An outline with the fields that are known; `read` brings the whole episode."""
        outline = cls.__new__(cls)
        outline.__dict__.update(known, _read=read)
        return outline

    def __getattr__(self, name: str) -> Any:
        """Called for what is not there yet: a field, or what pydantic keeps beside the fields."""
        read = self.__dict__.pop("_read", None)
        if read is None:
            raise AttributeError(name)
        whole = read()
        self.__dict__.update(whole.__dict__)
        for kept in ("__pydantic_extra__", "__pydantic_fields_set__", "__pydantic_private__"):
            object.__setattr__(self, kept, getattr(whole, kept))
        return getattr(self, name)

    def document(self) -> dict[str, Any]:
        _ = self.model_fields_set  # known of whole records only
        return super().document()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Episode):
            return False
        return self is other or self.document() == other.document()

    def __hash__(self) -> int:
        return hash(self.id)


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
        self._of: dict[type[Memory], list[Any]] = {}  # asked for again and again
        # Episodes in the archive are evidence still; beliefs there are not made again.
        self.archived = {name: one for name, one in kept.items() if both[name] is one}
        self.day = day or max((one.when()[:10] for one in self.episodes), default="")
        self.rejected = frozenset(rejected)  # ids of tombstones
        self.thresholds = thresholds

    def of(self, model: type[M]) -> list[M]:
        """All records of a kind, in the order of their ids; of what was archived, only episodes."""
        if model not in self._of:
            found = ((name, one) for name, one in self.records.items() if isinstance(one, model))
            self._of[model] = [
                one for name, one in found if name not in self.archived or isinstance(one, Episode)
            ]
        return self._of[model]

    @cached_property
    def episodes(self) -> list[Episode]:
        """In the order of time, then of ids."""
        return sorted(self.of(Episode), key=lambda one: (one.timestamp, one.id))

    def with_changes(self, changes: Changes) -> Snapshot:
        """The snapshot as it is once changes are made."""
        put = {one.id: one for one in changes.put}
        archived = {name: one for name, one in self.archived.items() if name not in put}
        records = {**self.records, **put}
        for gone in changes.archive:
            records.pop(gone, None)
        live = (one for name, one in records.items() if name not in archived)
        return Snapshot(live, self.day, self.rejected, self.thresholds, archived.values())


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
