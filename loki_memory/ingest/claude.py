"""Claude Code's transcripts: `~/.claude/projects/<folder>/<session>.jsonl`, one event per line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Self

from loki_memory.ingest.turn import (
    CALL,
    END,
    PROMPT,
    RESULT,
    STOP,
    Turn,
    answered,
    asked,
    given,
    instant,
    is_ours,
)

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
}
# In which field of its input a tool is told what to work on.
_TARGETS = (
    "command",
    "file_path",
    "notebook_path",
    "pattern",
    "url",
    "query",
    "skill",
    "description",
    "subject",
    "path",
    "prompt",
)
_FILES = ("file_path", "notebook_path")
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
        kind, message = value.get("type"), value.get("message")
        if kind in _SILENT:
            return []
        if kind not in {"user", "assistant"} or not isinstance(message, Mapping):
            return None
        if value.get("isCompactSummary"):
            return []
        if not (value.get("uuid") and value.get("sessionId") and instant(value.get("timestamp"))):
            return None
        return list(_turns(value, str(kind), message.get("content")))


def _turns(event: Mapping[str, Any], kind: str, content: Any) -> Iterator[Turn]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for number, block in enumerate(blocks if isinstance(blocks, list) else ()):
        if isinstance(block, Mapping):
            base = _base(event, f"{event['uuid']}:{number}")
            found = _of_assistant(base, block) if kind == "assistant" else _of_user(base, block)
            if found and not (found.kind == PROMPT and _is_hidden(event)):
                yield found


def _is_hidden(event: Mapping[str, Any]) -> bool:
    """What a program wrote in the user's name, and what one agent asked of another."""
    return bool(event.get("isMeta") or event.get("isSidechain"))


def _base(event: Mapping[str, Any], key: str) -> Turn:
    cwd, branch = event.get("cwd"), event.get("gitBranch")
    return Turn(
        key,
        str(event["sessionId"]),
        instant(event["timestamp"]),
        "",
        cwd=cwd if isinstance(cwd, str) else "",
        branch=branch if isinstance(branch, str) else "",
        agent=ClaudeCode.name,
    )


def _of_assistant(base: Turn, block: Mapping[str, Any]) -> Turn | None:
    tool, given_ = block.get("name"), block.get("input")
    if block.get("type") != "tool_use" or not isinstance(tool, str):
        return None
    fields = given_ if isinstance(given_, Mapping) else {}
    target = next((v for n in _TARGETS if isinstance(v := fields.get(n), str) and v), "")
    if is_ours(tool, target):
        return None
    files = tuple(given(v) for n in _FILES if isinstance(v := fields.get(n), str) and v)
    call = str(block.get("id") or "")
    return base._replace(kind=CALL, tool=tool, text=given(target), call=call, files=files)


def _of_user(base: Turn, block: Mapping[str, Any]) -> Turn | None:
    if block.get("type") == "tool_result":
        failed = block.get("is_error") is True
        text = answered(_ENVELOPE.sub("", _told(block.get("content"))), failed=failed)
        call = str(block.get("tool_use_id") or "")
        return base._replace(kind=RESULT, text=text, call=call, failed=failed)
    typed = block.get("text")
    return _typed(base, typed) if isinstance(typed, str) else None


def _told(content: Any) -> str:
    """The text of a result, which may come in blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else ()
    texts = (one.get("text") for one in blocks if isinstance(one, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))


def _typed(base: Turn, text: str) -> Turn | None:
    """What a person typed: a request, a command that starts one, or the end of the session."""
    text = asked(_ADDED.sub(" ", text))
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
