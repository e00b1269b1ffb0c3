"""Turns that hooks record while a session runs, staged like the turns of a transcript.

The transcript is the source: where the client keeps one, hooks only read it up to the present
moment, so that its end cannot lose anything. Where there is none, hooks record prompts and calls in
the form of a transcript, and the same reader turns them into turns. If a transcript of that session
appears later, it replaces the recorded turns.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loki_memory.files import disk
from loki_memory.files.lock import locked
from loki_memory.files.store import failures_named
from loki_memory.ingest.claude_code import ClaudeCode
from loki_memory.ingest.discover import belongs, tops
from loki_memory.ingest.read_transcript import DIALECTS, read
from loki_memory.ingest.staging import Staging, Watermarks
from loki_memory.ingest.turns import END, PROMPT, Turn, checked, instant
from loki_memory.models.ids import digest

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_NOTE = "hook:"  # how the key of a turn begins that a hook noted
_LOCK_SECONDS = 5.0  # another process may be reading; a hook does not wait for a gigabyte


def stage_transcript(workspace: OpenWorkspace, path: str) -> bool:
    """Read a transcript up to where it is; False if it is none of a session of this repository."""
    if not is_of(workspace, path):
        return False
    folder = _folder(workspace)
    with failures_named(folder):
        disk.make_folder(folder)
        with locked(folder / ".lock", _LOCK_SECONDS):
            marks = Watermarks(folder / "marks")
            read(Path(path), Staging(folder / "sessions"), marks, DIALECTS, in_background=True)
    return True


def is_of(workspace: OpenWorkspace, path: str) -> bool:
    """Check that a transcript tells of a session that began in this repository."""
    try:
        return Path(path).is_file() and belongs(Path(path), tops(workspace.layout.root))
    except (OSError, ValueError, EOFError, zlib.error):
        return False


def note_prompt(workspace: OpenWorkspace, session: str, folder: str, prompt: str) -> None:
    """Note what was asked for."""
    now = workspace.now()
    line = _line("user", session, folder, now, digest("prompt", session, now, prompt), prompt)
    _stage(workspace, [line])


def note_call(
    workspace: OpenWorkspace,
    session: str,
    folder: str,
    call: str,
    given: Mapping[str, Any],
    answer: str,
    *,
    failed: bool,
) -> None:
    """Note what a tool was given (`name`, `input`) and what it answered."""
    now = workspace.now()
    key = call or digest("call", session, now, repr(sorted(given.items())))
    use = {"type": "tool_use", "id": key, **given}
    result = {"type": "tool_result", "tool_use_id": key, "content": answer, "is_error": failed}
    begun = _line("assistant", session, folder, now, f"{key}-call", [use])
    _stage(workspace, [begun, _line("user", session, folder, now, f"{key}-result", [result])])


def note_end(workspace: OpenWorkspace, session: str, folder: str) -> None:
    """Note that a session is over, so that it is told without waiting."""
    at = instant(workspace.now())
    _add(workspace, [Turn(f"{_NOTE}end:{at}", session, at, END, cwd=folder)])


def last_prompt(workspace: OpenWorkspace, session: str) -> str:
    """Return what was asked for last in a session, as far as it is staged."""
    prompts = [turn.text for turn in _staging(workspace).turns(session) if turn.kind == PROMPT]
    return prompts[-1] if prompts else ""


def staged_turns(workspace: OpenWorkspace, session: str) -> list[Turn]:
    """The turns of a session, as far as they are staged."""
    return list(told_turns(_staging(workspace), session))


def told_turns(staging: Staging, session: str) -> Iterator[Turn]:
    """The turns of a session that count: its transcript's, or what hooks noted if it has none."""
    turns = staging.turns(session)
    noted: list[Turn] = []
    for turn in turns:
        if not _is_note(turn):
            yield turn
            yield from (each for each in turns if not _is_note(each))
            return
        noted.append(turn)
    yield from noted


def _is_note(turn: Turn) -> bool:
    return turn.key.startswith(_NOTE)


def _line(
    kind: str, session: str, folder: str, now: str, key: str, content: object
) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": f"{_NOTE}{key}",
        "sessionId": session,
        "timestamp": now,
        "cwd": folder,
        "message": {"content": content},
    }


def _stage(workspace: OpenWorkspace, lines: Iterable[Mapping[str, Any]]) -> None:
    """Nobody knows which agent it is: the name of the reader's own is taken off again."""
    reader = ClaudeCode()
    turns = [turn._replace(agent="") for line in lines for turn in reader.turns(line) or ()]
    _add(workspace, turns)


def _add(workspace: OpenWorkspace, turns: Iterable[Turn]) -> None:
    folder = _folder(workspace)
    with failures_named(folder):
        disk.make_folder(folder)
        with locked(folder / ".lock", _LOCK_SECONDS):
            _staging(workspace).add(map(checked, turns))


def _staging(workspace: OpenWorkspace) -> Staging:
    return Staging(_folder(workspace) / "sessions")


def _folder(workspace: OpenWorkspace) -> Path:
    return workspace.layout.local / "ingest"
