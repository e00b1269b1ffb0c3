"""Activity: sessions by day, the errors that repeat or stopped, and tokens by day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

from loki_memory.consolidation.failures import mishaps
from loki_memory.index.overview import EpisodeBody, latest_episodes, lessons_by_mark
from loki_memory.injection.told import injections
from loki_memory.models import Episode
from loki_memory.models.diagnostics import rule
from loki_memory.models.error_signature import head, signature

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace
    from loki_memory.injection.told import Injection
    from loki_memory.journal.tally import Total


_EPISODES = 2_000  # the newest; older ones say little about how work goes now
_BEFORE_ERRORS = frozenset(
    f"hook:{event}" for event in ("SessionStart", "SessionResume", "UserPromptSubmit", "PreToolUse")
)
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


# Errors that repeat, and errors that stopped repeating after a lesson about them was told.
#
# An error class is what consolidation makes one anti-pattern of. A session had an opportunity to
# meet it again if it ran the same command. Of a class that was told, the sessions after the first
# telling are counted: how many ran the command, and how many met the error all the same. The
# session of that first telling counts on neither side, because most lessons are told at the error
# itself.
#
# A class that was never told shows how often errors stop by themselves, so both stand side by
# side. `chance` is the probability of as many sessions without the error if nothing had changed.
# The rate before is (repeats + 1) / (opportunities + 2), Laplace's rule of succession: little
# data gives a rate near one half and a chance that claims little. The first meeting is no repeat:
# without it nobody would look at the class.

Verdict = Literal["stopped", "repeats", "not tried again", "never told"]


class SessionTrace(NamedTuple):
    """The commands, errors and lessons of one session."""

    session: str
    at: str
    commands: frozenset[str]
    met: Mapping[str, MetError]  # by error class
    told: frozenset[str]  # ids of lessons
    forewarned: frozenset[str] = frozenset()  # of these, those that were told before any error


class MetError(NamedTuple):
    """An error class as one session met it."""

    line: str
    command: str


class Forewarning(NamedTuple):
    """An error of which a session was told before it ran the command that meets it."""

    lesson: str
    line: str
    command: str
    is_met: bool


class ErrorClass(NamedTuple):
    """An error class, and how often it came before and after a lesson was told."""

    id: str
    line: str
    command: str  # that meets it; empty if unknown
    sessions: int  # that met it
    first: str
    last: str
    told: str  # when a lesson about it was told first; empty if never
    lesson: str  # the lesson that was told; empty if none was
    opportunities: int  # sessions that ran the command after the first meeting, before the telling
    repeats: int  # of these, those that met it
    runs_after: int  # sessions that ran the command after the telling
    met_after: int  # of these, those that met it
    chance: float  # of such a silence by itself; 1 where it came again
    verdict: Verdict


class Prevention(NamedTuple):
    """All error classes that repeat or were told, and their sums beside each other."""

    stopped: list[ErrorClass]
    repeating: list[ErrorClass]  # told, and met again
    untried: list[ErrorClass]  # told, and the command was not run since
    untold: list[ErrorClass]  # never told, met in two sessions or more
    runs_told: int  # sessions that ran the command after a telling, over all told classes
    met_told: int  # of these, those that met the error
    runs_untold: int  # sessions that ran the command after a first meeting, never told
    met_untold: int


def prevention(traces: Sequence[SessionTrace], lessons: Mapping[str, frozenset[str]]) -> Prevention:
    """Judge every error class; `lessons` has the ids of lessons about each, the traces are in
    order of time.
    """
    names = sorted({name for trace in traces for name in trace.met})
    classes = [_judged(name, traces, lessons.get(name, frozenset({name}))) for name in names]
    classes.sort(key=lambda found: (-found.sessions, found.chance, found.id))
    told = [found for found in classes if found.told]
    untold = [found for found in classes if not found.told]
    return Prevention(
        stopped=[found for found in told if found.verdict == "stopped"],
        repeating=[found for found in told if found.verdict == "repeats"],
        untried=[found for found in told if found.verdict == "not tried again"],
        untold=[found for found in untold if found.sessions > 1],
        runs_told=sum(found.runs_after for found in told),
        met_told=sum(found.met_after for found in told),
        runs_untold=sum(found.opportunities for found in untold),
        met_untold=sum(found.repeats for found in untold),
    )


def forewarnings(
    traces: Sequence[SessionTrace], lessons: Mapping[str, frozenset[str]]
) -> dict[str, list[Forewarning]]:
    """By session, the errors of which it was told beforehand and whose command it ran."""
    known = {name: met for trace in traces for name, met in trace.met.items() if met.command}
    found = {
        trace.session: [
            Forewarning(min(told), met.line, met.command, name in trace.met)
            for name, met in sorted(known.items())
            if (told := trace.forewarned & lessons.get(name, frozenset({name})))
            and (name in trace.met or met.command in trace.commands)
        ]
        for trace in traces
        if trace.forewarned
    }
    return {session: warnings for session, warnings in found.items() if warnings}


def _judged(name: str, traces: Sequence[SessionTrace], lessons: frozenset[str]) -> ErrorClass:
    meetings = [trace for trace in traces if name in trace.met]
    telling = next((trace for trace in traces if trace.told & lessons), None)
    commands = (trace.met[name].command for trace in reversed(meetings))
    command = next(filter(None, commands), "")
    running = [trace for trace in traces if name in trace.met or command in trace.commands]
    until = telling.at if telling else "9999"
    first = meetings[0]
    before = [trace for trace in running if first.at < trace.at < until]
    after = [trace for trace in running if trace.at > until]
    repeats = sum(name in trace.met for trace in before)
    met_after = sum(name in trace.met for trace in after)
    return ErrorClass(
        id=name,
        line=meetings[-1].met[name].line,
        command=command,
        sessions=len(meetings),
        first=first.at,
        last=meetings[-1].at,
        told=telling.at if telling else "",
        lesson=min(telling.told & lessons) if telling else "",
        opportunities=len(before),
        repeats=repeats,
        runs_after=len(after),
        met_after=met_after,
        chance=_chance(repeats, len(before), len(after)) if telling and not met_after else 1.0,
        verdict=_verdict(telling is not None, len(after), met_after),
    )


def _chance(repeats: int, opportunities: int, silent: int) -> float:
    """The probability of so many silent sessions at the rate of before."""
    rate = (repeats + 1) / (opportunities + 2)
    return round((1 - rate) ** silent, 4)


def _verdict(is_told: bool, runs_after: int, met_after: int) -> Verdict:
    if not is_told:
        return "never told"
    if met_after:
        return "repeats"
    return "stopped" if runs_after else "not tried again"
