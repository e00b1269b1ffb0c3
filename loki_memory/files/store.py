"""The store: every change of memory goes through here, and is on disk when it returns.

One lock per store, on the memory folder itself, held for milliseconds. A single file is written
beside, flushed and replaced; several files go through a transaction. Equal content is not written.
This is the one place where secrets are redacted and rejected values refused. Reading takes no lock.
"""

from __future__ import annotations

import math
import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from loki_memory.errors import (
    FileChanged,
    IdTaken,
    InvalidRecord,
    LinkRefused,
    RejectedValue,
    StoreFailed,
)
from loki_memory.files import disk, transaction, workspace_trust
from loki_memory.files.codec import decode, encode_checked
from loki_memory.files.layout import PRIVATE, Layout, place
from loki_memory.files.lock import locked_folder
from loki_memory.files.redaction import (
    impersonal_value,
    may_hold_personal_data,
    may_hold_secret,
    redact_value,
)
from loki_memory.files.scan import etag
from loki_memory.integrity import write_log
from loki_memory.models import Memory, Tombstone, parse, tombstone_id
from loki_memory.models.rejected import parts, value_id, without_rejected

_MINTED = re.compile(r"-[0-9a-hjkmnp-tv-z]{10}\Z")  # as ids of ours end, in small letters
# Kinds that say something; an episode tells what happened.
_ADMITTED = frozenset({"fact", "pattern", "anti-pattern", "learning", "skill"})
_STONE_FOLDERS = ("semantic/rejected", PRIVATE + "semantic/rejected")


class Stored(NamedTuple):
    """A file's content and its etag."""

    data: bytes
    etag: str


class Fresh(NamedTuple):
    """A record that was just written, and the etag of its file."""

    record: Memory
    etag: str


class Store:
    """The memory files of one workspace."""

    def __init__(self, layout: Layout, lock_seconds: float = 10) -> None:
        self.layout = layout
        self.lock_seconds = lock_seconds
        self._stones: dict[str, tuple[int, dict[str, Tombstone]]] = {}
        self.rendered: dict[str, list[int]] = {}  # stamps of views that are known to be as rendered
        self.written: set[str] = set()  # paths, since a caller last took them
        self.fresh: dict[str, Fresh] = {}  # by path, the records of the last change

    def read(self, path: str) -> Stored | None:
        """The file at a record's path; None if there is none. A failure is never "none"."""
        data = self.data(path)
        return None if data is None else Stored(data, etag(data))

    def data(self, path: str) -> bytes | None:
        """The same without its etag."""
        try:
            return disk.read_bytes(self.layout.file(path))
        except OSError as error:
            raise _store_failed(error, path) from error

    def derived(self, path: str) -> bytes | None:
        """The content of a file that can be made again: a link in its place is no file."""
        try:
            return disk.read_derived(self.layout.file(path))
        except OSError as error:
            raise _store_failed(error, path) from error

    def record(self, path: str) -> Memory | None:
        """The record at a path; None if there is no such file."""
        found = self.read(path)
        return None if found is None else decode(path, found.data)

    def stones(self) -> dict[str, Tombstone]:
        """Tombstones by the paths of their files; cached until their folder changes."""
        found: dict[str, Tombstone] = {}
        for folder in _STONE_FOLDERS:
            path = self.layout.file(folder)
            try:
                mtime = os.stat(path).st_mtime_ns
            except OSError:
                continue
            known = self._stones.get(folder)
            if known is None or known[0] != mtime:
                known = self._stones[folder] = (mtime, self._read_stones(folder))
            found |= known[1]
        return found

    def _read_stones(self, folder: str) -> dict[str, Tombstone]:
        stones: dict[str, Tombstone] = {}
        for name in sorted(os.listdir(self.layout.file(folder))):
            if name.endswith(".json") and name[0] != ".":
                with suppress(InvalidRecord, StoreFailed):
                    stone = self.record(f"{folder}/{name}")
                    if isinstance(stone, Tombstone):
                        stones[f"{folder}/{name}"] = stone
        return stones

    @contextmanager
    def change(self, seconds: float | None = None) -> Iterator[Change]:
        """Hold the store, collect changes, and make all of them at the end.

        Nothing is written if the block raises.
        """
        wait = self.lock_seconds if seconds is None else seconds
        with failures_named(self.layout.memory):
            disk.make_folder(self.layout.memory)
            disk.refuse_if_read_only(self.layout.memory)
            with locked_folder(self.layout.memory, wait, else_file=self.layout.cache / "lock"):
                workspace_trust.note_undecided(self.layout)
                transaction.heal(self.layout)
                change = Change(self)
                yield change
                change.commit()

    def publish_writes(self) -> str:
        """Copy new lines of the write log to a tracked file; returns the head of its chain."""

        def write(path: str, data: bytes) -> None:
            with self.change() as change:
                change.render(path, data)

        return write_log.publish(self.layout, write)

    def write(self, record: Memory, path: str = "", if_match: str | None = None) -> Memory:
        """Write one record and return it as it was stored."""
        with self.change() as change:
            return change.put(record, path, if_match=if_match)

    def remove(self, path: str, if_match: str | None = None) -> None:
        with self.change() as change:
            change.remove(path, if_match=if_match)


class Change:
    """Changes that are collected while the store is held."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._before: dict[str, Stored | None] = {}
        self._writes: dict[str, bytes | None] = {}
        self._names: dict[
            str, dict[str, str]
        ] = {}  # of files by folder, as small letters spell them
        self._records: dict[str, Memory] = {}  # by path, records that equal their files

    def read(self, path: str) -> Stored | None:
        """The file as it will be after the changes so far."""
        if path in self._writes:
            data = self._writes[path]
            return None if data is None else Stored(data, etag(data))
        return self._current(path)

    def _current(self, path: str) -> Stored | None:
        if path not in self._before:
            self._before[path] = self._store.read(path)
        return self._before[path]

    def record(self, path: str) -> Memory | None:
        found = self.read(path)
        return None if found is None else decode(path, found.data)

    def create(self, record: Memory, path: str = "") -> Memory:
        """Write a record that must not overwrite another one; the same one again is no error."""
        record, data = sealed(record)
        path = path or place(record)
        there = self.read(path)
        if there is not None and there.data != data:
            return self._same(record, decode(path, there.data), path)
        self.admit(record)
        if there is None:
            self._refuse_twin(record, path)
            self._set(path, data)
        return record

    def _refuse_twin(self, record: Memory, path: str) -> None:
        """Refuse an id that differs only by case from another one: some systems see one file."""
        folder, _, name = path.rpartition("/")
        if _MINTED.search(record.id):
            return
        if folder not in self._names:
            place = self._store.layout.file(folder)
            names = os.listdir(place) if os.path.isdir(place) else []
            self._names[folder] = {other.lower(): other for other in names}
        twin = self._names[folder].setdefault(name.lower(), name)
        if twin != name:
            raise IdTaken(record.id, f"{folder}/{twin}")

    def _same(self, record: Memory, there: Memory, path: str) -> Memory:
        """The stored record, if it differs only in its origin."""
        here, known = record.document(), there.document()
        for document in (here, known):
            document.pop("origin", None)
        if here != known:
            raise IdTaken(record.id, path)
        return there

    def __len__(self) -> int:
        """The number of files that it changes."""
        return len(self._writes)

    def paths(self) -> list[str]:
        """The files that it writes or removes."""
        return list(self._writes)

    def overwritten(self) -> list[str]:
        """The existing files that it changes or removes."""
        there = {path: self._current(path) for path in self._writes}
        return [path for path, old in there.items() if old and old.data != self._writes[path]]

    def put(self, record: Memory, path: str = "", *, if_match: str | None = None) -> Memory:
        """Write a record over the file at its path. `if_match` is the etag that was seen."""
        record, data = sealed(record)
        path = path or place(record)
        self._match(path, if_match)
        self.admit(record)
        if self.read(path) is None:
            self._refuse_twin(record, path)
        self._set(path, data)
        if record.keeps_id and not path.startswith(PRIVATE):  # others depend on their path too
            self._records[path] = record
        return record

    def _set(self, path: str, data: bytes | None) -> None:
        self._writes[path] = data
        self._records.pop(path, None)
        if path.startswith(_STONE_FOLDERS):
            self._are_stones = True

    def render(self, path: str, data: bytes) -> None:
        """Write a file that is derived from records, which were checked when they were stored."""
        self._set(path, data)

    def remove(self, path: str, *, if_match: str | None = None) -> None:
        self._match(path, if_match)
        self._set(path, None)

    def move(self, old: str, new: str) -> None:
        """Move a file as it is, byte for byte."""
        there = self.read(old)
        if there is None:
            raise FileChanged(old)
        self._set(new, there.data)
        self._set(old, None)

    def _match(self, path: str, if_match: str | None) -> None:
        if if_match is None:
            return
        there = self.read(path)
        if there is None or there.etag != if_match:
            raise FileChanged(path, there.etag if there else "")

    def admit(self, record: Memory) -> None:
        """Refuse a value that a person rejected, from any writer and in any spelling."""
        if record.kind not in _ADMITTED or not self._are_stones:
            return
        if getattr(record, "status", None) == "rejected":
            return
        document = record.document()
        if without_rejected(document, self._is_rejected) is document:
            return
        for value in filter(None, (record.value(), record.title(), *_texts(document))):
            for part in parts(value):
                found = self._stone(part)
                if found is not None:
                    raise RejectedValue(part, found.why or "", found.id)

    def _is_rejected(self, value: str) -> bool:
        return self._stone(value) is not None

    @cached_property
    def _are_stones(self) -> bool:
        """Check if anything was ever rejected: computing a tombstone's id takes a while."""
        folders = (self._store.layout.file(folder) for folder in _STONE_FOLDERS)
        return any(os.path.isdir(folder) and os.listdir(folder) for folder in folders)

    def _stone(self, value: str) -> Tombstone | None:
        """The tombstone of a value, as it will be after the changes so far."""
        rejected = self._rejected()
        return rejected.get(value_id(value)) or rejected.get(tombstone_id(value))

    def _rejected(self) -> dict[str, Tombstone]:
        """Tombstones by the ids of their values, and by their files: a purged one has no value."""
        written = [path for path in self._writes if path.startswith(_STONE_FOLDERS)]
        stones = {path: it for path, it in self._store.stones().items() if path not in written}
        for path in written:
            if isinstance(stone := self.record(path), Tombstone):
                stones[path] = stone
        by_file = {posixpath.basename(path)[:-5]: stone for path, stone in stones.items()}
        return by_file | {value_id(stone.title()): stone for stone in stones.values()}

    def commit(self) -> None:
        """Make the changes. Files that would not change are left alone, without file events."""
        writes = [
            transaction.Write(path, data, before.etag if before else "")
            for path, data in self._writes.items()
            if data != _data(before := self._current(path))
        ]
        for path, *_ in writes:
            self._refuse_if_changed(path)
        if len(writes) == 1:
            self._single(writes[0].path, writes[0].data)
            self._note(writes)
        elif writes:
            transaction.carry_out(self._store.layout, writes, partial(self._note, writes))
        self._store.written.update(path for path, *_ in writes)
        self._store.fresh = {
            path: Fresh(self._records[path], etag(data))
            for path, data, _ in writes
            if data is not None and path in self._records
        }

    def _note(self, writes: Sequence[transaction.Write]) -> None:
        """Note the writes in the write log, with the content they replaced."""
        write_log.note(
            self._store.layout,
            [
                write_log.of_write(path, data, _data(self._before[path]))
                for path, data, _ in writes
                if write_log.is_witnessed(path)
            ],
        )

    def _refuse_if_changed(self, path: str) -> None:
        """Compare the file again: editors hold no lock, and a lock file can be deleted."""
        now = self._store.data(path)
        if _data(self._before[path]) != now:
            raise FileChanged(path, "" if now is None else etag(now))

    def _single(self, path: str, data: bytes | None) -> None:
        target = self._store.layout.file(path)
        with failures_named(target, only=True):
            if data is None:
                disk.remove(target)
            else:
                disk.write_bytes(target, data)


def _texts(value: Any) -> Iterator[str]:
    """All texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def sealed(record: Memory) -> tuple[Memory, bytes]:
    """The record as it may be written, and its bytes: without secrets, and not too large.

    A record that others read holds no personal data either. An id that was derived from a text
    with any of that in it is derived again.
    """
    data, is_same = _written(record)
    is_shared = getattr(record, "scope", "project") == "project" and may_hold_personal_data(data)
    if is_shared or may_hold_secret(data):
        document = record.document()
        clean = redact_value(document)
        clean = impersonal_value(clean) if is_shared else clean
        if clean is not document and isinstance(clean, dict):
            if record.id == f"{record.prefix}-{record.mint()}":
                clean.pop("id", None)
            record = parse(type(record), clean)
            data, is_same = _written(record)
    if not is_same:  # return the record as it will be read
        record = decode(place(record), data)
    return record, data


def _written(record: Memory) -> tuple[bytes, bool]:
    """The record's bytes, if they can be read again, and whether they equal the record."""
    try:
        data, is_same = encode_checked(record)
        if b"null" in data:
            _refuse_non_finite(record.document())
    except InvalidRecord as error:
        raise error.at(record.id) from None
    except (TypeError, ValueError, RecursionError) as error:
        reason = f"holds a value that JSON does not have ({str(error)[:80]})"
        raise InvalidRecord(reason, path=record.id, advice="Use text, numbers and lists.") from None
    return data, is_same


def _refuse_non_finite(value: Any) -> None:
    """Refuse NaN and the infinities, which would be written as null."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"the number {value}")
    if isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            _refuse_non_finite(item)


def _data(stored: Stored | None) -> bytes | None:
    return stored.data if stored else None


@contextmanager
def failures_named(path: str | Path, *, only: bool = False) -> Iterator[None]:
    """Turn an OSError into an error that names the file; with `only`, always this one."""
    try:
        yield
    except OSError as error:
        raise _store_failed(error, path, only=only) from error


def _store_failed(error: OSError, path: str | Path, *, only: bool = False) -> StoreFailed:
    if error.strerror == disk.LINKED:
        return LinkRefused(error.filename)
    named = path if only else error.filename or path
    return StoreFailed(named, error.strerror or str(error))
