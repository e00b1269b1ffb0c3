"""Claude Code's transcripts: `~/.claude/projects/<folder>/<session>.jsonl`, one event per line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

from loki_memory.errors import InvalidRecord
from loki_memory.ingest.tool_calls import answered, called
from loki_memory.ingest.turns import (
    COMPACT,
    END,
    PROMPT,
    RESULT,
    SAY,
    STOP,
    Hunk,
    Turn,
    argument_text,
    flag_in,
    id_in,
    instant_in,
    name_in,
    objects_in,
    prompt_text,
    prose_text,
    summary_text,
    text_in,
)
from loki_memory.ingest.written import patch_hunks

# Events that tell nothing of the work itself.
_SILENT = {
    "system",
    "progress",
    "summary",
    "file-history-snapshot",
    "queue-operation",
    "pr-link",
    "attachment",
    "ai-title",
    "custom-title",
    "agent-name",
    "last-prompt",
    "permission-mode",
    "mode",
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "atis-latch",
    "cost-state",
    "tools-used",
}
# What stands in a user's message and was not typed by anybody.
_ADDED = re.compile(
    r"<(system-reminder|ide_\w+|user-prompt-submit-hook)>.*?(?:</\1>|\Z)", re.DOTALL
)
_NOT_TYPED = re.compile(
    r"<(?:local-command|bash-|task-notification|teammate-message|command-name>)|Caveat: "
    r"|This session is being continued from"
)
_ENVELOPE = re.compile(r"</?tool_use_error>")  # around what a tool complains of
_STOPPED = "[Request interrupted by user"
_SLASH = re.compile(r"<command-name>\s*(\S+?)\s*</command-name>")
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_LEAVING = {"/exit", "/quit", "/clear"}


class ClaudeCode:
    """Its events as turns."""

    name = "claude-code"

    @classmethod
    def reading(cls, first: Mapping[str, Any]) -> Self | None:
        """Every line tells its session, so that a file may begin anywhere; but not as another's."""
        return None if "payload" in first else cls()

    def turns(self, value: Mapping[str, Any]) -> list[Turn] | None:
        kind = text_in(value, "type")
        if kind in _SILENT:
            return []
        if kind not in {"user", "assistant"}:
            return None
        blocks = _blocks(value)
        if flag_in(value, "isCompactSummary"):
            text = "\n".join(text_in(block, "text") for block in blocks)
            return [_base(value)._replace(kind=COMPACT, text=summary_text(text))]
        return list(_turns(value, kind, blocks))


def _turns(event: Mapping[str, Any], kind: str, blocks: Sequence[Mapping[str, Any]]) -> list[Turn]:
    """The turns of a message, one for each block that tells of one."""
    base, is_hidden = _base(event), _is_hidden(event)
    found: list[Turn] = []
    for number, block in enumerate(blocks):
        named = base._replace(key=f"{base.key}:{number}")
        turn = _of_assistant(named, block) if kind == "assistant" else _of_user(named, block)
        if turn and turn.kind == RESULT:
            turn = turn._replace(hunks=_hunks(event))
        if turn and not (turn.kind == PROMPT and is_hidden):
            found.append(turn)
    return found


def _blocks(event: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what a message consists of. Raises InvalidRecord if that is no message."""
    message = event.get("message")
    if not isinstance(message, Mapping):
        raise InvalidRecord("is no object", field="message")
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return objects_in(content, "message.content")


def _is_hidden(event: Mapping[str, Any]) -> bool:
    """Return what a program wrote in the user's name, and what one agent asked of another."""
    return flag_in(event, "isMeta") or flag_in(event, "isSidechain")


def _base(event: Mapping[str, Any]) -> Turn:
    return Turn(
        id_in(event, "uuid"),
        id_in(event, "sessionId"),
        instant_in(event, "timestamp"),
        "",
        cwd=name_in(event, "cwd"),
        branch=name_in(event, "gitBranch"),
        agent=ClaudeCode.name,
    )


def _hunks(event: Mapping[str, Any]) -> tuple[Hunk, ...]:
    """Lines that an edit changed, as the client wrote them beside the tool's answer."""
    result = event.get("toolUseResult")
    if not isinstance(result, Mapping):
        return ()
    path, patches = result.get("filePath"), result.get("structuredPatch")
    if not isinstance(path, str) or not isinstance(patches, list):
        return ()
    return patch_hunks(
        argument_text(path), (patch for patch in patches if isinstance(patch, Mapping))
    )


def _of_assistant(base: Turn, block: Mapping[str, Any]) -> Turn | None:
    kind = text_in(block, "type")
    if kind == "text":
        said = prose_text(text_in(block, "text"))
        return base._replace(kind=SAY, text=said) if said else None
    if kind != "tool_use":
        return None
    turns = called(base, name_in(block, "id"), name_in(block, "name"), block.get("input"))
    return turns[0]._replace(key=base.key) if turns else None


def _of_user(base: Turn, block: Mapping[str, Any]) -> Turn | None:
    if text_in(block, "type") == "tool_result":
        failed = flag_in(block, "is_error")
        answer = _ENVELOPE.sub("", _told(block.get("content")))
        turn = answered(base, name_in(block, "tool_use_id"), answer, failed=failed)
        return turn._replace(key=base.key)
    return _typed(base, text_in(block, "text"))


def _told(content: Any) -> str:
    """The text of a result, which may come in blocks."""
    if isinstance(content, str):
        return content
    blocks = objects_in(content, "content of a tool's result")
    return "\n".join(filter(None, (text_in(block, "text") for block in blocks)))


def _typed(base: Turn, text: str) -> Turn | None:
    """A person's request, a command that starts one, or the end of the session."""
    text = prompt_text(_ADDED.sub(" ", text))
    if text.startswith(_STOPPED):
        return base._replace(kind=STOP)
    slash = _SLASH.search(text)
    if slash and slash[1] in _LEAVING:
        return base._replace(kind=END)
    if slash and text.startswith("<command-message>"):  # the program's own have the name first
        arguments = _ARGUMENTS.search(text)
        text = f"{slash[1]} {arguments[1].strip() if arguments else ''}".strip()
    if not text or _NOT_TYPED.match(text):
        return None
    return base._replace(kind=PROMPT, text=text)
