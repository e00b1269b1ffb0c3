"""The request for lessons: at the end of an eventful piece of work the agent is asked to word them.

The agent is asked once a session, and goes on for one more turn. It is not asked if

- `capture.ask` is `never`, memory is off, or capture is paused;
- it recorded a lesson, a statement or an episode in this session itself;
- a hook made it go on already (`stop_hook_active`), this one or another;
- its run has a limit of turns, which one more turn may exceed: the command line of the client has
  `--max-turns`. Where nobody is there (`claude -p`) and the command line cannot be read, it is not
  asked either.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loki_memory.hooks.response import Event
    from loki_memory.ingest.session_events import Draft
    from loki_memory.workspace import Workspace

PARENT = "HOOK_PARENT"  # the process that started a hook, if a watcher answers it
_LIMIT = "--max-turns"
_ANCESTORS = 3  # a client may start hooks by a shell, or by a small program of its own
_UNATTENDED = "sdk"  # how the entry point of `claude -p` and of programs begins
# Calls by which an agent records something: a command, or a tool of ours.
_RECORDED = re.compile(
    rb"""\\?"(?:command|cmd)\\?":\s*\\?"[^\n]{0,200}?\bloki-mem(?: -C \S+)? """
    rb"""(?:lesson|remember|record)\b"""
    rb"""|"type":\s*"(?:tool_use|function_call)"[^{}]{0,200}"name":\s*"(?:mcp__[\w-]*__)?"""
    rb"""memory_(?:lesson|remember|record_episode)\""""
)
_REASONS = {
    "correction": "you were corrected",
    "error": "an error took several attempts",
    "decision": "something was decided",
}


def request(workspace: Workspace, event: Event, environment: Mapping[str, str]) -> str:
    """The words that ask an agent for lessons; empty if it is not to be asked."""
    wanted = workspace.config.text("capture.ask")
    if wanted == "never" or not event.session or event.is_set("stop_hook_active"):
        return ""
    if workspace.sessions.was_asked(event.session):
        return ""
    drafts = workspace.sessions.drafts(event.session)
    if drafts is None or (wanted == "eventful" and not drafts):
        return ""
    if _has_recorded(event.transcript) or has_turn_limit(environment):
        return ""
    is_first = workspace.sessions.note_asked(event.session)
    return _words(event.session, drafts, environment) if is_first else ""


def _words(session: str, drafts: Sequence[Draft], environment: Mapping[str, str]) -> str:
    reasons = dict.fromkeys(_REASONS[draft.reason] for draft in drafts)
    why = f" ({', '.join(reasons)})" if reasons else ""
    said = (
        f"Before you stop{why}: word what a later session should know, at most three lessons, each "
        "of which a colleague can follow without this conversation. Record each with "
        '`loki-mem lesson "WHEN IT APPLIES" --do "WHAT TO DO" --session '
        f'{shlex.quote(session)}` (add `--error "…"` for an error), or with the tool '
        "memory_lesson. If nothing is worth keeping, record nothing. Do no other work."
    )
    if drafts:
        listed = "\n".join(f"- {draft.text}" for draft in drafts)
        said += f"\nDrafts from this session, to confirm, reword or drop (data):\n{listed}"
    if _is_unattended(environment):
        said += "\nThen repeat your final answer: it is what this run returns."
    return said


# -- whether it may be asked -----------------------------------------------------------------------


def _has_recorded(transcript: str) -> bool:
    """Check if the agent recorded something itself in this session."""
    with suppress(OSError), open(transcript, "rb") as lines:
        return any(_RECORDED.search(line) for line in lines)
    return False


def has_turn_limit(environment: Mapping[str, str]) -> bool:
    """Check if the client was started with a limit of turns, as far as that can be known."""
    process = int(environment.get(PARENT) or os.getppid())
    commands = list(_command_lines(process))
    if not commands:
        return _is_unattended(environment)
    return any(word.startswith(_LIMIT) for words in commands for word in words)


def _is_unattended(environment: Mapping[str, str]) -> bool:
    return environment.get("CLAUDE_CODE_ENTRYPOINT", "").startswith(_UNATTENDED)


def _command_lines(process: int) -> Iterator[list[str]]:
    """The command lines of a process and of those that started it; none where /proc is not."""
    for _ in range(_ANCESTORS):
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
            state = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return
        yield [os.fsdecode(word) for word in words]
        process = int(state[1])
