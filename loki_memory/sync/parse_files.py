"""Parse files into rows of the index: the slow part of a sync, alone or with a helper process.

Two thirds of a rebuild is parsing and validating in Python, which one process does on one core.
From some thousand files on, a second process takes part: it is sent paths and sends back rows.
"""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any, NamedTuple, Self

from loki_memory.errors import InvalidRecord, StoreFailed
from loki_memory.files.codec import MAX_BYTES, decode_with_document
from loki_memory.files.layout import Layout
from loki_memory.files.problem import Problem, both_changed, secret_problems
from loki_memory.files.redaction import may_hold_secret, redact_value
from loki_memory.files.scan import Stamp
from loki_memory.files.store import Store, Stored, sealed
from loki_memory.index.row import IndexEntry, Row, entry_of
from loki_memory.models import Edge, Memory
from loki_memory.models.field_slips import slips

_MANY = 4000  # from this many files on, a helper saves time; it takes 0.2 s to start
_CHUNK = 200
_AHEAD = 3  # chunks that the helper has in hand

Item = tuple[str, Stamp, str]  # a file's path, its stamp, and the hash of its bytes if it is known


class Reading(NamedTuple):
    """The result of reading one file."""

    path: str
    digest: str  # of its bytes; empty if it could not be read
    entry: IndexEntry | None
    problems: list[Problem]


def read_file(store: Store, path: str, stamp: Stamp, known: str = "") -> Reading | None:
    """Read a file for the index; None if its bytes are those with the hash `known`."""
    found, problem = _stored(store, path, stamp)
    if found is None:
        return Reading(path, "", None, [problem] if problem else [])
    if found.etag == known:
        return None
    fresh = store.fresh.get(path)
    if fresh and fresh.etag == found.etag:
        return Reading(path, found.etag, *_entry(fresh.record, path, fresh.etag))
    return Reading(path, found.etag, *entry_in(path, found))


def _entry(record: Memory, path: str, etag: str) -> tuple[IndexEntry, list[Problem]]:
    """The index entry of a record that the store has just written."""
    document = record.document()
    problems = _slip_problems(path, record)
    if document.get("conflicts"):
        problems.append(both_changed(path, "another place"))
    return entry_of(record, path, document, etag), problems


def _stored(store: Store, path: str, stamp: Stamp) -> tuple[Stored | None, Problem | None]:
    """The file, or the problem of reading it; neither if it is gone again."""
    if stamp[2] > MAX_BYTES:
        reason = f"has {stamp[2]:,} bytes, and {MAX_BYTES:,} is the most"
        advice = "Split it, or keep the bulk in a file of its own and name that file."
        return None, Problem(path, reason, advice=advice)
    try:
        return store.read(path), None
    except StoreFailed as error:
        return None, Problem(path, f"cannot be read ({error.__cause__})")


def entry_in(
    path: str, stored: Stored, *, rekey: bool = False
) -> tuple[IndexEntry | None, list[Problem]]:
    """The index entry of a file. Secrets that somebody wrote by hand are redacted.

    `rekey` gives the record the id that follows from its key instead of its own.
    """
    problems: list[Problem] = []
    try:
        record, document = decode_with_document(path, stored.data)
        if may_hold_secret(stored.data) and redact_value(document) is not document:
            problems = secret_problems(path, stored.data)
            record = sealed(record)[0]
            document = record.document()
        if rekey:
            record = record.changed(id="")
    except InvalidRecord as error:
        return None, [Problem.of(error.at(path))]
    problems += _slip_problems(path, record)
    if document.get("conflicts"):
        problems.append(both_changed(path, "another place"))
    if (
        record.kind == "episode" and "goal" in document
    ):  # a short form that code which reads the JSON does not know
        document = record.document()
    if document.get("id") != record.id and record.keeps_id:
        document = {**document, "id": record.id}
    return entry_of(record, path, document, stored.etag), problems


def _slip_problems(path: str, record: Memory) -> list[Problem]:
    """One problem for each field that was probably meant to be another."""
    return [Problem(path, slip.reason, slip.field, advice=slip.advice) for slip in slips(record)]


def read_files(store: Store, items: Sequence[Item]) -> Iterator[Reading]:
    """Read files, in any order; files whose bytes are known are left out."""
    if len(items) < _MANY or not store.is_on_disk or not _is_help_at_hand():
        yield from _read_here(store, items)
        return
    chunks = deque(items[n : n + _CHUNK] for n in range(0, len(items), _CHUNK))
    with _Helper(store.layout) as helper:
        while chunks or helper.waiting:
            while chunks and helper.alive and len(helper.waiting) < _AHEAD:
                helper.send(chunks.popleft())
            done = helper.take(wait=not chunks)
            if done is not None:
                yield from done
            elif chunks:
                yield from _read_here(store, chunks.pop())
            if not helper.alive:  # the chunks it had are read here
                chunks += helper.waiting
                helper.waiting.clear()


def _is_help_at_hand() -> bool:
    return _cores() > 1 and bool(sys.executable)


def _cores() -> int:
    """Count the cores that this process may use: the machine can have more."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _read_here(store: Store, items: Sequence[Item]) -> Iterator[Reading]:
    for item in items:
        reading = read_file(store, *item)
        if reading is not None:
            yield reading


class _Helper:
    """A process that reads files for this one."""

    def __init__(self, layout: Layout) -> None:
        self.waiting: deque[Sequence[Item]] = deque()
        self.alive = True
        self._done: SimpleQueue[list[Reading] | None] = SimpleQueue()
        package = str(Path(__file__).parents[2])
        code = f"import sys; sys.path.insert(0, {package!r}); from {__name__} import serve; serve()"
        self._process = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._send([str(part) for part in layout])
        Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        self._process.kill()
        self._process.wait()

    def send(self, chunk: Sequence[Item]) -> None:
        self.waiting.append(chunk)
        self._send(list(chunk))

    def _send(self, value: Any) -> None:
        try:
            _write(self._process.stdin, value)  # type: ignore[arg-type]
        except OSError:
            self.alive = False

    def take(self, *, wait: bool) -> list[Reading] | None:
        """The next finished chunk; None if there is none yet, or the helper died."""
        try:
            done = self._done.get(block=wait and bool(self.waiting))
        except Empty:
            return None
        if done is None:
            self.alive = False
            return None
        self.waiting.popleft()
        return done

    def _listen(self) -> None:
        with suppress(OSError, EOFError, ValueError, TypeError):
            while True:
                readings = _read(self._process.stdout)  # type: ignore[arg-type]
                self._done.put([_from_plain(*reading) for reading in readings])
        self._done.put(None)


def serve() -> None:
    """The helper's own loop: chunks of paths in, rows out, until the pipe is closed."""
    root, loki, memory, local, cache = map(Path, _read(sys.stdin.buffer))
    store = Store(Layout(root, loki, memory, local, cache))
    with suppress(EOFError, BrokenPipeError):
        while True:
            items = _read(sys.stdin.buffer)
            _write(sys.stdout.buffer, [_to_plain(r) for r in _read_here(store, items)])


def _to_plain(reading: Reading) -> tuple[Any, ...]:
    """A result as plain tuples: marshal takes no classes, and is five times faster than pickle."""
    path, digest, entry, problems = reading
    plain = None
    if entry is not None:
        edges = [tuple(edge) for edge in entry.edges]
        plain = (tuple(entry.row), entry.source, edges, entry.passages, entry.marks)
    return path, digest, plain, [tuple(problem) for problem in problems]


def _from_plain(path: str, digest: str, plain: Any, problems: list[Any]) -> Reading:
    entry = None
    if plain is not None:
        row, source, edges, *rest = plain
        entry = IndexEntry(Row._make(row), source, [Edge._make(edge) for edge in edges], *rest)
    return Reading(path, digest, entry, [Problem._make(problem) for problem in problems])


def _write(pipe: IO[bytes], value: Any) -> None:
    data = marshal.dumps(value)
    pipe.write(len(data).to_bytes(8, "big") + data)
    pipe.flush()


def _read(pipe: IO[bytes]) -> Any:
    size = pipe.read(8)
    if len(size) < 8:  # noqa: PLR2004
        raise EOFError
    return marshal.loads(pipe.read(int.from_bytes(size, "big")))  # noqa: S302 - our own process
