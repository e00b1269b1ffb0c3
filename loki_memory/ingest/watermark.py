"""Watermarks: how far each transcript has been read, on this machine.

A mark is moved only after what was read is safely staged. It remembers what stood at the beginning
and just before it: a file in which something else stands there now was written anew and is read
from its beginning. So is one that was read by a version which understood less of it. What is known
of it is not staged twice, because every turn has a name.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson

from loki_memory.files import disk
from loki_memory.models.ids import digest

READER = 2  # 1: Codex up to 0.147
_BLOCK = 4096  # bytes at either end of what was read that are remembered


class Mark(NamedTuple):
    """Where reading goes on."""

    path: str
    end: int = 0  # bytes that were read, of the plain text
    line: int = 0  # lines that were read
    waiting: int = 0  # lines behind it that were not complete
    print: str = ""  # of what was read
    size: int = -1  # of the file, and when it was changed: while both stay there is nothing new
    changed: int = 0
    sessions: list[str] = []  # noqa: RUF012 - never changed: those that it holds
    refused: list[list[Any]] = []  # noqa: RUF012 - never changed: lines nobody was told of, and why
    reader: int = READER  # the version that read it

    def fits(self, status: os.stat_result) -> bool:
        return (self.size, self.changed) == (status.st_size, status.st_mtime_ns)


class Marks:
    """The marks of all transcripts, each in a file of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, path: Path) -> Mark:
        """The mark of a transcript; one at its beginning if there is none that can be read."""
        found = _decoded(disk.read_bytes(self._place(path))) or Mark(os.path.abspath(path))
        if found.reader == READER:
            return found
        return Mark(found.path, sessions=found.sessions, refused=found.refused)

    def set(self, mark: Mark) -> None:
        disk.write_bytes(self._place(Path(mark.path)), orjson.dumps(mark._asdict()))

    def all(self) -> list[Mark]:
        places = sorted(self._folder.glob("*.json"))
        found = (_decoded(disk.read_bytes(place)) for place in places)
        return sorted(filter(None, found))

    def _place(self, path: Path) -> str:
        return f"{self._folder}/{digest('transcript', os.path.abspath(path))}.json"


def _decoded(data: bytes | None) -> Mark | None:
    try:
        return Mark(**{"reader": 1, **orjson.loads(data)}) if data else None
    except (ValueError, TypeError):
        return None


def fingerprint(stream: IO[bytes], end: int) -> str:
    """What stands at the beginning of a stream and just before a byte; empty if it is shorter."""
    stream.seek(0)
    first = stream.read(min(_BLOCK, end))
    stream.seek(max(0, end - _BLOCK))
    last = stream.read(min(_BLOCK, end))
    if len(last) < min(_BLOCK, end):
        return ""
    return blake2b(first + last, digest_size=16).hexdigest()
