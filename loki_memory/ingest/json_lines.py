"""The lines of a transcript: JSON values, read from a file that may still be growing.

Usually a value is a line. Agents that were killed or ran twice also leave several values glued on
one line, and some tools write one value over many lines (it opens with a bare bracket and closes
with one in the first column). What is none of these is refused with its reason and the next line is
read. The last line, while it has no end and makes no sense, waits: somebody is writing it. Half a
surrogate pair, which no file can hold, is read as U+FFFD.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import orjson

LONGEST = 16 << 20  # bytes of a value: a screenshot has a few millions, and one is held in memory
_SKIPPED = 1 << 20  # bytes at once of a line that is too long
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_BROKEN = (EOFError, zlib.error, gzip.BadGzipFile)  # a compressed file that was cut or damaged
_MARK = b"\xef\xbb\xbf"  # that some editors put first
_OPENING = {b"{", b"["}
_GAP = re.compile(r"[ \t\r\n]*")
# An escape in JSON; group 1 is half of a surrogate pair whose other half is not beside it.
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)

Value = dict[str, Any]


class Piece(NamedTuple):
    """One line, or the lines of one value: what it holds, why it was refused, or that it waits."""

    line: int  # the number of its first line
    lines: int  # that hold something
    end: int  # the byte after it
    values: tuple[Value, ...] = ()
    refused: str = ""
    waits: bool = False


class _Line(NamedTuple):
    number: int
    end: int
    data: bytes
    is_whole: bool  # it has an end
    is_long: bool  # too long to be held
    broken: str = ""  # why nothing can be read from here on


def opened(path: Path) -> IO[bytes]:
    """A transcript as plain bytes, also if it is compressed. Raises OSError for what is no file."""
    file = open(path, "rb", opener=_regular)  # noqa: SIM115 - the caller closes it
    return cast("IO[bytes]", _Unpacked(file)) if path.suffix == ".gz" else file


def _regular(path: str, flags: int) -> int:
    """Open a regular file: a pipe would be waited for, and a device has no end."""
    descriptor = os.open(path, flags | _NONBLOCK)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file", path)


class _Unpacked(gzip.GzipFile):
    """A compressed file that closes the file below it too."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(fileobj=file, mode="rb")
        self._file = file

    def close(self) -> None:
        super().close()
        self._file.close()


def pieces(stream: IO[bytes], start: int = 0, line: int = 0) -> Iterator[Piece]:
    """Yield what a stream holds from a byte on; `line` lines stand before it."""
    stream.seek(start)
    spread: list[_Line] = []  # the lines of a value that is not complete yet
    size = 0  # of them
    for entry in _lines(stream, start, line):
        text = entry.data.removeprefix(_MARK).strip()
        if spread and (entry.data[:2] == b'{"' or size > LONGEST or entry.broken):
            yield from (_refused(early, "is part of no value") for early in spread)
            spread, size = [], 0
        if spread or (text in _OPENING and entry.is_whole):
            spread.append(entry)
            size += len(entry.data)
            if len(spread) > 1 and entry.data[:1] in {b"}", b"]"}:
                yield _joined(spread)
                spread, size = [], 0
        elif text or entry.is_long or entry.broken:
            yield _piece(entry, text)
    if spread:
        count = sum(1 for entry in spread if entry.data.strip())
        yield Piece(spread[0].number, count, spread[0].end - len(spread[0].data), waits=True)


def _lines(stream: IO[bytes], at: int, number: int) -> Iterator[_Line]:
    try:
        for line in _whole_lines(stream, at, number):
            yield line
            at, number = line.end, line.number
    except _BROKEN as error:
        reason = f"and what follows cannot be unpacked ({error})"
        yield _Line(number + 1, at, b"", is_whole=True, is_long=False, broken=reason)


def _whole_lines(stream: IO[bytes], at: int, number: int) -> Iterator[_Line]:
    while data := stream.readline(LONGEST + 1):
        number += 1
        at += len(data)
        is_whole, is_long = data.endswith(b"\n"), len(data) > LONGEST
        while is_long and not is_whole and (rest := stream.readline(_SKIPPED)):
            at += len(rest)
            is_whole = rest.endswith(b"\n")
        yield _Line(number, at, b"" if is_long else data, is_whole, is_long)


def _refused(line: _Line, reason: str) -> Piece:
    is_something = bool(line.data.strip() or line.is_long or line.broken)
    return Piece(line.number, int(is_something), line.end, (), reason)


def _piece(line: _Line, text: bytes) -> Piece:
    if line.broken:
        return _refused(line, line.broken)
    if line.is_long:
        return _refused(line, f"is longer than {LONGEST >> 20} MB")
    values, reason = decoded(text)
    if reason and not line.is_whole:
        return Piece(line.number, 1, line.end - len(line.data), waits=True)
    return Piece(line.number, 1, line.end, values, reason)


def _joined(lines: list[_Line]) -> Piece:
    values, reason = decoded(b"".join(line.data for line in lines).removeprefix(_MARK))
    count = sum(1 for line in lines if line.data.strip())
    return Piece(lines[0].number, count, lines[-1].end, values, reason)


def decoded(text: bytes) -> tuple[tuple[Value, ...], str]:
    """The objects that a text holds; or nothing, and why."""
    try:
        return _objects([orjson.loads(text)])
    except orjson.JSONDecodeError:
        pass
    try:
        return _objects(_glued(_with_whole_characters(text.decode())))
    except UnicodeDecodeError:
        return (), "is not UTF-8"
    except RecursionError:
        return (), "is nested too deeply"
    except ValueError as error:
        return (), f"is not JSON ({str(error).partition(':')[0]})"


def _with_whole_characters(text: str) -> str:
    """JSON in which half a surrogate pair is spelled as the character that stands for such."""
    return _ESCAPE.sub(lambda found: "\\ufffd" if found[1] else found[0], text)


def _glued(text: str) -> list[Any]:
    """Values that follow each other."""
    decoder, at, found = json.JSONDecoder(), _after_gap(text, 0), []
    while at < len(text):
        value, end = decoder.raw_decode(text, at)
        found.append(value)
        at = _after_gap(text, end)
    return found


def _after_gap(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at


def _objects(values: list[Any]) -> tuple[tuple[Value, ...], str]:
    flat = [entry for value in values for entry in (value if isinstance(value, list) else [value])]
    if not flat or not all(isinstance(entry, dict) for entry in flat):
        return (), "is no JSON object"
    return tuple(flat), ""
