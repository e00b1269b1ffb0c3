"""Codex CLI's rollouts: `~/.codex/sessions/YYYY/MM/DD/rollout-….jsonl`.

The first line tells the session and its folder; the others name neither, and have no ids of their
own: a call has one, and a prompt is known by its moment and words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

import orjson

from loki_memory.ingest.turn import (
    CALL,
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
from loki_memory.models.ids import digest

_LINES = {"session_meta", "turn_context", "compacted", "event_msg", "response_item"}
_SHELLS = {"shell", "shell_command", "exec_command", "local_shell", "container.exec"}
_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action"}
_RESULTS = {"function_call_output", "custom_tool_call_output"}
_PATCH = "*** Begin Patch"
_PATCHED = re.compile(r"^\*\*\* (?:Update File|Add File|Delete File|Move to): (.+)$", re.MULTILINE)
_EXIT = re.compile(r"(?:Process exited with code|[Ee]xit code:?) (\d+)")
_ADDED = re.compile(r"<(environment_context|user_instructions)>.*?(?:</\1>|\Z)", re.DOTALL)


class Codex:
    """The lines of one rollout as turns."""

    name = "codex"

    def __init__(self, session: str, cwd: str, branch: str) -> None:
        self._base = Turn("", session, "", "", cwd=cwd, branch=branch, agent=self.name)

    @classmethod
    def reading(cls, first: Mapping[str, Any]) -> Self | None:
        """The dialect of a file that begins with this value; None if it is no rollout."""
        about = first.get("payload")
        if first.get("type") != "session_meta" or not isinstance(about, Mapping):
            return None
        git = about.get("git") if isinstance(about.get("git"), Mapping) else {}
        names = (about.get("id"), about.get("cwd"), (git or {}).get("branch"))
        session, cwd, branch = (one if isinstance(one, str) else "" for one in names)
        return cls(session, cwd, branch) if session else None

    def turns(self, value: Mapping[str, Any]) -> list[Turn] | None:
        item, at = value.get("payload"), instant(value.get("timestamp"))
        if value.get("type") not in _LINES or not isinstance(item, Mapping) or not at:
            return None
        base = self._base._replace(at=at)
        if value["type"] == "event_msg":
            found = _event(base, item)
        elif value["type"] == "response_item":
            found = _item(base, item)
        else:
            found = None
        return [found] if found else []


def _event(base: Turn, item: Mapping[str, Any]) -> Turn | None:
    kind, text = item.get("type"), item.get("message")
    if kind == "turn_aborted":
        return base._replace(kind=STOP, key=f"{base.session}:{base.at}:stop")
    text = asked(_ADDED.sub(" ", text)) if kind == "user_message" and isinstance(text, str) else ""
    key = digest("prompt", base.session, base.at, text)
    return base._replace(kind=PROMPT, key=key, text=text) if text else None


def _item(base: Turn, item: Mapping[str, Any]) -> Turn | None:
    kind, call = item.get("type"), item.get("call_id")
    if not isinstance(call, str) or not call:
        return None
    if kind in _RESULTS:
        output, failed = _ended(item.get("output"))
        text = answered(output, failed=failed)
        return base._replace(kind=RESULT, key=f"{call}:out", call=call, text=text, failed=failed)
    if kind not in _CALLS:
        return None
    tool = str(item.get("name") or "local_shell")
    return _call(base._replace(kind=CALL, key=f"{call}:in", call=call), tool, item[_CALLS[kind]])


def _call(base: Turn, tool: str, raw: Any) -> Turn | None:
    text = _text(raw)
    if _PATCH in text:
        files = tuple(map(given, _PATCHED.findall(text)))
        return base._replace(tool="apply_patch", text=files[0] if files else "", files=files)
    tool = "shell" if tool in _SHELLS else tool
    return None if is_ours(tool, text) else base._replace(tool=tool, text=given(text))


def _text(raw: Any) -> str:
    """What a call was given: of a shell the command, else the first text."""
    fields = _decoded(raw)
    if not isinstance(fields, Mapping):
        return raw if isinstance(raw, str) else ""
    command = fields.get("command") or fields.get("cmd")
    if isinstance(command, list):
        words = [str(word) for word in command]
        return words[2] if words[1:2] in (["-c"], ["-lc"]) and words[2:] else " ".join(words)
    texts = (one for one in (command, *fields.values()) if isinstance(one, str) and one)
    return next(texts, "")


def _ended(output: Any) -> tuple[str, bool]:
    """What a call gave back, and whether it failed."""
    told = _decoded(output)
    if not isinstance(told, Mapping):
        text = output if isinstance(output, str) else ""
        code = _EXIT.search(text[:400])
        return text, bool(code and code[1] != "0")
    about = told.get("metadata")
    code = about.get("exit_code") if isinstance(about, Mapping) else None
    text = told.get("output") or told.get("content") or ""
    return str(text), code not in {None, 0} or told.get("success") is False


def _decoded(raw: Any) -> Any:
    try:
        return orjson.loads(raw) if isinstance(raw, str) and raw.startswith("{") else raw
    except orjson.JSONDecodeError:
        return raw
