"""Seals: whether files of the cache are as we left them, without reading them.

SQLite finds damage to its own structure only, and of that only what a question happens to meet. So
after each change we set a file's modification time to the nanosecond, and note it with the size
beside the file. Whoever else writes to the file leaves the kernel's time, which comes in steps of
milliseconds. A file whose seal is broken is checked in full, or made again. Damage that the disk
itself does leaves the time alone; `loki-mem doctor --deep` looks for that.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from loki_memory.files import disk


def seal(*paths: Path) -> None:
    """Note files as they are now, beside the first; what cannot be sealed counts as broken."""
    with suppress(OSError):
        now = time.time_ns()
        for path in paths:
            with suppress(FileNotFoundError):
                os.utime(path, ns=(now, now))
        disk.replace_plainly(beside(paths[0]), _state(paths))


def is_whole(*paths: Path) -> bool:
    """Check if nobody but us has written to files since they were sealed."""
    try:
        return disk.read_derived(beside(paths[0])) == _state(paths)
    except OSError:
        return False


def beside(path: Path) -> Path:
    """The file with the seal of another one."""
    return path.with_name(f"{path.name}.seal")


def _state(paths: Sequence[Path]) -> bytes:
    found = []
    for path in paths:
        with suppress(FileNotFoundError):
            status = os.stat(path)
            found.append(f"{path.suffix} {status.st_mtime_ns} {status.st_size}")
    return "\n".join(found).encode()
