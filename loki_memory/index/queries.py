"""Named queries about memories, files and problems; the answers are typed rows.

Queries about edges are in `graph`, those about what may be told unasked in `gate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from loki_memory.index.gate import PROVEN, TRUSTED

if TYPE_CHECKING:
    from loki_memory.files.view_rendering import Listed
    from loki_memory.index.index import Index
    from loki_memory.models.kinds import Kind

_PASSAGES = f"""
SELECT
  m.row, m.session, m.at, m.agent, m.kind, j.status, m.scope, m.until, m.size,
  NOT ({TRUSTED}), NOT ({PROVEN}), p.row, p.key
FROM passages AS p JOIN memories AS m ON m.row = p.memory JOIN judged AS j ON j.row = m.row
WHERE m.kind NOT IN ('link', 'tombstone')
ORDER BY m.session, m.at, m.id, p.row
"""  # noqa: S608 - constants
Countable = Literal["kind", "status", "scope", "origin", "agent", "outcome"]


class RecordPlace(NamedTuple):
    """A memory and its file."""

    id: str
    path: str


class RecordVersion(NamedTuple):
    """A memory, its file, and the hash of the file's bytes."""

    id: str
    path: str
    etag: str


class RecordKind(NamedTuple):
    """A memory, its file, the hash of the file's bytes, and its kind."""

    id: str
    path: str
    etag: str
    kind: str


class RecordContent(NamedTuple):
    """The values of a row that its file must have too."""

    id: str
    path: str
    etag: str
    title: str
    body: str
    status: str
    tombstone: str


class SharedRecord(NamedTuple):
    """A record of shared memory: what it is called, and what it says."""

    id: str
    kind: str
    title: str
    body: str


class RecordTitle(NamedTuple):
    """The kind, title and status of a memory, rejected or not."""

    kind: str
    title: str
    status: str


class TimelineRow(NamedTuple):
    """A memory in a timeline; `state` is an episode's outcome or a handoff's state."""

    id: str
    at: str
    agent: str
    title: str
    state: str
    body: str


class TopicMember(NamedTuple):
    """The values of a memory that decide its topic."""

    id: str
    kind: str
    category: str
    parent: str
    day: str
    tokens: int
    is_top: int  # it says that it is a topic, with or without anything below it


class PassageColumns(NamedTuple):
    """All passages that can be found, column by column, those of one session in their order."""

    memory: Sequence[int] = ()
    session: Sequence[str] = ()
    at: Sequence[str] = ()
    agent: Sequence[str] = ()
    kind: Sequence[str] = ()
    status: Sequence[str] = ()
    scope: Sequence[str] = ()
    until: Sequence[str] = ()
    size: Sequence[int] = ()
    foreign: Sequence[int] = ()
    unproven: Sequence[int] = ()
    passage: Sequence[int] = ()
    key: Sequence[int] = ()


def marks(values: Sequence[object]) -> str:
    """A question mark for each value of a list."""
    return ", ".join("?" * len(values))


# -- one memory, or those that are named -----------------------------------------------------------


def heading(index: Index, memory_id: str) -> RecordTitle | None:
    rows = index.ask("SELECT kind, title, status FROM judged WHERE id = ?", memory_id)
    return RecordTitle(*rows[0]) if rows else None


def titles(index: Index, ids: Sequence[str]) -> dict[str, str]:
    return dict(index.ask_of(ids, "SELECT id, title FROM memories WHERE id IN ({})"))


def named_bodies(index: Index, ids: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Id, kind and JSON of these memories, some at a time: all at once would fill the memory."""
    yield from index.ask_of(ids, "SELECT id, kind, body FROM memories WHERE id IN ({})")


def origin(index: Index, memory_id: str) -> str:
    return index.scalar("SELECT origin FROM memories WHERE id = ?", memory_id) or ""


def tombstone_of(index: Index, memory_id: str) -> str:
    """The id of the tombstone of a memory's value; empty if there is none."""
    sql = (
        "SELECT t.id FROM memories AS m JOIN memories AS t ON t.tombstone = m.tombstone "
        "AND t.kind = 'tombstone' WHERE m.id = ? ORDER BY t.id"
    )
    return index.scalar(sql, memory_id) or ""


def tokens_of(index: Index, memory_id: str) -> int:
    """The tokens that reading a memory costs, estimated as bytes / 4."""
    return index.scalar("SELECT (size + 3) / 4 FROM memories WHERE id = ?", memory_id) or 0


# -- all memories ----------------------------------------------------------------------------------


def count(index: Index) -> int:
    return int(index.scalar("SELECT count(*) FROM memories"))


def counts_by(index: Index, column: Countable) -> dict[str, int]:
    """Count the memories by the value of a column, the most frequent first."""
    sql = f"SELECT {column} AS what, count(*) FROM memories GROUP BY 1 HAVING what <> ''"  # noqa: S608
    return dict(index.ask(f"{sql} ORDER BY 2 DESC, 1"))


def episodes_by_day(index: Index) -> dict[str, int]:
    sql = (
        "SELECT substr(at, 1, 10) AS day, count(*) FROM memories "
        "WHERE kind = 'episode' GROUP BY 1 ORDER BY 1"
    )
    return dict(index.ask(sql))


def words(index: Index) -> int:
    """Count the different words."""
    return int(index.scalar("SELECT count(*) FROM vocabulary"))


def versions(index: Index) -> list[RecordVersion]:
    return [RecordVersion(*row) for row in index.ask("SELECT id, path, etag FROM memories")]


def shared_records(index: Index) -> list[SharedRecord]:
    """All records that are not on this machine only, newest first."""
    rows = index.ask(
        "SELECT id, kind, title, body FROM live "
        "WHERE substr(path, 1, 6) <> 'local/' ORDER BY at DESC, id"
    )
    return [SharedRecord(*row) for row in rows]


def records(index: Index, kinds: Sequence[str]) -> list[RecordKind]:
    """The records of some kinds, in any file."""
    sql = f"SELECT id, path, etag, kind FROM memories WHERE kind IN ({marks(kinds)})"  # noqa: S608
    return [RecordKind(*row) for row in index.ask(sql, *kinds)]


def episodes_of_session(index: Index, session: str) -> list[str]:
    """The JSON of the episodes of a session, by id."""
    sql = "SELECT body FROM memories WHERE kind = 'episode' AND session = ? ORDER BY id"
    return [row[0] for row in index.ask(sql, session)]


def episodes_recorded(index: Index, since: str, until: str) -> list[str]:
    """The JSON of episodes between two moments that somebody recorded on purpose, by id."""
    sql = (
        "SELECT body FROM live WHERE kind = 'episode' AND at BETWEEN ? AND ? "
        "AND json_extract(body, '$.captured') IS NULL AND origin = 'agent' ORDER BY id"
    )
    return [row[0] for row in index.ask(sql, since, until)]


def learned_here(index: Index) -> set[str]:
    """The ids of memories that were captured or learned here and are in the local zone."""
    sql = (
        "SELECT id FROM memories WHERE path >= 'local/' AND path < 'local0' AND ("
        "json_extract(body, '$.captured') OR json_type(body, '$.key') IS NOT NULL "
        "OR json_extract(body, '$.metadata.\"loki-evidence\"') IS NOT NULL "
        "OR kind = 'tombstone' OR kind = 'link' AND json_extract(body, '$.by') = 'consolidation')"
    )
    return {row[0] for row in index.ask(sql)}


def topic_named(index: Index, name: str) -> str:
    """The id of the topic about a category; empty if there is none."""
    sql = (
        "SELECT id FROM live WHERE kind = 'fact' "
        "AND json_extract(body, '$.key.topic') = ? COLLATE NOCASE ORDER BY id LIMIT 1"
    )
    return index.scalar(sql, name) or ""


def candidates(index: Index) -> list[str]:
    """The ids of lessons that were learned here and are not published.

    The best come first: those that count as active, then those with more evidence.
    """
    sql = (
        "SELECT id FROM live AS m "
        "WHERE path >= 'local/' AND path < 'local0' AND json_type(body, '$.key') IS NOT NULL "
        "AND json_extract(body, '$.key.topic') IS NULL AND status IN ('active', 'candidate') "
        "ORDER BY status, (SELECT count(*) FROM edges AS e WHERE e.source = m.id "
        "AND e.relation = 'derived_from') DESC, confidence DESC, id"
    )
    return [row[0] for row in index.ask(sql)]


def shadowed(index: Index) -> list[tuple[str, str]]:
    """(path, etag) of files in the local zone whose memory was published."""
    sql = "SELECT path, hash FROM files WHERE held = 0 AND path >= 'local/' AND path < 'local0'"
    return index.ask(sql)


def listed(index: Index, kind: Kind) -> list[Listed]:
    """The records of a kind that were not rejected, as views list them."""
    from loki_memory.files.view_rendering import Listed

    columns = ", ".join(Listed._fields)
    sql = f"SELECT {columns} FROM judged WHERE kind = ? AND status <> 'rejected' ORDER BY id"  # noqa: S608
    return [Listed(*row) for row in index.ask(sql, kind)]


def contents(index: Index) -> dict[str, RecordContent]:
    """All rows by id."""
    sql = "SELECT id, path, etag, title, body, status, tombstone FROM memories"
    return {row[0]: RecordContent(*row) for row in index.ask(sql)}


def rejected_again(index: Index) -> list[str]:
    """Ids of records with a rejected value that are not marked as rejected."""
    sql = (
        "SELECT m.id FROM memories AS m JOIN judged AS j ON j.id = m.id "
        "WHERE j.status = 'rejected' AND m.status <> 'rejected' ORDER BY 1"
    )
    return [row[0] for row in index.ask(sql)]


def with_citations(index: Index) -> list[RecordPlace]:
    """Beliefs that cite code."""
    sql = (
        "SELECT id, path FROM live WHERE kind IN ('pattern', 'anti-pattern', 'fact') "
        "AND json_array_length(body, '$.citations') > 0 ORDER BY id"
    )
    return [RecordPlace(*row) for row in index.ask(sql)]


# -- passages -------------------------------------------------------------------------------------


def passage_columns(index: Index) -> PassageColumns:
    rows = index.ask(_PASSAGES)
    return PassageColumns(*zip(*rows, strict=True)) if rows else PassageColumns()


def passage_texts(index: Index, keys: Sequence[int]) -> dict[int, str]:
    """The texts with these keys, by key."""
    numbers = ",".join(map(str, keys))
    sql = f"SELECT key, min(text) FROM passages WHERE key IN ({numbers}) GROUP BY key"  # noqa: S608
    return dict(index.ask(sql))


def embedded_passages(index: Index, model: str) -> tuple[int, int]:
    """Count the different texts that have a vector of a model, and all of them."""
    sql = (
        "SELECT count(v.key), count(*) FROM (SELECT DISTINCT p.key FROM passages AS p "
        "JOIN memories AS m ON m.row = p.memory "
        "WHERE p.key <> 0 AND m.kind NOT IN ('link', 'tombstone')) AS t "
        "LEFT JOIN vectors AS v ON v.key = t.key AND v.model = ?"
    )
    done, passages = index.ask(sql, model)[0]
    return done, passages


# -- files and problems ----------------------------------------------------------------------------


def memory_paths(index: Index) -> list[str]:
    """Every file with a memory, views included."""
    return [row[0] for row in index.ask("SELECT DISTINCT path FROM memories")]


def renamed_records(index: Index) -> list[RecordPlace]:
    """Records that are shown under another id, because another file has theirs."""
    sql = (
        "SELECT m.id, m.path FROM files AS f JOIN memories AS m ON m.path = f.path "
        "WHERE f.held = 0 AND lower(m.id) <> f.claims ORDER BY m.path"
    )
    return [RecordPlace(*row) for row in index.ask(sql)]


def problem_paths(index: Index) -> list[str]:
    return [row[0] for row in index.ask("SELECT path FROM problems")]


def unread_problems(index: Index) -> list[tuple[str, str, str, int, str]]:
    """Problems of files that hold no memory: path, reason, field, line, advice."""
    return index.ask(
        "SELECT path, reason, field, line, advice FROM problems "
        "WHERE path IN (SELECT path FROM problems EXCEPT SELECT path FROM memories) "
        "ORDER BY path, line, field"
    )


def quick_check(index: Index) -> str:
    """SQLite's check of the database: `ok`, or the first damage that it finds."""
    return str(index.scalar("PRAGMA quick_check"))


# -- topics and timelines --------------------------------------------------------------------------


def topic_members(index: Index) -> list[TopicMember]:
    sql = """
        SELECT id, kind, category, parent, substr(at, 1, 10), (size + 3) / 4,
               instr(body, '"depth":0') > 0 AND ifnull(json_extract(body, '$.depth') = 0, 0)
        FROM live WHERE kind <> 'tombstone' ORDER BY id"""
    return [TopicMember(*row) for row in index.ask(sql)]


def children(index: Index, memory_id: str) -> list[str]:
    return [
        row[0] for row in index.ask("SELECT id FROM live WHERE parent = ? ORDER BY id", memory_id)
    ]


def parents(index: Index, memory_id: str) -> list[str]:
    """The parent of a memory, if it has exactly one."""
    sql = "SELECT parent FROM memories WHERE id = ? AND parent <> ''"
    return [row[0] for row in index.ask(sql, memory_id)]


def descendant_count(index: Index, memory_id: str) -> int:
    sql = (
        "WITH RECURSIVE below (id) AS (SELECT ? UNION SELECT m.id FROM memories AS m "
        "JOIN below ON m.parent = below.id) SELECT count(*) - 1 FROM below"
    )
    return int(index.scalar(sql, memory_id))


_TIMELINE = "SELECT id, at, agent, title, {}, {} FROM live WHERE {} ORDER BY at DESC, id LIMIT ?"
_ALL = -1


def _timeline(
    index: Index, columns: tuple[str, str], where: str, *values: Any, limit: int = _ALL
) -> list[TimelineRow]:
    sql = _TIMELINE.format(*columns, where)
    return [TimelineRow(*row) for row in index.ask(sql, *values, limit)]


def episodes_since(index: Index, first: str, limit: int) -> list[TimelineRow]:
    where = "kind = 'episode' AND scope <> 'session' AND at >= ?"
    return _timeline(index, ("outcome", "''"), where, first, limit=limit)


def decisions_since(
    index: Index, first: str, now: str, categories: Sequence[str], limit: int
) -> list[TimelineRow]:
    """Decisions that still hold."""
    where = (
        "kind IN ('fact', 'pattern', 'learning') AND scope <> 'session' AND at >= ? "
        f"AND lower(category) IN ({marks(categories)}) "
        "AND ifnull(json_extract(body, '$.invalid_at'), '9999') > ?"
    )
    return _timeline(index, ("''", "''"), where, first, *categories, now, limit=limit)


def ledgers_since(index: Index, first: str) -> list[TimelineRow]:
    return _timeline(index, ("''", "body"), "kind = 'ledger' AND at >= ?", first)


def handoffs_since(index: Index, first: str) -> list[TimelineRow]:
    """Handoffs that are not finished."""
    where = "kind = 'handoff' AND status IN ('open', 'accepted') AND at >= ?"
    return _timeline(index, ("status", "body"), where, first)


def paths_saying(index: Index, kind: str, value_key: str) -> list[str]:
    """The files of a kind that state a value, by the id that its tombstone would have."""
    sql = (
        "SELECT path FROM memories WHERE tombstone = ? AND tombstone <> '' AND kind = ? "
        "ORDER BY path"
    )
    return [row[0] for row in index.ask(sql, value_key, kind)]


def pending_views(index: Index) -> list[str]:
    """Views with a memory that no record file has."""
    sql = (
        "SELECT DISTINCT path FROM memories WHERE path IN ("
        "'semantic/patterns.json', 'semantic/anti-patterns.json', 'semantic/facts.json',"
        "'semantic/links.json', 'episodic/index.json') OR path GLOB 'learnings/????-??-??.json'"
        " ORDER BY path"
    )
    return [row[0] for row in index.ask(sql)]
