"""Sources of a session's values: a file of JSON lines, or the rows of a client's database.

Reading goes on where it stopped. `end` counts what was read of a source: bytes of a file, rows of a
session. A fingerprint of that part tells whether it is still the same; where it is not, somebody
rewrote the source, and it is read again from its beginning.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Protocol

from loki_memory.ingest.json_lines import Piece, Value, opened, pieces
from loki_memory.ingest.opencode_database import SessionRows, is_session
from loki_memory.ingest.staging import fingerprint


class Source(Protocol):
    """A session that is opened for reading."""

    def state(self) -> tuple[int, int]:
        """Its size and when it was changed: while both stay, nothing in it is new."""

    def pieces(self, start: int = 0, line: int = 0) -> Iterator[Piece]:
        """The pieces after `start`; `line` pieces or lines stand before it."""

    def fingerprint(self, end: int) -> str:
        """A digest of what stands before `end`; empty if there is less than that."""

    def close(self) -> None: ...


class FileLines:
    """The lines of a file, which may be compressed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        status = os.stat(path)
        self._state = (status.st_size, status.st_mtime_ns)

    def state(self) -> tuple[int, int]:
        return self._state

    @cached_property
    def _stream(self) -> IO[bytes]:
        """The file, opened when it is read: most are known already."""
        return opened(self._path)

    def pieces(self, start: int = 0, line: int = 0) -> Iterator[Piece]:
        if self._path.suffix == ".gz":  # one that is damaged cannot be wound back
            self.close()
            self.__dict__.pop("_stream", None)
        return pieces(self._stream, start, line)

    def fingerprint(self, end: int) -> str:
        here = self._stream.tell()
        found = fingerprint(self._stream, end)
        self._stream.seek(here)
        return found

    def close(self) -> None:
        if "_stream" in self.__dict__:
            self._stream.close()


def open_source(path: Path) -> AbstractContextManager[Source]:
    """Open a transcript. Raises OSError."""
    return closing(SessionRows(path) if is_session(path) else FileLines(path))


def first_values(source: Source, most: int) -> Iterator[Value]:
    return islice((value for piece in source.pieces() for value in piece.values), most)
