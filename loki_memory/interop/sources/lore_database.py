"""Lore's `~/.lore/memory.db`: fragments as facts, their tree as parents, their edges as links.

Vectors, decay and counters of access are not taken over: they are computed here.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from loki_memory.interop.sources.foreign_database import has_tables, rows
from loki_memory.interop.sources.source import (
    FoundMemory,
    ImportRequest,
    SourceReading,
    count_left_out,
    filled,
    score,
    when,
)

NAME = "lore"
_FRAGMENTS = "SELECT * FROM fragments ORDER BY created_at, id"
_EDGES = "SELECT source, target, lower(kind) AS kind FROM edges ORDER BY id"
_USED = frozenset(
    [
        "id",
        "content",
        "summary",
        "depth",
        "created_at",
        "superseded_by",
        "importance",
        "embedding",
        "last_accessed",
        "access_count",
        "relevance_score",
        "decay_rate",
        "last_reinforced",
        "parent_id",
    ]
)
_RELATIONS = {"associative": "related_to", "supersedes": "supersedes"}


def detects(path: Path) -> bool:
    return path.is_file() and has_tables(path, "fragments", "edges")


def usual_places(root: Path, home: Path) -> list[Path]:  # noqa: ARG001 - the protocol's signature
    return [home / ".lore" / "memory.db"]


def read(path: Path, request: ImportRequest) -> SourceReading:  # noqa: ARG001 - the protocol's signature
    reading = SourceReading.empty()
    reading.files.append(str(path))
    parents, links = _edges(path, reading)
    for row in rows(path, _FRAGMENTS):
        ref, text = str(row["id"]), str(row.get("content") or row.get("summary") or "").strip()
        if not text:
            reading.refuse(f"fragment {ref}", "the fragment", "it has no text")
            continue
        count_left_out(reading, row, _USED)
        reading.found.append(_fact(row, text, parents.get(ref, ""), links[ref]))
    return reading


Links = defaultdict[str, list[tuple[str, str]]]


def _edges(path: Path, reading: SourceReading) -> tuple[dict[str, str], Links]:
    """The parent of each fragment, and its other links."""
    parents: dict[str, str] = {}
    links: Links = defaultdict(list)
    for edge in rows(path, _EDGES):
        source, target, kind = str(edge["source"]), str(edge["target"]), str(edge["kind"])
        if kind == "hierarchical":
            parents.setdefault(target, source)
        elif kind in _RELATIONS:
            links[source].append((_RELATIONS[kind], target))
        else:
            reading.left_out[f"{kind} edge"] += 1
    return parents, links


def _fact(row: dict[str, Any], text: str, parent: str, links: list[tuple[str, str]]) -> FoundMemory:
    heir = row.get("superseded_by")
    if heir and ("superseded_by", str(heir)) not in links:
        links = [*links, ("superseded_by", str(heir))]
    fields = filled(
        statement=text,
        depth=row.get("depth"),
        importance=score(row.get("importance")),
        status="superseded" if heir else None,
        valid_from=when(row.get("created_at"))[:10],
    )
    ref, above = str(row["id"]), parent or str(row.get("parent_id") or "")
    return FoundMemory("fact", fields, f"fragment {ref}", ref, above, tuple(links))
