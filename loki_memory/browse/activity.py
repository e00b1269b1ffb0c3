"""Activity: sessions by day, the errors that repeat or stopped, and tokens by day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.browse.prevention import (
    Forewarning,
    MetError,
    Prevention,
    SessionTrace,
    forewarnings,
    prevention,
)
from loki_memory.consolidation.failures import mishaps
from loki_memory.index.overview import EpisodeBody, latest_episodes, lessons_by_mark
from loki_memory.injection.log import injections
from loki_memory.models import Episode
from loki_memory.models.diagnostics import rule
from loki_memory.models.error_signature import head, signature

if TYPE_CHECKING:
    from loki_memory.economics import Total
    from loki_memory.homes import OpenWorkspace
    from loki_memory.injection.log import Injection

_EPISODES = 2_000  # the newest; older ones say little about how work goes now
_BEFORE_ERRORS = frozenset({"hook:SessionStart", "hook:UserPromptSubmit", "hook:PreToolUse"})
_KEPT = 20_000  # episodes of which a process keeps what was extracted


class WorkSession(NamedTuple):
    """One session of an agent, from all its episodes."""

    id: str  # of the session; of the episode where it has none
    at: str
    agent: str
    outcome: str  # of its last episode
    goals: list[str]
    episodes: list[str]
    errors: list[str]  # classes of the errors that it met, in words
    told: int  # memories that it was shown
    tokens: int  # that were told to it unasked, as far as the journal remembers


class DayOfWork(NamedTuple):
    """The sessions of one day, by agent."""

    day: str
    sessions: list[WorkSession]


class DayOfTokens(NamedTuple):
    """The tokens that memory offered on one day."""

    day: str
    recalls: int
    offered: int


class Activity(NamedTuple):
    """Sessions by day, the newest first; errors; tokens by day, the oldest first."""

    days: list[DayOfWork]
    prevention: Prevention
    tokens: list[DayOfTokens]
    episodes: int  # that were looked at
    more: bool  # whether there are older ones
    forewarned: Mapping[str, list[Forewarning]]  # by session


class EpisodeTrace(NamedTuple):
    """The parts of an episode that tell how its session went."""

    id: str
    session: str
    at: str
    agent: str
    outcome: str
    goal: str
    commands: frozenset[str]
    met: Mapping[str, MetError]
    recalled: frozenset[str]


def activity(workspace: OpenWorkspace) -> Activity:
    """Collect what sessions did, as far back as the newest two thousand episodes."""
    workspace.home.ensure("read")
    index = workspace.index
    bodies = workspace.home.answer(partial(latest_episodes, index, _EPISODES))
    told = injections(workspace, None)
    by_session = sessions_of([trace_of(body) for body in bodies])
    lessons = _lessons(by_session, workspace.home.answer(partial(lessons_by_mark, index)))
    traces = [_trace(name, episodes, told) for name, episodes in by_session.items()]
    traces.sort(key=lambda trace: (trace.at, trace.session))
    return Activity(
        days=_by_day(by_session, told),
        prevention=prevention(traces, lessons),
        tokens=tokens_by_day(workspace.home.journal.totals()),
        episodes=len(bodies),
        more=len(bodies) == _EPISODES,
        forewarned=forewarnings(traces, lessons),
    )


@lru_cache(maxsize=_KEPT)
def trace_of(found: EpisodeBody) -> EpisodeTrace:
    """Extract a trace from an episode; the result depends on nothing else."""
    episode = Episode.model_validate_json(found.body)
    actions = (head(action.action, action.target or "") for action in episode.action_log)
    return EpisodeTrace(
        id=found.id,
        session=episode.session or found.id,
        at=episode.timestamp,
        agent=episode.agent or "",
        outcome=episode.outcome,
        goal=episode.goal,
        commands=frozenset(filter(None, actions)),
        met={failed.id: MetError(failed.line, failed.command) for failed in mishaps(episode)},
        recalled=frozenset(shown.id for shown in episode.recalled),
    )


def sessions_of(traces: Iterable[EpisodeTrace]) -> dict[str, list[EpisodeTrace]]:
    """Group episodes by session, each in order of time."""
    found: dict[str, list[EpisodeTrace]] = {}
    for trace in sorted(traces, key=lambda trace: (trace.at, trace.id)):
        found.setdefault(trace.session, []).append(trace)
    return found


def _trace(name: str, episodes: Sequence[EpisodeTrace], told: Sequence[Injection]) -> SessionTrace:
    met: dict[str, MetError] = {}
    for episode in episodes:
        met |= episode.met
    here = [entry for entry in told if entry.session == name]
    early = [entry for entry in here if entry.occasion in _BEFORE_ERRORS]
    shown = {memory.id for entry in here for memory in entry.memories}
    return SessionTrace(
        session=name,
        at=episodes[0].at,
        commands=frozenset().union(*(episode.commands for episode in episodes)),
        met=met,
        told=frozenset(shown).union(*(episode.recalled for episode in episodes)),
        forewarned=frozenset(memory.id for entry in early for memory in entry.memories),
    )


def _lessons(
    sessions: Mapping[str, Sequence[EpisodeTrace]], by_mark: Mapping[str, Sequence[str]]
) -> dict[str, frozenset[str]]:
    """The lessons about each error class: its own anti-pattern, and what states the same error."""
    lines = {
        name: met.line
        for episodes in sessions.values()
        for episode in episodes
        for name, met in episode.met.items()
    }
    return {
        name: frozenset(
            {name, *(lesson for mark in _marks(line) for lesson in by_mark.get(mark, ()))}
        )
        for name, line in lines.items()
    }


def _marks(line: str) -> list[str]:
    found, named = signature(line), rule(line)
    marks = [f"error:{found.exact}"] if found else []
    return [*marks, f"rule:{named}"] if named else marks


def _by_day(
    sessions: Mapping[str, Sequence[EpisodeTrace]], told: Sequence[Injection]
) -> list[DayOfWork]:
    found = [_session(name, episodes, told) for name, episodes in sessions.items()]
    found.sort(key=lambda session: (session.at[:10], session.agent, session.at, session.id))
    days = [DayOfWork(day, list(group)) for day, group in groupby(found, lambda it: it.at[:10])]
    return days[::-1]


def _session(name: str, episodes: Sequence[EpisodeTrace], told: Sequence[Injection]) -> WorkSession:
    here = [entry for entry in told if entry.session == name]
    shown = {memory.id for entry in here for memory in entry.memories}
    return WorkSession(
        id=name,
        at=episodes[0].at,
        agent=episodes[0].agent,
        outcome=episodes[-1].outcome,
        goals=list(dict.fromkeys(episode.goal for episode in episodes)),
        episodes=[episode.id for episode in episodes],
        errors=list(
            dict.fromkeys(met.line for episode in episodes for met in episode.met.values())
        ),
        told=len(shown.union(*(episode.recalled for episode in episodes))),
        tokens=sum(entry.tokens for entry in here),
    )


def tokens_by_day(totals: Iterable[Total]) -> list[DayOfTokens]:
    """Sum what all surfaces offered, by day."""
    found: dict[str, DayOfTokens] = {}
    for total in totals:
        day = found.get(total.day, DayOfTokens(total.day, 0, 0))
        offered = day.offered + total.offered
        found[total.day] = DayOfTokens(total.day, day.recalls + total.recalls, offered)
    return [found[day] for day in sorted(found)]
