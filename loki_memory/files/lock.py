"""Locks across processes.

A kernel lock dies with its holder, so there are no stale locks to judge. A store is locked by its
folder: there is no lock file that somebody could delete while it is held. Where folders cannot be
locked (network file systems, Windows), a file is. `filelock` does the same on more systems and
costs 40 ms of imports on every command; this page is all we need of it.

A waiting process is woken by the kernel, in the order of arrival, as far as nobody comes between.
To keep others from coming between, a store has a second lock, the turnstile, which a process holds
only while it waits for the first: so the next holder is always the process in the turnstile, and a
process that writes without pause queues up behind the others.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from loki_memory.errors import StoreBusy
from loki_memory.files import disk

_AGAIN = 0.01  # seconds before another try where the kernel has no queue, or the file was deleted
_BUSY = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}
# Answers of file systems that lock only files that are open for writing, or no folders.
_NO_FOLDERS = {errno.EBADF, errno.EINVAL, errno.EISDIR, errno.ENOTSUP, errno.ENOSYS}

if sys.platform == "win32":  # not verified on Windows
    import msvcrt

    def _take(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

    def _queue_up(_fd: int, seconds: float) -> None:
        time.sleep(min(seconds, _AGAIN))

    def _release(fd: int) -> None:
        os.close(fd)  # closing the last descriptor releases the lock
else:
    import fcntl

    def _take(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _queue_up(fd: int, seconds: float) -> None:
        """Wait in the kernel's queue until the lock is ours, or for some seconds.

        A thread waits, for the call itself has no limit. The kernel lets go of a lock that it
        grants after the caller has closed the file.
        """
        import _thread

        is_over = _thread.allocate_lock()
        is_over.acquire()

        def wait() -> None:
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_EX)
            is_over.release()

        _thread.start_new_thread(wait, ())
        is_over.acquire(timeout=seconds)

    def _release(fd: int) -> None:
        """Let go of a lock, also in children that were forked while it was held."""
        with suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


@contextmanager
def locked(path: Path, seconds: float) -> Iterator[None]:
    """Hold the lock of a file; raise StoreBusy if it is not free in time. Zero: only try.

    The file is made if there is none, and never removed.
    """
    fd = _acquire(disk.open_to_change, path, seconds)
    try:
        yield
    finally:
        _release(fd)


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
        _release(fd)


def _acquire_folder(folder: Path, seconds: float) -> int | None:
    """Take the lock of a folder, through the turnstile: the lock of the folder around it."""
    if sys.platform == "win32":
        return None
    deadline = time.monotonic() + seconds
    try:
        turnstile = _acquire(disk.open_folder, folder.parent, seconds)
        try:
            return _acquire(disk.open_folder, folder, max(0.0, deadline - time.monotonic()))
        finally:
            _release(turnstile)
    except OSError as error:
        if error.errno in _NO_FOLDERS:
            return None
        raise


def _acquire(open_: Callable[[Path], int], path: Path, seconds: float) -> int:
    deadline = time.monotonic() + seconds
    while True:
        fd = open_(path)
        if _try(fd, path):
            return fd
        left = deadline - time.monotonic()
        if left > 0:
            _queue_up(fd, left)
            if _try(fd, path):
                return fd
            time.sleep(min(_AGAIN, left))
        os.close(fd)
        if time.monotonic() >= deadline:
            raise StoreBusy(path, seconds)


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
