"""Bytes that survive a crash: write beside, flush, replace, flush the folder.

Every function raises OSError; the store turns that into a sentence. Paths are taken apart as text:
`pathlib` would be a third of the time of a write.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Collection
from contextlib import suppress
from itertools import count

from loki_memory.files.layout import TEMPORARY

Place = str | os.PathLike[str]

_serial = count()
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)  # a pipe in place of a file must not keep us waiting
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS}
_BLOCK = 1 << 20
_FEW = 32  # up to here a flush per file is cheaper than one of the whole file system


def read_bytes(path: Place) -> bytes | None:
    """The file's content, None if there is no such file. Any other failure is an error.

    Links are not followed.
    """
    try:
        fd = os.open(path, os.O_RDONLY | _NOFOLLOW | _CLOEXEC | _NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        parts = [os.read(fd, os.fstat(fd).st_size + 1)]
        while parts[-1]:
            parts.append(os.read(fd, _BLOCK))
        return b"".join(parts)
    finally:
        os.close(fd)


def write_bytes(path: Place, data: bytes) -> None:
    """Replace the file in one step; after a crash it has the old content or the new one.

    After an error it has the old one: a second name is kept for it until all is done.
    """
    folder = os.path.dirname(path)
    make_folder(folder)
    new, old = _temporary(folder), _temporary(folder)
    linked = replaced = False
    try:
        inode = write_new(new, data, durable=True)
        linked = _link(path, old)
        os.replace(new, path)
        replaced = True
        _check_arrived(path, inode)
        flush_folder(folder)
        if linked:
            os.unlink(old)
    except BaseException:
        if replaced:
            _undo(path, old if linked else "")
        for name in (new, old):
            with suppress(OSError):
                os.unlink(name)
        raise


def _temporary(folder: str) -> str:
    return f"{folder}/{TEMPORARY}{os.getpid()}-{next(_serial)}"


def _link(path: Place, second: str) -> bool:
    """Give a file a second name, where there is a file and the file system can."""
    try:
        os.link(path, second, follow_symlinks=False)
    except (FileNotFoundError, PermissionError, NotImplementedError):
        return False
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise
    return True


def _undo(path: Place, old: str) -> None:
    with suppress(OSError):
        if old:
            os.replace(old, path)
        else:
            os.unlink(path)


def _check_arrived(path: Place, inode: int) -> None:
    """What is acknowledged has been seen in its place."""
    if os.lstat(path).st_ino != inode:
        raise OSError(errno.EIO, "is not the file that was written", os.fspath(path))


def write_new(path: Place, data: bytes, *, durable: bool) -> int:
    """Create a file that must not exist yet; returns its inode."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _CLOEXEC, 0o666)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        if durable:
            _flush(fd)
        return os.fstat(fd).st_ino
    finally:
        os.close(fd)


def _flush(fd: int) -> None:
    """On macOS fsync stops at the drive's cache, and F_FULLFSYNC goes through it (not verified)."""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


def remove(path: Place) -> None:
    """Remove a file; after an error it is still there."""
    folder = os.path.dirname(path)
    aside = _temporary(folder)
    try:
        os.replace(path, aside)
    except FileNotFoundError:
        return
    try:
        flush_folder(folder)
        os.unlink(aside)
    except BaseException:
        _undo(path, aside)
        raise


def make_folder(folder: Place) -> None:
    """Create the folder and its parents, each name safely on disk."""
    if os.path.isdir(folder):
        return
    parent = os.path.dirname(folder)
    make_folder(parent)
    with suppress(FileExistsError):
        os.mkdir(folder)
    if not os.path.isdir(folder):
        raise NotADirectoryError(errno.ENOTDIR, "is not a folder", os.fspath(folder))
    flush_folder(parent)


def flush_folder(folder: Place) -> None:
    """Make names durable: a rename is safe only once its folder is. Windows has no such call."""
    if sys.platform == "win32":
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def flush_all(files: Collection[Place], folder: Place) -> None:
    """Make many files that were written into one folder durable at once."""
    if len(files) > _FEW:
        _flush_file_system(folder)
        return
    for path in files:
        fd = os.open(path, os.O_RDONLY | _NOFOLLOW | _CLOEXEC)
        try:
            _flush(fd)
        finally:
            os.close(fd)
    flush_folder(folder)


def _flush_file_system(folder: Place) -> None:
    """`syncfs` where the C library has it, else a flush of everything."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    if not hasattr(library, "syncfs"):
        os.sync()
        return
    fd = os.open(folder, os.O_RDONLY | _CLOEXEC)
    try:
        if library.syncfs(fd):  # type: ignore[union-attr]
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), os.fspath(folder))
    finally:
        os.close(fd)
