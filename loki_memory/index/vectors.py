"""Vectors of passages in a file beside the index, found by the hash of their text.

Two files per model, written only at their ends: a table with one entry per text (its vector, its
key, where its token ids end) that is mapped into memory, and the token ids. A text that was
embedded once is never embedded again, whatever becomes of the index. Like the index they may be
deleted at any time. Entries of texts that are gone stay until they are more than half; then what
is left moves to the next generation of files, and who has the old ones open goes on with them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from loki_memory.files import disk

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FEW = 1000  # entries that are not worth moving
_NAME = re.compile(r"(?P<model>.+)-(?P<generation>\d+)\.vectors\Z")


class Vectors:
    """The vectors of one model. A folder of None keeps them in memory."""

    def __init__(self, folder: Path | None, model: str, size: int) -> None:
        self.folder = folder
        self._model = re.sub(r"[^\w.]+", "_", model)
        self._generation = 0
        self._entry = np.dtype(
            [("vector", "<f4", (size,)), ("key", "<u8"), ("end", "<u8"), ("length", "<u8")]
        )
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
        """What changes when entries come or move."""
        return self._generation, len(self._table)

    def open(self) -> None:
        """Look at the files as they are now."""
        if self.folder is None:
            return
        self._generation = max(self._generations(), default=0)
        table, tokens = self._paths()
        self._order = None
        with suppress(OSError, ValueError):
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

    def spans(self, entries: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the tokens of entries begin and end."""
        ends = self._table["end"].astype(np.int64)
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]]) if len(ends) else ends
        return starts[entries], ends[entries]

    def lengths(self, entries: NDArray[np.int32]) -> NDArray[np.int32]:
        """How many tokens their texts have, repeated ones too."""
        return self._table["length"][entries].astype(np.int32)

    def append(
        self,
        keys: Sequence[int],
        vectors: NDArray[np.float32],
        tokens: Sequence[Sequence[int]],
    ) -> None:
        """Add entries. Call it while nobody else does: under the index's lock."""
        distinct = [np.unique(np.asarray(text, np.uint32)) for text in tokens]
        entries = np.zeros(len(keys), self._entry)
        entries["vector"], entries["key"] = vectors, keys
        entries["length"] = [len(text) for text in tokens]
        before = int(self._table["end"][-1]) if len(self._table) else 0
        entries["end"] = before + np.cumsum([len(text) for text in distinct])
        flat = np.concatenate([np.zeros(0, np.uint32), *distinct])
        try:
            self._write(entries, flat, before)
        except OSError:
            self._keep_in_memory(entries, flat, before)
        self._order = None

    def drop_others(self, used: NDArray[np.int32]) -> None:
        """Move the entries in use to new files, if most are not in use any more."""
        used = np.unique(used[used >= 0])
        if self.folder is None or len(self._table) - len(used) < len(used) + _FEW:
            return
        starts, ends = self.spans(used)
        spans = (self.tokens[a:b] for a, b in zip(starts, ends, strict=True))
        flat = np.concatenate([np.zeros(0, np.uint32), *spans])
        entries = np.array(self._table[used])
        entries["end"] = np.cumsum(ends - starts)
        old, generation, table = self._paths(), self._generation, self._table
        try:
            self._generation += 1
            self._table = table[:0]
            self._write(entries, flat, 0)
        except OSError:
            _remove(self._paths())
            self._generation, self._table = generation, table
        else:
            _remove(old)

    def forget(self) -> None:
        """Delete all entries: what the files say cannot be."""
        if self.folder is not None:
            _remove(self._paths())
        self._table, self.tokens, self._order = self._table[:0], self.tokens[:0], None

    def forget_other_models(self) -> bool:
        """Delete the vectors of models that are not used any more; whether there were any."""
        if self.folder is None or not self.folder.is_dir():
            return False
        others = [
            path
            for path in sorted(self.folder.iterdir())
            if path.suffix in {".vectors", ".tokens"}
            and path.stem.rpartition("-")[0] != self._model
        ]
        _remove(others)
        return bool(others)

    def _generations(self) -> list[int]:
        names = os.listdir(self.folder) if self.folder and self.folder.is_dir() else []
        found = (_NAME.match(name) for name in names)
        return [int(name["generation"]) for name in found if name and name["model"] == self._model]

    def _paths(self) -> tuple[Path, Path]:
        stem = f"{self._model}-{self._generation}"
        folder = self.folder or Path()
        return folder / f"{stem}.vectors", folder / f"{stem}.tokens"

    def _write(self, entries: NDArray[Any], tokens: NDArray[np.uint32], before: int) -> None:
        if self.folder is None:
            raise OSError("kept in memory")
        disk.make_folder(self.folder)
        table, flat = self._paths()
        _extend(flat, before * 4, tokens.astype("<u4").tobytes())
        _extend(table, len(self._table) * self._entry.itemsize, entries.tobytes())
        self.open()

    def _keep_in_memory(
        self, entries: NDArray[Any], tokens: NDArray[np.uint32], before: int
    ) -> None:
        self.folder = None
        self._table = np.concatenate([self._table, entries])
        self.tokens = np.concatenate([self.tokens[:before], tokens])


def _mapped(path: Path, entry: np.dtype[Any], count: int) -> NDArray[Any]:
    if not count:
        return np.zeros(0, entry)
    return np.asarray(np.memmap(path, entry, "r", shape=(count,)))


def _extend(path: Path, size: int, data: bytes) -> None:
    """Append after `size` bytes: what a killed writer left behind goes."""
    with open(disk.open_to_change(path, append=True), "ab") as file:
        file.truncate(size)
        file.write(data)


def _remove(paths: Sequence[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            disk.discard(path)
