"""A tool was used: note the call if no transcript does, and recall what resolved its error."""

from __future__ import annotations

import re
from typing import Any

from loki_memory.hooks.event import COMMAND_TOOLS, Event
from loki_memory.hooks.response import Done
from loki_memory.workspace import Workspace

_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$", re.MULTILINE)
_MOST, _FILES = 4_000, 4  # characters of a command, files of a patch


def pretooluse(workspace: Workspace, event: Event) -> Done:
    """Return what is known about a command, or about the files of a call; nothing is forbidden."""
    from loki_memory.injection.before_tool import command_lesson, file_lessons

    workspace.home.assume_scanned()
    given, surface = _given(event), "hook:PreToolUse"
    if event.text("tool_name") in COMMAND_TOOLS:
        command = given.get("command")
        line = command if isinstance(command, str) else " ".join(_texts(command))
        patched = _PATCHED.findall(line)
        if not patched:
            return Done(command_lesson(workspace, line[:_MOST], event.session, surface))
        return Done(file_lessons(workspace, patched[:_FILES], event.session, surface))
    path = given.get("file_path") or given.get("notebook_path") or given.get("path")
    paths = [path] if isinstance(path, str) else _PATCHED.findall(_text(given.get("input")))
    return Done(file_lessons(workspace, paths[:_FILES], event.session, surface))


def posttooluse(workspace: Workspace, event: Event) -> Done:
    """Return what resolved an error in the output: Codex has no event for a failing command.

    The call of a session that has no transcript is noted.
    """
    answer = _text(event.fields.get("tool_response"))
    _note(workspace, event, answer, failed=False)
    return Done(_lesson(workspace, event, answer) if event.transcript else "")


def posttoolusefailure(workspace: Workspace, event: Event) -> Done:
    """Return what resolved the same error before."""
    error = _text(event.fields.get("error")) or _text(event.fields.get("tool_response"))
    _note(workspace, event, error, failed=True)
    return Done("" if event.is_set("is_interrupt") else _lesson(workspace, event, error))


def _lesson(workspace: Workspace, event: Event, error: str) -> str:
    if not error:
        return ""
    from loki_memory.injection.prompt_hints import lesson

    command = _given(event).get("command")
    target = command if isinstance(command, str) else " ".join(_texts(command))
    surface = f"hook:{event.name}"
    return lesson(workspace, error, event.text("tool_name"), target, event.session, surface)


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


def _texts(value: Any) -> list[str]:
    """The words of a command that is given as a list."""
    return [part for part in value if isinstance(part, str)] if isinstance(value, list) else []


def _text(answer: Any) -> str:
    """The text of an answer, which some tools give in parts."""
    if isinstance(answer, str):
        return answer
    if isinstance(answer, dict):
        parts = (
            answer.get(name)
            for name in ("stderr", "stdout", "content", "llmContent", "error", "text")
        )
        return "\n".join(filter(None, map(_text, parts)))
    return "\n".join(filter(None, map(_text, answer))) if isinstance(answer, list) else ""
