"""The write log: every write of a record is noted in a hash chain, so that other changes show.

One chain per writer, which is one memory folder on one machine. It is in the local zone and grows
by a line for each write while the store is held: the operation, the path, and the hash of the
content before and after. The append is not flushed: a crash may lose the last lines, and their
records are then reported as not witnessed.

`publish` copies the new lines into `memory/witness/<writer>/`, in a file that is never
changed again: two branches of one writer publish files of different names, and merge without
conflict.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Literal, NamedTuple

import orjson

from loki_memory.files import disk
from loki_memory.files.layout import ARCHIVE, PRIVATE, Layout, chain_path, kind_of
from loki_memory.models.ids import encode

LOCAL = "local/witness/"  # the prefix for chains of this machine
_LONGEST_LINE = 1 << 13  # the longest path that Linux knows is half of it
_BROKEN = ".broken"  # suffix of a chain that was abandoned


class WriteNote(NamedTuple):
    """The content of a line: hashes of the file now and before, empty for no file."""

    op: Op
    path: str
    now: str
    was: str


def of_write(path: str, data: bytes | None, before: bytes | None) -> WriteNote:
    """The note for a write by the store."""
    op: Op = "remove" if data is None else "put"
    return WriteNote(op, path, content_hash(data), content_hash(before))


def is_witnessed(path: str) -> bool:
    """Check if writes to this path are noted: records and archived ones, not private ones."""
    return not path.startswith(PRIVATE) and kind_of(path.removeprefix(ARCHIVE)) is not None


# -- writing -------------------------------------------------------------------------------------


def note(layout: Layout, notes: Sequence[WriteNote]) -> None:
    """Add lines to the chain of this folder. The caller holds the store.

    Never fails: `verify` reports a record that is stored and not witnessed.
    """
    if not notes:
        return
    path = chain_path(layout)
    with suppress(OSError):
        try:
            _append(path, notes)
        except FileNotFoundError:
            disk.make_folder(os.path.dirname(path))
            _append(path, notes)
        except ValueError:  # the last line is damaged
            _set_aside(path)
            _append(path, notes)


def _append(path: str, notes: Iterable[WriteNote]) -> None:
    """Write lines in one go; raises ValueError if the chain's last line is damaged."""
    fd = disk.open_to_change(path, append=True)
    try:
        os.write(fd, b"".join(_continued(_last_line(fd), notes)))
    finally:
        os.close(fd)


def _continued(tail: bytes, notes: Iterable[WriteNote]) -> Iterator[bytes]:
    writer, seq = head(tail) if tail else (f"w-{encode(os.urandom(8), 10)}", 0)
    for number, note in enumerate(notes, seq + 1):
        prev = line_hash(tail) if tail else ""
        tail = LogLine(note.op, note.path, prev, number, note.now, note.was, writer).encoded()
        yield tail + b"\n"


def _last_line(fd: int) -> bytes:
    """The chain's last line; a torn line that a crash left is cut off."""
    start = max(0, os.fstat(fd).st_size - _LONGEST_LINE)
    os.lseek(fd, start, os.SEEK_SET)
    data = os.read(fd, _LONGEST_LINE)
    end = data.rfind(b"\n") + 1
    if end < len(data):
        os.ftruncate(fd, start + end)
    return data[: max(0, end - 1)].rpartition(b"\n")[2]


def _set_aside(path: str, suffix: str = "") -> None:
    """Rename a chain; the next write begins a new one."""
    stem, number = path.removesuffix(".jsonl"), 1
    while os.path.lexists(aside := f"{stem}~{number}.jsonl{suffix}"):
        number += 1
    disk.move(path, aside)


def give_up(layout: Layout, names: Iterable[str]) -> None:
    """Stop reading broken chains of the local zone; they are kept beside the others."""
    for name in names:
        with suppress(FileNotFoundError):
            _set_aside(f"{layout.local}/witness/{name.removeprefix(LOCAL)}", _BROKEN)


# -- publishing ----------------------------------------------------------------------------------


def publish(layout: Layout, write: Callable[[str, bytes], None]) -> str:
    """Copy the new lines of this folder's chain to a tracked file; for foreground commits.

    Returns the chain's head, `<writer>:<seq>:<hash>`, for the commit's trailer `Loki-Head`; empty
    if there is no chain, or it is broken. `write` puts a file below the memory folder.
    """
    path = chain_path(layout)
    raw = split(disk.read_bytes(path) or b"")
    last = parsed(raw[-1]) if raw else None
    if last is None or last.seq != len(raw):
        return ""
    start = _published_until(layout, last.writer, raw)
    new = read("", raw[max(0, start - 1) :])
    if new.breaks:
        return ""
    if start < len(raw):
        _flush(path)  # published lines are never ahead of the chain itself
        name = Segment.of(new.entries[start > 0 :]).name()
        write(f"{PUBLISHED}{last.writer}/{name}", b"\n".join([*raw[start:], b""]))
    return f"{last.writer}:{last.seq}:{new.entries[-1].hash}"


def _published_until(layout: Layout, writer: str, raw: Sequence[bytes]) -> int:
    """The number of lines, from the first on, that are published already."""
    until = 0
    for name in _names(layout.file(f"{PUBLISHED}{writer}")):
        named = Segment.named(name)
        if named is None or not named.first <= until + 1 <= named.last <= len(raw):
            continue
        if line_hash(raw[named.last - 1]).startswith(named.hash):
            until = named.last
    return until


def _flush(path: str) -> None:
    fd = disk.open_to_change(path)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# -- reading -------------------------------------------------------------------------------------


def testimony(layout: Layout) -> Testimony:
    """Read the chains of this machine and the published ones. Raises OSError."""
    here = f"{layout.local}/witness"
    ours = {f"{LOCAL}{name}": _lines(f"{here}/{name}") for name in _names(here)}
    top = layout.file(PUBLISHED.rstrip("/"))
    published = {
        f"{PUBLISHED}{writer}/{name}": _lines(f"{top}/{writer}/{name}")
        for writer in _folders(top)
        for name in _names(f"{top}/{writer}")
    }
    chains = [read(name, raw) for name, raw in (ours | published).items()]
    own = os.path.basename(chain_path(layout)).removesuffix(".jsonl")
    return Testimony(chains, LOCAL + own)


def own_chains(layout: Layout) -> Iterator[LogLine]:
    """The lines of all chains that worktrees of this clone wrote; unreadable ones are left out."""
    here = f"{layout.local}/witness"
    for name in _names(here):
        with suppress(OSError):
            yield from filter(None, map(parsed, _lines(f"{here}/{name}")))


def _lines(path: str) -> list[bytes]:
    return split(disk.read_bytes(path) or b"")


def _names(folder: str) -> list[str]:
    """The chain files in a folder; links and other files are none of ours."""
    if not os.path.isdir(folder) or os.path.islink(folder):
        return []
    return sorted(
        entry.name
        for entry in os.scandir(folder)
        if entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False)
    )


def _folders(folder: str) -> list[str]:
    if not os.path.isdir(folder) or os.path.islink(folder):
        return []
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))


# -- the chain: parse its lines, and find where it does not hold -----------------------------------


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
