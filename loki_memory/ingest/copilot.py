"""GitHub Copilot CLI's sessions: `~/.copilot/session-state/<session>/events.jsonl`.

The first event tells the session and its folder. A call is told when it begins, and its result,
with the exit code of a shell, when it is over. Events of an agent that works for another one
(`agentId`, `parentToolCallId`) stand among the others; what it is asked was typed by nobody.
"""

from __future__ import annotations

import re
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
)
from loki_memory.ingest.turns import (
    COMPACT,
    END,
    PROMPT,
    SAY,
    STOP,
    Turn,
    flag_in,
    id_in,
    instant_in,
    name_in,
    prompt_text,
    prose_text,
    summary_text,
    text_in,
)

_FAMILY = re.compile(r"[a-z_]+(?:\.[A-Za-z_]+)+")  # of events that tell nothing of the work
_EXIT = re.compile(r"\n?<(?:shellId: \S+ completed|exited) with exit code (-?\d+)>\s*\Z")
_STOPPED = {"abort", "agent.interrupted"}


class Copilot:
    """The events of one session as turns."""

    name = "copilot"

    def __init__(self, session: str, cwd: str, branch: str) -> None:
        self._base = Turn("", session, "", "", cwd=cwd, branch=branch, agent=self.name)

    @classmethod
    def reading(cls, first: Mapping[str, Any]) -> Self | None:
        """The dialect of a file that begins with this event; None if it is no session's."""
        data = fields_of(first, "data")
        session, context = text_of(data, "sessionId"), fields_of(data, "context")
        if first.get("type") != "session.start" or not session:
            return None
        return cls(session, text_of(context, "cwd"), text_of(context, "branch"))

    def turns(self, value: Mapping[str, Any]) -> list[Turn] | None:
        kind = text_in(value, "type")
        tell = _TELLING.get(kind)
        if tell is None:
            return [] if _FAMILY.fullmatch(kind) else None
        data = value.get("data")
        if not isinstance(data, Mapping):
            raise InvalidRecord("is no object", field="data")
        base = self._base._replace(key=id_in(value, "id"), at=instant_in(value, "timestamp"))
        is_subagent = bool(text_of(value, "agentId") or text_of(data, "parentToolCallId"))
        return [turn for turn in tell(base, data) if not (is_subagent and turn.kind == PROMPT)]


def _prompt(base: Turn, data: Mapping[str, Any]) -> list[Turn]:
    """The text that a person typed; other messages name where they come from."""
    is_typed = text_in(data, "source") in {"", "user"}
    text = prompt_text(text_in(data, "content"))
    is_typed = is_typed and not flag_in(data, "isAutopilotContinuation")
    return [base._replace(kind=PROMPT, text=text)] if text and is_typed else []


def _message(base: Turn, data: Mapping[str, Any]) -> list[Turn]:
    said = prose_text(text_in(data, "content"))
    return [base._replace(kind=SAY, text=said)] if said else []


def _call(base: Turn, data: Mapping[str, Any]) -> list[Turn]:
    tool, server = name_in(data, "toolName"), name_in(data, "mcpServerName")
    if server:
        tool = f"mcp__{server}__{name_in(data, 'mcpToolName') or tool}"
    return called(base, id_in(data, "toolCallId"), tool, data.get("arguments"))


def _result(base: Turn, data: Mapping[str, Any]) -> list[Turn]:
    """The end of a call: `success` only says that the tool itself worked."""
    result, error = fields_of(data, "result"), fields_of(data, "error")
    text = text_in(result, "content") or text_in(error, "message")
    trailer = _EXIT.search(text)
    code = fields_of(data, "shellExecution").get("exitCode")
    failed = not flag_in(data, "success") or is_failure(code)
    failed = failed or bool(trailer and trailer[1].strip("-0"))
    text = text[: trailer.start()] if trailer else text
    return [
        answered(base, id_in(data, "toolCallId"), text, failed=failed, hunks=_hunks(data, result))
    ]


def _hunks(data: Mapping[str, Any], result: Mapping[str, Any]) -> Any:
    """The lines that an edit of one file changed."""
    edits = data.get("fileEdits")
    paths = {text_of(edit, "path") for edit in edits} if isinstance(edits, list) else set()
    diff = text_of(result, "detailedContent")
    return diff_hunks_of(paths.pop(), diff) if len(paths) == 1 else ()


def _compacted(base: Turn, data: Mapping[str, Any]) -> list[Turn]:
    text = summary_text(text_in(data, "summaryContent"))
    return [base._replace(kind=COMPACT, text=text)] if text else []


def _stopped(base: Turn, _data: Mapping[str, Any]) -> list[Turn]:
    return [base._replace(kind=STOP)]


def _ended(base: Turn, _data: Mapping[str, Any]) -> list[Turn]:
    return [base._replace(kind=END)]


_TELLING = {
    "user.message": _prompt,
    "assistant.message": _message,
    "tool.execution_start": _call,
    "tool.execution_complete": _result,
    "session.compaction_complete": _compacted,
    "session.shutdown": _ended,
    **dict.fromkeys(_STOPPED, _stopped),
}
