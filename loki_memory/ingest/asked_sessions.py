"""Sessions whose agent was asked for lessons, noted on this machine: one empty file for each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loki_memory.files import disk
from loki_memory.models.ids import file_stem

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_KEPT = 100  # notes; a session that went on after so many others may be asked again


def was_asked(workspace: OpenWorkspace, session: str) -> bool:
    """Check if the agent of a session was asked."""
    return _note(workspace, session).exists()


def note_asked(workspace: OpenWorkspace, session: str) -> bool:
    """Note that the agent of a session is asked; False if another process was faster."""
    note = _note(workspace, session)
    disk.make_folder(note.parent)
    try:
        disk.write_new(note, b"", durable=False, private=True)
    except FileExistsError:
        return False
    notes = sorted(note.parent.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    for old in notes[:-_KEPT]:
        disk.remove(old)
    return True


def _note(workspace: OpenWorkspace, session: str) -> Path:
    return workspace.layout.local / "asked" / file_stem(session)
