"""The log of hooks: one line for each that did something, or could not.

It lies in this machine's own zone. A full log becomes the old one and begins anew, so that both
together stay small. A log that cannot be written is no reason to say anything.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_FULL_BYTES = 256_000  # some 2,000 events: weeks of work
_LINE = 500
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)


def log_file(local: Path) -> Path:
    return local / "hooks.log"


def write(local: Path, text: str) -> None:
    """Append a line, in one write: several hooks may end at one moment."""
    path = log_file(local)
    line = " ".join(text.split())[:_LINE] + "\n"
    with suppress(OSError):
        local.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, _FLAGS, 0o600)
        try:
            os.write(fd, line.encode("utf-8", "replace"))
            is_full = os.fstat(fd).st_size > _FULL_BYTES
        finally:
            os.close(fd)
        if is_full:
            os.replace(path, path.with_suffix(".log.1"))
