"""claude-flow's `.swarm/hybrid-memory.db`, and the `~/.claude/memory/*.json` that it syncs with.

The JSON files have no documented schema: an entry is an object with its text under one of the
usual names, in a list, under `entries` or `memories`, or by its key.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loki_memory.interop.sources.foreign_database import has_tables, rows, tables
from loki_memory.interop.sources.source import (
    FoundMemory,
    ImportRequest,
    SourceReading,
    count_left_out,
    files_below,
    filled,
    json_of,
    when,
    words,
)
from loki_memory.models.ids import slug

NAME = "claude-flow"
_ENTRIES = "SELECT * FROM memory_entries ORDER BY created_at, id"
_COLUMNS = {"key", "content", "namespace"}
_USED = frozenset(
    [
        "id",
        "key",
        "content",
        "type",
        "namespace",
        "tags",
        "created_at",
        "updated_at",
        "embedding",
        "access_count",
        "last_accessed_at",
        "version",
        "access_level",
    ]
)
_TEXTS = ("content", "value", "text", "summary", "insight")
_LISTS = ("entries", "memories", "insights")


def detects(path: Path) -> bool:
    if path.is_file() and path.suffix != ".json":
        found = tables(path) if has_tables(path, "memory_entries") else {}
        return found.get("memory_entries", set()) >= _COLUMNS
    return bool(_database(path) or _json_files(path))


def usual_places(root: Path, home: Path) -> list[Path]:
    return [root / ".swarm", home / ".claude" / "memory"]


def read(path: Path, request: ImportRequest) -> SourceReading:  # noqa: ARG001 - the protocol's signature
    reading = SourceReading.empty()
    database = path if path.is_file() and path.suffix != ".json" else _database(path)
    if database is not None:
        _read_database(database, reading)
    reading.read_each(_json_files(path), _read_json)
    return reading


def _database(path: Path) -> Path | None:
    places = (path / "hybrid-memory.db", path / ".swarm" / "hybrid-memory.db")
    return next((place for place in places if has_tables(place, "memory_entries")), None)


def _json_files(path: Path) -> list[Path]:
    folder = path.parent if path.is_file() else path
    if folder.absolute().parts[-2:] != (".claude", "memory"):
        return []
    return [path] if path.is_file() else files_below(path, "*.json")


def _read_database(path: Path, reading: SourceReading) -> None:
    reading.files.append(str(path))
    for row in rows(path, _ENTRIES):
        where = f"entry {row.get('key') or row.get('id')}"
        if not str(row.get("content") or "").strip():
            reading.refuse(where, "the entry", "it has no text")
            continue
        count_left_out(reading, row, _USED)
        reading.found.append(_fact(where, row, str(row["content"]), str(row.get("key") or "")))


def _read_json(path: Path, reading: SourceReading) -> None:
    for key, entry in _entries(json_of(path)):
        where = f"{path.name}:{key}"
        text = entry if isinstance(entry, str) else _text(entry)
        if not text:
            reading.refuse(where, "the entry", "it has no text under a name that is known")
            continue
        about = entry if isinstance(entry, dict) else {}
        count_left_out(reading, about, (*_USED, *_TEXTS, "timestamp", "category"))
        reading.found.append(_fact(where, {"namespace": path.stem, **about}, text, key))


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Each entry of a file with its key, which may be its number."""
    if isinstance(value, dict):
        inner = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
        if inner is None and _text(value):
            inner = [value]
        if inner is None:
            yield from ((str(key), entry) for key, entry in value.items())
            return
        value = inner
    for number, entry in enumerate(value if isinstance(value, list) else ()):
        key = entry.get("key") if isinstance(entry, dict) else None
        yield str(key or number), entry


def _text(entry: Any) -> str:
    if not isinstance(entry, dict):
        return ""
    texts = (entry.get(name) for name in _TEXTS)
    return next((text.strip() for text in texts if isinstance(text, str) and text.strip()), "")


def _fact(where: str, entry: dict[str, Any], text: str, key: str) -> FoundMemory:
    """A fact; a text that needs its key to be understood is told with it."""
    subject = key.replace("_", " ").replace("-", " ").strip()
    is_clear = " " in text.strip() or not subject or subject.isdigit()
    since = entry.get("updated_at") or entry.get("created_at") or entry.get("timestamp")
    fields = filled(
        statement=text.strip() if is_clear else f"{subject}: {text.strip()}",
        subject="" if subject.isdigit() else subject,
        category=slug(str(entry.get("category") or entry.get("namespace") or ""), 40),
        tags=sorted({slug(tag, 64) for tag in words(entry.get("tags"))} - {""}),
        valid_from=when(since)[:10],
    )
    return FoundMemory("fact", fields, where, str(entry.get("id") or ""))
