"""claude-mem's `~/.claude-mem/claude-mem.db`: observations as facts, summaries as episodes.

The database holds the sessions of all projects by the name of their folder. Those of other
projects are left where they are, unless all are asked for.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from loki_memory.interop.sources.foreign_database import has_tables, rows, tables
from loki_memory.interop.sources.source import (
    FoundMemory,
    ImportRequest,
    SourceReading,
    count_left_out,
    decoded,
    filled,
    is_list,
    when,
    words,
)
from loki_memory.models.ids import slug

NAME = "claude-mem"
_OBSERVATIONS = "SELECT * FROM observations ORDER BY created_at_epoch, id"
_SUMMARIES = "SELECT * FROM session_summaries ORDER BY created_at_epoch, id"
_USED = frozenset(
    [
        "id",
        "project",
        "title",
        "subtitle",
        "narrative",
        "text",
        "facts",
        "type",
        "concepts",
        "created_at",
        "created_at_epoch",
        "discovery_tokens",
        "prompt_number",
        "content_hash",
    ]
)
_SUMMARY = frozenset(
    [
        "id",
        "project",
        "request",
        "investigated",
        "learned",
        "completed",
        "next_steps",
        "notes",
        "files_read",
        "files_edited",
        "created_at",
        "created_at_epoch",
        "discovery_tokens",
        "prompt_number",
        "memory_session_id",
        "sdk_session_id",
    ]
)


def detects(path: Path) -> bool:
    file = _file(path)
    return file.is_file() and has_tables(file, "observations", "session_summaries")


def usual_places(root: Path, home: Path) -> list[Path]:  # noqa: ARG001 - the protocol's signature
    return [home / ".claude-mem"]


def read(path: Path, request: ImportRequest) -> SourceReading:
    file, reading = _file(path), SourceReading.empty()
    reading.files.append(str(file))
    others: Counter[str] = Counter()
    for query, mapped in ((_OBSERVATIONS, _observation), (_SUMMARIES, _summary)):
        for row in rows(file, _supported(file, query)):
            project = str(row.get("project") or "")
            if request.every_project or project in {"", request.project}:
                mapped(row, reading)
            else:
                others[project] += 1
    for project, count in sorted(others.items()):
        reading.refuse(file.name, f"project {project}", "memory of another project", count)
    return reading


def _file(path: Path) -> Path:
    return path / "claude-mem.db" if path.is_dir() else path


def _supported(path: Path, query: str) -> str:
    """The query without the time in its order, which the first versions do not have."""
    table = query.split(" FROM ")[1].split(maxsplit=1)[0]
    has_time = "created_at_epoch" in tables(path)[table]
    return query if has_time else query.replace("created_at_epoch, ", "")


def _observation(row: dict[str, Any], reading: SourceReading) -> None:
    where = f"observation {row['id']}"
    title, detail = _text(row, "title"), _text(row, "narrative", "text", "subtitle")
    facts = decoded(row.get("facts"))
    listed = "; ".join(map(str, facts)) if is_list(facts) else ""
    statement = ": ".join(filter(None, (title, " ".join(filter(None, (detail, listed))))))
    if not statement:
        reading.refuse(where, "the observation", "it has no text")
        return
    count_left_out(reading, row, (*_USED, "memory_session_id", "sdk_session_id"))
    fields = filled(
        statement=statement,
        type=row.get("type"),
        category=slug(str(row.get("type") or ""), 40),
        tags=sorted({slug(tag, 64) for tag in words(row.get("concepts"))} - {""}),
        valid_from=_when(row)[:10],
    )
    reading.found.append(FoundMemory("fact", fields, where, f"observation-{row['id']}"))


def _summary(row: dict[str, Any], reading: SourceReading) -> None:
    where, goal = f"summary {row['id']}", _text(row, "request", "completed")
    if not goal or not _when(row):
        reading.refuse(where, "the summary", "it has no request or no time")
        return
    count_left_out(reading, row, _SUMMARY)
    parts = [_text(row, name) for name in ("learned", "completed", "next_steps", "notes")]
    fields = filled(
        timestamp=_when(row),
        context={"goal": goal},
        summary="\n\n".join(filter(None, parts)),
        outcome="unknown",
        files_read=words(row.get("files_read")),
        files_modified=words(row.get("files_edited")),
    )
    reading.found.append(FoundMemory("episode", fields, where, f"summary-{row['id']}"))


def _when(row: dict[str, Any]) -> str:
    return when(row.get("created_at_epoch")) or when(row.get("created_at"))


def _text(row: dict[str, Any], *names: str) -> str:
    texts = (str(row.get(name) or "").strip() for name in names)
    return next(filter(None, texts), "")
