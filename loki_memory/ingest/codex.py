"""Codex CLI's rollouts: `~/.codex/sessions/YYYY/MM/DD/rollout-….jsonl`.

The first line tells the session and its folder; the others name neither, and have no ids of their
own: a call has one, and a prompt is known by its moment and words.

A rollout holds what went to the model and came from it (`response_item`), and what happened
(`event_msg`). Up to 0.140 a prompt is an event, and calls and their results are response items.
Since 0.148 a prompt, a command that ended and a patch that was applied are each an event
`item_completed`, and calls and results stand there as response items too. Both tell a call by the
same id, so that each is one turn, whichever is read first. A command that runs on after its call
was answered is the one case of two results: what it said so far, and later how it ended.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import orjson

from loki_memory.errors import InvalidRecord
from loki_memory.ingest.tool_calls import answered, called, fields_of, is_failure, patched, text_of
from loki_memory.ingest.turns import (
    PROMPT,
    SAY,
    STOP,
    Hunk,
    Turn,
    argument_text,
    first_hunks,
    instant_in,
    prompt_text,
    prose_text,
    text_in,
)
from loki_memory.ingest.written import unified_hunks
from loki_memory.models.ids import digest

# Lines that tell nothing of the work itself.
_SILENT = {
    "session_meta",
    "turn_context",
    "compacted",
    "world_state",
    "token_usage_record",
    "inter_agent_communication",
}
_POLLING = "write_stdin"  # asks a command that runs on what it has said since
_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action"}
_RESULTS = {"function_call_output", "custom_tool_call_output"}
_ADDED = re.compile(r"<(environment_context|user_instructions)>.*?(?:</\1>|\Z)", re.DOTALL)
# What the harness puts before the output of a command, and again before that of a patch.
_HEADER = re.compile(
    r"(?=Exit|Chunk|Wall|Process|Original|Total)(?:Exit code: (-?\d+)(?:\n|\Z))?"
    r"(?:Chunk ID: .*(?:\n|\Z))?(?:Wall time: .*(?:\n|\Z))?"
    r"(?:Process (?:exited with code (-?\d+)|running with session ID (.*))(?:\n|\Z))?"
    r"(?:Original token count: .*(?:\n|\Z))?(?:Total output lines: .*(?:\n|\Z))?"
    r"(?:Output:(?:\n|\Z)|\Z)"
)
_INNER = re.compile(
    r"Exit code: (-?\d+)\nWall time: .*\n(?:Total output lines: .*\n)?Output:(?:\n|\Z)"
)
# What it says where it carried out nothing.
_REFUSED = re.compile(
    r"unsupported (?:custom tool )?call|apply_patch verification failed|exec_command failed"
    r"|failed to parse function arguments"
)


class _Ended(NamedTuple):
    """The answer of a call, and whether it failed or still runs."""

    text: str
    failed: bool = False
    running: bool = False


class Codex:
    """The lines of one rollout as turns."""

    name = "codex"

    def __init__(self, session: str, cwd: str, branch: str, *, has_items: bool = False) -> None:
        self._base = Turn("", session, "", "", cwd=cwd, branch=branch, agent=self.name)
        self._has_items = has_items

    @classmethod
    def reading(cls, first: Mapping[str, Any]) -> Self | None:
        """The dialect of a file that begins with this value; None if it is no rollout."""
        about = fields_of(first, "payload")
        session = text_of(about, "id")
        if first.get("type") != "session_meta" or not session:
            return None
        branch = text_of(fields_of(about, "git"), "branch")
        has_items = about.get("history_mode") == "paginated"
        return cls(session, text_of(about, "cwd"), branch, has_items=has_items)

    def turns(self, value: Mapping[str, Any]) -> list[Turn] | None:
        kind = text_in(value, "type")
        if kind not in {"event_msg", "response_item"}:
            return [] if kind in _SILENT else None
        item, at = value.get("payload"), instant_in(value, "timestamp")
        if not isinstance(item, Mapping):
            raise InvalidRecord("is no object", field="payload")
        base = self._base._replace(at=at)
        found = _event(base, item) if kind == "event_msg" else _response(base, item)
        if found is None:
            raise InvalidRecord("does not hold what its type should", field="payload")
        return [turn for turn in found if not self._is_poll(turn)]

    def _is_poll(self, turn: Turn) -> bool:
        """Check that a call only asks after a command whose end an item tells."""
        return self._has_items and turn.tool == _POLLING


def _event(base: Turn, event: Mapping[str, Any]) -> list[Turn] | None:
    kind = text_of(event, "type")
    if kind == "turn_aborted":
        return [base._replace(kind=STOP, key=f"{base.session}:{base.at}:stop")]
    if kind == "user_message":
        return _prompt(base, event.get("message"))
    if kind == "item_completed":
        return _item(base, fields_of(event, "item"))
    return [] if kind else None


def _prompt(base: Turn, typed: Any) -> list[Turn] | None:
    """Return what somebody typed; None if it is no text."""
    if not isinstance(typed, str):
        return None
    text = prompt_text(_ADDED.sub(" ", typed))
    key = digest("prompt", base.session, base.at, text)
    return [base._replace(kind=PROMPT, key=key, text=text)] if text else []


def _item(base: Turn, item: Mapping[str, Any]) -> list[Turn] | None:
    kind, call = text_of(item, "type"), text_of(item, "id")
    if kind == "UserMessage":
        return _prompt(base, _joined(item.get("content")))
    if kind not in {"CommandExecution", "FileChange"}:
        return [] if kind else None
    if not call:
        return None
    return _command(base, call, item) if kind == "CommandExecution" else _patch(base, call, item)


def _command(base: Turn, call: str, item: Mapping[str, Any]) -> list[Turn] | None:
    """A command that ended: what was run, and what came of it."""
    line, code = _line(item.get("command")), item.get("exit_code")
    if not line:
        return None
    failed = text_of(item, "status") in {"failed", "declined"} or is_failure(code)
    said = text_of(item, "aggregated_output") or text_of(item, "stdout") + text_of(item, "stderr")
    return [*_called(base, call, "shell", line), _result(base, call, _Ended(said, failed))]


def _patch(base: Turn, call: str, item: Mapping[str, Any]) -> list[Turn] | None:
    """Files that were changed, or were to be."""
    changes = fields_of(item, "changes")
    moved = (text_of(fields_of(changes, path), "move_path") for path in changes)
    files = tuple(argument_text(path) for path in (*changes, *moved) if path)
    if not files:
        return None
    failed = text_of(item, "status") in {"failed", "declined"}
    said = text_of(item, "stderr") or text_of(item, "stdout")
    diffs = ((path, text_of(fields_of(changes, path), "unified_diff")) for path in changes)
    hunks = first_hunks(found for path, diff in diffs for found in unified_hunks(path, diff))
    return [patched(base, call, files), _result(base, call, _Ended(said, failed), hunks)]


def _response(base: Turn, item: Mapping[str, Any]) -> list[Turn] | None:
    kind, call = text_of(item, "type"), text_of(item, "call_id")
    if kind == "message" and text_of(item, "role") == "assistant":
        return _message(base, item)
    if kind not in _RESULTS and kind not in _CALLS:
        return [] if kind else None
    if not call:
        return None
    if kind in _RESULTS:
        ended = _ended(item.get("output"))
        return [_result(base, call, ended)] if ended else None
    tool, raw = _tool(item), item.get(_CALLS[kind])
    if not tool or not isinstance(raw, str | Mapping):
        return None
    return _called(base, call, tool, _given(raw))


def _message(base: Turn, item: Mapping[str, Any]) -> list[Turn]:
    """Prose of the agent; an event tells it once more and is not read."""
    said = prose_text(_joined(item.get("content")) or "")
    key = text_of(item, "id") or digest("say", base.session, base.at, said)
    return [base._replace(kind=SAY, key=key, text=said)] if said else []


def _tool(item: Mapping[str, Any]) -> str:
    """The name of a tool; of another server's with the server before it, as other agents do."""
    name, server = text_of(item, "name"), text_of(item, "namespace")
    if "name" not in item:
        return "local_shell"
    return f"{server.rstrip('_')}__{name}" if server.startswith("mcp__") and name else name


def _called(base: Turn, call: str, tool: str, text: str) -> list[Turn]:
    """A call, unless it asks memory itself."""
    return called(base, call, tool, {"command": text})


def _result(base: Turn, call: str, ended: _Ended, hunks: tuple[Hunk, ...] = ()) -> Turn:
    result = answered(base, call, ended.text, failed=ended.failed, hunks=hunks)
    return result._replace(key=f"{call}:so-far") if ended.running else result


def _given(raw: str | Mapping[str, Any]) -> str:
    """Return what a call was given: of a shell the command, else the first text."""
    fields = _decoded(raw)
    if not isinstance(fields, Mapping):
        return raw if isinstance(raw, str) else ""
    line = _line(fields.get("command") or fields.get("cmd"))
    texts = (field for field in (line, *fields.values()) if isinstance(field, str) and field)
    return next(texts, "")


def _line(command: Any) -> str:
    """A command as a person types it, without the shell that it was given to."""
    if not isinstance(command, list):
        return command if isinstance(command, str) else ""
    words = [word for word in command if isinstance(word, str)]
    return words[2] if words[1:2] in (["-c"], ["-lc"]) and words[2:] else " ".join(words)


def _ended(output: Any) -> _Ended | None:
    """Return what the result of a call says; None if it is no result."""
    told = _decoded(output)
    if not isinstance(told, Mapping):
        text = _joined(output)
        return None if text is None else _unwrapped(text)
    ended = _unwrapped(_joined(told.get("output")) or _joined(told.get("content")) or "")
    failed = (
        is_failure(fields_of(told, "metadata").get("exit_code")) or told.get("success") is False
    )
    return ended._replace(failed=ended.failed or failed)


def _unwrapped(text: str) -> _Ended:
    """Return what a command said, without the lines that the harness put before it."""
    header = _HEADER.match(text)
    if header is None:
        return _Ended(text, failed=_REFUSED.match(text) is not None)
    codes, text = [header[1], header[2]], text[header.end() :]
    if inner := _INNER.match(text):
        codes, text = [inner[1]], text[inner.end() :]
    failed = any(code and code.strip("-0") for code in codes)
    return _Ended(text, failed, running=header[3] is not None)


def _joined(content: Any) -> str | None:
    """A text, which may come in parts; None if it is none."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    return "\n".join(text for part in content if (text := text_of(part, "text")))


def _decoded(raw: Any) -> Any:
    try:
        return orjson.loads(raw) if isinstance(raw, str) and raw.startswith("{") else raw
    except orjson.JSONDecodeError:
        return raw
