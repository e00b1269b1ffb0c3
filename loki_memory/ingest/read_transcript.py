"""Reading transcripts into the staging area, from where reading stopped last time.

`end` counts what was read of a source: bytes of a file, rows of a session. A fingerprint of that
part tells whether it is still the same; where it is not, somebody rewrote the source, and it is
read again from its beginning.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

from loki_memory.errors import InvalidRecord
from loki_memory.files.redaction import clip
from loki_memory.ingest.claude_code import ClaudeCode
from loki_memory.ingest.codex import Codex
from loki_memory.ingest.copilot import Copilot
from loki_memory.ingest.gemini import Gemini, project_root
from loki_memory.ingest.json_lines import Piece, Value, opened, pieces
from loki_memory.ingest.opencode import OpenCode, SessionRows, is_session, session_folder
from loki_memory.ingest.qwen import Qwen
from loki_memory.ingest.staging import Staging, Watermark, Watermarks, fingerprint
from loki_memory.ingest.tool_calls import fields_of
from loki_memory.ingest.turns import Dialect, Turn, checked, text_in

# Claude Code is the last: a file of its may begin with any line.
DIALECTS: tuple[type[Dialect], ...] = (Codex, Copilot, Gemini, OpenCode, Qwen, ClaudeCode)
_FIRST = 50  # values among which one names the folder
_KIND = 60  # characters of a type that nobody knows
_UNTOLD = 100  # refused lines of a file that are kept until somebody looks
_AT_ONCE = 2000  # pieces between two marks: what a crash makes us read again


class RefusedLine(NamedTuple):
    """A line that could not be read, or a whole file (line 0), and why."""

    path: str
    line: int
    reason: str


class Read(NamedTuple):
    """New lines of a file: read + refused + waiting = lines."""

    path: str
    lines: int = 0
    read: int = 0
    refused: int = 0
    waiting: int = 0
    reasons: tuple[RefusedLine, ...] = ()
    unknown: tuple[tuple[str, int], ...] = ()  # types of lines that no dialect knows, how often
    sessions: tuple[str, ...] = ()  # all that the file holds
    was_rewritten: bool = False


class _Batch:
    """Pieces that are staged together, and then marked as read."""

    def __init__(self, dialect: Dialect | None, mark: Watermark) -> None:
        self.dialect = dialect
        self.mark = mark
        self.turns: list[Turn] = []
        self.counts: Counter[str] = Counter()
        self.reasons: list[RefusedLine] = []
        self.unknown: Counter[str] = Counter()
        self.sessions = dict.fromkeys(mark.sessions)
        self.is_again = mark.end == 0 and bool(mark.sessions)  # the file was read before

    def take(self, piece: Piece) -> None:
        self.counts["lines"] += piece.lines
        if piece.waits:
            self.counts["waiting"] += piece.lines
            return
        self.mark = self.mark._replace(end=piece.end, line=piece.line + piece.lines - 1)
        if piece.refused:
            self.counts["refused"] += piece.lines
            self.reasons.append(RefusedLine(self.mark.path, piece.line, piece.refused))
            return
        reasons = list(filter(None, map(self._refused, piece.values)))
        self.counts["refused" if reasons else "read"] += piece.lines
        self.reasons += [RefusedLine(self.mark.path, piece.line, reason) for reason in reasons]

    def _refused(self, value: Value) -> str:
        """Take the turns of a value; why it is refused, empty if it is not."""
        try:
            kind = text_in(value, "type")
            turns = self.dialect.turns(value) if self.dialect else None
            found = None if turns is None else [checked(turn) for turn in turns]
        except InvalidRecord as error:
            return f"cannot be read ({' '.join(filter(None, (error.field, error.reason)))})"
        if found is None:
            self.unknown[clip(kind, _KIND) or "no type"] += 1
            return ""
        self.turns += found
        self.sessions.update(dict.fromkeys(turn.session for turn in found))
        return ""


def read(
    path: Path,
    staging: Staging,
    marks: Watermarks,
    dialects: Sequence[type[Dialect]] = DIALECTS,
    *,
    in_background: bool = False,
) -> Read:
    """Stage what a transcript holds that was not read yet. Raises OSError, EOFError.

    Lines that are refused in the background, where nobody looks, are kept in the mark and told of
    by the next run in the foreground.
    """
    mark = marks.of(path)
    with open_source(path) as source:
        size, changed = source.state()
        if mark.fits(size, changed):
            return _known(mark, marks, in_background=in_background)
        start = _start(source, mark)
        batch = _Batch(_dialect(path, source, dialects), start)
        for number, piece in enumerate(source.pieces(start.end, start.line), 1):
            batch.take(piece)
            if number % _AT_ONCE == 0:
                _stage(batch, staging)
                if path.suffix != ".gz":  # to look back in it means to unpack it again
                    _mark(batch, source, marks)
        batch.mark = batch.mark._replace(
            size=size,
            changed=changed,
            waiting=batch.counts["waiting"],
            refused=_untold(mark, batch) if in_background else [],
        )
        _stage(batch, staging)
        _mark(batch, source, marks)
    found = _told(batch, was_rewritten=start.end < mark.end)
    return found._replace(reasons=(*_refused_before(mark), *found.reasons))


def _known(mark: Watermark, marks: Watermarks, *, in_background: bool) -> Read:
    """A file in which nothing is new."""
    if mark.refused and not in_background:
        marks.set(mark._replace(refused=[]))
    return Read(mark.path, sessions=tuple(mark.sessions), reasons=_refused_before(mark))


def _refused_before(mark: Watermark) -> tuple[RefusedLine, ...]:
    return tuple(RefusedLine(mark.path, line, reason) for line, reason in mark.refused)


def _untold(mark: Watermark, batch: _Batch) -> list[list[Any]]:
    new = [[refused.line, refused.reason] for refused in batch.reasons]
    return [*mark.refused, *new][:_UNTOLD]


def _dialect(path: Path, source: Source, dialects: Sequence[type[Dialect]]) -> Dialect | None:
    """The dialect in which a session is written, as its first value tells.

    A dialect is told the session's folder too, where that stands beside the file.
    """
    first = next(first_values(source, 1), {})
    if root := project_root(path):
        first = {"cwd": root, **first}
    return next((found for dialect in dialects if (found := dialect.reading(first))), None)


def _start(source: Source, mark: Watermark) -> Watermark:
    """The mark, if the source still begins as it did; else its beginning."""
    if mark.end and source.fingerprint(mark.end) != mark.print:
        return Watermark(mark.path, sessions=mark.sessions)
    return mark


def _stage(batch: _Batch, staging: Staging) -> None:
    staging.add(batch.turns, anew=batch.is_again)
    batch.turns = []


def _mark(batch: _Batch, source: Source, marks: Watermarks) -> None:
    """Move the mark; what stands before it is staged."""
    batch.mark = batch.mark._replace(
        print=source.fingerprint(batch.mark.end), sessions=list(batch.sessions)
    )
    marks.set(batch.mark)


def _told(batch: _Batch, *, was_rewritten: bool) -> Read:
    return Read(
        batch.mark.path,
        batch.counts["lines"],
        batch.counts["read"],
        batch.counts["refused"],
        batch.counts["waiting"],
        tuple(batch.reasons),
        tuple(sorted(batch.unknown.items())),
        tuple(batch.sessions),
        was_rewritten,
    )


def first_folder(path: Path) -> str:
    """The folder in which a session began, if one of its first values or a file beside it says so.

    Raises OSError.
    """
    if is_session(path):
        return session_folder(path)
    if root := project_root(path):
        return root
    with open_source(path) as source:
        return next(filter(None, map(_folder, first_values(source, _FIRST))), "")


def _folder(value: Value) -> str:
    """The folder that a value names: at its top, or where Codex and Copilot put it."""
    places = (value, fields_of(value, "payload"), fields_of(fields_of(value, "data"), "context"))
    found = (place.get("cwd") for place in places)
    return next((cwd for cwd in found if isinstance(cwd, str) and cwd), "")


# -- sources: a file of JSON lines, or the rows of a client's database -----------------------------


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
