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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from loki_memory.files import disk
from loki_memory.files.layout import ARCHIVE, PRIVATE, Layout, chain_path, kind_of
from loki_memory.integrity import hash_chain
from loki_memory.integrity.hash_chain import (
    PUBLISHED,
    LogLine,
    Op,
    Segment,
    Testimony,
    content_hash,
)
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
    writer, seq = hash_chain.head(tail) if tail else (f"w-{encode(os.urandom(8), 10)}", 0)
    for number, note in enumerate(notes, seq + 1):
        prev = hash_chain.line_hash(tail) if tail else ""
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
    raw = hash_chain.split(disk.read_bytes(path) or b"")
    last = hash_chain.parsed(raw[-1]) if raw else None
    if last is None or last.seq != len(raw):
        return ""
    start = _published_until(layout, last.writer, raw)
    new = hash_chain.read("", raw[max(0, start - 1) :])
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
        if hash_chain.line_hash(raw[named.last - 1]).startswith(named.hash):
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
    chains = [hash_chain.read(name, raw) for name, raw in (ours | published).items()]
    own = os.path.basename(chain_path(layout)).removesuffix(".jsonl")
    return Testimony(chains, LOCAL + own)


def own_chains(layout: Layout) -> Iterator[LogLine]:
    """The lines of all chains that worktrees of this clone wrote; unreadable ones are left out."""
    here = f"{layout.local}/witness"
    for name in _names(here):
        with suppress(OSError):
            yield from filter(None, map(hash_chain.parsed, _lines(f"{here}/{name}")))


def _lines(path: str) -> list[bytes]:
    return hash_chain.split(disk.read_bytes(path) or b"")


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
