"""A tool was used: note the call if no transcript does, and recall what resolved its error."""

from __future__ import annotations

from typing import Any

from loki_memory.hooks.event import Event
from loki_memory.hooks.response import Done
from loki_memory.workspace import Workspace


def posttooluse(workspace: Workspace, event: Event) -> Done:
    """Note the call of a session that has no transcript."""
    _note(workspace, event, _text(event.fields.get("tool_response")), failed=False)
    return Done()


def posttoolusefailure(workspace: Workspace, event: Event) -> Done:
    """Return what resolved the same error before."""
    error = _text(event.fields.get("error")) or _text(event.fields.get("tool_response"))
    _note(workspace, event, error, failed=True)
    if not error or event.is_set("is_interrupt"):
        return Done()
    from loki_memory.injection.prompt_hints import lesson

    command = _given(event).get("command")
    target = command if isinstance(command, str) else ""
    surface = "hook:PostToolUseFailure"
    return Done(lesson(workspace, error, event.text("tool_name"), target, event.session, surface))


def _note(workspace: Workspace, event: Event, answer: str, *, failed: bool) -> None:
    if event.transcript or not event.session or not event.text("tool_name"):
        return
    from loki_memory.ingest.hook_turns import note_call

    note_call(
        workspace,
        event.session,
        event.folder,
        event.text("tool_use_id"),
        {"name": event.text("tool_name"), "input": _given(event)},
        answer,
        failed=failed,
    )


def _given(event: Event) -> dict[str, Any]:
    given = event.fields.get("tool_input")
    return given if isinstance(given, dict) else {}


def _text(answer: Any) -> str:
    """The text of an answer, which some tools give in parts."""
    if isinstance(answer, str):
        return answer
    if isinstance(answer, dict):
        parts = (answer.get(name) for name in ("stderr", "stdout", "content", "error", "text"))
        return "\n".join(filter(None, map(_text, parts)))
    return "\n".join(filter(None, map(_text, answer))) if isinstance(answer, list) else ""
