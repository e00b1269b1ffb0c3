"""A log in the local zone: one line for each event or failure.

A full log becomes the old one and begins anew, so that both together stay small. A log that cannot
be written is ignored.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from loki_memory.files import disk

_FULL_BYTES = 256_000  # some 2,000 events: weeks of work
_LINE = 500


def append_line(path: Path, text: str) -> None:
    """Append a line in one write: several processes may write at the same time."""
    line = " ".join(text.split())[:_LINE] + "\n"
    with suppress(OSError):
        disk.make_folder(path.parent)
        fd = disk.open_to_change(path, append=True)
        try:
            os.write(fd, line.encode("utf-8", "replace"))
            is_full = os.fstat(fd).st_size > _FULL_BYTES
        finally:
            os.close(fd)
        if is_full:
            disk.move(path, path.with_suffix(".log.1"))
