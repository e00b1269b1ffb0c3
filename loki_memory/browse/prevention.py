"""Errors that repeat, and errors that stopped repeating after a lesson about them was told.

An error class is what consolidation makes one anti-pattern of. A session had an opportunity to meet
it again if it ran the same command. Of a class that was told, the sessions after the first telling
are counted: how many ran the command, and how many met the error all the same. The session of that
first telling counts on neither side, because most lessons are told at the error itself.

A class that was never told shows how often errors stop by themselves, so both stand side by side.
`chance` is the probability of as many sessions without the error if nothing had changed. The
rate before is (repeats + 1) / (opportunities + 2), Laplace's rule of succession: little data gives
a rate near one half and a chance that claims little. The first meeting is no repeat: without it
nobody would look at the class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

Verdict = Literal["stopped", "repeats", "not tried again", "never told"]
_FEW = 0.05  # a silence that chance explains more often than this proves nothing by itself


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

    @property
    def is_conclusive(self) -> bool:
        """Check if chance alone hardly explains that the error stopped."""
        return self.verdict == "stopped" and self.chance < _FEW


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
    command = next((met.command for trace in meetings if (met := trace.met[name]).command), "")
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
