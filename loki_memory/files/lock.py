"""One lock per store, across processes.

A kernel lock on a file that is never unlinked: it dies with its holder, so there are no stale
locks to judge. `filelock` does the same on more systems and costs 40 ms of imports on every
command; this page is all we need of it.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loki_memory.errors import StoreBusy
from loki_memory.files import disk

_FIRST_WAIT, _LONGEST_WAIT = 0.0005, 0.02  # seconds; the lock is held for milliseconds

if sys.platform == "win32":  # not verified on Windows
    import msvcrt

    def _take(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def locked(path: Path, seconds: float) -> Iterator[None]:
    """Hold the lock; raise StoreBusy if it is not free in time. Zero seconds: only try."""
    fd = _acquire(path, seconds)
    try:
        yield
    finally:
        os.close(fd)  # closing the last descriptor releases the lock


def _acquire(path: Path, seconds: float) -> int:
    deadline, wait = time.monotonic() + seconds, _FIRST_WAIT
    while True:
        fd = disk.open_to_change(path)
        if _try(fd, path):
            return fd
        os.close(fd)
        if time.monotonic() >= deadline:
            raise StoreBusy(path, seconds)
        time.sleep(wait)
        wait = min(wait * 1.5, _LONGEST_WAIT)


def _try(fd: int, path: Path) -> bool:
    """Take the lock, and make sure that other processes will find the same file.

    If the lock file was deleted, our descriptor names a file that no newcomer can open.
    """
    try:
        _take(fd)
    except OSError as error:
        if error.errno in {errno.EACCES, errno.EAGAIN, errno.EDEADLK}:
            return False
        raise
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False
