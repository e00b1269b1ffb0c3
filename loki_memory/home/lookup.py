"""Find one memory by its id with a look at its own file, without a scan of the others."""

from __future__ import annotations

import os
import sqlite3
import time
from typing import TYPE_CHECKING

from loki_memory.files import transaction
from loki_memory.files.layout import likely_places, view_kind
from loki_memory.models.ids import ID
from loki_memory.sync import check

if TYPE_CHECKING:  # pydantic costs 50 ms: only commands that read or write records pay for it
    from loki_memory.home.folder import HomeFolder
    from loki_memory.models import Memory


def look_up(home: HomeFolder, memory_id: str) -> tuple[str, str] | None:
    """The kind and JSON of a memory; None if a look at one file cannot tell."""
    path = place_of(home, memory_id)
    if path is None:
        return None
    try:
        changes = check(home.layout, home.index, [path], time.time_ns())
        return _in_file(home, memory_id, path) if changes.stale else home.index.body(memory_id)
    except sqlite3.DatabaseError:
        return None  # the full scan that follows replaces the index


def place_of(home: HomeFolder, memory_id: str) -> str | None:
    """The file of a memory, if the index or the id itself leads there; None if a scan must."""
    if transaction.waiting(home.layout) or not ID.fullmatch(memory_id):
        return None
    try:
        known = home.index.path_of(memory_id)
    except sqlite3.DatabaseError:
        return None
    places = [known] if known else [*likely_places(memory_id), *_of_its_day(home, memory_id)]
    return next((path for path in places if _in_file(home, memory_id, path)), None)


def _of_its_day(home: HomeFolder, memory_id: str) -> list[str]:
    """The likely files of an episode that is not indexed yet: its id has the day and the end."""
    day, _, end = memory_id.removeprefix("ep-").rpartition("-")
    folder = f"episodic/{day}"
    try:
        names = os.listdir(home.layout.file(folder)) if memory_id.startswith("ep-") else []
    except OSError:
        return []
    return [f"{folder}/{name}" for name in sorted(names) if name.endswith(f"-{end}.json")]


def _in_file(home: HomeFolder, memory_id: str, path: str) -> tuple[str, str] | None:
    """The kind and JSON of a memory from the file itself; None if another memory is there."""
    from loki_memory.sync.apply import entry_in

    found = None if view_kind(path) else home.store.read(path)
    entry = entry_in(path, found)[0] if found else None
    if entry is None or entry.row.id != memory_id:
        return None
    return entry.row.kind, entry.row.body


def parsed(kind: str, body: str) -> Memory:
    """The record of an index row."""
    import orjson

    from loki_memory.models import MODELS, parse

    return parse(MODELS[kind], orjson.loads(body))  # type: ignore[index]
