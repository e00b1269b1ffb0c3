"""Databases of other programs: Lore, Lynkr, claude-mem and claude-flow, opened for reading only.

A database with a write-ahead log that nobody has open has no log beside it; SQLite would create one
even to read. Such a database is opened as immutable, so that nothing is left in its folder. Every
other one is opened with `mode=ro`, and read with what stands in its log.

A database may come from anywhere, so only what it stores is read: what a view computes may have no
end, and what an expression computes may have any size.

Vectors, decay and counters of access are not taken over: they are computed here.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from loki_memory.errors import InvalidRecord
from loki_memory.interop.sources.source import (
    FoundMemory,
    ImportSource,
    SourceReading,
    decoded,
    files_below,
    first_of,
    is_list,
    json_of,
    mapped,
    names_in,
)

_HEADER, _WRITE_AHEAD = 19, b"\2"  # bytes of the header that end with the kind of journal
_SECONDS = 2.0  # to wait for a lock of the database's owner
_LONGEST = 900_000  # characters of a value: a record has at most a megabyte
_MOST_BYTES = 1 << 26  # of a value or row; SQLite's own limit is a gigabyte

Row = Mapping[str, Any]


def has_columns(path: Path, **wanted: str) -> bool:
    """Check for an SQLite database with these tables, and these columns in them."""
    try:  # nothing but a file: a pipe would be waited for
        is_database = path.is_file() and _beginning(path, 16) == b"SQLite format 3\0"
    except OSError:
        return False
    if not is_database:
        return False
    found = _tables(path)
    return wanted.keys() <= found.keys() and all(
        {*columns.split()} <= found[table] for table, columns in wanted.items()
    )


def _tables(path: Path) -> dict[str, set[str]]:
    """The names of all tables with those of their columns."""
    listed = "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c"
    found: dict[str, set[str]] = {}
    for row in rows(path, f"{listed} WHERE m.type = 'table'", ("table", "column")):
        found.setdefault(str(row["table"]), set()).add(str(row["column"]))
    return found


def rows(path: Path, query: str, names: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
    """The rows of a query as objects; raises InvalidRecord where it fails."""
    try:
        with closing(sqlite3.connect(_address(path), uri=True, timeout=_SECONDS)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_BYTES)
            connection.set_authorizer(_of_plain_tables)
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            cursor = connection.execute(query)
            columns = names or tuple(column[0] for column in cursor.description)
            for row in cursor:
                yield {name: _bounded(value) for name, value in zip(columns, row, strict=True)}
    except sqlite3.Error as error:
        raise InvalidRecord(
            f"cannot be read as a database ({error})", advice="Close its program and try again."
        ) from None


def stored(path: Path, table: str, order: str) -> Iterator[dict[str, Any]]:
    """The rows of a table in an order, without columns that an expression computes."""
    columns = _tables(path).get(table, set())  # which lists what is stored
    if "id" not in columns:
        raise InvalidRecord(f"has no ids in its table {table}")
    names = ", ".join(map(_quoted, sorted(columns)))
    known = ", ".join(_quoted(name) for name in order.split() if name in columns)
    return rows(path, f"SELECT {names} FROM {table} ORDER BY {known}")  # noqa: S608 - quoted


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _of_plain_tables(_action: int, _one: object, _two: object, _file: object, view: object) -> int:
    """Let a query read what is stored, and nothing that a view or a trigger computes."""
    return sqlite3.SQLITE_OK if view is None else sqlite3.SQLITE_DENY


def _address(path: Path) -> str:
    """The address for reading, which says if nobody else has the database open."""
    try:
        has_log = _beginning(path, _HEADER)[-1:] == _WRITE_AHEAD
    except OSError as error:
        raise InvalidRecord(f"cannot be read ({error.strerror})") from None
    is_at_rest = has_log and not path.with_name(f"{path.name}-wal").exists()
    option = "immutable=1" if is_at_rest else "mode=ro"
    return f"file:{quote(str(path.absolute()))}?{option}"


def _beginning(path: Path, size: int) -> bytes:
    with open(path, "rb") as file:
        return file.read(size)


def _bounded(value: Any) -> Any:
    return value[:_LONGEST] if isinstance(value, str) else value


# -- Lore: fragments as facts, their tree as parents, their edges as links -------------------------

_LORE = {"statement": "content summary", "depth": "depth", "importance": "importance"}
_LORE |= {"valid_from": "created_at"}
_LORE_USED = names_in(
    _LORE,
    "id parent_id superseded_by embedding last_accessed access_count relevance_score decay_rate"
    " last_reinforced",
)
_RELATIONS = {"associative": "related_to", "supersedes": "supersedes"}
Links = defaultdict[str, list[tuple[str, str]]]


def _read_lore(path: Path, reading: SourceReading) -> None:
    reading.files.append(str(path))
    parents, links = _lore_edges(path, reading)
    for row in stored(path, "fragments", "created_at id"):
        ref, fields = str(row["id"]), mapped(row, _LORE)
        if not fields.get("statement"):
            reading.refuse(f"fragment {ref}", "the fragment", "it has no text")
            continue
        reading.count_left_out(row, _LORE_USED)
        if heir := row.get("superseded_by"):
            fields["status"] = "superseded"
            links[ref] = list(dict.fromkeys([*links[ref], ("superseded_by", str(heir))]))
        above = parents.get(ref, "") or str(row.get("parent_id") or "")
        found = FoundMemory("fact", fields, f"fragment {ref}", ref, above, tuple(links[ref]))
        reading.found.append(found)


def _lore_edges(path: Path, reading: SourceReading) -> tuple[dict[str, str], Links]:
    """The parent of each fragment, and its other links."""
    parents: dict[str, str] = {}
    links: Links = defaultdict(list)
    for edge in stored(path, "edges", "id"):
        source, target = str(edge.get("source")), str(edge.get("target"))
        kind = str(edge.get("kind")).lower()
        if kind == "hierarchical":
            parents.setdefault(target, source)
        elif kind in _RELATIONS:
            links[source].append((_RELATIONS[kind], target))
        else:
            reading.left_out[f"{kind} edge"] += 1
    return parents, links


LORE = ImportSource(
    "lore",
    lambda path: has_columns(path, fragments="", edges=""),
    _read_lore,
    lambda _, home: [home / ".lore" / "memory.db"],
)


# -- Lynkr: typed statements; those of one conversation stay private -------------------------------

_LYNKR = {"statement": "content", "type": "memory_type type", "category": "category"}
_LYNKR |= {"importance": "importance", "valid_from": "created_at"}
_LYNKR_USED = names_in(_LYNKR, "id session_id last_accessed access_count surprise_score updated_at")


def _read_lynkr(path: Path, reading: SourceReading) -> None:
    reading.files.append(str(path))
    for row in stored(path, "memories", "created_at id"):
        where, fields = f"memory {row['id']}", mapped(row, _LYNKR)
        if not fields.get("statement"):
            reading.refuse(where, "the memory", "it has no text")
            continue
        reading.count_left_out(row, _LYNKR_USED)
        is_private = row.get("session_id") not in (None, "")
        found = FoundMemory("fact", fields, where, str(row["id"]), private=is_private)
        reading.found.append(found)


LYNKR = ImportSource(
    "lynkr",
    lambda path: has_columns(path, memories="content importance"),
    _read_lynkr,
    lambda root, _: [root / "data" / "memories.db"],
)


# -- claude-mem: observations as facts, summaries as episodes --------------------------------------
#
# The database holds the sessions of all projects by the name of their folder. Those of other
# projects are left where they are, unless all are asked for.

_COMMON = "id project discovery_tokens prompt_number memory_session_id sdk_session_id"
_TIMES = "created_at_epoch created_at"
_OBSERVATION = {"type": "type", "category": "type", "tags": "concepts", "valid_from": _TIMES}
_OBSERVATION_USED = names_in(
    _OBSERVATION, f"{_COMMON} title subtitle narrative text facts content_hash"
)
_SUMMARY = {"timestamp": _TIMES, "files_read": "files_read", "files_modified": "files_edited"}
_SUMMARY_USED = names_in(
    _SUMMARY, f"{_COMMON} request investigated learned completed next_steps notes"
)


def _read_claude_mem(path: Path, reading: SourceReading) -> None:
    file = _claude_mem(path)
    reading.files.append(str(file))
    others: Counter[str] = Counter()
    asked = reading.request
    for table, add in (("observations", _add_observation), ("session_summaries", _add_summary)):
        for row in stored(file, table, "created_at_epoch id"):  # the first versions have no time
            project = str(row.get("project") or "")
            if asked.every_project or project in {"", asked.project}:
                add(row, reading)
            else:
                others[project] += 1
    for project, count in sorted(others.items()):
        reading.refuse(file.name, f"project {project}", "memory of another project", count)


def _claude_mem(path: Path) -> Path:
    return path / "claude-mem.db" if path.is_dir() else path


def _add_observation(row: Row, reading: SourceReading) -> None:
    where = f"observation {row['id']}"
    facts = decoded(row.get("facts"))
    listed = "; ".join(map(str, facts)) if is_list(facts) else ""
    detail = " ".join(filter(None, (_text(row, "narrative", "text", "subtitle"), listed)))
    statement = ": ".join(filter(None, (_text(row, "title"), detail)))
    if not statement:
        reading.refuse(where, "the observation", "it has no text")
        return
    reading.count_left_out(row, _OBSERVATION_USED)
    fields = {**mapped(row, _OBSERVATION), "statement": statement}
    reading.add("fact", where, fields, f"observation-{row['id']}")


def _add_summary(row: Row, reading: SourceReading) -> None:
    where, goal = f"summary {row['id']}", _text(row, "request", "completed")
    fields = mapped(row, _SUMMARY)
    if not goal or "timestamp" not in fields:
        reading.refuse(where, "the summary", "it has no request or no time")
        return
    reading.count_left_out(row, _SUMMARY_USED)
    parts = [_text(row, name) for name in ("learned", "completed", "next_steps", "notes")]
    told = {"context": {"goal": goal}, "summary": "\n\n".join(filter(None, parts))}
    reading.add("episode", where, {**fields, **told, "outcome": "unknown"}, f"summary-{row['id']}")


def _text(row: Row, *names: str) -> str:
    return str(first_of(row, *names) or "").strip()


CLAUDE_MEM = ImportSource(
    "claude-mem",
    lambda path: has_columns(_claude_mem(path), observations="", session_summaries=""),
    _read_claude_mem,
    lambda _, home: [home / ".claude-mem"],
)


# -- claude-flow: `.swarm/hybrid-memory.db`, and the `~/.claude/memory/*.json` that it syncs with --
#
# The JSON files have no documented schema: an entry is an object with its text under one of the
# usual names, in a list, under `entries` or `memories`, or by its key.

_TEXTS = "content value text summary insight"
_ENTRY = {"category": "category namespace", "tags": "tags"}
_ENTRY |= {"valid_from": "updated_at created_at timestamp"}
_ENTRY_USED = names_in(
    _ENTRY, f"{_TEXTS} id key type embedding access_count last_accessed_at version access_level"
)


def _is_claude_flow(path: Path) -> bool:
    return bool(_claude_flow(path) or _json_files(path))


def _claude_flow(path: Path) -> Path | None:
    places = (path, path / "hybrid-memory.db", path / ".swarm" / "hybrid-memory.db")
    wanted = {"memory_entries": "key content namespace"}
    files = (place for place in places if place.is_file() and place.suffix != ".json")
    return next((place for place in files if has_columns(place, **wanted)), None)


def _json_files(path: Path) -> list[Path]:
    folder = path.parent if path.is_file() else path
    if folder.absolute().parts[-2:] != (".claude", "memory"):
        return []
    return [path] if path.is_file() else files_below(path, "*.json")


def _read_claude_flow(path: Path, reading: SourceReading) -> None:
    database = _claude_flow(path)
    if database is not None:
        reading.files.append(str(database))
        for row in stored(database, "memory_entries", "created_at id"):
            where = f"entry {row.get('key') or row['id']}"
            _add_entry(where, str(row.get("key") or ""), row, reading, "content")
    reading.read_each(_json_files(path), _read_json)


def _read_json(path: Path, reading: SourceReading) -> None:
    for key, entry in _entries(json_of(path)):
        about = entry if isinstance(entry, dict) else {"value": entry}
        about = {"namespace": path.stem, **about}
        _add_entry(f"{path.name}:{key}", key, about, reading, *_TEXTS.split())


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Each entry of a file with its key, which may be its number."""
    if isinstance(value, dict):
        lists = (value.get(name) for name in ("entries", "memories", "insights"))
        inner = next((found for found in lists if isinstance(found, list)), None)
        if inner is None and first_of(value, *_TEXTS.split()) is None:
            yield from ((str(key), entry) for key, entry in value.items())
            return
        value = [value] if inner is None else inner
    for number, entry in enumerate(value if isinstance(value, list) else ()):
        key = entry.get("key") if isinstance(entry, dict) else None
        yield str(key or number), entry


def _add_entry(where: str, key: str, entry: Row, reading: SourceReading, *texts: str) -> None:
    """Add a fact; a text that needs its key to be understood is told with it."""
    told = (entry.get(name) for name in texts)
    text = next((text.strip() for text in told if isinstance(text, str) and text.strip()), "")
    if not text:
        reading.refuse(where, "the entry", "it has no text under a name that is known")
        return
    reading.count_left_out(entry, _ENTRY_USED)
    subject = key.replace("_", " ").replace("-", " ").strip()
    subject = "" if subject.isdigit() else subject
    statement = text if " " in text or not subject else f"{subject}: {text}"
    fields = {**mapped(entry, _ENTRY), "statement": statement, "subject": subject}
    reading.add("fact", where, fields, entry.get("id"))


CLAUDE_FLOW = ImportSource(
    "claude-flow",
    _is_claude_flow,
    _read_claude_flow,
    lambda root, home: [root / ".swarm", home / ".claude" / "memory"],
)
