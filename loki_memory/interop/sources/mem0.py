"""Memories of mem0: the answer of `get_all`, or an export, as JSON or JSON lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from loki_memory.errors import InvalidRecord
from loki_memory.interop.sources.source import (
    FoundMemory,
    ImportRequest,
    SourceReading,
    count_left_out,
    filled,
    json_lines,
    json_of,
    when,
    words,
)
from loki_memory.models.ids import slug

NAME = "mem0"
_LISTS = ("results", "memories")
_USED = ("id", "memory", "text", "hash", "metadata", "categories", "created_at", "updated_at")


def detects(path: Path) -> bool:
    if not path.is_file() or path.suffix not in {".json", ".jsonl"}:
        return False
    try:
        return any(_is_memory(entry) for _, entry in _entries(path, SourceReading.empty()))
    except InvalidRecord:
        return False


def usual_places(root: Path, home: Path) -> list[Path]:  # noqa: ARG001 - the protocol's signature
    return []


def read(path: Path, request: ImportRequest) -> SourceReading:  # noqa: ARG001 - the protocol's signature
    reading = SourceReading.empty()
    reading.files.append(str(path))
    for where, entry in _entries(path, reading):
        if _is_memory(entry):
            reading.found.append(_fact(where, entry, reading))
        else:
            reading.refuse(where, "the entry", "it has no text in `memory`")
    return reading


def _is_memory(entry: Any) -> bool:
    return isinstance(entry, dict) and bool(str(entry.get("memory") or "").strip())


def _entries(path: Path, reading: SourceReading) -> Iterator[tuple[str, Any]]:
    if path.suffix == ".jsonl":
        yield from json_lines(path, reading)
        return
    value = json_of(path)
    if isinstance(value, dict):
        value = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), [value])
    for number, entry in enumerate(value if isinstance(value, list) else ()):
        yield f"{path.name}:{number}", entry


def _fact(where: str, entry: Mapping[str, Any], reading: SourceReading) -> FoundMemory:
    count_left_out(reading, entry, _USED)
    about = entry.get("metadata")
    about = about if isinstance(about, dict) else {}
    reading.left_out.update(
        f"metadata.{name}" for name in about if name not in {"type", "category"}
    )
    tags = [slug(tag, 64) for tag in words(entry.get("categories"))]
    fields = filled(
        statement=str(entry["memory"]).strip(),
        type=about.get("type") if isinstance(about.get("type"), str) else None,
        category=slug(str(about.get("category") or next(iter(tags), "")), 40),
        tags=sorted({tag for tag in tags if tag}),
        valid_from=when(entry.get("updated_at") or entry.get("created_at"))[:10],
    )
    return FoundMemory("fact", fields, where, str(entry.get("id") or ""))
