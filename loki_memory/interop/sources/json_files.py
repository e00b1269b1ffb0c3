"""Memory in files of JSON: MCP server-memory, mem0 and Beads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from loki_memory.errors import InvalidRecord
from loki_memory.interop.sources.source import (
    ImportSource,
    SourceReading,
    filled,
    json_entries,
    json_lines,
    json_of,
    mapped,
    names_in,
    words,
)

Entry = Mapping[str, Any]

# -- The knowledge graph of the MCP reference server `memory`, in its dialects --------------------
#
# `memory.jsonl` (or `memory.json`) has an entity or a relation in each line, with or without a
# `type`; others keep one object with `entities` and `relations`. Each observation of an entity is a
# fact about it, and each relation a fact of the type `relationship`.

_GRAPH_FILES = ("memory.jsonl", "memory.json")
_ENTITY = {"subject": "name", "category": "entityType", "valid_from": "updatedAt createdAt"}
_ENTITY_USED = names_in(_ENTITY, "type observations")
_RELATION = {"subject": "from", "valid_from": "createdAt"}
_RELATION_USED = names_in(_RELATION, "type to relationType")


def _is_graph(path: Path) -> bool:
    file = _graph_file(path)
    try:
        known = file and _graph_entries(file, SourceReading.empty())
        return any(_is_entity(entry) or _is_relation(entry) for _, entry in known or ())
    except InvalidRecord:
        return False


def _read_graph(path: Path, reading: SourceReading) -> None:
    file = _graph_file(path) or path
    reading.files.append(str(file))
    for where, entry in _graph_entries(file, reading):
        if _is_relation(entry):
            _add_relation(where, entry, reading)
        elif _is_entity(entry):
            _add_entity(where, entry, reading)
        else:
            reading.refuse(where, "the entry", "neither an entity nor a relation")


def _graph_file(path: Path) -> Path | None:
    if path.is_file():
        return path if path.suffix in {".json", ".jsonl"} else None
    return next((path / name for name in _GRAPH_FILES if (path / name).is_file()), None)


def _graph_entries(path: Path, reading: SourceReading) -> Iterator[tuple[str, Any]]:
    """Each entry of an object with two lists, or else of a file of JSON lines."""
    try:
        whole = json_of(path)
    except InvalidRecord:
        whole = None
    if not isinstance(whole, dict) or "entities" not in whole:
        yield from json_lines(path, reading)
        return
    for name in ("entities", "relations"):
        for number, entry in enumerate(whole.get(name) or ()):
            yield f"{path.name}:{name}.{number}", entry


def _is_relation(entry: Any) -> bool:
    names = ("from", "to", "relationType")
    return isinstance(entry, dict) and all(isinstance(entry.get(name), str) for name in names)


def _is_entity(entry: Any) -> bool:
    if not isinstance(entry, dict) or "entityType" not in entry:
        return False
    return isinstance(entry.get("name"), str) and isinstance(entry.get("observations", []), list)


def _add_entity(where: str, entry: Entry, reading: SourceReading) -> None:
    reading.count_left_out(entry, _ENTITY_USED)
    name, kind = entry["name"], str(entry.get("entityType") or "")
    observed = [text for text in entry.get("observations", []) if str(text).strip()]
    said = [f"{name}: {_observation(text)}" for text in observed]
    for statement in said or [f"{name} is a {kind}" if kind else f"{name} is known"]:
        fields = {**mapped(entry, _ENTITY), "type": "entity", "statement": statement}
        reading.add("fact", where, fields)


def _observation(observation: Any) -> str:
    """An observation, which some dialects keep as an object with a time."""
    if isinstance(observation, dict):
        observation = observation.get("content") or observation.get("text") or observation
    return str(observation).strip()


def _add_relation(where: str, entry: Entry, reading: SourceReading) -> None:
    reading.count_left_out(entry, _RELATION_USED)
    statement = f"{entry['from']} {entry['relationType'].replace('_', ' ')} {entry['to']}"
    fields = {**mapped(entry, _RELATION), "type": "relationship", "statement": statement}
    reading.add("fact", where, fields)


MCP_MEMORY = ImportSource("mcp-memory", _is_graph, _read_graph, lambda root, _: [root])


# -- mem0: the answer of `get_all`, or an export, as JSON or JSON lines ----------------------------

_MEM0 = {"statement": "memory", "tags": "categories", "valid_from": "updated_at created_at"}
_MEM0_USED = names_in(_MEM0, "id text hash metadata")
_METADATA = {"type": "type", "category": "category"}


def _is_mem0(path: Path) -> bool:
    if not path.is_file() or path.suffix not in {".json", ".jsonl"}:
        return False
    try:
        return any(_is_memory(entry) for _, entry in _mem0_entries(path, SourceReading.empty()))
    except InvalidRecord:
        return False


def _read_mem0(path: Path, reading: SourceReading) -> None:
    reading.files.append(str(path))
    for where, entry in _mem0_entries(path, reading):
        if not _is_memory(entry):
            reading.refuse(where, "the entry", "it has no text in `memory`")
            continue
        reading.count_left_out(entry, _MEM0_USED)
        about = entry.get("metadata")
        about = about if isinstance(about, dict) else {}
        rest = about.keys() - names_in(_METADATA)
        reading.left_out.update(f"metadata.{name}" for name in rest)
        fields = mapped(entry, _MEM0)
        first = {"category": next(iter(fields.get("tags", ())), "")}
        reading.add("fact", where, {**first, **fields, **mapped(about, _METADATA)}, entry.get("id"))


def _is_memory(entry: Any) -> bool:
    return isinstance(entry, dict) and bool(str(entry.get("memory") or "").strip())


def _mem0_entries(path: Path, reading: SourceReading) -> Iterator[tuple[str, Any]]:
    if path.suffix == ".jsonl":
        return json_lines(path, reading)
    return json_entries(path, "results", "memories")


MEM0 = ImportSource("mem0", _is_mem0, _read_mem0)


# -- Beads: `.beads/issues.jsonl`, one issue in each line ------------------------------------------
#
# A closed issue is an episode: its goal is the title, what was found is the reason for closing. An
# issue that is not closed is a fact of the type `task`. Who wrote it is left out.

_ISSUES, _HISTORY = "issues.jsonl", "interactions.jsonl"
_TEXTS = ("close_reason", "description", "notes", "acceptance_criteria")
_CLOSED = {"task_id": "id", "timestamp": "closed_at updated_at"}
_OPEN = {"statement": "title", "category": "issue_type", "valid_from": "created_at"}
_OPEN |= {"detail": "description acceptance_criteria"}
_BEADS_USED = names_in({**_CLOSED, **_OPEN}, "status priority labels close_reason notes")
_IMPORTANCE = {0: 0.9, 1: 0.7, 2: 0.5, 3: 0.3, 4: 0.2}  # of priorities P0 to P4


def _issues(path: Path) -> Path | None:
    if path.is_file():
        return path if path.name == _ISSUES and path.parent.name == ".beads" else None
    places = (path / _ISSUES, path / ".beads" / _ISSUES)
    return next((place for place in places if place.is_file() and ".beads" in place.parts), None)


def _read_beads(path: Path, reading: SourceReading) -> None:
    file = _issues(path) or path
    reading.files.append(str(file))
    for where, issue in json_lines(file, reading):
        title = issue.get("title") if isinstance(issue, dict) else None
        if not isinstance(title, str) or not title.strip():
            reading.refuse(where, "the line", "an issue has no title")
        elif issue.get("status") == "tombstone":
            reading.refuse(where, title, "the issue was deleted there")
        else:
            _add_issue(where, issue, reading)
    _count_history(file.parent / _HISTORY, reading)


def _add_issue(where: str, issue: Entry, reading: SourceReading) -> None:
    reading.count_left_out(issue, _BEADS_USED)
    fields: dict[str, Any] = filled(
        importance=_IMPORTANCE.get(issue.get("priority", 2)),
        tags=sorted({*words(issue.get("labels")), str(issue.get("issue_type") or "")} - {""}),
    )
    if issue.get("status") == "closed":
        texts = (issue.get(name) for name in _TEXTS)
        told = "\n\n".join(text.strip() for text in texts if isinstance(text, str) and text)
        goal = {"goal": issue["title"].strip()}
        fields |= {**mapped(issue, _CLOSED), "context": goal, "summary": told, "outcome": "success"}
        reading.add("episode", where, fields, issue.get("id"))
    else:
        reading.add(
            "fact", where, {**fields, **mapped(issue, _OPEN), "type": "task"}, issue.get("id")
        )


def _count_history(path: Path, reading: SourceReading) -> None:
    """List the log of changes of issues: git has the states, and memory the last one."""
    if path.is_file():
        count = sum(1 for _ in json_lines(path, reading))
        reading.files.append(str(path))
        if count:
            reading.refuse(path.name, "the log of changes", "only issues are memory", count)


BEADS = ImportSource(
    "beads", lambda path: _issues(path) is not None, _read_beads, lambda root, _: [root / ".beads"]
)
