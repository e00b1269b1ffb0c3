"""The work of a session as its transcript tells it: prompts, files in their order, edited names.

A name is rare if at most twelve sessions of a project edit it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from replay import _events, _text

_RARE_SESSIONS = 12
_SHORTEST = 5  # letters of a name that tells one thing from another
_EDITS = {"Edit", "MultiEdit", "NotebookEdit", "Write"}
_EDITED_TEXT = ("old_string", "new_string", "content", "new_source")
_FILE = re.compile(r"[\w@+.-]*\w\.[A-Za-z]\w{0,9}\b")
_IDENTIFIER = re.compile(
    r"\b[A-Za-z]\w*_\w+\b|\b[a-z]+[A-Z]\w*\b|\b(?:[A-Z]+[a-z0-9]+){2,}\w*\b|\b[A-Za-z_]\w*(?=\()"
)
_NO_PROMPT = re.compile(
    r"<(?:command-|local-command|task-notification|bash-|system-reminder)|Caveat:"
    r"|\[Request interrupted|This session is being continued"
)


class SessionWork(NamedTuple):
    """What a user asked for, and what was touched for it."""

    path: Path
    prompts: list[str]
    files: list[str]  # read or edited, each once, in their order, from the folder of the session
    edited: frozenset[str]  # names of files, and of the code in their changes


class Moment(NamedTuple):
    """A moment of a session at which memory could tell something."""

    kind: str  # start, prompt, command, read, edit, error
    text: str = ""  # the prompt, the command, the path, or the error
    target: str = ""  # the command that met an error, or the text that an edit replaces


def moments(path: Path) -> Iterator[Moment]:
    """The moments of a session, in their order; those of subagents are left out."""
    yield Moment("start")
    commands: dict[str, str] = {}
    home = ""
    for event in _events(path):
        if event.get("isSidechain") or event.get("isMeta") or event.get("isCompactSummary"):
            continue
        home = home or str(event.get("cwd") or "")
        message = event.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if event.get("type") == "user":
            yield from (Moment("prompt", prompt) for prompt in _prompt(content))
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict):
                yield from _of_block(block, home, commands)


def _of_block(block: dict[str, Any], home: str, commands: dict[str, str]) -> Iterator[Moment]:
    given = block.get("input")
    if block.get("type") == "tool_use" and isinstance(given, dict):
        command, place = given.get("command"), given.get("file_path")
        if block.get("name") == "Bash" and isinstance(command, str):
            commands[str(block.get("id"))] = command
            yield Moment("command", command)
        elif block.get("name") in {"Read", *_EDITS} and isinstance(place, str):
            kind = "read" if block["name"] == "Read" else "edit"
            changed = str(given.get("old_string") or "") if kind == "edit" else ""
            yield Moment(kind, place.removeprefix(f"{home}/"), changed)
    elif block.get("type") == "tool_result" and block.get("is_error"):
        command = commands.get(str(block.get("tool_use_id")))
        if command:
            yield Moment("error", _text(block.get("content")), command)


def session_work(path: Path) -> SessionWork:
    """Read the work of a session from its transcript."""
    prompts: list[str] = []
    files: dict[str, None] = {}
    edited: set[str] = set()
    home = ""
    for event in _events(path):
        if event.get("isSidechain") or event.get("isMeta") or event.get("isCompactSummary"):
            continue
        home = home or str(event.get("cwd") or "")
        message = event.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if event.get("type") == "user":
            prompts += _prompt(content)
        for name, given in _calls(content):
            place = given.get("file_path") or given.get("notebook_path")
            if isinstance(place, str) and name in {"Read", *_EDITS}:
                files[place.removeprefix(f"{home}/")] = None
                edited |= _edited_names(place, given) if name in _EDITS else set()
    return SessionWork(path, prompts, list(files), frozenset(edited))


def names(text: str) -> set[str]:
    """Names of files and of code in a text."""
    found = {name.rsplit("/", 1)[-1] for name in _FILE.findall(text)} | _identifiers(text)
    return {name for name in found if len(name) >= _SHORTEST}


def rare_names(sessions: Sequence[SessionWork]) -> set[str]:
    """Names that few sessions edit."""
    edits = Counter(name for session in sessions for name in session.edited)
    return {name for name, number in edits.items() if number <= _RARE_SESSIONS}


def _prompt(content: Any) -> list[str]:
    """The prompt that a user typed; none if the event answers a tool or comes from the client."""
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    parts = [block for block in blocks if isinstance(block, dict)]
    if any(part.get("type") == "tool_result" for part in parts):
        return []
    texts = (str(part.get("text") or "") for part in parts if part.get("type") == "text")
    said = "\n".join(texts).strip()
    return [said] if said and not _NO_PROMPT.match(said) else []


def _calls(content: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_use":
            given = block.get("input")
            yield str(block.get("name")), given if isinstance(given, dict) else {}


def _edited_names(place: str, given: dict[str, Any]) -> set[str]:
    edits = given.get("edits")
    changes = [given, *(edits if isinstance(edits, list) else ())]
    texts = (
        change.get(field)
        for change in changes
        if isinstance(change, dict)
        for field in _EDITED_TEXT
    )
    changed = " ".join(text for text in texts if isinstance(text, str))
    found = {place.rsplit("/", 1)[-1]} | _identifiers(changed)
    return {name for name in found if len(name) >= _SHORTEST}


def _identifiers(text: str) -> set[str]:
    return set(_IDENTIFIER.findall(text))
