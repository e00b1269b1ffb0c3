"""Features: the values by which consolidation compares episodes and statements.

Most episodes are old and do not change, so a run extracts the features of each episode once, as
plain values that the run cache keeps. A `LazyEpisode` holds features only and reads its file when a
phase needs the words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from loki_memory.consolidation.failures import EpisodeFailures
from loki_memory.consolidation.similarity import content, marks, words
from loki_memory.consolidation.step_sequences import Move, moves
from loki_memory.consolidation.summary import is_terse
from loki_memory.consolidation.work_context import circumstances, files, steps
from loki_memory.models import Belief, Episode, Memory
from loki_memory.models.episode import Recalled

_GLANCE = "_glance"  # where an episode keeps its own


class EpisodeFeatures(NamedTuple):
    """Nothing but texts, numbers, bytes and tuples of them: what `marshal` can keep."""

    timestamp: str
    session: str | None
    outcome: str
    scope: str
    origin: str | None
    pinned: bool
    importance: float | None
    goal: str
    words: tuple[str, ...]  # of the goal
    paths: tuple[str, ...]
    files: tuple[str, ...]
    steps: tuple[str, ...]
    circumstances: tuple[str, ...]
    made: tuple[tuple[str, str], ...]
    errors: int  # that it tells of
    verdicts: tuple[tuple[str, bool], ...]  # memories that helped, or did not
    names: tuple[str, ...]  # memories that it refers to
    is_terse: bool

    def moves(self) -> tuple[Move, ...]:
        return tuple(map(Move._make, self.made))


def episode_features(episode: Episode) -> EpisodeFeatures:
    """What is known of an episode; taken once."""
    known: EpisodeFeatures | None = episode.__dict__.get(_GLANCE)
    if known is None:
        known = episode.__dict__[_GLANCE] = _taken(episode)
    return known


def _taken(episode: Episode) -> EpisodeFeatures:
    verdicts = tuple((one.id, one.helpful) for one in episode.recalled if one.helpful is not None)
    return EpisodeFeatures(
        timestamp=episode.timestamp,
        session=episode.session,
        outcome=episode.outcome,
        scope=episode.scope,
        origin=episode.origin,
        pinned=episode.pinned,
        importance=episode.importance,
        goal=episode.goal,
        words=tuple(sorted(words(episode.goal))),
        paths=tuple(sorted(episode.files())),
        files=tuple(sorted(files(episode))),
        steps=tuple(sorted(steps(episode))),
        circumstances=tuple(sorted(circumstances(episode))),
        made=tuple((one.head, one.place) for one in moves(episode)),
        errors=len(episode.errors_encountered),
        verdicts=verdicts,
        names=(*(link.to for link in episode.links), *(name for name, _ in verdicts)),
        is_terse=is_terse(episode),
    )


class LazyEpisode(Episode):
    """An episode of which a part is known; the whole is read when more is asked for.

    A common error has thousands of episodes behind it. To count them it takes their sessions and
    outcomes, which are fields like any other here: whoever asks for another one gets it too.
    """

    @classmethod
    def of(cls, read: Callable[[], Memory], **known: Any) -> LazyEpisode:
        """An outline with the fields that are known; `read` brings the whole episode."""
        outline = cls.__new__(cls)
        outline.__dict__.update(known, _read=read)
        return outline

    @classmethod
    def at(
        cls,
        seen: EpisodeFeatures,
        name: str,
        read: Callable[[], Memory],
        known: EpisodeFailures | None = None,
    ) -> LazyEpisode:
        """The outline of an episode that was glanced at before; `known` is what went wrong."""
        outline = cls.__new__(cls)
        outline.__dict__.update(
            id=name,
            timestamp=seen.timestamp,
            session=seen.session,
            outcome=seen.outcome,
            scope=seen.scope,
            origin=seen.origin,
            pinned=seen.pinned,
            importance=seen.importance,
            recalled=[Recalled.model_construct(id=one, helpful=so) for one, so in seen.verdicts],
            _glance=seen,
            _setbacks=known,
            _read=read,
        )
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


# -- What consolidation knows of a belief's words at a glance -------------------------------------


_GIST = "_gist"  # where a belief keeps its own; a changed one is another belief, and has none yet


class StatementFeatures(NamedTuple):
    """Nothing but texts, truths and tuples of them: what `marshal` can keep."""

    words: tuple[str, ...]  # the stems of its content, each once, sorted
    is_negated: bool
    marks: tuple[tuple[str, ...], ...]  # what else must agree before two statements count as one


def gist(belief: Belief) -> StatementFeatures:
    """What is known of a belief's words; taken once."""
    known = known_gist(belief)
    if known is None:
        known = belief.__dict__[_GIST] = _gist_of(belief.value())
    return known


def known_gist(belief: Belief) -> StatementFeatures | None:
    """What was taken already: nobody asks for that of an error's message."""
    known: StatementFeatures | None = belief.__dict__.get(_GIST)
    return known


def with_gist(belief: Belief, known: StatementFeatures) -> None:
    """Give a belief that was read again what was taken from it, word for word, before."""
    belief.__dict__[_GIST] = known


def _gist_of(text: str) -> StatementFeatures:
    found = marks(text)
    sets = (found.values, found.sides, found.names, found.bounds)
    return StatementFeatures(
        words=tuple(sorted(set(content(text)))),
        is_negated=found.is_negated,
        marks=tuple(tuple(sorted(one)) for one in sets),
    )
