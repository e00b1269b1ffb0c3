"""Issues of Beads: `.beads/issues.jsonl`, one issue in each line.

A closed issue is an episode: its goal is the title, what was found is the reason for closing. An
issue that is not closed is a fact of the type `task`. Who wrote it is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loki_memory.interop.sources.source import (
    FoundMemory,
    ImportRequest,
    SourceReading,
    count_left_out,
    filled,
    json_lines,
    when,
    words,
)

NAME = "beads"
_TEXTS = ("close_reason", "description", "notes", "acceptance_criteria")
_FILE, _HISTORY = "issues.jsonl", "interactions.jsonl"
_USED = frozenset(
    [
        "id",
        "title",
        "description",
        "status",
        "priority",
        "issue_type",
        "labels",
        "created_at",
        "updated_at",
        "closed_at",
        "close_reason",
        "notes",
        "acceptance_criteria",
    ]
)
_IMPORTANCE = {0: 0.9, 1: 0.7, 2: 0.5, 3: 0.3, 4: 0.2}  # of priorities P0 to P4


def detects(path: Path) -> bool:
    file = _issues(path)
    return file is not None and file.is_file()


def usual_places(root: Path, home: Path) -> list[Path]:  # noqa: ARG001 - the protocol's signature
    return [root / ".beads"]


def read(path: Path, request: ImportRequest) -> SourceReading:  # noqa: ARG001 - the protocol's signature
    reading = SourceReading.empty()
    file = _issues(path) or path
    reading.files.append(str(file))
    for where, issue in json_lines(file, reading):
        _read_issue(where, issue, reading)
    _read_history(file.parent / _HISTORY, reading)
    return reading


def _issues(path: Path) -> Path | None:
    if path.is_file():
        return path if path.name == _FILE and path.parent.name == ".beads" else None
    places = (path / _FILE, path / ".beads" / _FILE)
    return next((place for place in places if place.is_file() and ".beads" in place.parts), None)


def _read_issue(where: str, issue: Any, reading: SourceReading) -> None:
    title = issue.get("title") if isinstance(issue, dict) else None
    if not isinstance(title, str) or not title.strip():
        reading.refuse(where, "the line", "an issue has no title")
    elif issue.get("status") == "tombstone":
        reading.refuse(where, title, "the issue was deleted there")
    else:
        count_left_out(reading, issue, _USED)
        reading.found.append(_closed(where, issue) if _is_closed(issue) else _open(where, issue))


def _is_closed(issue: Mapping[str, Any]) -> bool:
    return issue.get("status") == "closed"


def _closed(where: str, issue: Mapping[str, Any]) -> FoundMemory:
    texts = (issue.get(name) for name in _TEXTS)
    fields = filled(
        task_id=issue.get("id"),
        timestamp=when(issue.get("closed_at") or issue.get("updated_at")),
        context={"goal": issue["title"].strip()},
        summary="\n\n".join(text.strip() for text in texts if isinstance(text, str) and text),
        outcome="success",
        tags=_tags(issue),
        importance=_IMPORTANCE.get(issue.get("priority", 2)),
    )
    return FoundMemory("episode", fields, where, str(issue.get("id") or ""))


def _open(where: str, issue: Mapping[str, Any]) -> FoundMemory:
    fields = filled(
        statement=issue["title"].strip(),
        type="task",
        category=issue.get("issue_type"),
        tags=_tags(issue),
        importance=_IMPORTANCE.get(issue.get("priority", 2)),
        valid_from=when(issue.get("created_at"))[:10],
        detail=issue.get("description") or issue.get("acceptance_criteria"),
    )
    return FoundMemory("fact", fields, where, str(issue.get("id") or ""))


def _tags(issue: Mapping[str, Any]) -> list[str]:
    return sorted(
        {*words(issue.get("labels")), *filter(None, [str(issue.get("issue_type") or "")])}
    )


def _read_history(path: Path, reading: SourceReading) -> None:
    """List the log of changes of issues: git has the states, and memory the last one."""
    if path.is_file():
        count = sum(1 for _ in json_lines(path, reading))
        reading.files.append(str(path))
        if count:
            reading.refuse(path.name, "the log of changes", "only issues are memory", count)
