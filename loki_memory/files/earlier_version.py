"""Take over a workspace of an earlier version, which kept the bases of views elsewhere.

They were in `memory/.views/`, later in `cache/views/`, and the lock was a file, `memory/.lock`. The
bases move to the local zone, so that edits of views are still recognised; what is there already is
newer. A link in their place is left alone, as everywhere.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from loki_memory.files import disk
from loki_memory.files.layout import TEMPORARY, Layout, view_bases

_LOCK = ".lock"


def is_there(layout: Layout) -> bool:
    """Check if an earlier version left bases of views here."""
    return any(map(_is_folder, _earlier(layout)))


def take_over(layout: Layout) -> None:
    """Move the bases to the local zone and remove the lock file. The caller holds the store.

    What cannot be moved stays, and is tried again by the next change.
    """
    with suppress(OSError):
        lock = f"{layout.memory}/{_LOCK}"
        if os.path.lexists(lock):
            disk.discard(lock)
        for folder in filter(_is_folder, _earlier(layout)):
            _move_bases(Path(folder), Path(view_bases(layout)))


def _earlier(layout: Layout) -> tuple[str, str]:
    return f"{layout.cache}/views", f"{layout.memory}/.views"  # as text: every write comes here


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _move_bases(old: Path, new: Path) -> None:
    disk.make_folder(new)
    for path in sorted(old.iterdir()):
        if path.name.startswith(TEMPORARY) or os.path.lexists(new / path.name):
            disk.discard(path)
        else:
            disk.write_bytes(new / path.name, disk.read_bytes(path) or b"")
            disk.discard(path)
    old.rmdir()
