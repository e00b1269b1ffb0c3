"""Reading transcripts into the staging area, from where reading stopped last time."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from loki_memory.errors import InvalidRecord
from loki_memory.files.redaction import clip
from loki_memory.ingest.claude_code import ClaudeCode
from loki_memory.ingest.codex import Codex
from loki_memory.ingest.json_lines import Piece, Value, opened, pieces
from loki_memory.ingest.staging import Staging, Watermark, Watermarks, fingerprint
from loki_memory.ingest.turns import Dialect, Turn, checked, text_in

DIALECTS: tuple[type[Dialect], ...] = (ClaudeCode, Codex)
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
    """What a file held that was new: read + refused + waiting = lines."""

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
    status = os.stat(path)
    mark = marks.of(path)
    if mark.fits(status):
        return _known(mark, marks, in_background=in_background)
    with opened(path) as stream:
        start = _start(stream, mark)
        batch = _Batch(_dialect(stream, dialects), start)
        for number, piece in enumerate(pieces(stream, start.end, start.line), 1):
            batch.take(piece)
            if number % _AT_ONCE == 0:
                _stage(batch, staging)
                if path.suffix != ".gz":  # to look back in it means to unpack it again
                    _mark(batch, stream, marks)
        batch.mark = batch.mark._replace(
            size=status.st_size,
            changed=status.st_mtime_ns,
            waiting=batch.counts["waiting"],
            refused=_untold(mark, batch) if in_background else [],
        )
        _stage(batch, staging)
        _mark(batch, stream, marks)
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


def _dialect(stream: IO[bytes], dialects: Sequence[type[Dialect]]) -> Dialect | None:
    """The dialect in which a file is written, as its first value tells."""
    first = next(_values(stream, 1), {})
    return next((found for one in dialects if (found := one.reading(first))), None)


def _start(stream: IO[bytes], mark: Watermark) -> Watermark:
    """The mark, if the file still begins as it did; else its beginning."""
    if mark.end and fingerprint(stream, mark.end) != mark.print:
        return Watermark(mark.path, sessions=mark.sessions)
    return mark


def _stage(batch: _Batch, staging: Staging) -> None:
    staging.add(batch.turns, anew=batch.is_again)
    batch.turns = []


def _mark(batch: _Batch, stream: IO[bytes], marks: Watermarks) -> None:
    """Move the mark; what stands before it is staged."""
    here = stream.tell()
    batch.mark = batch.mark._replace(
        print=fingerprint(stream, batch.mark.end), sessions=list(batch.sessions)
    )
    stream.seek(here)
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
    """The folder in which a transcript's session began, if one of its first values says so."""
    with opened(path) as stream:
        for value in _values(stream, _FIRST):
            about = value.get("payload")
            cwd = (about if isinstance(about, dict) else value).get("cwd")
            if isinstance(cwd, str) and cwd:
                return cwd
    return ""


def _values(stream: IO[bytes], most: int) -> Iterator[Value]:
    """The first values of a stream."""
    yield from islice((value for piece in pieces(stream) for value in piece.values), most)
