"""`loki-mem hook EVENT`: the event on standard input, and its answer as JSON, or nothing.

The harness is not trusted: a field that is not text counts as absent, and input that is no event
gets no answer. Text for the session is fenced as data, within the documented limits: the fence
tells the reader that this is memory, and tells `ingest` not to learn it again. An error never fails
the session.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from loki_memory import __version__
from loki_memory.daemon.client import read_event
from loki_memory.errors import LokiMemoryError
from loki_memory.models.fence import BEGIN, END, defused, fenced

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace


# Tools about which something may be known before they are used, as Claude Code and Codex name them;
# the last command is that of Gemini CLI and Qwen Code, which are told of its errors only.
COMMAND_TOOLS = frozenset({"Bash", "shell", "local_shell", "exec_command", "run_shell_command"})
FILE_TOOLS = frozenset({"Edit", "MultiEdit", "Write", "Read", "NotebookEdit", "apply_patch"})


class Event(NamedTuple):
    """One event of a session."""

    name: str
    fields: Mapping[str, Any]

    def text(self, *names: str) -> str:
        """Return the first of these fields that holds text; empty if none does."""
        found = (self.fields.get(name) for name in names)
        return next((value for value in found if isinstance(value, str) and value), "")

    def is_set(self, name: str) -> bool:
        return self.fields.get(name) is True

    @property
    def session(self) -> str:
        return self.text("session_id")

    @property
    def transcript(self) -> str:
        """The file in which the harness records the session; empty if it keeps none."""
        return self.text("transcript_path")

    @property
    def folder(self) -> str:
        return self.text("cwd")

    @property
    def agent(self) -> str:
        """The name of the agent, if it has one: a subagent, or a member of a team."""
        return self.text("teammate_name", "agent_type")


def parsed(name: str, data: bytes) -> Event | None:
    """Parse an event; None if the bytes are not one."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return Event(name, found) if isinstance(found, dict) else None


# -- its answer ------------------------------------------------------------------------------------


LIMIT = 10_000  # characters of additional context, as documented for Claude Code


def output(event: str, text: str, warning: str = "") -> str:
    """The JSON by which a hook adds text to the session, and warns its user; empty for neither."""
    answer: dict[str, object] = {}
    if text:
        context = {"hookEventName": event, "additionalContext": fenced(text, LIMIT)}
        answer["hookSpecificOutput"] = context
    if warning:
        answer["systemMessage"] = f"loki-mem: {warning}"
    return json.dumps(answer) + "\n" if answer else ""


def continuation(text: str, environment: Mapping[str, str]) -> str:
    """The JSON by which a hook has an agent go on that was about to stop.

    Claude Code shows a reason to go on as an error, and additional context as what it is; Codex
    knows only the reason.
    """
    said = f"{BEGIN}\n{defused(text)}\n{END}"
    if environment.get(_CLIENT, "").startswith("claude-code"):
        context = {"hookEventName": "Stop", "additionalContext": said}
        return json.dumps({"hookSpecificOutput": context}) + "\n"
    return json.dumps({"decision": "block", "reason": said}) + "\n"


class Done(NamedTuple):
    """The outcome of an event: text for the session, and a line for the log."""

    text: str = ""
    note: str = ""
    aloud: bool = False  # show the note to the user too
    goes_on: bool = False  # the text is a request to an agent that was about to stop


class Response(NamedTuple):
    """The output of a hook, and its exit code."""

    out: str = ""
    err: str = ""
    code: int = 0


# -- one event: find the workspace, call the event's module, answer --------------------------------


LOG = "hooks.log"
_SESSION = re.compile(r"[0-9a-f-]{36}|[a-z0-9-]{0,12}")  # a session's id, which is no secret
_CLIENT = "AI_AGENT"  # in which Claude Code says what it is: claude-code_2-1-325_harness
PROBE = "loki_mem_probe"  # marks an event with which `doctor` checks that hooks arrive
GUARD = "LOKI_HOOK"  # in the environment of every process that a hook starts
# The module that answers each event, with a function of the event's name in small letters. Only
# that module is imported: some events come before every prompt.
EVENTS = {
    "SessionStart": "session",
    "UserPromptSubmit": "turn",
    "PreToolUse": "turn",
    "PostToolUse": "turn",
    "PostToolUseFailure": "turn",
    "Stop": "session",
    "PreCompact": "session",
    "SubagentStart": "team",
    "SubagentStop": "team",
    "TaskCompleted": "team",
    "SessionEnd": "session",
}
# Events with a second part, for a process that outlives the hook.
HANDED_OVER = {"SessionStart", "SessionEnd"}
_LEAVING = "ExitWorktree"  # the tool by which an agent leaves a worktree, and may have it removed
# Events of settings that an older version wrote. No client accepts an answer to the first, and a
# client that gets no error from the second believes that the hook has removed the worktree.
_RETIRED = {
    "PostCompact": Response(),
    "WorktreeRemove": Response(
        err="loki-mem: this hook removes no worktree, and is not needed any more; "
        "`loki-mem install claude-code` takes it out\n",
        code=1,
    ),
}


class EventFunction(Protocol):
    """A function that handles an event."""

    def __call__(self, workspace: Workspace, event: Event) -> Done: ...


def respond(
    name: str,
    data: bytes,
    environment: Mapping[str, str],
    *,
    folder: str | None = None,
    wait: bool = False,
) -> Response:
    """Answer an event, in the session's folder unless another one is given.

    `wait` is set in the process that a hook handed its work to.
    """
    if environment.get(GUARD) and not wait:
        return Response()
    if name in _RETIRED:
        return _RETIRED[name]
    if name not in EVENTS:
        from loki_memory.workspace import quotable

        return Response(err=f"loki-mem: {quotable(name, 80)!r} is no event that memory answers\n")
    fence = _Fence(name)
    with fence:
        event = parsed(name, data)
        if event is not None and event.is_set(PROBE):
            return Response(json.dumps({"loki-mem": __version__}) + "\n")
        if event is not None:
            place = folder or event.folder or environment.get("CLAUDE_PROJECT_DIR") or "."
            fence.workspace = _workspace(event, place)
        if event is not None and fence.workspace is not None:
            return _answered(fence.workspace, event, environment, wait=wait)
    return Response(err=fence.line)


def _workspace(event: Event, folder: str) -> Workspace | None:
    """Open the workspace of a folder; None if it has none, or if the event needs none."""
    tool = event.text("tool_name")
    if event.name == "PreToolUse" and tool not in {_LEAVING, *COMMAND_TOOLS, *FILE_TOOLS}:
        return None
    if event.name == "PostToolUse" and event.transcript and tool not in COMMAND_TOOLS:
        return None  # the transcript records it, and only commands meet errors that are known
    if not _may_have_memory(folder):
        return None
    from loki_memory.workspace import Workspace

    try:
        workspace = Workspace.open(folder)
    except (LokiMemoryError, OSError, ValueError):  # no folder, no workspace, no path at all
        return None
    # Also while capture is paused: what is there is kept when an agent leaves its worktree.
    is_leaving = event.name == "PreToolUse" and tool == _LEAVING
    return workspace if is_leaving or not workspace.sessions.why_off() else None


def _may_have_memory(folder: str) -> bool:
    """Check for a `.loki` folder here or above, before anything is loaded to open it."""
    place, user = os.path.abspath(folder), os.environ.get("LOKI_HOME")
    user = user or os.path.expanduser("~/.loki")
    while not os.path.isdir(f"{place}/.loki") or f"{place}/.loki" == user:
        above = os.path.dirname(place)
        if above == place:
            return bool(os.environ.get("LOKI_WORKSPACE"))
        place = above
    return True


def _answered(
    workspace: Workspace, event: Event, environment: Mapping[str, str], *, wait: bool
) -> Response:
    listener = _listener(event, wait=wait)
    workspace.home.starts_git = wait
    try:
        with workspace.home.one_look():
            done = listener(workspace, event)
    finally:
        workspace.home.starts_git = True  # a watcher keeps it open for other questions
    workspace.flush()
    warning = done.note if done.aloud else ""
    if done.goes_on:
        out = continuation(done.text, environment)
    else:
        out = output(event.name, done.text, warning)
    note = ", ".join(filter(None, (f"{len(done.text)} characters" * bool(out), done.note)))
    if note:
        line = f"{workspace.now()} {event.name} {event.session} {note}"
        may_hold_secret = _SESSION.fullmatch(event.session) is None
        workspace.home.note_in_log(LOG, line, may_hold_secret=may_hold_secret)
    return Response(out)


def _listener(event: Event, *, wait: bool) -> EventFunction:
    """The function that handles an event; only its module is imported."""
    place, name = EVENTS[event.name], event.name.lower()
    if event.name == "PreToolUse" and event.text("tool_name") == _LEAVING:
        place, name = "session", "leaving_worktree"
    if wait and event.name in HANDED_OVER:
        name += "_afterwards"
    found: EventFunction = getattr(import_module(f"loki_memory.hooks.{place}"), name)
    return found


class _Fence:
    """A guard that keeps every error from the session. The log gets the error with its place, so
    that an unexpected one is not lost.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.workspace: Workspace | None = None
        self.line = ""

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
            line = f"{self.workspace.now()} {self.name} failed at {place}: {reason}"
            self.workspace.home.note_in_log(LOG, line, may_hold_secret=True)
        from loki_memory.workspace import quotable

        self.line = f"loki-mem: hook {self.name}: {quotable(' '.join(reason.split()), 200)}\n"
        return True


# -- the process -----------------------------------------------------------------------------------


def answer(name: str, *, folder: str | None = None, wait: bool = False) -> Response:
    """The response to the event on standard input."""
    try:
        data = read_event(sys.stdin.buffer) if sys.stdin is not None else b""
    except (OSError, ValueError):  # closed, or not open at all
        data = b""
    return respond(name, data, os.environ, folder=folder, wait=wait)


def run(name: str) -> int:
    """Answer the event and print the response; returns the exit code."""
    response = answer(name)
    show(response)
    return response.code


def show(response: Response) -> None:
    """Print a response; a closed stream is ignored."""
    for stream, text in ((sys.stdout, response.out), (sys.stderr, response.err)):
        if text:
            with suppress(OSError, ValueError, AttributeError):
                stream.buffer.write(text.encode("utf-8", "replace"))
                stream.flush()
