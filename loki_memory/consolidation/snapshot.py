"""Snapshot: memory as consolidation sees it, frozen, and the day for which it is consolidated."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.consolidation.features import EpisodeFeatures, episode_features
from loki_memory.models import (
    Belief,
    Episode,
    Memory,
)
from loki_memory.models.base import EpisodeMark
from loki_memory.models.ids import digest

if TYPE_CHECKING:
    from typing import TypeVar

    M = TypeVar("M", bound=Memory)
    T = TypeVar("T")
    from loki_memory.config import Config


class Thresholds(NamedTuple):
    """Thresholds of likeness, of how often is often enough, and of age.

    The settings `consolidation.*` of a workspace, and their defaults.
    """

    cluster: float = 0.45  # likeness of goals that are of one kind
    merge: float = 0.50  # likeness of statements that say the same
    surprise: float = 0.30  # below which a statement of a session makes no fact
    confident: float = 0.80  # confidence from which on a belief is active
    support: int = 2  # sessions that make a belief active
    pattern_episodes: int = 2  # that had a lesson
    skill_successes: int = 3  # that share steps
    resolutions: int = 3  # that an anti-pattern keeps
    topic_members: int = 5  # beliefs that make a category a topic
    links: int = 3  # of ours per memory
    summarise_days: int = 7
    archive_days: int = 30
    superseded_days: int = 90

    @classmethod
    def of(cls, config: Config) -> Thresholds:
        """The thresholds of a workspace, from its settings."""
        return cls(
            cluster=config.get("consolidation.cluster") / 100,
            merge=config.get("consolidation.merge") / 100,
            surprise=config.get("consolidation.surprise") / 100,
            confident=config.get("consolidation.confident") / 100,
            support=config.get("consolidation.support"),
            pattern_episodes=config.get("consolidation.pattern_episodes"),
            skill_successes=config.get("consolidation.skill_successes"),
            resolutions=config.get("consolidation.resolutions"),
            topic_members=config.get("consolidation.topic_members"),
            links=config.get("consolidation.links"),
            summarise_days=config.get("consolidation.summarise_days"),
            archive_days=config.get("consolidation.archive_days"),
            superseded_days=config.get("consolidation.superseded_days"),
        )


def cached_by_episodes(derive: Callable[[Snapshot], T]) -> Callable[[Snapshot], T]:
    """Derive what follows from episodes alone once, for as long as these stay the same."""

    @wraps(derive)
    def cached(snapshot: Snapshot) -> T:
        if derive not in snapshot.derived:
            snapshot.derived[derive] = derive(snapshot)
        found: T = snapshot.derived[derive]
        return found

    return cached


Record = Memory | EpisodeFeatures
Touched = frozenset[str]  # ids of what is new: a phase looks at no more


class Snapshot:
    """Records by id, rejected values, and a day. Never changed: see `PhaseChanges`.

    An episode is there as its features; `whole` has those episodes that were given as they are.
    What is asked for by kind comes in the order of ids; `records` is for looking up.
    """

    def __init__(
        self,
        records: Iterable[Record],
        day: str = "",
        rejected: Iterable[str] = (),
        thresholds: Thresholds = Thresholds(),  # noqa: B008 - a value
        archived: Iterable[Record] = (),
        whole: Iterable[Episode] = (),
        tracked: Iterable[str] = (),
    ) -> None:
        given, kept = [*records], {record.id: _seen(record) for record in archived}
        both = {**kept, **{entry.id: _seen(entry) for entry in given}}
        self.records: dict[str, Record] = {name: both[name] for name in sorted(both)}
        self.whole = _whole([*given, *whole])
        self._of: dict[type[Memory], list[Any]] = {}  # asked for again and again
        self.derived: dict[Callable[[Snapshot], Any], Any] = {}  # see `cached_by_episodes`
        # Episodes in the archive are evidence still; beliefs there are not made again.
        self.archived = {name: entry for name, entry in kept.items() if both[name] is entry}
        self.day = day or max((episode.date for episode in self.episodes), default="")
        self.rejected = frozenset(rejected)  # ids of tombstones
        self.tracked = frozenset(tracked)  # ids of episodes that wait for `gc` to grow old
        self._marks = _marks(self.records.values())
        self.thresholds = thresholds

    def of(self, model: type[M]) -> list[M]:
        """All records of a kind that are not archived, in the order of their ids."""
        if model not in self._of:
            found = (record for record in self.records.values() if isinstance(record, model))
            self._of[model] = sorted(
                (record for record in found if record.id not in self.archived),
                key=lambda record: record.id,
            )
        return self._of[model]

    @property
    @cached_by_episodes
    def episodes(self) -> list[EpisodeFeatures]:
        """In the order of time, then of ids; archived ones too."""
        return in_time(
            record for record in self.records.values() if isinstance(record, EpisodeFeatures)
        )

    def episode(self, name: str) -> EpisodeFeatures | None:
        """The episode of this id, if it is known."""
        found = self.records.get(name)
        return found if isinstance(found, EpisodeFeatures) else None

    def session_of(self, name: str) -> str:
        """The session of an episode, as a hash that clones compare; of one without, the episode.

        A session that was resumed or forked counts as the one that it continues.
        """
        episode = self.episode(name)
        if episode:
            return self._continued.get(session_mark(episode), session_mark(episode))
        mark = self._marks.get(name)
        return (mark.session if mark else None) or name

    def sessions(self, names: Iterable[str]) -> dict[str, str]:
        """The observation that each of these episodes belongs to, by the least id in it.

        Episodes of one session are one, and so are those that one agent recorded in a burst,
        whatever sessions it named. Nothing but the episodes given counts, so that clones which
        have the same evidence count the same.
        """
        found: dict[str, str] = {}
        first: dict[str, str] = {}  # by key, an episode that has it
        for name in sorted(names):
            found[name] = name
            for key in (self.session_of(name), *self.bursts_of(name)):
                _join(found, first.setdefault(key, name), name)
        return {name: _root(found, name) for name in found}

    def bursts_of(self, name: str) -> tuple[str, ...]:
        """Hashes that an episode shares with what the same agent recorded within a minute."""
        episode = self.episode(name)
        if episode:
            return burst_marks(episode)
        mark = self._marks.get(name)
        return tuple(mark.bursts) if mark else ()

    @property
    @cached_by_episodes
    def _continued(self) -> dict[str, str]:
        """Sessions that repeat turns of another one, each with the one that they continue.

        A client that resumes or forks a session copies its turns under another id: the same prompt
        at the same moment.
        """
        first: dict[tuple[str, str], str] = {}
        found: dict[str, str] = {}
        for episode in self.episodes:
            if episode.captured and episode.session:
                mark = session_mark(episode)
                known = first.setdefault((episode.timestamp, episode.goal), found.get(mark, mark))
                if known != mark:
                    found.setdefault(mark, known)
        return found

    def outcome_of(self, name: str) -> str:
        """The outcome of an episode; empty if nobody here knows it."""
        episode = self.episode(name)
        if episode:
            return episode.outcome
        mark = self._marks.get(name)
        return (mark.outcome if mark else None) or ""

    def with_changes(self, changes: PhaseChanges) -> Snapshot:
        """The snapshot as it is once changes are made; what they do not concern is taken over."""
        put = {memory.id: _seen(memory) for memory in changes.put}
        gone = {*changes.archive}
        changed = [record for name, record in self.records.items() if name in gone or name in put]
        after: Snapshot = copy(self)
        after.records = {
            name: entry for name, entry in {**self.records, **put}.items() if name not in gone
        }
        after.whole = {**self.whole, **_whole(changes.put)}
        after.archived = {name: entry for name, entry in self.archived.items() if name not in put}
        kinds = {type(entry) for entry in (*put.values(), *changed)}
        after._of = {
            model: members
            for model, members in self._of.items()
            if not any(issubclass(kind, model) for kind in kinds)
        }
        if EpisodeFeatures in kinds:
            after.derived = {}
        return after


def burst_marks(episode: EpisodeFeatures) -> tuple[str, ...]:
    """Hashes of two windows around the moment of an episode that somebody recorded.

    Windows of two minutes overlap by half, so that moments within a minute share one of them.
    A client's own session is captured from its transcript: several may run at a time.
    """
    if episode.captured:
        return ()
    try:
        minute = int(datetime.fromisoformat(episode.timestamp).timestamp() // 60)
    except ValueError:
        return ()
    agent = episode.agent or ""
    return tuple(digest("burst", f"{agent} {start}") for start in (minute - 1, minute))


def _join(found: dict[str, str], name: str, other: str) -> None:
    """Make two episodes one observation, named by the lesser id."""
    first, second = sorted((_root(found, name), _root(found, other)))
    found[second] = first


def _root(found: dict[str, str], name: str) -> str:
    while found[name] != name:
        name = found[name]
    return name


def session_mark(episode: EpisodeFeatures) -> str:
    """A hash of the session of an episode, by which clones compare; without one, the id."""
    return digest("session", episode.session) if episode.session else episode.id


def _seen(record: Record) -> Record:
    """A record as phases see it."""
    return episode_features(record) if isinstance(record, Episode) else record


def _marks(records: Iterable[Record]) -> dict[str, EpisodeMark]:
    """Return what beliefs say of episodes that are private to other clones."""
    found: dict[str, EpisodeMark] = {}
    for record in records:
        if isinstance(record, Belief) and record.evidence.episodes:
            found.update(record.evidence.episodes)
    return found


def _whole(records: Iterable[Record]) -> dict[str, Episode]:
    return {record.id: record for record in records if isinstance(record, Episode)}


def in_time(episodes: Iterable[EpisodeFeatures]) -> list[EpisodeFeatures]:
    """In the order of time, then of ids."""
    return sorted(episodes, key=lambda episode: (episode.timestamp, episode.id))


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
    """The changes that a phase wants: whole records to write, ids to archive, and its report."""

    put: tuple[Memory, ...] = ()
    archive: tuple[str, ...] = ()
    steps: tuple[BeliefChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.put or self.archive)
