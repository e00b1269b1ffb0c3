"""Hash chains: parse their lines, and find where they do not hold.

A line names the hash of the line before it, so that none can be changed, removed or moved without
a break beside it. A line next to a break vouches for nothing: which of the two is wrong cannot be
known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Literal, NamedTuple

import orjson

PUBLISHED = "witness/"  # the folder of published chains, with a folder per writer
Op = Literal["put", "remove", "adopt"]
_HASH = rb'"(?:[0-9a-f]{64})?"'
_LINE = re.compile(
    rb'\{"op":"(?:put|remove|adopt)","path":"[^"\\]*(?:\\.[^"\\]*)*","prev":%b,'
    rb'"seq":[1-9]\d{0,14},"sha256":%b,"was":%b,"writer":"w-[0-9a-z]{10}"\}' % (_HASH, _HASH, _HASH)
)
_SHORT = 10  # characters of a hash in a file name
_SEGMENT = re.compile(rf"(?:.*/)?(\d+)-(\d+)-([0-9a-f]{{{_SHORT}}})\.jsonl")


class LogLine(NamedTuple):
    """One line of a chain, its fields in the order in which they are written."""

    op: Op
    path: str
    prev: str  # hash of the line before; empty in the first
    seq: int  # from 1
    sha256: str  # of the content after the write; empty if there is none
    was: str  # of the content before the write; empty if there was none
    writer: str

    def encoded(self) -> bytes:
        return orjson.dumps(self._asdict())


class LogEntry(NamedTuple):
    """A line, its own hash, and whether it is sound: not beside a break."""

    line: LogLine
    hash: str
    sound: bool


class Break(NamedTuple):
    """A place where a chain does not hold, and the records of the lines there."""

    file: str
    number: int  # of the line in its file
    reason: str
    paths: tuple[str, ...] = ()


class Chain(NamedTuple):
    """A file of lines: those that can be parsed, and its breaks."""

    file: str
    entries: list[LogEntry]
    breaks: list[Break]


class Segment(NamedTuple):
    """The numbers and hash in the name of a published file."""

    first: int
    last: int
    hash: str  # the first characters of the last line's

    @classmethod
    def named(cls, path: str) -> Segment | None:
        found = _SEGMENT.fullmatch(path)
        return cls(int(found[1]), int(found[2]), found[3]) if found else None

    @classmethod
    def of(cls, entries: Sequence[LogEntry]) -> Segment:
        return cls(entries[0].line.seq, entries[-1].line.seq, entries[-1].hash[:_SHORT])

    def name(self) -> str:
        return f"{self.first:08}-{self.last:08}-{self.hash}.jsonl"


def content_hash(data: bytes | None) -> str:
    """The hash of a file's content; empty for no file. Git may have changed the line ends."""
    return "" if data is None else sha256(data.replace(b"\r\n", b"\n")).hexdigest()


def line_hash(raw: bytes) -> str:
    return sha256(raw).hexdigest()


def split(data: bytes) -> list[bytes]:
    """Split a file into lines; bytes after the last line feed are no line."""
    return data.replace(b"\r\n", b"\n").split(b"\n")[:-1]


def parsed(raw: bytes) -> LogLine | None:
    """Parse a line; None unless it is written exactly as we write it."""
    if not _LINE.fullmatch(raw):
        return None
    try:
        line = LogLine(**orjson.loads(raw))
    except ValueError:  # its path is no text
        return None
    return line if line.op == "adopt" or (line.op == "put") == bool(line.sha256) else None


def head(raw: bytes) -> tuple[str, int]:
    """The writer and number of a chain's last line, without a full parse; or ValueError."""
    try:
        line = orjson.loads(raw)
        return str(line["writer"]), int(line["seq"])
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from None


def read(file: str, raw: Sequence[bytes]) -> Chain:
    """Parse the chain in a file, and compare each line with the one before it."""
    lines = [parsed(line) for line in raw]
    hashes = [line_hash(line) for line in raw]
    breaks: list[Break] = []
    beside: set[int] = set()
    for at, line in enumerate(lines):
        reason = _wrong(lines[at - 1], hashes[at - 1], line) if at else _wrong(line, "", line)
        if reason:
            beside |= {at - 1, at}
            paths = (near.path for near in lines[max(0, at - 1) : at + 1] if near)
            breaks.append(Break(file, at + 1, reason, tuple(dict.fromkeys(paths))))
    entries = [
        LogEntry(line, hashes[at], at not in beside) for at, line in enumerate(lines) if line
    ]
    return Chain(file, entries, breaks)


def _wrong(before: LogLine | None, before_hash: str, line: LogLine | None) -> str:
    """The fault between two lines; a line that is compared with itself is the first."""
    if line is None:
        return "cannot be read"
    if before is None:
        return "follows a line that cannot be read"
    if before is line:
        return ""
    if line.seq != before.seq + 1:
        return f"is number {line.seq} after {before.seq}: lines are missing or out of order"
    if line.prev != before_hash:
        return "does not follow from the line before it: one of the two was changed"
    return "" if line.writer == before.writer else "is another writer's"


class Testimony:
    """The statements of all chains about each path."""

    def __init__(self, chains: Sequence[Chain], own: str = "") -> None:
        """`own` is the file name, without its ending, of the chains that were written here."""
        self.chains = chains
        self.hashes = {entry.hash for chain in chains for entry in chain.entries}
        self.breaks = [found for chain in chains for found in (*chain.breaks, *self._ends(chain))]
        self.breaks += _cut(chains, f"{own}.jsonl")
        self.own: set[str] = set()  # writers
        self.vouched: dict[str, dict[str, LogLine]] = {}  # path -> hash of content -> its line
        self.latest: dict[str, dict[str, LogLine]] = {}  # path -> writer -> its newest line
        for chain in chains:
            lines = [entry.line for entry in chain.entries if entry.sound]
            self._add(lines)
            if chain.file.partition(".")[0].partition("~")[0] == own:
                self.own |= {line.writer for line in lines}

    def _add(self, lines: Iterable[LogLine]) -> None:
        for line in lines:
            if line.sha256:
                self.vouched.setdefault(line.path, {})[line.sha256] = line
            newest = self.latest.setdefault(line.path, {})
            if line.writer not in newest or newest[line.writer].seq <= line.seq:
                newest[line.writer] = line

    def _ends(self, chain: Chain) -> list[Break]:
        """Check the ends: a chain begins with number 1, or follows a line of another file; a
        published file has the lines of its name.
        """
        published = chain.file.startswith(PUBLISHED)
        if not chain.entries:
            return [Break(chain.file, 1, "holds no line")] if published else []
        first, last = chain.entries[0].line, chain.entries[-1].line
        follows = first.seq == 1 if not first.prev else published and first.prev in self.hashes
        named, is_ = Segment.named(chain.file), Segment.of(chain.entries)
        found = []
        if not follows or (published and named and named.first != is_.first):
            reason = f"is number {first.seq}, and lines before it are not here"
            found.append(Break(chain.file, 1, reason, (first.path,)))
        if published and (named is None or named[1:] != is_[1:]):
            reason = "is not the last line in the file's name"
            found.append(Break(chain.file, len(chain.entries), reason, (last.path,)))
        return found

    def __len__(self) -> int:
        return len(self.hashes)

    def last_good(self, path: str) -> LogLine | None:
        """The newest line about a path; lines that were written here come first."""
        lines = self.latest.get(path, {}).values()
        return max(lines, key=lambda line: (line.writer in self.own, line.seq), default=None)


def _cut(chains: Iterable[Chain], own: str) -> list[Break]:
    """Check if the chain that is written here lacks lines that it had published."""
    last = next(
        (chain.entries[-1].line for chain in chains if chain.file == own and chain.entries), None
    )
    if last is None:
        return []
    published = (chain for chain in chains if chain.file.startswith(f"{PUBLISHED}{last.writer}/"))
    lines = (entry.line for chain in published for entry in chain.entries)
    lost = [line for line in lines if line.seq > last.seq]
    if not lost:
        return []
    reason = f"is the last, and {max(line.seq for line in lost)} were published"
    return [Break(own, last.seq, reason, tuple(dict.fromkeys(line.path for line in lost)))]
