"""The door to the disk: every file below `.loki` is written, created, renamed or locked here.

Bytes survive a crash: they are written beside the file, flushed and renamed, and the folder is
flushed. No symbolic link is followed below the folder that holds `.loki`, for a clone can bring
links that lead anywhere: each folder on the way is opened by its descriptor with O_NOFOLLOW, and
names are used relative to it. Links above that folder, and in git's own directory, are the user's.
Files of the zones that belong to this machine's user alone are created with mode 0600 in folders
with mode 0700.

Every function raises OSError; the store turns that into a sentence. Paths are taken apart as text:
`pathlib` would be a third of the time of a write.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import count

from loki_memory.files.layout import LOCAL, MADE_HERE, TEMPORARY, is_private, made_here

Place = str | os.PathLike[str]

LINKED = "is a symbolic link, which is not followed"
_serial = count()
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)  # a pipe in place of a file must not block
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _CLOEXEC
# Windows opens no folders: there, paths are checked for links before use (not verified).
_BY_DESCRIPTOR = os.open in os.supports_dir_fd
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS}
_BLOCK = 1 << 20
_MOST_BYTES = 1 << 28  # of a file; the largest are views and indexes of imports
_FEW = 32  # up to here a flush per file is cheaper than one of the whole file system


# -- folders ---------------------------------------------------------------------------------------


class Folder:
    """An open folder. The names in it are used relative to its descriptor."""

    def __init__(self, path: str, fd: int | None) -> None:
        self.path = path
        self.fd = fd

    def name(self, name: str) -> str:
        return name if self.fd is not None else f"{self.path}/{name}"

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Open a file of this folder; a link in its place is refused."""
        mode = mode & 0o600 if is_private(self.path) else mode
        try:
            flags |= _NOFOLLOW | _CLOEXEC | _NONBLOCK
            return os.open(self.name(name), flags, mode, dir_fd=self.fd)
        except OSError as error:
            self.refuse_link(name)
            error.filename = f"{self.path}/{name}"
            raise

    def refuse_link(self, name: str) -> None:
        """Raise OSError if the name is a symbolic link."""
        with suppress(FileNotFoundError):
            if stat.S_ISLNK(self.status(name).st_mode):
                raise OSError(errno.ELOOP, LINKED, f"{self.path}/{name}")

    def status(self, name: str) -> os.stat_result:
        return os.stat(self.name(name), dir_fd=self.fd, follow_symlinks=False)

    def rename(self, old: str, new: str, target: Folder | None = None) -> None:
        """Rename a file, in this folder or to another one."""
        target = target or self
        os.replace(self.name(old), target.name(new), src_dir_fd=self.fd, dst_dir_fd=target.fd)

    def unlink(self, name: str) -> None:
        os.unlink(self.name(name), dir_fd=self.fd)

    def link(self, name: str, second: str) -> bool:
        """Add a hard link to a file; False where there is no file, or no hard links."""
        names = self.name(name), self.name(second)
        try:
            os.link(*names, src_dir_fd=self.fd, dst_dir_fd=self.fd, follow_symlinks=False)
        except (FileNotFoundError, PermissionError, NotImplementedError):
            return False
        except OSError as error:
            if error.errno in _NO_LINKS:
                return False
            raise
        return True

    def flush(self) -> None:
        """Make names durable: a rename is safe only once its folder is. Windows has no call."""
        if self.fd is not None:
            os.fsync(self.fd)


@contextmanager
def folder(path: Place, *, create: bool = False) -> Iterator[Folder]:
    """Open a folder and follow no link on the way to it; `create` makes missing ones."""
    path = os.fspath(path)
    if not _BY_DESCRIPTOR:
        refuse_links(path)
        if create:
            os.makedirs(path, exist_ok=True)
        yield Folder(path, None)
        return
    fd = _opened(path, create=create)
    try:
        yield Folder(path, fd)
    finally:
        os.close(fd)


def _opened(path: str, *, create: bool) -> int:
    """The descriptor of a folder. The folders below `.loki` are entered one by one."""
    start, names = _parted(path)
    try:
        fd = os.open(start or ".", _FOLDER)
    except FileNotFoundError:
        if not create:
            raise
        fd = _made_outside(start)
    here = start.rstrip("/")
    for name in names:
        try:
            inner = _entered(Folder(here, fd), name, create=create)
        finally:
            os.close(fd)
        fd, here = inner, f"{here}/{name}"
    return fd


def _parted(path: str) -> tuple[str, list[str]]:
    """Split a path into the user's part and the names, from `.loki` on, that a clone can bring.

    The outermost `.loki` counts: a copy of a past state has one inside the cache of another.
    """
    at = f"{path}/".find("/.loki/")
    if at < 0:
        return path, []
    return path[:at] or "/", [name for name in path[at + 1 :].split("/") if name]


def _made_outside(path: str) -> int:
    """Make a folder above `.loki`, or in git's directory, and open it."""
    parent, name = os.path.split(path)
    with folder(parent, create=True) as outer:
        return _entered(outer, name, create=True, links=True)


def _entered(outer: Folder, name: str, *, create: bool, links: bool = False) -> int:
    flags = _FOLDER if links else _FOLDER | _NOFOLLOW
    try:
        return os.open(name, flags, dir_fd=outer.fd)
    except FileNotFoundError:
        if not create:
            raise
        _make(outer, name)
        return os.open(name, flags, dir_fd=outer.fd)
    except OSError as error:
        outer.refuse_link(name)
        error.filename = f"{outer.path}/{name}"
        raise


def _make(outer: Folder, name: str) -> None:
    mode = 0o700 if is_private(f"{outer.path}/{name}") else 0o777
    if name == LOCAL and outer.path.endswith("/.loki"):
        _make_local_zone(outer)
    else:
        with suppress(FileExistsError):
            os.mkdir(outer.name(name), mode, dir_fd=outer.fd)
    outer.flush()


def _make_local_zone(loki: Folder) -> None:
    """Make `.loki/local` with the mark of this machine in it, complete or not at all."""
    draft = _temporary()
    os.mkdir(loki.name(draft), 0o700, dir_fd=loki.fd)
    with folder(f"{loki.path}/{draft}") as zone:
        _create(zone, MADE_HERE, made_here(loki.status(draft)), durable=True, mode=0o600)
        try:
            names = loki.name(draft), loki.name(LOCAL)
            os.rename(*names, src_dir_fd=loki.fd, dst_dir_fd=loki.fd)
        except OSError:  # another process was faster
            zone.unlink(MADE_HERE)
            os.rmdir(loki.name(draft), dir_fd=loki.fd)


def make_folder(path: Place) -> None:
    """Create the folder and its parents, each name durably."""
    with folder(path, create=True):
        pass


def flush_folder(path: Place) -> None:
    """Make the names in a folder durable."""
    with folder(path) as opened:
        opened.flush()


def refuse_links(path: Place) -> None:
    """Raise OSError if the path, or a folder on the way to it, is a symbolic link.

    For code that opens files by itself, such as SQLite.
    """
    here, names = _parted(os.fspath(path))
    for name in names:
        here = f"{here}/{name}"
        if os.path.islink(here):
            raise OSError(errno.ELOOP, LINKED, here)


@contextmanager
def _folder_of(path: Place, *, create: bool = False) -> Iterator[tuple[Folder, str]]:
    """Open the folder of a file, and give the file's name in it."""
    parent, name = os.path.split(os.fspath(path))
    with folder(parent, create=create) as opened:
        yield opened, name


# -- files -----------------------------------------------------------------------------------------


def read_bytes(path: Place) -> bytes | None:
    """The file's content, None if there is no such file. Any other failure is an error.

    A link is not followed. Only the last name is checked: a scan of memory enters no link.
    """
    try:
        fd = os.open(path, os.O_RDONLY | _NOFOLLOW | _CLOEXEC | _NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if os.path.islink(path):
            raise OSError(errno.ELOOP, LINKED, os.fspath(path)) from error
        raise
    try:
        return _read(fd, path)
    finally:
        os.close(fd)


def _read(fd: int, path: Place) -> bytes:
    """All that a file holds, unless that is too much: a clone may bring a file of any size."""
    size = os.fstat(fd).st_size
    parts = [os.read(fd, size + 1)] if size <= _MOST_BYTES else []
    while parts and parts[-1] and len(parts) <= _MOST_BYTES // _BLOCK:
        parts.append(os.read(fd, _BLOCK))
    if not parts or parts[-1]:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), os.fspath(path))
    return b"".join(parts)


def read_derived(path: Place) -> bytes | None:
    """The content of a file that can be made again; a link in its place is no file."""
    try:
        return read_bytes(path)
    except OSError as error:
        if error.strerror == LINKED:
            return None
        raise


def write_bytes(path: Place, data: bytes, *, private: bool = False) -> None:
    """Replace the file atomically; after a crash it has the old content or the new one.

    After an error it has the old one: a hard link keeps it until all is done. `private` is for a
    file that only its user may read in a folder that others may.
    """
    with _folder_of(path, create=True) as (inside, name):
        inside.refuse_link(name)
        _replace(inside, name, data, 0o600 if private else 0o666)


def _replace(inside: Folder, name: str, data: bytes, mode: int) -> None:
    new, old = _temporary(), _temporary()
    linked = replaced = False
    try:
        inode = _create(inside, new, data, durable=True, mode=mode)
        linked = inside.link(name, old)
        inside.rename(new, name)
        replaced = True
        _check_arrived(inside, name, inode)
        inside.flush()
        if linked:
            inside.unlink(old)
    except BaseException:
        if replaced:
            _undo(inside, name, old if linked else "")
        for left in (new, old):
            with suppress(OSError):
                inside.unlink(left)
        raise


def _temporary() -> str:
    return f"{TEMPORARY}{os.getpid()}-{next(_serial)}"


def _undo(inside: Folder, name: str, old: str) -> None:
    with suppress(OSError):
        if old:
            inside.rename(old, name)
        else:
            inside.unlink(name)


def _check_arrived(inside: Folder, name: str, inode: int) -> None:
    """Check that the file in its place is the one that was written."""
    if inside.status(name).st_ino != inode:
        raise OSError(errno.EIO, "is not the file that was written", f"{inside.path}/{name}")


def replace_plainly(path: Place, data: bytes) -> None:
    """Replace a file atomically without flushing it: for derived data that a crash may lose."""
    with _folder_of(path, create=True) as (inside, name):
        inside.refuse_link(name)
        new = _temporary()
        try:
            _create(inside, new, data, durable=False)
            inside.rename(new, name)
        except BaseException:
            with suppress(OSError):
                inside.unlink(new)
            raise


def write_new(path: Place, data: bytes, *, durable: bool, private: bool = False) -> int:
    """Create a file that must not exist yet; returns its inode.

    `private` is for a file that will be moved to a zone that only its user may read.
    """
    with _folder_of(path) as (inside, name):
        return _create(inside, name, data, durable=durable, mode=0o600 if private else 0o666)


def _create(inside: Folder, name: str, data: bytes, *, durable: bool, mode: int = 0o666) -> int:
    fd = inside.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        if durable:
            _flush(fd)
        return os.fstat(fd).st_ino
    finally:
        os.close(fd)


def open_to_change(path: Place, *, append: bool = False) -> int:
    """Open a file for reading and writing; it is made if there is none.

    The folder must be there. The caller closes the descriptor.
    """
    with _folder_of(path) as (inside, name):
        return inside.open(name, os.O_RDWR | os.O_CREAT | (os.O_APPEND if append else 0))


def refuse_if_read_only(path: Place) -> None:
    """Raise OSError if files cannot be made in a folder."""
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))


def open_folder(path: Place) -> int:
    """Open a folder, following no link on the way to it. The caller closes the descriptor."""
    return _opened(os.fspath(path), create=False)


def _flush(fd: int) -> None:
    """Flush a file; on macOS F_FULLFSYNC, since fsync stops at the drive's cache (not verified)."""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


def move(old: Place, new: Place) -> None:
    """Rename a file, without flushing; a file at the new name is replaced. The folders must exist.

    A link in the place of either file is refused.
    """
    with _folder_of(old) as (source, old_name), _folder_of(new) as (target, new_name):
        source.refuse_link(old_name)
        target.refuse_link(new_name)
        source.rename(old_name, new_name, target)


def discard(path: Place) -> None:
    """Remove a file or a link, if there is one, without flushing."""
    with suppress(FileNotFoundError), _folder_of(path) as (inside, name):
        inside.unlink(name)


def remove(path: Place) -> None:
    """Remove a file; after an error it is still there."""
    if not os.path.lexists(path):
        return
    with _folder_of(path) as (inside, name):
        aside = _temporary()
        try:
            inside.rename(name, aside)
        except FileNotFoundError:
            return
        try:
            inside.flush()
            inside.unlink(aside)
        except BaseException:
            _undo(inside, name, aside)
            raise


def flush_all(files: Collection[Place], parent: Place) -> None:
    """Make many files of one folder durable at once."""
    if len(files) > _FEW:
        _flush_file_system(parent)
        return
    with folder(parent) as inside:
        for path in files:
            fd = inside.open(os.path.basename(path), os.O_RDONLY)
            try:
                _flush(fd)
            finally:
                os.close(fd)
        inside.flush()


def _flush_file_system(parent: Place) -> None:
    """Call `syncfs` where the C library has it, else flush everything."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    if not hasattr(library, "syncfs"):
        os.sync()
        return
    fd = os.open(parent, os.O_RDONLY | _CLOEXEC)
    try:
        if library.syncfs(fd):  # type: ignore[union-attr]
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), os.fspath(parent))
    finally:
        os.close(fd)
