"""What lies on disk: every record and view file with its stamp, folder by folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from loki_memory.files.layout import PRIVATE, TOP_FOLDERS, Layout

# (mtime_ns, ctime_ns, size): plain tuples, because this is done 100,000 times. A change of content
# that keeps all three would have to set the clock back.
Stamp = tuple[int, int, int]
UNSETTLED: Stamp = (0, 0, 0)
UNREADABLE: Stamp = (-2, 0, 0)  # stands for the content of a folder that may not be listed
ODD: Stamp = (-1, 0, 0)  # a link, a device, a name that is no text: never followed, reported

# A file that was written twice within one tick of the clock shows one stamp for two contents.
# Kernels tick every 1-10 ms; file systems that keep whole seconds show no fraction at all.
_GRAIN_NS, _COARSE_GRAIN_NS = 20_000_000, 2_000_000_000
_SECOND_NS = 1_000_000_000


class Folder(NamedTuple):
    """One folder's files by name, and what else was met in it."""

    mtime_ns: int
    files: dict[str, Stamp]
    folders: list[str]


def tops(layout: Layout) -> Iterator[str]:
    """The folders where a scan begins, as record paths."""
    yield from TOP_FOLDERS
    if os.path.isdir(layout.file(PRIVATE)):
        yield from (PRIVATE + name for name in TOP_FOLDERS)


def scan(layout: Layout) -> Iterator[tuple[str, Folder]]:
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


def scan_folder(path: str) -> Folder | None:
    """One folder; None if it does not exist. What starts with a dot is not memory."""
    files: dict[str, Stamp] = {}
    folders: list[str] = []
    try:
        status = os.lstat(path)
        entries = os.scandir(path) if stat.S_ISDIR(status.st_mode) else None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return Folder(0, {"": UNREADABLE}, [])
    if entries is None:  # a link instead of a folder leads out of the tree
        return None
    mtime_ns = status.st_mtime_ns
    with entries:
        for entry in entries:
            name = entry.name
            if name[0] == ".":
                continue
            if not name.isascii() and not _is_text(name):
                files[name.encode(errors="backslashreplace").decode()] = ODD
            elif entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):  # gone since it was listed
                    status = entry.stat(follow_symlinks=False)
                    files[name] = (status.st_mtime_ns, status.st_ctime_ns, status.st_size)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(name)
            else:
                files[name] = ODD
    return Folder(mtime_ns, files, folders)


def _is_text(name: str) -> bool:
    """Whether a name is UTF-8 on disk: others cannot be told, stored or opened elsewhere."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def settled(stamp: Stamp, now_ns: int) -> Stamp:
    """The stamp, or UNSETTLED if the file is so young that another write could look the same."""
    if stamp in {ODD, UNREADABLE}:
        return stamp
    newest = max(stamp[0], stamp[1])
    coarse = newest % _SECOND_NS == 0
    young = now_ns - newest < (_COARSE_GRAIN_NS if coarse else _GRAIN_NS)
    return UNSETTLED if young else stamp
