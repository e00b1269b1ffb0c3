"""Named queries of a search: words, marks, fields, and the values of each hit that are shown.

Memories are named by their rows here. Commands that start cold load it, so the module is small;
queries that run only after a change of the index are in `queries`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from loki_memory.index.index import Index

# What each field of a question means, over `judged AS m`.
FIELDS = {
    "id": "m.id = ?",
    "kind": "m.kind = ?",
    "category": "m.category = ? COLLATE NOCASE",
    "agent": "m.agent = ? COLLATE NOCASE",
    "by": "m.agent = ? COLLATE NOCASE",
    "branch": "json_extract(m.body, '$.git_branch') = ?",
    "session": "m.session = ?",
    "status": "m.status = ?",
    "scope": "m.scope = ?",
    "outcome": "m.outcome = ?",
    "origin": "m.origin = ?",
    "parent": "m.parent = ?",
    "tag": "EXISTS (SELECT 1 FROM json_each(m.body, '$.tags') WHERE value = ? COLLATE NOCASE)",
    "file": "EXISTS (SELECT 1 FROM edges AS e WHERE e.source = m.id AND e.target = 'file:' || ?)",
    "touches": (
        "EXISTS (SELECT 1 FROM edges AS e, (SELECT ? AS path) WHERE e.source = m.id "
        "AND (e.target = 'file:' || path OR e.target LIKE 'file:%/' || path))"
    ),
    "since": "substr(m.at, 1, 10) >= ?",
    "until": "m.at <> '' AND substr(m.at, 1, 10) <= ?",
    "went": (
        "? = 'wrong' AND (m.kind = 'anti-pattern' OR m.outcome = 'failure' "
        "OR json_array_length(m.body, '$.errors_encountered') > 0)"
    ),
    "symbol": "EXISTS (SELECT 1 FROM marks WHERE memory = m.row AND mark = 'symbol:' || ?)",
}
PREFIX = "prefix"  # in place of a field: an id that is given by its beginning
_DETAILS = (
    "SELECT m.row, m.id, m.kind, m.title, m.status, m.scope, m.at, m.confidence, "
    "m.size, json_extract(m.body, '$.citations'), "
    "lower(json_extract(m.body, '$.subject') || '/' || json_extract(m.body, '$.attribute')), "
    "(SELECT count(*) FROM edges AS e WHERE e.source = m.id AND e.relation = 'derived_from'), "
    "m.path, (SELECT f.etag FROM memories AS f WHERE f.row = m.row), "
    "CASE m.kind WHEN 'anti-pattern' THEN coalesce(json_extract(m.body, '$.prevention'), "
    "json_extract(m.body, '$.resolutions[0].do')) "
    "WHEN 'pattern' THEN json_extract(m.body, '$.correct_approach') END "
    "FROM judged AS m WHERE m.row IN ({})"
)


class HitDetails(NamedTuple):
    """The values of a memory that are shown, and those that decide its marks."""

    row: int
    id: str
    kind: str
    title: str
    status: str
    scope: str
    at: str
    confidence: float | None
    size: int
    citations: str | None  # JSON
    slot: str | None  # what a fact is about: subject and attribute
    evidence: int
    path: str
    etag: str
    remedy: str | None  # of an anti-pattern, or the right way of a pattern


def passage_count(index: Index) -> int:
    """Count the passages as FTS5 does, those of links too."""
    return int(index.scalar("SELECT count(*) FROM passages"))


def details(index: Index, rows: Sequence[int]) -> dict[int, HitDetails]:
    """The values of some memories that are shown, by row."""
    return {row[0]: HitDetails(*row) for row in index.ask(_DETAILS.format(_numbers(rows)))}


def contradicting(index: Index, memory_id: str) -> tuple[str, ...]:
    """Memories that a link says contradict this one."""
    sql = (
        "SELECT target FROM edges WHERE source = ?1 AND relation = 'contradicts' UNION "
        "SELECT source FROM edges WHERE target = ?1 AND relation = 'contradicts' ORDER BY 1"
    )
    return tuple(row[0] for row in index.ask(sql, memory_id))


# -- ids and fields -------------------------------------------------------------------------------


def rows_of(index: Index, ids: Sequence[str]) -> dict[str, int]:
    return dict(index.ask_of(ids, "SELECT id, row FROM memories WHERE id IN ({})"))


def rows_with(index: Index, fields: Iterable[tuple[str, str]]) -> frozenset[int]:
    """The memories that have all of these values in these fields."""
    clauses, values = list[str](), list[str]()
    for name, value in fields:
        is_prefix = name == PREFIX
        clauses.append("m.id >= ? AND m.id < ?" if is_prefix else FIELDS[name])
        values += [value, f"{value}\U0010ffff"] if is_prefix else [value]
    sql = f"SELECT m.row FROM judged AS m WHERE {' AND '.join(clauses)}"  # noqa: S608 - ours
    return frozenset(row[0] for row in index.ask(sql, *values))


# -- marks and files ------------------------------------------------------------------------------


def marked(index: Index, mark: str, limit: int) -> list[int]:
    sql = "SELECT memory FROM marks WHERE mark = ? ORDER BY memory LIMIT ?"
    return [row[0] for row in index.ask(sql, mark, limit)]


def marked_warnings(index: Index, mark: str, limit: int) -> list[int]:
    """The anti-patterns with a mark."""
    sql = (
        "SELECT m.row FROM marks AS k JOIN memories AS m ON m.row = k.memory "
        "WHERE k.mark = ? AND m.kind = 'anti-pattern' ORDER BY m.row LIMIT ?"
    )
    return [row[0] for row in index.ask(sql, mark, limit)]


def marked_failures(index: Index, mark: str) -> set[int]:
    """The episodes with a mark that did not resolve the error they met."""
    sql = (
        "SELECT m.row FROM marks AS k JOIN memories AS m ON m.row = k.memory "
        "WHERE k.mark = ? AND m.outcome = 'failure'"
    )
    return {row[0] for row in index.ask(sql, mark)}


def touching(index: Index, path: str, limit: int) -> list[int]:
    """The memories that have an edge to a file of the project."""
    sql = (
        "SELECT DISTINCT m.row FROM edges AS e JOIN memories AS m ON m.id = e.source "
        "WHERE e.target = ? ORDER BY 1 LIMIT ?"
    )
    return [row[0] for row in index.ask(sql, f"file:{path}", limit)]


def agents_touching(index: Index, path: str) -> list[tuple[str, int, str]]:
    """(agent, number of episodes, day of the last) for a file, given by its path or its end."""
    return index.ask(
        "SELECT m.agent, count(DISTINCT m.id), max(substr(m.at, 1, 10)) FROM live AS m "
        "JOIN edges AS e ON e.source = m.id WHERE m.kind = 'episode' AND m.agent <> '' "
        "AND (e.target = 'file:' || ?1 OR e.target LIKE 'file:%/' || ?1) "
        "GROUP BY m.agent ORDER BY 2 DESC, 3 DESC, 1",
        path,
    )


def touched_together(index: Index, path: str, limit: int) -> tuple[int, list[tuple[str, int]]]:
    """The episodes that touched a file, and the files that most of them touched too."""
    of_file = (
        "SELECT DISTINCT e.source FROM edges AS e JOIN live AS m ON m.id = e.source "
        "WHERE m.kind = 'episode' AND (e.target = 'file:' || ?1 OR e.target LIKE 'file:%/' || ?1)"
    )
    total = index.scalar(f"SELECT count(*) FROM ({of_file})", path)  # noqa: S608 - ours
    others = index.ask(
        f"SELECT substr(o.target, 6), count(DISTINCT o.source) FROM edges AS o "  # noqa: S608 - ours
        f"WHERE o.source IN ({of_file}) AND o.target LIKE 'file:%' "
        "AND o.target <> 'file:' || ?1 AND o.target NOT LIKE 'file:%/' || ?1 "
        "GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?2",
        path,
        limit,
    )
    return total or 0, others


# -- full text ------------------------------------------------------------------------------------


def word_uses(index: Index, words: Sequence[str]) -> dict[str, int]:
    """Count the passages that use each of these words; a word that is nowhere is left out."""
    return dict(index.ask_of(words, "SELECT word, uses FROM vocabulary WHERE word IN ({})"))


def weighed_matches(index: Index, match: str) -> list[tuple[int, float]]:
    """Passages that an FTS5 query finds, with the weights of BM25, which are negative."""
    return _matches(index, "SELECT rowid, bm25(words) FROM words WHERE words MATCH ?", match)


def matches(index: Index, match: str) -> list[tuple[int]]:
    return _matches(index, "SELECT rowid FROM words WHERE words MATCH ?", match)


def phrase(word: str) -> str:
    """A word, or several in a row, as a query of FTS5."""
    return '"' + word.replace('"', '""').replace("\0", "") + '"'


def words_with(index: Index, part: str) -> list[str]:
    """Words of the index that contain a text, the most frequent first."""
    sql = "SELECT word FROM vocabulary WHERE instr(word, ?) ORDER BY uses DESC, word LIMIT 20"
    return [row[0] for row in index.ask(sql, part)]


def words_sharing(index: Index, match: str) -> list[str]:
    """Words of the index that share trigrams, those with most of them first."""
    sql = "SELECT word FROM parts WHERE parts MATCH ? ORDER BY rank, word LIMIT 60"
    return [row[0] for row in _matches(index, sql, match)]


def _matches(index: Index, sql: str, match: str) -> list[Any]:
    try:
        return index.ask(sql, match)
    except sqlite3.OperationalError as error:
        if "fts5" in str(error) or "syntax" in str(error) or "unterminated" in str(error):
            return []  # a text without a word for FTS5
        raise


def _numbers(values: Iterable[int]) -> str:
    return ",".join(map(str, values))


class PassageText(NamedTuple):
    """A passage: its row, when its memory was made, and its text."""

    row: int
    at: str
    text: str


def rows_below(index: Index, topic: str) -> list[int]:
    """The rows of the memories below a topic, at any depth."""
    sql = (
        "WITH RECURSIVE below (id) AS (SELECT ? UNION SELECT m.id FROM memories AS m "
        "JOIN below ON m.parent = below.id) "
        "SELECT row FROM memories JOIN below USING (id) WHERE id <> ?"
    )
    return [row for (row,) in index.ask(sql, topic, topic)]


def dated_passages(index: Index, rows: Sequence[int]) -> list[PassageText]:
    """The passages of these rows."""
    sql = (
        "SELECT p.row, m.at, p.text FROM passages AS p JOIN memories AS m ON m.row = p.memory "  # noqa: S608
        f"WHERE p.row IN ({','.join(map(str, rows))})"
    )
    return [PassageText(*found) for found in index.ask(sql)] if rows else []


def judged_fields(index: Index, rows: Sequence[int]) -> dict[int, list[Any]]:
    """By row: the id, then kind, status, scope, outcome, confidence and importance."""
    sql = (
        "SELECT row, id, kind, status, scope, outcome, confidence, importance "  # noqa: S608
        f"FROM judged WHERE row IN ({','.join(map(str, rows))})"
    )
    return {found[0]: list(found[1:]) for found in index.ask(sql)}
