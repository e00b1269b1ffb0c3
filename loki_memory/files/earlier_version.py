"""Take over a workspace of an earlier version, which kept derived files among the records.

The bases of views were in `memory/.views/`, and the lock was a file, `memory/.lock`. The bases move
to the cache, so that edits of views are still recognised; what is there already is newer. A link in
their place is left alone, as everywhere.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from loki_memory.files import disk
from loki_memory.files.layout import TEMPORARY, VIEW_BASES, Layout

_BASES, _LOCK = ".views", ".lock"


def is_there(layout: Layout) -> bool:
    """Check if an earlier version left bases of views here."""
    folder = f"{layout.memory}/{_BASES}"  # as text: every write comes here
    return os.path.isdir(folder) and not os.path.islink(folder)


def take_over(layout: Layout) -> None:
    """Move the bases to the cache and remove the lock file. The caller holds the store.

    What cannot be moved stays, and is tried again by the next change.
    """
    with suppress(OSError):
        lock = f"{layout.memory}/{_LOCK}"
        if os.path.lexists(lock):
            disk.discard(lock)
        if is_there(layout):
            _move_bases(layout.memory / _BASES, Path(layout.file(VIEW_BASES)))


def _move_bases(old: Path, new: Path) -> None:
    disk.make_folder(new)
    for path in sorted(old.iterdir()):
        if path.name.startswith(TEMPORARY) or os.path.lexists(new / path.name):
            disk.discard(path)
        else:
            disk.write_bytes(new / path.name, disk.read_bytes(path) or b"")
            disk.discard(path)
    old.rmdir()
