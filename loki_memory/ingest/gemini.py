"""Gemini CLI's sessions: `~/.gemini/tmp/<project>/chats/session-….jsonl`.

The first line names the session; its folder stands in `.project_root` beside `chats`. A message is
written when it is said, and once more, under the same id, with the calls that it made and their
results. `$set` changes fields of the session, among them all messages when it is resumed. Earlier
versions wrote one JSON object for a session, which is not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from loki_memory.ingest.tool_calls import (
    answered,
    called,
    diff_hunks_of,
    fields_of,
    text_of,
    without_added,
)
from loki_memory.ingest.turns import (
    PROMPT,
    SAY,
    Turn,
    id_in,
    instant_in,
    name_in,
    objects_in,
    prompt_text,
    prose_text,
    text_in,
)

_SILENT = {"info", "error", "warning"}
_WRAPPED = re.compile(r"\A\s*<untrusted_context>\n?(.*?)\n?</untrusted_context>\s*\Z", re.DOTALL)
_EXIT = re.compile(r"^Exit Code: (-?\d+)$", re.MULTILINE)
_FRAME = re.compile(
    r"\AOutput: |^(?:Error: \(none\)|Exit Code: -?\d+|Signal: .*|Process Group PGID: .*)\n?",
    re.MULTILINE,
)
_ROOT, _CHATS = ".project_root", "chats"
_LONGEST_PATH = 4096


class Gemini:
    """The lines of one session as turns."""

    name = "gemini"

    def __init__(self, session: str, cwd: str, *, is_subagent: bool) -> None:
        self._base = Turn("", session, "", "", cwd=cwd, agent=self.name)
        self._is_subagent = is_subagent

    @classmethod
    def reading(cls, first: Mapping[str, Any]) -> Self | None:
        """The dialect of a file that begins with this line; None if it is no session's."""
        session = text_of(first, "sessionId")
        if not session or "projectHash" not in first:
            return None
        is_subagent = first.get("kind") == "subagent"
        return cls(session, text_of(first, "cwd"), is_subagent=is_subagent)

    def turns(self, value: Mapping[str, Any]) -> list[Turn] | None:
        if "$set" in value:
            messages = fields_of(value, "$set").get("messages")
            return [
                turn
                for message in objects_in(messages, "content")
                for turn in self._message(message) or ()
            ]
        if "$rewindTo" in value or "projectHash" in value:
            return []
        return self._message(value)

    def _message(self, value: Mapping[str, Any]) -> list[Turn] | None:
        kind = text_in(value, "type")
        if kind not in {"user", "gemini"}:
            return [] if kind in _SILENT else None
        base = self._base._replace(key=id_in(value, "id"), at=instant_in(value, "timestamp"))
        text = _text(value.get("content"))
        if kind == "user":
            typed = "" if self._is_subagent else prompt_text(without_added(text))
            return [base._replace(kind=PROMPT, text=typed)] if typed else []
        said = prose_text(text)
        turns = [base._replace(kind=SAY, text=said)] if said else []
        calls = objects_in(value.get("toolCalls"), "content")
        return [*turns, *(turn for call in calls for turn in _call(base, call))]


def project_root(path: Path) -> str:
    """The folder of a session, which is told beside its file; empty if it is not."""
    chats = next((folder for folder in path.parents if folder.name == _CHATS), None)
    if chats is None:
        return ""
    try:
        with (chats.parent / _ROOT).open(encoding="utf-8") as stream:
            return stream.read(_LONGEST_PATH).strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _call(base: Turn, call: Mapping[str, Any]) -> list[Turn]:
    """A call, and its result if it has one: what was cancelled never ended."""
    name, status = id_in(call, "id"), text_in(call, "status")
    turns = called(base, name, _tool(name_in(call, "name")), call.get("args"))
    if status not in {"success", "error"}:
        return turns
    at = base._replace(at=instant_in(call, "timestamp"))
    said = without_added("\n".join(map(_response, objects_in(call.get("result"), "content"))))
    wrapped = _WRAPPED.match(said)
    said = wrapped[1] if wrapped else said
    code = _EXIT.search(said)
    failed = status == "error" or bool(code and code[1].strip("-0"))
    shown = fields_of(call, "resultDisplay")
    hunks = diff_hunks_of(text_of(shown, "filePath"), text_of(shown, "fileDiff"))
    return [*turns, answered(at, name, _FRAME.sub("", said), failed=failed, hunks=hunks)]


def _response(part: Mapping[str, Any]) -> str:
    """The output of a tool, or its complaint."""
    response = fields_of(fields_of(part, "functionResponse"), "response")
    return text_of(response, "output") or text_of(response, "error")


def _tool(name: str) -> str:
    """The name of a tool; `mcp_loki_memory_recall` is ours, other `mcp_` ones are of others."""
    server, _, tool = name.removeprefix("mcp_").partition("_")
    return f"mcp__{server}__{tool}" if name.startswith("mcp_") and tool else name


def _text(content: Any) -> str:
    """The text of a message, which may come in parts."""
    if isinstance(content, str):
        return content
    return "\n".join(
        filter(None, (text_in(part, "text") for part in objects_in(content, "content")))
    )
