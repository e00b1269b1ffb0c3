"""The knowledge graph of the MCP reference server `memory`, in its dialects.

`memory.jsonl` (or `memory.json`) has an entity or a relation in each line, with or without a
`type`; others keep one object with `entities` and `relations`. Each observation of an entity is a
fact about it, and each relation a fact of the type `relationship`.
"""

from __future__ import annotations

from collections.abc import Iterator
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
)
from loki_memory.models.ids import slug

NAME = "mcp-memory"
_NAMES = ("memory.jsonl", "memory.json")
_ENTITY = ("type", "name", "entityType", "observations", "updatedAt", "createdAt")
_RELATION = ("type", "from", "to", "relationType", "createdAt")


def detects(path: Path) -> bool:
    file = _file(path)
    try:
        return file is not None and any(
            _is_known(entry) for _, entry in _entries(file, SourceReading.empty())
        )
    except InvalidRecord:
        return False


def usual_places(root: Path, home: Path) -> list[Path]:  # noqa: ARG001 - the protocol's signature
    return [root]


def read(path: Path, request: ImportRequest) -> SourceReading:  # noqa: ARG001 - the protocol's signature
    reading = SourceReading.empty()
    file = _file(path) or path
    reading.files.append(str(file))
    for where, entry in _entries(file, reading):
        if not _is_known(entry):
            reading.refuse(where, "the entry", "neither an entity nor a relation")
        elif "relationType" in entry:
            reading.found.append(_relation(where, entry, reading))
        else:
            reading.found.extend(_entity(where, entry, reading))
    return reading


def _file(path: Path) -> Path | None:
    if path.is_file():
        return path if path.suffix in {".json", ".jsonl"} else None
    return next((path / name for name in _NAMES if (path / name).is_file()), None)


def _entries(path: Path, reading: SourceReading) -> Iterator[tuple[str, Any]]:
    whole = _whole(path)
    if whole is None:
        yield from json_lines(path, reading)
        return
    for name in ("entities", "relations"):
        for number, entry in enumerate(whole.get(name) or ()):
            yield f"{path.name}:{name}.{number}", entry


def _whole(path: Path) -> dict[str, Any] | None:
    """The object of a file that holds one; None for JSON lines."""
    try:
        value = json_of(path)
    except InvalidRecord:
        return None
    return value if isinstance(value, dict) and ("entities" in value) else None


def _is_known(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    is_relation = all(isinstance(entry.get(key), str) for key in ("from", "to", "relationType"))
    is_entity = isinstance(entry.get("name"), str) and "entityType" in entry
    return is_relation or (is_entity and isinstance(entry.get("observations", []), list))


def _entity(where: str, entry: dict[str, Any], reading: SourceReading) -> Iterator[FoundMemory]:
    count_left_out(reading, entry, _ENTITY)
    name, kind = entry["name"], str(entry.get("entityType") or "")
    since = when(entry.get("updatedAt") or entry.get("createdAt"))[:10]
    fields = filled(subject=name, category=slug(kind, 40), type="entity", valid_from=since)
    observations = [text for text in entry.get("observations", []) if str(text).strip()]
    for text in observations or [f"is a {kind}" if kind else "is known"]:
        said = f"{name}: {_text(text)}" if observations else f"{name} {text}"
        yield FoundMemory("fact", {**fields, "statement": said}, where)


def _text(observation: Any) -> str:
    """An observation, which some dialects keep as an object with a time."""
    if isinstance(observation, dict):
        observation = observation.get("content") or observation.get("text") or observation
    return str(observation).strip()


def _relation(where: str, entry: dict[str, Any], reading: SourceReading) -> FoundMemory:
    count_left_out(reading, entry, _RELATION)
    statement = f"{entry['from']} {entry['relationType'].replace('_', ' ')} {entry['to']}"
    since = when(entry.get("createdAt"))[:10]
    fields = filled(
        statement=statement, subject=entry["from"], type="relationship", valid_from=since
    )
    return FoundMemory("fact", fields, where)
