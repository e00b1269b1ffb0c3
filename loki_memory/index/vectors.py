"""Vectors of passages: rows of the index, and a cache of them that is mapped into memory.

Rows are found by the hash of a text and the name of the model, so a text that was embedded once
is not embedded again. A search needs them as one matrix: two files per model beside the index,
written only at their ends, hold copies of the rows in their order. One is a table with an entry per
row (its vector, its key, where its token ids end) that is mapped, the other holds the token ids.
They may be deleted at any time and are written again from the rows. Rows of texts that are gone
stay until they are more than half; then they are deleted, what is left is copied to the next
generation of files, and a process that has the old files open goes on with them.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from loki_memory.files import disk
from loki_memory.index.database import is_whole, seal, seal_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loki_memory.index.index import Index

_FEW = 1000  # rows that are not worth deleting
_ROWS = (
    "SELECT row, key, length, tokens, vector FROM vectors "
    "WHERE model = ? AND row > ? ORDER BY row LIMIT ?"
)
_LAST = "SELECT row, key FROM vectors WHERE model = ? ORDER BY row DESC LIMIT 1"
_MISSING = """
SELECT DISTINCT key FROM passages AS p JOIN memories AS m ON m.row = p.memory
WHERE key <> 0 AND m.kind NOT IN ('link', 'tombstone')
  AND NOT EXISTS (SELECT 1 FROM vectors AS v WHERE v.model = ? AND v.key = p.key)
ORDER BY key
"""
_BYTES = "SELECT length(vector) FROM vectors WHERE model = ? LIMIT 1"
_STEP_BYTES = 4  # in front of a vector: see `packed`
_AT_ONCE = 10_000  # rows that are copied at a time: some 12 MiB
_LEVELS = 127  # of a component: a vector is kept as bytes and the length of one step
_NAME = re.compile(r"(?P<model>.+)-(?P<generation>\d+)\.vectors\Z")


class Vectors:
    """The vectors of one model. A folder of None keeps the cache in memory."""

    def __init__(self, folder: Path | None, model: str, size: int) -> None:
        self.folder = folder
        self.model = model
        self._name = _file_name(model)
        self._generation = 0
        numbers = [("row", "<i8"), ("key", "<u8"), ("end", "<u8"), ("length", "<u8")]
        self._entry = np.dtype([("vector", "<f4", (size,)), *numbers])
        self._table: NDArray[Any] = np.zeros(0, self._entry)
        self._order: NDArray[np.intp] | None = None
        self.tokens: NDArray[np.uint32] = np.zeros(0, np.uint32)
        self.open()

    def __len__(self) -> int:
        return len(self._table)

    @property
    def matrix(self) -> NDArray[np.float32]:
        """One unit vector per entry: a view of the file."""
        return self._table["vector"]

    @property
    def state(self) -> tuple[int, int]:
        """The state that changes when entries are added or moved."""
        return self._generation, len(self._table)

    def open(self) -> None:
        """Map the files as they are now."""
        if self.folder is None:
            return
        self._generation = max(self._generations(), default=0)
        table, tokens = self._paths()
        self._order = None
        with suppress(OSError, ValueError):
            if not is_whole(table, tokens):
                raise ValueError("somebody else wrote there")
            whole = os.path.getsize(table) // self._entry.itemsize
            self._table = _mapped(table, self._entry, whole)
            self.tokens = _mapped(tokens, np.dtype("<u4"), os.path.getsize(tokens) // 4)
            known = int(np.searchsorted(self._table["end"], len(self.tokens), side="right"))
            self._table = self._table[:known]  # a writer was killed between the two files
            falls = np.flatnonzero(np.diff(self._table["end"].astype(np.int64)) < 0)
            self._table = self._table[: falls[0] + 1 if len(falls) else None]  # a hole in the file
            return
        self._table, self.tokens = np.zeros(0, self._entry), np.zeros(0, np.uint32)

    def find(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The entry of each key; -1 for those that have none."""
        if not len(self._table):
            return np.full(len(keys), -1, np.int32)
        known = np.ascontiguousarray(self._table["key"])
        if self._order is None:
            self._order = np.argsort(known, kind="stable")
        place = np.searchsorted(known, keys, sorter=self._order)
        entry = self._order[np.minimum(place, len(known) - 1)]
        return np.where(known[entry] == keys, entry, -1).astype(np.int32)

    def keys(self, entries: NDArray[np.int32]) -> NDArray[np.uint64]:
        """The key of each entry; 0 for -1."""
        if not len(self._table):
            return np.zeros(len(entries), np.uint64)
        return np.where(entries >= 0, self._table["key"][entries], np.uint64(0))

    def spans(self, entries: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The positions at which the tokens of entries begin and end."""
        ends = self._table["end"].astype(np.int64)
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]]) if len(ends) else ends
        return starts[entries], ends[entries]

    def lengths(self, entries: NDArray[np.int32]) -> NDArray[np.int32]:
        """Count the tokens of their texts, repeated ones too."""
        return self._table["length"][entries].astype(np.int32)

    # -- rows of the index ------------------------------------------------------------------------

    def missing(self, index: Index) -> list[int]:
        """The keys of passages that have no vector yet."""
        return missing_keys(index, self.model)

    def refresh(self, index: Index) -> None:
        """Copy the rows that the cache lacks, one process at a time."""
        rows = index.ask(_LAST, self.model)
        if (rows[0] if rows else None) == self._last():
            return
        try:
            with index.change():
                self._catch_up(index)
        except sqlite3.OperationalError:  # another process holds the lock for long
            self.folder = None
            self._catch_up(index)

    def add(
        self,
        index: Index,
        keys: Sequence[int],
        vectors: NDArray[np.float32],
        tokens: Sequence[Sequence[int]],
    ) -> None:
        """Add rows, and copy them to the cache."""
        distinct = [np.unique(np.asarray(text, "<u4")).tobytes() for text in tokens]
        rows = list(zip(keys, map(len, tokens), distinct, packed(vectors), strict=True))
        try:
            with index.change() as revision:
                self._catch_up(index)
                known = self.find(np.array(keys, np.uint64)) >= 0  # another process added it first
                added = [row for row, is_known in zip(rows, known, strict=True) if not is_known]
                revision.put_vectors([(self.model, *row) for row in added])
                self._catch_up(index)
        except sqlite3.OperationalError:  # as above: they are kept by this process only
            self.folder = None
            self._append([(0, *row) for row in rows])

    def _catch_up(self, index: Index) -> None:
        """Copy rows, from where the cache ends if its last entry is a row of this index."""
        self.open()
        if self._is_there() and not is_whole(*self._paths()):
            self.forget()  # other processes may have mapped what is there
        row, key = self._last() or (0, None)
        if key is not None and index.scalar("SELECT key FROM vectors WHERE row = ?", row) != key:
            self.forget()
            row = 0
        while rows := index.ask(_ROWS, self.model, row, _AT_ONCE):
            self._append(rows)
            row = rows[-1][0]

    def drop_unused(self, index: Index, keys: NDArray[np.uint64]) -> None:
        """Delete rows whose text is gone, if most of the rows are not of these keys."""
        used = len(np.unique(keys[keys > 0]))
        if len(self._table) - used < used + _FEW:
            return
        with index.change(wait=False) as revision:
            revision.drop_unused_vectors()
            self.open()
            self.forget()
            self._catch_up(index)

    def drop_other_models(self, index: Index, kept: str = "") -> bool:
        """Delete the vectors of all models but this and one more; False if there were none."""
        dropped = 0
        with suppress(sqlite3.OperationalError), index.change(wait=False) as revision:
            dropped = revision.drop_other_vectors(self.model, kept)
        if self.folder is not None and self.folder.is_dir():
            names = {self._name, _file_name(kept)}
            _remove([path for path in sorted(self.folder.iterdir()) if _is_of_another(path, names)])
        return bool(dropped)

    # -- the files --------------------------------------------------------------------------------

    def _is_there(self) -> bool:
        return self.folder is not None and self._paths()[0].exists()

    def forget(self) -> None:
        """Begin the next generation of files, with nothing in them."""
        old = self._paths()
        self._generation += 1
        self._table, self.tokens, self._order = self._table[:0], self.tokens[:0], None
        if self.folder is not None:
            _remove([*old, seal_of(old[0])])
            with suppress(OSError):
                _extend(self._paths()[0], 0, b"")
                seal(*self._paths())

    def _last(self) -> tuple[int, int] | None:
        """The row and the key of the last entry."""
        if not len(self._table):
            return None
        return int(self._table["row"][-1]), int(self._table["key"][-1])

    def _append(self, rows: Sequence[tuple[int, int, int, bytes, bytes]]) -> None:
        row, key, length, tokens, vectors = zip(*rows, strict=True)
        entries = np.zeros(len(rows), self._entry)
        entries["row"], entries["key"], entries["length"] = row, key, length
        entries["vector"] = unpacked(vectors)
        before = int(self._table["end"][-1]) if len(self._table) else 0
        entries["end"] = before + np.cumsum([len(text) // 4 for text in tokens])
        flat = np.frombuffer(b"".join(tokens), "<u4")
        try:
            self._write(entries, flat, before)
        except OSError:
            self._keep_in_memory(entries, flat, before)
        self._order = None

    def _generations(self) -> list[int]:
        names = os.listdir(self.folder) if self.folder and self.folder.is_dir() else []
        found = (_NAME.match(name) for name in names)
        return [int(name["generation"]) for name in found if name and name["model"] == self._name]

    def _paths(self) -> tuple[Path, Path]:
        stem = f"{self._name}-{self._generation}"
        folder = self.folder or Path()
        return folder / f"{stem}.vectors", folder / f"{stem}.tokens"

    def _write(self, entries: NDArray[Any], tokens: NDArray[np.uint32], before: int) -> None:
        if self.folder is None:
            raise OSError("kept in memory")
        disk.make_folder(self.folder)
        table, flat = self._paths()
        _extend(flat, before * 4, tokens.astype("<u4").tobytes())
        _extend(table, len(self._table) * self._entry.itemsize, entries.tobytes())
        seal(table, flat)
        self.open()

    def _keep_in_memory(
        self, entries: NDArray[Any], tokens: NDArray[np.uint32], before: int
    ) -> None:
        self.folder = None
        self._table = np.concatenate([self._table, entries])
        self.tokens = np.concatenate([self.tokens[:before], tokens])


def missing_keys(index: Index, model: str) -> list[int]:
    """The keys of passages that have no vector of a model yet."""
    return [row[0] for row in index.ask(_MISSING, model)]


def dimensions(index: Index, model: str) -> int | None:
    """The size of the vectors of a model; None if there are none."""
    found = index.scalar(_BYTES, model)
    return None if found is None else int(found) - _STEP_BYTES


def packed(vectors: NDArray[np.float32]) -> list[bytes]:
    """Vectors as rows keep them: the length of a step, then a signed byte for each component.

    A cosine differs by less than 0.002 from that of the vectors as they were.
    """
    steps = np.abs(vectors).max(axis=1, initial=0.0) / _LEVELS
    levels = np.rint(vectors / np.where(steps > 0, steps, 1)[:, None]).astype("i1")
    return [
        step.tobytes() + level.tobytes()
        for step, level in zip(steps.astype("<f4"), levels, strict=True)
    ]


def unpacked(blobs: Sequence[bytes]) -> NDArray[np.float32]:
    """The vectors of rows."""
    row = np.dtype([("step", "<f4"), ("levels", "i1", (len(blobs[0]) - 4,))])
    found = np.frombuffer(b"".join(blobs), row)
    vectors: NDArray[np.float32] = found["levels"] * found["step"][:, None]
    return vectors


def _file_name(model: str) -> str:
    return re.sub(r"[^\w.]+", "_", model)


def _is_of_another(path: Path, names: Collection[str]) -> bool:
    is_ours = path.stem.rpartition("-")[0] in names
    return path.name.endswith((".vectors", ".tokens", ".vectors.seal")) and not is_ours


def _mapped(path: Path, entry: np.dtype[Any], count: int) -> NDArray[Any]:
    if not count:
        return np.zeros(0, entry)
    return np.asarray(np.memmap(path, entry, "r", shape=(count,)))


def _extend(path: Path, size: int, data: bytes) -> None:
    """Append after `size` bytes, overwriting what a killed writer left there."""
    with open(disk.open_to_change(path, append=True), "ab") as file:
        file.truncate(size)
        file.write(data)


def _remove(paths: Sequence[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            disk.discard(path)
