"""The differences between the files and the index."""

from __future__ import annotations

from typing import NamedTuple

from loki_memory.files.scan import ScannedFolder, Stamp


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
