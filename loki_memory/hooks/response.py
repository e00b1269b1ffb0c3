"""The response to one event: find the workspace, let the event's module work, answer, log.

A hook never fails a session: whatever goes wrong here is a line in the log and one on stderr, and
the harness sees success. Nothing at all is said where there is no workspace, where memory is turned
off or paused, and to a process that a hook of ours has started (LOKI_HOOK).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from loki_memory.errors import LokiMemoryError
from loki_memory.hooks.answer import output
from loki_memory.hooks.event import Event, parsed

if TYPE_CHECKING:  # an event about which there is nothing to do pays for nothing
    from loki_memory.workspace import Workspace

LOG = "hooks.log"
GUARD = "LOKI_HOOK"  # in the environment of whatever a hook starts
# Which module answers which event, with a function of the event's name in small letters. Only that
# one is imported: some of these run before every prompt.
EVENTS = {
    "SessionStart": "session",
    "UserPromptSubmit": "prompt",
    "PostToolUse": "tool",
    "PostToolUseFailure": "tool",
    "Stop": "session",
    "PreCompact": "session",
    "PostCompact": "session",
    "SubagentStart": "team",
    "SubagentStop": "team",
    "TaskCompleted": "team",
    "SessionEnd": "session",
    "WorktreeRemove": "worktree",
}
HANDED_OVER = {"SessionEnd"}  # they have a second part, for a process that outlives the session
ALWAYS = {"WorktreeRemove"}  # also while nothing is captured: it keeps what is there


class Done(NamedTuple):
    """What came of an event: text for the session, and what the log says."""

    text: str = ""
    told: str = ""
    aloud: bool = False  # a person should know too


class Response(NamedTuple):
    """What a hook prints; it always exits with 0."""

    out: str = ""
    err: str = ""


class Listener(Protocol):
    """What a module does about an event."""

    def __call__(self, workspace: Workspace, event: Event) -> Done: ...


def respond(
    name: str,
    data: bytes,
    environment: Mapping[str, str],
    *,
    folder: str | None = None,
    wait: bool = False,
) -> Response:
    """Answer an event, of the session's folder unless another one is given.

    `wait` is for the process that a hook handed its work to.
    """
    if environment.get(GUARD) and not wait:
        return Response()
    if name not in EVENTS:
        return Response(err=f"loki-mem: {name!r} is no event that memory answers\n")
    fence = _Fence(name)
    with fence:
        event = parsed(name, data)
        if event is not None:
            place = folder or event.folder or environment.get("CLAUDE_PROJECT_DIR") or "."
            fence.workspace = _workspace(event, place)
        if event is not None and fence.workspace is not None:
            return _answered(fence.workspace, event, wait=wait)
    return Response(err=fence.said)


def _workspace(event: Event, folder: str) -> Workspace | None:
    """The workspace of a folder; None if that has none, or none that is to be asked."""
    if event.name == "PostToolUse" and event.transcript:
        return None  # the transcript tells it; this runs after every call
    from loki_memory.workspace import Workspace
    from loki_memory.writing.pausing import why_off

    try:
        workspace = Workspace.open(folder)
    except (LokiMemoryError, OSError, ValueError):  # no folder, no workspace, no path at all
        return None
    return workspace if event.name in ALWAYS or not why_off(workspace) else None


def _answered(workspace: Workspace, event: Event, *, wait: bool) -> Response:
    module = import_module(f"loki_memory.hooks.{EVENTS[event.name]}")
    name = event.name.lower() + ("_afterwards" if wait and event.name in HANDED_OVER else "")
    listener: Listener = getattr(module, name)
    done = listener(workspace, event)
    out = output(event.name, done.text)
    told = ", ".join(filter(None, (f"{len(done.text)} characters" * bool(out), done.told)))
    if told:
        workspace.note_in_log(LOG, f"{workspace.now()} {event.name} {event.session[:40]} {told}")
    return Response(out, f"loki-mem: {done.told}\n" if done.aloud else "")


class _Fence:
    """Keeps every error from the session. It is told in the log, with the place that it rose at,
    so that an error that nobody thought of is not lost.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.workspace: Workspace | None = None
        self.said = ""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        import traceback  # 3 ms, which hooks that work do not pay

        at = traceback.extract_tb(trace)[-1]
        reason = f"{type(error).__name__}: {error}"
        if self.workspace:
            place = f"{Path(at.filename).name}:{at.lineno}"
            said = f"{self.workspace.now()} {self.name} failed at {place}: {reason}"
            self.workspace.note_in_log(LOG, said, may_hold_secret=True)
        self.said = f"loki-mem: hook {self.name}: {' '.join(reason.split())[:200]}\n"
        return True
