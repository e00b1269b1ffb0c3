"""Locks across processes.

A kernel lock dies with its holder, so there are no stale locks to judge. A store is locked by its
folder: there is no lock file that somebody could delete while it is held. Where folders cannot be
locked (network file systems, Windows), a file is. `filelock` does the same on more systems and
costs 40 ms of imports on every command; this page is all we need of it.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from loki_memory.errors import StoreBusy
from loki_memory.files import disk

_FIRST_WAIT, _LONGEST_WAIT = 0.0005, 0.02  # seconds; the lock is held for milliseconds
_BUSY = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}
# Answers of file systems that lock only files that are open for writing, or no folders.
_NO_FOLDERS = {errno.EBADF, errno.EINVAL, errno.EISDIR, errno.ENOTSUP, errno.ENOSYS}

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
    """Hold the lock of a file; raise StoreBusy if it is not free in time. Zero: only try.

    The file is made if there is none, and never removed.
    """
    fd = _acquire(disk.open_to_change, path, seconds)
    try:
        yield
    finally:
        os.close(fd)  # closing the last descriptor releases the lock


@contextmanager
def locked_folder(folder: Path, seconds: float, *, else_file: Path) -> Iterator[None]:
    """Hold the lock of a folder, or that of a file where folders cannot be locked."""
    fd = _acquire_folder(folder, seconds)
    if fd is None:
        disk.make_folder(else_file.parent)
        fd = _acquire(disk.open_to_change, else_file, seconds)
    try:
        yield
    finally:
        os.close(fd)


def _acquire_folder(folder: Path, seconds: float) -> int | None:
    if sys.platform == "win32":
        return None
    try:
        return _acquire(disk.open_folder, folder, seconds)
    except OSError as error:
        if error.errno in _NO_FOLDERS:
            return None
        raise


def _acquire(open_: Callable[[Path], int], path: Path, seconds: float) -> int:
    deadline, wait = time.monotonic() + seconds, _FIRST_WAIT
    while True:
        fd = open_(path)
        if _try(fd, path):
            return fd
        os.close(fd)
        if time.monotonic() >= deadline:
            raise StoreBusy(path, seconds)
        time.sleep(wait)
        wait = min(wait * 1.5, _LONGEST_WAIT)


def _try(fd: int, path: Path) -> bool:
    """Take the lock, and make sure that other processes will find the same file or folder.

    If it was deleted, our descriptor names something that no newcomer can open.
    """
    try:
        _take(fd)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        os.close(fd)
        raise
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False
