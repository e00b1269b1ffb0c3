"""Render views from records: make an entry where its record changed, else keep it.

Making ten thousand entries takes seconds, comparing as many etags milliseconds. So an entry whose
record has the path and etag of the view's base is cut out of the view itself, at the position that
the base gives, if the view is byte for byte as rendered. The result is the same as if all were made
anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import orjson

from loki_memory.errors import StoreFailed
from loki_memory.files import codec
from loki_memory.files.layout import view_kind
from loki_memory.files.scan import etag
from loki_memory.files.store import Change, Store
from loki_memory.files.view_state import PATHS, Base, base_path
from loki_memory.files.views import (
    LISTS,
    edits,
    entry_of,
    hash_of,
    is_list,
    is_outdated,
    read_base,
    says_nothing_new,
    view_paths,
)
from loki_memory.models import Memory
from loki_memory.models.kinds import Kind

RecordOf = Callable[[str], Memory | None]  # by id; None if it is gone since it was listed
Entry = dict[str, Any]
_BETWEEN, _END = b",\n    ", b"\n  ]\n}\n"


class Listed(NamedTuple):
    """A record to show."""

    id: str
    path: str
    etag: str
    at: str  # the time that it is about


def render(store: Store, kind: Kind, records: Iterable[Listed], record_of: RecordOf) -> list[str]:
    """Write the views of one kind, from records in the order of their ids; return the changed ones.

    A view that was edited meanwhile, or has an entry that could not be taken over, is left alone.
    """
    by_view: dict[str, list[Listed]] = {}
    for view in (*PATHS.values(), *view_paths(store.layout)):
        if view_kind(view) == kind:
            by_view[view] = []
    for record in records:
        by_view.setdefault(_view_of(kind, record), []).append(record)
    written = []
    with store.change() as change:
        for view, listed in by_view.items():
            there = os.path.lexists(store.layout.file(view))
            if (listed or there) and _Rendering(store, kind, view, record_of).write(change, listed):
                written.append(view)
    return written


def _view_of(kind: Kind, record: Listed) -> str:
    return PATHS.get(kind) or f"learnings/{record.at[:10]}.json"


class _Rendering:
    """The rendering of one view."""

    def __init__(self, store: Store, kind: Kind, view: str, record_of: RecordOf) -> None:
        self._store, self._kind, self._view = store, kind, view
        self._record_of = record_of

    def write(self, change: Change, listed: Sequence[Listed]) -> bool:
        """Write the view and its base, unless they are up to date or an edit would be lost."""
        try:
            found = change.read(self._view)
        except StoreFailed:  # a link, or not readable
            return False
        before, base = found.data if found else b"", read_base(self._store, self._view)
        is_ours = found is not None and found.etag == base.etag
        same = {record.id for record in listed if _is_shown(record, base)}
        if is_ours and len(same) == len(listed) == len(base.entries):
            return False
        old: Any = {}
        kept = _cut(before, self._head, base) if is_ours else None
        if kept is None:
            rendered = self._rendered(before) if is_ours else None
            if rendered is None and self._would_lose(listed):
                return False
            old, kept = rendered or (json.loads(before or b"{}"), {})
        stay = {name: kept[name] for name in same if name in kept}
        pieces, shown = self._pieces(listed, base, stay)
        data = self._joined(old, pieces)
        change.render(self._view, data)
        new_base = orjson.dumps({"etag": etag(data), "entries": shown})
        change.render(base_path(self._view), new_base)
        return data != before

    @property
    def _head(self) -> bytes:
        """The first bytes of a view without foreign keys."""
        return f'{{\n  "{LISTS[self._kind]}": [\n    '.encode()

    def _rendered(self, data: bytes) -> tuple[Any, dict[str, bytes]] | None:
        """The values of a view that we rendered, and its entries by id.

        None if it is damaged: view and base may have come with a clone.
        """
        try:
            old = orjson.loads(data)
            there = old if isinstance(old, list) else old[self._name(old)]
            return old, {entry["id"]: _piece(entry) for entry in there}
        except (ValueError, TypeError, KeyError):
            return None

    def _would_lose(self, listed: Sequence[Listed]) -> bool:
        """Check for an entry that no record has, or one that cannot be read."""
        found, unread = edits(self._store, self._view)
        base = read_base(self._store, self._view)
        paths = {record.id: record.path for record in listed}
        for edit in found:
            path = paths.get(edit.record.id)
            if path and is_outdated(self._store, self._view, path, base):
                continue
            record = self._record_of(edit.record.id) if path else None
            if record is None or not says_nothing_new(edit, record):
                return True
        return bool(unread)

    def _pieces(
        self, listed: Sequence[Listed], base: Base, stay: dict[str, bytes]
    ) -> tuple[list[bytes], dict[str, list[str | int]]]:
        """The entries, some of which stay as they are, and the base of each."""
        pieces: list[bytes] = []
        shown: dict[str, list[str | int]] = {}
        for item in listed:
            piece = stay.get(item.id)
            if piece is not None:
                known = base.entries[item.id]
                shown[item.id] = known if known[-1] == len(piece) else [*known[:3], len(piece)]
            elif record := self._record_of(item.id):
                entry = entry_of(record)
                piece = _piece(entry)
                shown[item.id] = [item.path, hash_of(entry), item.etag, len(piece)]
            else:
                continue
            pieces.append(piece)
        return pieces, shown

    def _joined(self, old: Any, pieces: list[bytes]) -> bytes:
        """Join the pieces in the view's form: a bare list stays one, and foreign keys stay."""
        if pieces and isinstance(old, dict) and old.keys() <= {LISTS[self._kind]}:
            return self._head + _BETWEEN.join(pieces) + _END
        entries = [orjson.loads(piece) for piece in pieces]
        if isinstance(old, list):
            return codec.dump(entries)
        name = self._name(old)
        return codec.dump({**{n: value for n, value in old.items() if n != name}, name: entries})

    def _name(self, old: dict[str, Any]) -> str:
        """The key of the view's list."""
        return next((n for n in old if is_list(self._kind, n, old[n])), LISTS[self._kind])


def _piece(entry: Entry) -> bytes:
    """The bytes of an entry in a view."""
    return codec.dump(entry).rstrip().replace(b"\n", b"\n    ")


def _cut(view: bytes, head: bytes, base: Base) -> dict[str, bytes] | None:
    """Cut the entries out of a view, by id, at the positions of its base; None if they differ."""
    found: dict[str, bytes] = {}
    at = len(head)
    try:
        for name, (*_, size) in base.entries.items():
            found[name] = view[at : at + size]
            at += size + len(_BETWEEN)
            if view[at - len(_BETWEEN) : at] != _BETWEEN:
                break
    except (ValueError, TypeError):  # a base of another version, or not ours
        return None
    fits = view.startswith(head) and view[at - len(_BETWEEN) :] == _END
    return found if fits and len(found) == len(base.entries) else None


def _is_shown(record: Listed, base: Base) -> bool:
    """Check if the view's entry of a record is up to date."""
    found = base.entries.get(record.id)
    return isinstance(found, list) and found[::2] == [record.path, record.etag]
