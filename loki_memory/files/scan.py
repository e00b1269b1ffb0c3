"""Scan the disk: every record and view file with its stamp, folder by folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from loki_memory.files.git_files import REPOSITORY
from loki_memory.files.layout import ARCHIVE, PRIVATE, TOP_FOLDERS, Layout

# (mtime_ns, ctime_ns, size): plain tuples, because there are 100,000. A change of content
# that keeps all three would have to set the clock back.
Stamp = tuple[int, int, int]
UNSETTLED: Stamp = (0, 0, 0)
UNREADABLE: Stamp = (-2, 0, 0)  # for the content of a folder that may not be listed
ODD: Stamp = (-1, 0, 0)  # a link, a device, a name that is no text: never followed, reported
NESTED: Stamp = (-3, 0, 0)  # for the content of a repository of its own, which nobody answers for

# A file that was written twice within one tick of the clock shows one stamp for two contents.
# Kernels tick every 1-10 ms; file systems that keep whole seconds show no fraction at all.
_GRAIN_NS, _COARSE_GRAIN_NS = 20_000_000, 2_000_000_000
_SECOND_NS = 1_000_000_000
# Where a folder can be held open, its path is resolved once and not for each of its files.
_BY_DESCRIPTOR = os.scandir in os.supports_fd
_FOLDER = (
    os.O_RDONLY
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)


class ScannedFolder(NamedTuple):
    """One folder's files by name, and its subfolders."""

    mtime_ns: int
    files: dict[str, Stamp]
    folders: list[str]


class Changes(NamedTuple):
    """The files whose content differs from what the index knew."""

    added: list[str]
    modified: list[str]
    removed: list[str]
    stale: bool = False  # another process is at work: the index may be a moment old
    is_complete: bool = False  # no file needs another look before it is shown

    def __bool__(self) -> bool:
        return bool(self.added or self.modified or self.removed)


class ScanResult(NamedTuple):
    """The folders and files, by path, that a scan found and the index does not know."""

    folders: dict[str, ScannedFolder | None]
    changed: dict[str, Stamp]
    removed: list[str]


def tops(layout: Layout) -> Iterator[str]:
    """The folders where a scan begins, as record paths."""
    yield from TOP_FOLDERS
    if os.path.isdir(layout.file(PRIVATE)):
        yield from (PRIVATE + name for name in TOP_FOLDERS)


def scan(layout: Layout) -> Iterator[tuple[str, ScannedFolder]]:
    """Every folder that can hold records, parents first, in a stable order."""
    waiting = list(tops(layout))[::-1]
    while waiting:
        path = waiting.pop()
        folder = scan_folder(layout.file(path))
        if folder is None:
            continue
        yield path, folder
        if folder.folders:
            waiting += [f"{path}/{name}" for name in sorted(folder.folders, reverse=True)]


def scan_folder(path: str) -> ScannedFolder | None:
    """Scan one folder; None if it does not exist. Names with a leading dot are not memory."""
    try:
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode):  # a link instead of a folder leads out of the tree
            return None
        place = os.open(path, _FOLDER) if _BY_DESCRIPTOR else path
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return ScannedFolder(0, {"": UNREADABLE}, [])
    try:
        with os.scandir(place) as entries:
            return ScannedFolder(status.st_mtime_ns, *_listed(entries))
    finally:
        if isinstance(place, int):
            os.close(place)


def _listed(entries: Iterable[os.DirEntry[str]]) -> tuple[dict[str, Stamp], list[str]]:
    """The files of a folder with their stamps, and the folders in it.

    A submodule is not entered: what is in it is not in the history of this repository.
    """
    files: dict[str, Stamp] = {}
    folders: list[str] = []
    for entry in entries:
        name = entry.name
        if name[0] == ".":
            if name == REPOSITORY:
                return {REPOSITORY: NESTED}, []
            continue
        if not name.isascii() and not _is_text(name):
            files[name.encode(errors="backslashreplace").decode()] = ODD
        elif entry.is_file(follow_symlinks=False):
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # gone since it was listed
                continue
            files[name] = (status.st_mtime_ns, status.st_ctime_ns, status.st_size)
        elif entry.is_dir(follow_symlinks=False):
            folders.append(name)
        else:
            files[name] = ODD
    return files, folders


def stamp_of(path: str) -> Stamp | None:
    """The stamp of one file; None if there is none."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISREG(status.st_mode):
        return (status.st_mtime_ns, status.st_ctime_ns, status.st_size)
    return None if stat.S_ISDIR(status.st_mode) else ODD


def _is_text(name: str) -> bool:
    """Check if a name is UTF-8 on disk: others cannot be printed, stored or opened elsewhere."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def settled(stamp: Stamp, now_ns: int) -> Stamp:
    """The stamp, or UNSETTLED if the file is so young that another write could look the same."""
    newest = max(stamp[0], stamp[1])
    age = now_ns - newest
    if age >= _COARSE_GRAIN_NS or stamp[0] < 0:  # most are old
        return stamp
    grain = _GRAIN_NS if newest % _SECOND_NS else _COARSE_GRAIN_NS
    return UNSETTLED if age < grain else stamp


def archived(layout: Layout) -> Iterator[str]:
    """The paths of all archived files."""
    for zone, top in (("", layout.memory), (PRIVATE, layout.local / "memory")):
        for folder, folders, names in os.walk(top / ARCHIVE):
            if REPOSITORY in (*folders, *names):
                folders.clear()
                continue
            folders.sort()
            inside = Path(folder).relative_to(top).as_posix()
            yield from (f"{zone}{inside}/{name}" for name in sorted(names) if name[0] != ".")


_BYTES = 16


def etag(data: bytes) -> str:
    """A hash of the bytes, by which a writer proves which version it saw."""
    return blake2b(data, digest_size=_BYTES).hexdigest()
