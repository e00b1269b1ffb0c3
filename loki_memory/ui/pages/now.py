"""Now: what sessions were told lately and whether it helped, what the next is told, what waits."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response

from loki_memory.models.text import shorten, tokens
from loki_memory.ui.page import Visit, page, render
from loki_memory.ui.pages.told import Tally, ToldMemory, ToldSession, tally, told_sessions
from loki_memory.ui.site import derived

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

_SESSIONS = 12  # that are shown
_CANDIDATES = 5  # that are named; Review has all
_LINES = 200  # of CONTINUITY.md
_ID = re.compile(r"\[(?:skill: )?([a-z]+-[0-9A-Za-z_-]+)\] ?")


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

    tally: Tally
    sessions: list[ToldSession]
    goal: str
    brief: list[ToldMemory]
    brief_tokens: int
    continuity: list[ToldMemory]
    continuity_tokens: int
    continuity_file: str  # the name of the file; empty if there is none
    is_trusted: bool
    running: list[RunningSession]
    candidates: list[WaitingCandidate]
    more_candidates: int


def now_page(workspace: Workspace) -> NowPage:
    """Collect what sessions were told, what the next one is told, and what waits."""
    goal = workspace.browse.last_goal()
    brief = _brief(workspace, goal)
    file = workspace.layout.loki / "CONTINUITY.md"
    text = _text_of(file) if file.is_file() else _continuity(workspace, goal)
    waiting = _waiting(workspace)
    return NowPage(
        tally=derived(workspace, "tally", partial(tally, workspace)),
        sessions=derived(workspace, "told", partial(told_sessions, workspace, _SESSIONS)),
        goal=shorten(goal, 300),
        brief=brief,
        brief_tokens=sum(tokens(line.text) for line in brief),
        continuity=[_line(line) for line in text.splitlines()[:_LINES]],
        continuity_tokens=tokens(text),
        continuity_file=".loki/CONTINUITY.md" if file.is_file() else "",
        is_trusted=workspace.home.trust().is_trusted,
        running=[RunningSession(*waiting) for waiting in workspace.sessions.staged()[:_SESSIONS]],
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


def now(visit: Visit) -> Response:
    return render(visit, "now.html", now_page(visit.workspace))


routes = page("/now", now)
shapes: dict[str, Any] = {"now": NowPage}
