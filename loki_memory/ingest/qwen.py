"""Qwen Code's sessions: `~/.qwen/projects/<folder>/chats/<session>.jsonl`.

Lines are like those of Claude Code, each with its session and folder; what they hold is like what
Gemini's models are told: parts with text, a function's call, or its response. Beside a response
stands what the client showed: the exit code and output of a shell, the diff of an edit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from loki_memory.errors import InvalidRecord
from loki_memory.ingest.tool_calls import (
    answered,
    called,
    diff_hunks_of,
    fields_of,
    is_failure,
    text_of,
    without_added,
)
from loki_memory.ingest.turns import (
    PROMPT,
    SAY,
    Turn,
    flag_in,
    id_in,
    instant_in,
    name_in,
    objects_in,
    prompt_text,
    prose_text,
    text_in,
)

_TYPED = {"", "real_user"}  # earlier versions did not say who wrote a user's message


class Qwen:
    """Lines as turns."""

    name = "qwen"

    @classmethod
    def reading(cls, first: Mapping[str, Any]) -> Self | None:
        """The dialect of a file whose first line has parts, or is of the client itself."""
        is_ours = "parts" in fields_of(first, "message") or "systemPayload" in first
        return cls() if is_ours and "sessionId" in first else None

    def turns(self, value: Mapping[str, Any]) -> list[Turn] | None:
        kind = text_in(value, "type")
        if kind not in {"user", "assistant", "tool_result"}:
            return [] if kind == "system" else None
        base = Turn(
            id_in(value, "uuid"),
            id_in(value, "sessionId"),
            instant_in(value, "timestamp"),
            "",
            cwd=name_in(value, "cwd"),
            branch=name_in(value, "gitBranch"),
            agent=self.name,
        )
        parts = _parts(value)
        if kind == "tool_result":
            return _results(base, value, parts)
        return _said(base, parts) if kind == "assistant" else _typed(base, value, parts)


def _typed(base: Turn, value: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> list[Turn]:
    """The text that a person typed, not what the client or another agent said in their name."""
    is_typed = text_in(value, "provenance") in _TYPED and not flag_in(value, "isSidechain")
    typed = "\n".join(filter(None, (text_in(part, "text") for part in parts)))
    text = prompt_text(without_added(typed))
    return [base._replace(kind=PROMPT, text=text)] if is_typed and text else []


def _said(base: Turn, parts: list[Mapping[str, Any]]) -> list[Turn]:
    turns: list[Turn] = []
    for number, part in enumerate(parts):
        call = fields_of(part, "functionCall")
        said = "" if flag_in(part, "thought") else prose_text(text_in(part, "text"))
        if call:
            turns += called(base, id_in(call, "id"), name_in(call, "name"), call.get("args"))
        elif said:
            turns.append(base._replace(kind=SAY, key=f"{base.key}:{number}", text=said))
    return turns


def _results(
    base: Turn, value: Mapping[str, Any], parts: list[Mapping[str, Any]]
) -> list[Turn] | None:
    """The end of a call; a cancelled one has none."""
    ended = fields_of(value, "toolCallResult")
    response = next(filter(None, (fields_of(part, "functionResponse") for part in parts)), {})
    call = name_in(response, "id") or name_in(ended, "callId")
    status, shown = text_in(ended, "status"), fields_of(ended, "resultDisplay")
    if not call:
        raise InvalidRecord("is missing", field="callId")
    if status == "cancelled":
        return []
    told = fields_of(response, "response")
    failed = status == "error" or bool(text_of(told, "error")) or is_failure(shown.get("exitCode"))
    text = text_of(shown, "output") or text_of(told, "error") or text_of(told, "output")
    hunks = diff_hunks_of(text_of(shown, "filePath"), text_of(shown, "fileDiff"))
    return [answered(base, call, text, failed=failed, hunks=hunks)]


def _parts(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    message = value.get("message")
    if not isinstance(message, Mapping):
        raise InvalidRecord("is no object", field="message")
    if message.get("parts") is None:
        raise InvalidRecord("is missing", field="message.parts")
    return objects_in(message["parts"], "message.parts")
