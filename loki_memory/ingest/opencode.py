"""OpenCode's sessions: rows of its database, one for each part of a message.

`opencode_database` reads them: a value has the part, the message that it belongs to, and the folder
of the session. Versions before 1.2 kept a file for each part and were moved into the database by
the first start of a later one; these files are not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Self

from loki_memory.errors import InvalidRecord
from loki_memory.ingest.tool_calls import (
    answered,
    called,
    diff_hunks_of,
    fields_of,
    is_failure,
    text_of,
)
from loki_memory.ingest.turns import (
    COMPACT,
    PROMPT,
    SAY,
    Hunk,
    Turn,
    first_hunks,
    flag_in,
    id_in,
    instant_in,
    name_in,
    prompt_text,
    prose_text,
    summary_text,
    text_in,
)

_SILENT = {
    "reasoning",
    "file",
    "step-start",
    "step-finish",
    "snapshot",
    "patch",
    "agent",
    "retry",
    "compaction",
    "subtask",
}
# Tools of OpenCode itself; any other one is of an MCP server or a plugin.
_OWN = re.compile(
    r"bash|read|edit|write|multiedit|apply_patch|patch|glob|grep|list|task|todowrite|todoread"
    r"|webfetch|websearch|codesearch|skill|question|lsp|batch|plan_enter|plan_exit|invalid"
)
_SERVER = "loki_"  # in front of the names of our tools
_ABORTED = "Tool execution aborted"


class OpenCode:
    """Parts of messages as turns."""

    name = "opencode"

    @classmethod
    def reading(cls, first: Mapping[str, Any]) -> Self | None:
        """The dialect of a session of the database; each of its values tells the session."""
        return cls() if {"part", "message", "session"} <= first.keys() else None

    def turns(self, value: Mapping[str, Any]) -> list[Turn] | None:
        kind = text_in(value, "type")
        if kind in _SILENT:
            return []
        if kind not in {"text", "tool"}:
            return None
        part, message = _object(value, "part"), _object(value, "message")
        base = Turn(
            id_in(value, "id"),
            id_in(value, "session"),
            _instant(value, "at"),
            "",
            cwd=name_in(value, "cwd"),
            agent=self.name,
        )
        if kind == "tool":
            return _tool(base, part)
        is_hidden = value.get("is_subagent") is True or flag_in(part, "synthetic")
        return _text(base, part, message, is_hidden=is_hidden)


def _text(
    base: Turn, part: Mapping[str, Any], message: Mapping[str, Any], *, is_hidden: bool
) -> list[Turn]:
    text = text_in(part, "text")
    if text_in(message, "role") == "user":
        typed = "" if is_hidden or flag_in(part, "ignored") else prompt_text(_unquoted(text))
        return [base._replace(kind=PROMPT, text=typed)] if typed else []
    if message.get("summary") is True:
        return [base._replace(kind=COMPACT, text=summary_text(text))]
    said = prose_text(text)
    return [base._replace(kind=SAY, text=said)] if said else []


def _unquoted(text: str) -> str:
    """A prompt as it was typed: `opencode run` puts one of several words in quotation marks."""
    inner = text[1:-1]
    is_quoted = len(text) > len('""') and text[0] == text[-1] == '"'
    return inner.replace('\\"', '"') if is_quoted and " " in inner else text


def _tool(base: Turn, part: Mapping[str, Any]) -> list[Turn]:
    state, call = _object(part, "state"), id_in(part, "callID")
    turns = called(base, call, _name(name_in(part, "tool")), state.get("input"))
    status = text_in(state, "status")
    if status not in {"completed", "error"} or text_of(state, "error") == _ABORTED:
        return turns
    at = base._replace(at=_instant(fields_of(state, "time"), "end"))
    metadata = fields_of(state, "metadata")
    failed = status == "error" or is_failure(metadata.get("exit"))
    text = text_in(state, "error") if status == "error" else text_in(state, "output")
    return [*turns, answered(at, call, text, failed=failed, hunks=_hunks(state, metadata))]


def _hunks(state: Mapping[str, Any], metadata: Mapping[str, Any]) -> tuple[Hunk, ...]:
    """The lines that a call changed: in the file of an edit, or in each file of a patch."""
    patched = metadata.get("files")
    if not isinstance(patched, list):
        path = text_of(fields_of(state, "input"), "filePath")
        return diff_hunks_of(path, text_of(metadata, "diff"))
    diffs = ((text_of(file, "filePath"), text_of(file, "patch")) for file in patched)
    return first_hunks(hunk for path, diff in diffs for hunk in diff_hunks_of(path, diff))


def _name(tool: str) -> str:
    """The name of a tool, of another server's in the form that other clients use."""
    if tool.startswith(_SERVER):
        return f"mcp__loki__{tool.removeprefix(_SERVER)}"
    return tool if _OWN.fullmatch(tool) else f"mcp__{tool}"


def _object(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    if not isinstance(found, Mapping):
        raise InvalidRecord("is no object", field=name)
    return found


def _instant(value: Mapping[str, Any], name: str) -> str:
    """A moment that is counted in milliseconds."""
    count = value.get(name)
    if not isinstance(count, int) or isinstance(count, bool):
        raise InvalidRecord("is no number of milliseconds", field=name)
    try:
        when = datetime.fromtimestamp(count / 1000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        when = "-"
    return instant_in({name: when}, name)
