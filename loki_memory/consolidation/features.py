"""Features: the values by which consolidation compares episodes and statements.

Phases see an episode as its features only. They are extracted once for each version of a file, and
kept in the index as JSON: most episodes are old and do not change. Whatever a phase needs to know
of an episode is a field here; only a summary is made from the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from loki_memory.consolidation.actions import (
    Move,
    before_commits,
    category_of,
    checks,
    circumstances,
    files_needed,
    is_command,
    is_terse,
    move,
    moves,
    steps,
)
from loki_memory.consolidation.failures import (
    Failure,
    failed,
    mishaps,
    resolved,
)
from loki_memory.consolidation.similarity import content, marks, words
from loki_memory.models import Action, Belief, Episode
from loki_memory.models.episode import Statement
from loki_memory.models.error_signature import Key

_DONE = 200  # characters of an action: a longer one is told in no skill


class EpisodeFeatures(NamedTuple):
    """An episode as phases see it: texts, numbers, and sequences of them, as JSON has them."""

    id: str
    timestamp: str
    session: str | None
    agent: str | None
    outcome: str
    scope: str
    origin: str | None
    pinned: bool
    importance: float | None
    goal: str
    category: str
    words: Sequence[str]  # of the goal
    paths: Sequence[str]
    steps: Sequence[str]
    circumstances: Sequence[str]
    constraints: Sequence[str]
    needed: Sequence[str]  # files that were there before
    checks: Sequence[str]  # tests, linters and builds that were run
    made: Sequence[Sequence[str]]  # moves, in their order
    first_done: Sequence[Sequence[Any]]  # the first action of each move
    errors: int  # that it tells of
    failures: Sequence[Sequence[Any]]
    resolved: Sequence[Sequence[str]]  # errors, and what resolved them
    failed: Sequence[str]  # steps, each on a line
    verdicts: Sequence[tuple[str, bool]]  # memories that helped, or did not
    names: Sequence[str]  # memories that it refers to
    is_terse: bool
    captured: bool = False
    before_commits: Sequence[Sequence[str]] = ()  # commands between the last edit and each commit
    prompt_hashes: Sequence[str] = ()  # of what its user wrote
    stated: Sequence[Sequence[Any]] = ()  # as `StatedSentence`

    @property
    def date(self) -> str:
        return self.timestamp[:10]

    def when(self) -> str:
        return self.timestamp

    def title(self) -> str:
        return self.goal

    def moves(self) -> tuple[Move, ...]:
        return tuple(map(Move._make, self.made))

    def first_actions(self, wanted: Move) -> list[FirstAction]:
        """The first action that makes a move, if one does."""
        found = map(FirstAction._make, self.first_done)
        return [entry for entry in found if (entry.head, entry.place) == wanted][:1]

    def mishaps(self) -> list[Failure]:
        return [_failure(*failure) for failure in self.failures]

    def statements(self) -> list[StatedSentence]:
        return [*map(StatedSentence._make, self.stated)]


class StatedSentence(NamedTuple):
    """A statement of an episode."""

    text: str
    type: str
    score: float | None
    resolved: bool
    quoted: bool = False
    written: bool = False  # into the project: its code, documents and commits


class FirstAction(NamedTuple):
    """The first action that made a move."""

    head: str
    place: str
    done: str
    is_command: bool


def episode_features(episode: Episode) -> EpisodeFeatures:
    """Extract the features of an episode."""
    verdicts = [(use.id, use.helpful) for use in episode.recalled if use.helpful is not None]
    return EpisodeFeatures(
        id=episode.id,
        timestamp=episode.timestamp,
        session=episode.session,
        agent=episode.agent,
        outcome=episode.outcome,
        # A captured session is private, and what it teaches is the project's.
        scope="project" if episode.captured and episode.scope == "local" else episode.scope,
        origin=episode.origin,
        pinned=episode.pinned,
        importance=episode.importance,
        goal=episode.goal,
        category=category_of(episode),
        words=sorted(words(episode.goal)),
        paths=sorted(episode.files()),
        steps=sorted(steps(episode)),
        circumstances=sorted(circumstances(episode)),
        constraints=episode.context.constraints,
        needed=sorted(files_needed(episode)),
        checks=sorted(checks(episode)),
        made=[[*entry] for entry in moves(episode)],
        first_done=_first_done(episode.action_log),
        errors=len(episode.errors_encountered),
        failures=[*map(_plain, mishaps(episode))],
        resolved=[[*other_episode] for other_episode in resolved(episode)],
        failed=[*failed(episode)],
        verdicts=verdicts,
        names=[*(link.to for link in episode.links), *(name for name, _ in verdicts)],
        is_terse=is_terse(episode),
        captured=episode.captured,
        before_commits=before_commits(episode),
        prompt_hashes=episode.prompt_hashes,
        stated=[*map(_stated, episode.statements)],
    )


def _stated(statement: Statement) -> list[Any]:
    return [
        statement.text,
        statement.type,
        statement.score,
        statement.resolved,
        statement.quoted,
        statement.source == "written",
    ]


def _first_done(actions: Iterable[Action]) -> list[list[Any]]:
    found: dict[Move, list[Any]] = {}
    for action in actions:
        made = move(action)
        done = (action.target or action.action).strip()[:_DONE]
        found.setdefault(made, [*made, done, is_command(action)])
    return [*found.values()]


def _plain(failure: Failure) -> list[Any]:
    return [
        failure.id,
        [*failure.key],
        failure.line,
        failure.do,
        sorted(failure.names),
        failure.worked,
        failure.command,
    ]


def _failure(
    id_: str, key: Sequence[str], line: str, do: str, names: Sequence[str], *rest: Any
) -> Failure:
    return Failure(id_, Key(*key), line, do, frozenset(names), *rest)


def encoded(features: EpisodeFeatures) -> str:
    """The features as the index keeps them."""
    import orjson

    return orjson.dumps([*features]).decode()


def decoded(body: str) -> EpisodeFeatures:
    """The features that the index has kept."""
    import orjson

    return EpisodeFeatures(*orjson.loads(body))


@cache
def version(settings: str) -> str:
    """A hash of the code that extracts and decides, and of its settings: others may differ."""
    from hashlib import blake2b

    package = Path(__file__).parents[1]
    sources = sorted([*package.glob("consolidation/*.py"), *package.glob("models/*.py")])
    parts = [settings.encode(), *(source.read_bytes() for source in sources)]
    return blake2b(b"".join(parts), digest_size=16).hexdigest()


# -- What the words of a belief are compared by ---------------------------------------------------


class StatementFeatures(NamedTuple):
    """The marks and words by which statements are compared."""

    words: tuple[str, ...]  # the stems of its content, each once, sorted
    is_negated: bool
    marks: tuple[tuple[str, ...], ...]  # what else must agree


def statement_features(belief: Belief) -> StatementFeatures:
    """Extract the features of what a belief says."""
    found = marks(belief.value())
    sets = (found.values, found.sides, found.names, found.bounds)
    return StatementFeatures(
        words=tuple(sorted(set(content(belief.value())))),
        is_negated=found.is_negated,
        marks=tuple(tuple(sorted(entry)) for entry in sets),
    )
