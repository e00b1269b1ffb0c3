"""A prompt was typed, or a tool is used: inject what is known, note what no transcript has."""

from __future__ import annotations

import json
import re
from typing import Any

from loki_memory.hooks.response import COMMAND_TOOLS, Done, Event
from loki_memory.workspace import Workspace

_AT_PROMPT, _BEFORE_TOOL = "hook:UserPromptSubmit", "hook:PreToolUse"


def userpromptsubmit(workspace: Workspace, event: Event) -> Done:
    """Return lines that are relevant to the prompt; nothing if none is relevant enough."""
    prompt = event.text("prompt")
    if not event.transcript and event.session and prompt:
        workspace.sessions.note_prompt(event.session, event.folder, prompt)
    workspace.home.assume_scanned()
    told = workspace.injection.reminder(prompt, event.session, _AT_PROMPT)
    if workspace.config.get("remote.hooks"):
        from loki_memory.remote.hints import hints

        told += hints(workspace, prompt, event.session, _AT_PROMPT)
    return Done(told)


# -- tools -----------------------------------------------------------------------------------------

_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$", re.MULTILINE)
# Words of an output that may be an error; Codex does not say how a command ended.
_FAILED = re.compile(r"error|fail|exception|traceback|not found|exit code|fatal", re.IGNORECASE)
_RULE = re.compile(r"\b[A-Z]{1,4}\d{3,5}\b")  # TS7030, E0308: of a linter or a compiler
_TOLD_MODEL = "text_result_for_llm"  # in which Copilot CLI tells a result
_WORDS = 60  # characters that tell one error from another
_MOST, _FILES = 4_000, 4  # characters of a command, files of a patch


def pretooluse(workspace: Workspace, event: Event) -> Done:
    """Return what is known about a command, or about the files of a call; nothing is forbidden."""
    workspace.home.assume_scanned()
    given = _given(event)
    if event.text("tool_name") in COMMAND_TOOLS:
        line = _command(event)
        patched = _PATCHED.findall(line)
        if patched:
            return _about_files(workspace, event, patched, _without(line))
        asked = (line[:_MOST], event.session, _BEFORE_TOOL)
        return Done(workspace.injection.command_lesson(*asked))
    path = given.get("file_path") or given.get("notebook_path") or given.get("path")
    if not isinstance(path, str):
        patch = _text(given.get("input"))
        return _about_files(workspace, event, _PATCHED.findall(patch), _without(patch))
    edits = given.get("edits")
    changes = [given, *(edits if isinstance(edits, list) else ())]
    replaced = (change.get("old_string") for change in changes if isinstance(change, dict))
    return _about_files(workspace, event, [path], "\n".join(_texts([*replaced])))


def _about_files(workspace: Workspace, event: Event, paths: list[str], changed: str) -> Done:
    given = (paths[:_FILES], changed[:_MOST], event.session, _BEFORE_TOOL)
    return Done(workspace.injection.file_lessons(*given))


def _without(patch: str) -> str:
    """The lines that a patch takes out."""
    return "\n".join(line for line in patch.splitlines() if line.startswith("-"))


def posttooluse(workspace: Workspace, event: Event) -> Done:
    """Return what resolved an error in the output: Codex has no event for a failing command.

    The call of a session that has no transcript is noted.
    """
    answer = _text(event.fields.get("tool_response") or event.fields.get("tool_result"))
    _note(workspace, event, answer, failed=False)
    if isinstance(event.fields.get("tool_response"), dict):  # so Claude Code tells of a success
        _note_gate(workspace, event, answer, failed=False)
    return Done(_lesson(workspace, event, answer) if event.transcript else "")


def posttoolusefailure(workspace: Workspace, event: Event) -> Done:
    """Return what resolved the same error before."""
    error = _text(event.fields.get("error")) or _text(event.fields.get("tool_response"))
    _note(workspace, event, error, failed=True)
    if not event.is_set("is_interrupt") and event.text("tool_name") in COMMAND_TOOLS:
        _note_gate(workspace, event, error, failed=True)
    return Done("" if event.is_set("is_interrupt") else _lesson(workspace, event, error))


def _note_gate(workspace: Workspace, event: Event, answer: str, *, failed: bool) -> None:
    tool, command = event.text("tool_name"), _command(event)
    workspace.sessions.note_gate_run(tool, command, answer, failed=failed)


def _lesson(workspace: Workspace, event: Event, error: str) -> str:
    if not error:
        return ""
    surface, tool = f"hook:{event.name}", event.text("tool_name")
    known = workspace.injection.lesson(error, tool, _command(event), event.session, surface)
    return known or _remedy_before(workspace, event, error)


def _remedy_before(workspace: Workspace, event: Event, error: str) -> str:
    """Return what mended the same error earlier in this session, which is no episode yet."""
    if event.text("tool_name") not in COMMAND_TOOLS or not _FAILED.search(error):
        return ""
    if event.transcript and not _is_in(event.transcript, error):
        return ""
    if event.transcript:
        workspace.sessions.stage_transcript(event.transcript)
    call = event.text("tool_use_id")
    return workspace.injection.remedy_in_session(event.session, error, call)


def _is_in(transcript: str, error: str) -> bool:
    """Check if a transcript may have met an error: it has its words, or the rule that it names.

    What tells how an error was mended takes 200 ms to load, and most errors are new.
    """
    from loki_memory.models.error_signature import complaint

    words = {*_RULE.findall(error), json.dumps(complaint(error)[:_WORDS])[1:-1]}
    try:
        with open(transcript, encoding="utf-8", errors="replace") as lines:
            return any(word in line for line in lines for word in words if word)
    except (OSError, ValueError):
        return False


def _note(workspace: Workspace, event: Event, answer: str, *, failed: bool) -> None:
    if event.transcript or not event.session or not event.text("tool_name"):
        return
    workspace.sessions.note_call(
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


def _command(event: Event) -> str:
    """The command line of a call; a client may give its words apart."""
    given = _given(event)
    command = given.get("command") or given.get("cmd")
    return command if isinstance(command, str) else " ".join(_texts(command))


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
            for name in ("stderr", "stdout", "content", "llmContent", "error", "text", _TOLD_MODEL)
        )
        return "\n".join(filter(None, map(_text, parts)))
    return "\n".join(filter(None, map(_text, answer))) if isinstance(answer, list) else ""
