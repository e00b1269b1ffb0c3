"""What sessions were told, when, through which door, and whether it helped: by session, by belief.

A session is known by its episodes, which `ws.browse.activity` has read; one that runs still has
none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.errors import NotFound
from loki_memory.models.error_signature import signature
from loki_memory.models.text import shorten
from loki_memory.ui.site import derived

if TYPE_CHECKING:
    from loki_memory.browse.activity import Activity, Forewarning, WorkSession
    from loki_memory.workspace import Workspace

_UNTOLD = 5  # errors of a session that are named
_TELLINGS = 20  # of one belief, the newest
_LINE = 160  # characters of an error, and of the occasion of an injection
_GOAL = 300
# The doors through which memory reaches a session, in words.
_DOORS = {
    "hook:SessionStart": "at its start",
    "hook:SessionResume": "when it went on",
    "hook:UserPromptSubmit": "at a prompt",
    "hook:PreToolUse": "before a tool call",
    "hook:PostToolUse": "after a tool call",
    "hook:PostToolUseFailure": "at an error",
    "hook:SubagentStart": "to a subagent",
    "context": "asked for context",
    "continuity": "CONTINUITY.md",
}
_AT_START = ("hook:SessionStart", "hook:SessionResume")


class ToldMemory(NamedTuple):
    """A line that an agent reads, and the memory that it tells; an empty id if none."""

    id: str
    text: str


class ShownInjection(NamedTuple):
    """The memories that one session was told at one time."""

    at: str
    door: str
    why: str
    tokens: int
    memories: list[ToldMemory]
    is_start: bool  # the brief, which is much the same for every session


class SessionVerdict(NamedTuple):
    """The verdict about a lesson that a session was told before the error could come."""

    id: str
    title: str
    verdict: str  # helped, did not help
    command: str  # that meets the error; the session ran it


class ToldSession(NamedTuple):
    """A session, what it was told, and what became of it."""

    session: str
    at: str
    agent: str
    goal: str
    outcome: str
    episode: str
    tokens: int
    lines: int
    injections: list[ShownInjection]
    verdicts: list[SessionVerdict]
    untold_errors: list[str]  # errors of the session about which it was told nothing


class Telling(NamedTuple):
    """One session that was told a belief."""

    session: str
    episode: str
    goal: str
    at: str
    door: str
    verdict: str  # helped, did not help; empty if nothing can be said


def door(occasion: str) -> str:
    """The words for the way in which memory reached a session."""
    return _DOORS.get(occasion, occasion)


def activity(workspace: Workspace) -> Activity:
    return derived(workspace, "activity", workspace.browse.activity)


def _injections(workspace: Workspace) -> list[Any]:
    """The latest injections into sessions, newest first."""
    found = derived(workspace, "injections", workspace.browse.injections)
    return [injection for injection in reversed(found) if injection.session]


def told_sessions(workspace: Workspace, most: int) -> list[ToldSession]:
    """The latest sessions that were told something, newest first."""
    by_session: dict[str, list[Any]] = {}
    for injection in _injections(workspace):
        by_session.setdefault(injection.session, []).append(injection)
    if not by_session:
        return []
    known, warned = _sessions(workspace), activity(workspace).forewarned
    return [
        _told(workspace, told, known.get(name))._replace(
            verdicts=[_verdict(warning) for warning in warned.get(name, ())]
        )
        for name, told in list(by_session.items())[:most]
    ]


def tellings(workspace: Workspace, memory_id: str) -> list[Telling]:
    """The sessions that were told a belief, newest first."""
    entries = [
        injection
        for injection in _injections(workspace)
        if any(memory.id == memory_id for memory in injection.memories)
    ]
    if not entries:
        return []
    known, warned = _sessions(workspace), activity(workspace).forewarned
    return [
        _telling(entry, known.get(entry.session), warned.get(entry.session, ()), memory_id)
        for entry in entries[:_TELLINGS]
    ]


def _sessions(workspace: Workspace) -> dict[str, WorkSession]:
    return {session.id: session for day in activity(workspace).days for session in day.sessions}


def _telling(
    entry: Any, session: WorkSession | None, warned: Iterable[Forewarning], memory_id: str
) -> Telling:
    verdicts = [_verdict(warning).verdict for warning in warned if warning.lesson == memory_id]
    return Telling(
        session=entry.session,
        episode=session.episodes[-1] if session else "",
        goal=shorten(session.goals[0], _GOAL) if session else "",
        at=entry.at,
        door=door(entry.occasion),
        verdict=min(verdicts, default=""),
    )


def _told(workspace: Workspace, told: Sequence[Any], session: WorkSession | None) -> ToldSession:
    shown = [_injection(injection) for injection in told]
    ids = {memory.id for injection in shown for memory in injection.memories}
    return ToldSession(
        session=told[0].session,
        at=shown[0].at,
        agent=session.agent if session else "",
        goal=shorten(session.goals[0], _GOAL) if session else "",
        outcome=session.outcome if session else "",
        episode=session.episodes[-1] if session else "",
        tokens=sum(injection.tokens for injection in shown),
        lines=sum(len(injection.memories) for injection in shown),
        injections=shown,
        verdicts=[],
        untold_errors=_untold(workspace, session.errors, ids) if session else [],
    )


def _injection(injection: Any) -> ShownInjection:
    return ShownInjection(
        injection.at,
        door(injection.occasion),
        shorten(injection.why, _LINE),
        injection.tokens,
        [ToldMemory(memory.id, memory.title) for memory in injection.memories],
        is_start=injection.occasion in _AT_START,
    )


def _verdict(warning: Forewarning) -> SessionVerdict:
    words = "did not help" if warning.is_met else "helped"
    return SessionVerdict(warning.lesson, warning.line, words, warning.command)


def _untold(workspace: Workspace, errors: Iterable[str], ids: Iterable[str]) -> list[str]:
    """The errors about which no line that the session was told speaks."""
    known = {signature(text) for text in _errors_of(workspace, ids)}
    return [shorten(text, _LINE) for text in errors if signature(text) not in known][:_UNTOLD]


def _errors_of(workspace: Workspace, ids: Iterable[str]) -> Iterator[str]:
    for name in ids:
        with suppress(NotFound):
            yield from workspace.get(name).errors()


class Tally(NamedTuple):
    """What was told in all, and what became of the errors it was about."""

    sessions: int
    lines: int
    tokens: int
    since: str
    helped: int  # warnings after which the command ran and the error did not come
    failed: int  # warnings after which it came all the same
    runs_untold: int  # sessions that ran the command of an error that was never told
    met_untold: int  # of these, those that met the error again


def tally(workspace: Workspace) -> Tally:
    """Sum up what the journal of this machine remembers."""
    found = _injections(workspace)
    if not found:
        return Tally(0, 0, 0, "", 0, 0, 0, 0)
    done = activity(workspace)
    outcomes = _outcomes(done.forewarned)
    return Tally(
        len({injection.session for injection in found}),
        sum(len(injection.memories) for injection in found),
        sum(injection.tokens for injection in found),
        found[-1].at,
        outcomes.count(False),
        outcomes.count(True),
        done.prevention.runs_untold,
        done.prevention.met_untold,
    )


def _outcomes(forewarned: Mapping[str, Sequence[Forewarning]]) -> list[bool]:
    return [warning.is_met for warnings in forewarned.values() for warning in warnings]
