"""Now: what agents are told at this moment, what sessions were told lately, and what waits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response

from loki_memory.errors import NotFound
from loki_memory.models import Episode
from loki_memory.models.error_signature import signature
from loki_memory.models.text import shorten, tokens
from loki_memory.ui.page import Visit, page, render
from loki_memory.ui.site import derived

if TYPE_CHECKING:
    from loki_memory.browse.activity import Forewarning
    from loki_memory.workspace import Workspace

_SESSIONS = 12  # that are shown
_EPISODES = 200  # the latest, in which the sessions are looked up
_CANDIDATES = 5  # that are named; Review has all
_LINES = 200  # of CONTINUITY.md
_ID = re.compile(r"\[(?:skill: )?([a-z]+-[0-9A-Za-z_-]+)\] ?")
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
    injections: list[ShownInjection]
    verdicts: list[SessionVerdict]
    untold_errors: list[str]  # errors of the session about which it was told nothing


class RunningSession(NamedTuple):
    """A session that was read and is no episode yet."""

    name: str
    turns: int
    last: str
    why: str


class WaitingCandidate(NamedTuple):
    """A lesson that waits for review."""

    id: str
    title: str
    confidence: float | None


class NowPage(NamedTuple):
    """The data of the page Now."""

    goal: str
    brief: list[ToldMemory]
    brief_tokens: int
    continuity: list[ToldMemory]
    continuity_tokens: int
    continuity_file: str  # the name of the file; empty if there is none
    is_trusted: bool
    running: list[RunningSession]
    sessions: list[ToldSession]
    candidates: list[WaitingCandidate]
    more_candidates: int


def now_page(workspace: Workspace) -> NowPage:
    """Collect what agents are told now, what sessions were told, and what waits."""
    goal = workspace.injection.last_goal()
    brief = _brief(workspace, goal)
    file = workspace.layout.loki / "CONTINUITY.md"
    text = _text_of(file) if file.is_file() else _continuity(workspace, goal)
    waiting = _waiting(workspace)
    return NowPage(
        goal=shorten(goal, 300),
        brief=brief,
        brief_tokens=sum(tokens(line.text) for line in brief),
        continuity=[_line(line) for line in text.splitlines()[:_LINES]],
        continuity_tokens=tokens(text),
        continuity_file=".loki/CONTINUITY.md" if file.is_file() else "",
        is_trusted=workspace.home.trust().is_trusted,
        running=[RunningSession(*waiting) for waiting in workspace.sessions.staged()[:_SESSIONS]],
        sessions=_sessions(workspace),
        candidates=[
            WaitingCandidate(shift.id, shorten(shift.title, 300), shift.after)
            for shift in waiting[:_CANDIDATES]
        ],
        more_candidates=max(0, len(waiting) - _CANDIDATES),
    )


def _brief(workspace: Workspace, goal: str) -> list[ToldMemory]:
    told = derived(workspace, f"brief {goal}", lambda: workspace.team.session_brief(goal))
    return [ToldMemory(line.id, _without_id(line.text)) for line in told]


def _continuity(workspace: Workspace, goal: str) -> str:
    """CONTINUITY.md as it would be written."""
    written = partial(workspace.browse.continuity_block, goal, surface="")
    return derived(workspace, f"continuity {goal}", written)


def _waiting(workspace: Workspace) -> list[Any]:
    """The lessons of this machine that are not published."""
    most = _CANDIDATES * 10
    found: list[Any] = derived(
        workspace, "waiting", lambda: workspace.history.candidates(most)
    ).shifts
    return found


def _text_of(file: Any) -> str:
    return str(file.read_bytes()[:100_000].decode("utf-8", "replace"))


def _line(text: str) -> ToldMemory:
    found = _ID.search(text)
    return ToldMemory(found[1] if found else "", shorten(text, 2000))


def _without_id(text: str) -> str:
    """A line of the brief without its bullet and its id, which is where it leads."""
    return shorten(_ID.sub("", text.removeprefix("- "), 1), 2000)


# -- what sessions were told -----------------------------------------------------------------------


def _sessions(workspace: Workspace) -> list[ToldSession]:
    """The latest sessions that were told something, newest first."""
    by_session: dict[str, list[Any]] = {}
    for injection in reversed(workspace.browse.injections()):
        by_session.setdefault(injection.session, []).append(injection)
    latest = dict(list(by_session.items())[:_SESSIONS])
    episodes = _episodes(workspace, latest)
    forewarned = _forewarned(workspace) if episodes else {}
    return [
        _told(workspace, name, told, episodes.get(name))._replace(
            verdicts=[_verdict(warning) for warning in forewarned.get(name, ())]
        )
        for name, told in latest.items()
        if name
    ]


def _forewarned(workspace: Workspace) -> Mapping[str, list[Forewarning]]:
    return derived(workspace, "activity", workspace.browse.activity).forewarned


def _verdict(warning: Forewarning) -> SessionVerdict:
    words = "did not help" if warning.is_met else "helped"
    return SessionVerdict(warning.lesson, warning.line, words, warning.command)


def _episodes(workspace: Workspace, sessions: Mapping[str, Any]) -> dict[str, Episode]:
    """The last episode of each session, among the latest of all."""
    found: dict[str, Episode] = {}
    for line in workspace.browse.summaries(kind="episode")[:_EPISODES] if any(sessions) else ():
        episode = workspace.get(line.id)
        if isinstance(episode, Episode) and episode.session in sessions:
            found.setdefault(str(episode.session), episode)
    return found


def _told(
    workspace: Workspace, name: str, told: Iterable[Any], episode: Episode | None
) -> ToldSession:
    shown = [_injection(injection) for injection in told]
    titles = {memory.id: memory.text for injection in shown for memory in injection.memories}
    return ToldSession(
        session=name,
        at=shown[0].at,
        agent=(episode.agent or "") if episode else "",
        goal=shorten(episode.goal, 200) if episode else "",
        outcome=episode.outcome if episode else "",
        episode=episode.id if episode else "",
        tokens=sum(injection.tokens for injection in shown),
        injections=shown,
        verdicts=[],
        untold_errors=_untold(workspace, episode, titles) if episode else [],
    )


def _injection(injection: Any) -> ShownInjection:
    memories = [ToldMemory(memory.id, memory.title) for memory in injection.memories]
    door = _DOORS.get(injection.occasion, injection.occasion)
    return ShownInjection(
        injection.at, door, shorten(injection.why, 160), injection.tokens, memories
    )


def _untold(workspace: Workspace, episode: Episode, titles: Mapping[str, str]) -> list[str]:
    """The errors of an episode about which no line that it was told speaks."""
    known = {signature(text) for text in _errors_of(workspace, titles)}
    messages = (error.message for error in episode.errors_encountered if error.message)
    return [shorten(text, 160) for text in messages if signature(text) not in known][:5]


def _errors_of(workspace: Workspace, ids: Iterable[str]) -> Iterator[str]:
    for name in ids:
        with suppress(NotFound):
            yield from workspace.get(name).errors()


def now(visit: Visit) -> Response:
    return render(visit, "now.html", now_page(visit.workspace))


routes = page("/now", now)
shapes: dict[str, Any] = {"now": NowPage}
