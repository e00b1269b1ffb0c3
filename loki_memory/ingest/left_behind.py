"""Sessions that ended without a word (killed, or run by a script), by their transcripts' times."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loki_memory.files import disk

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_CAUGHT_UP = "caught-up"  # a file whose time is that of the last look
_SESSIONS = 20  # that are looked at


def left_behind(workspace: OpenWorkspace, transcript: str) -> list[Path]:
    """Transcripts beside this one that were written since the last look, the newest first.

    One that was still going on then is looked at again: it may have ended since.
    """
    if not transcript:
        return []
    try:
        seen = (workspace.layout.local / _CAUGHT_UP).stat().st_mtime
    except OSError:
        seen = 0.0
    seen -= 60 * workspace.config.get("capture.idle_minutes")
    try:
        beside = {
            path: path.stat().st_mtime
            for path in Path(transcript).parent.glob("*.jsonl")
            if path.name != Path(transcript).name
        }
    except OSError:
        return []
    news = sorted((path for path in beside if beside[path] >= seen), key=lambda p: -beside[p])
    return news[:_SESSIONS]


def note_look(workspace: OpenWorkspace) -> None:
    """Note that sessions which ended silently were looked for now."""
    disk.write_bytes(workspace.layout.local / _CAUGHT_UP, workspace.now().encode())
