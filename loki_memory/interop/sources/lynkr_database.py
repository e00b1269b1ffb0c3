"""Lynkr's `data/memories.db`: typed statements; those of one conversation stay private."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loki_memory.interop.sources.foreign_database import has_tables, rows, tables
from loki_memory.interop.sources.source import (
    FoundMemory,
    ImportRequest,
    SourceReading,
    count_left_out,
    filled,
    score,
    when,
)

NAME = "lynkr"
_MEMORIES = "SELECT * FROM memories ORDER BY created_at, id"
_USED = frozenset(
    [
        "id",
        "session_id",
        "memory_type",
        "type",
        "content",
        "category",
        "importance",
        "created_at",
        "last_accessed",
        "access_count",
        "surprise_score",
        "updated_at",
    ]
)


def detects(path: Path) -> bool:
    if not path.is_file() or not has_tables(path, "memories"):
        return False
    return {"content", "importance"} <= tables(path)["memories"]


def usual_places(root: Path, home: Path) -> list[Path]:  # noqa: ARG001 - the protocol's signature
    return [root / "data" / "memories.db"]


def read(path: Path, request: ImportRequest) -> SourceReading:  # noqa: ARG001 - the protocol's signature
    reading = SourceReading.empty()
    reading.files.append(str(path))
    for row in rows(path, _MEMORIES):
        where = f"memory {row['id']}"
        if not str(row.get("content") or "").strip():
            reading.refuse(where, "the memory", "it has no text")
            continue
        count_left_out(reading, row, _USED)
        reading.found.append(_fact(where, row))
    return reading


def _fact(where: str, row: dict[str, Any]) -> FoundMemory:
    fields = filled(
        statement=str(row["content"]).strip(),
        type=row.get("memory_type") or row.get("type"),
        category=row.get("category"),
        importance=score(row.get("importance")),
        valid_from=when(row.get("created_at"))[:10],
    )
    is_private = row.get("session_id") not in (None, "")
    return FoundMemory("fact", fields, where, str(row["id"]), private=is_private)
