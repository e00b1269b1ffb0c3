"""Named queries about edges: links, evidence, and the files that memories touch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.index.gate import TRUSTED
from loki_memory.index.queries import RecordPlace

if TYPE_CHECKING:
    from loki_memory.index.index import Index


_JOINED = (
    "SELECT source, target, weight FROM edges WHERE source IN ({})",
    "SELECT source, target, weight FROM edges WHERE target IN ({})",
    "SELECT id, mark, 1.0 FROM memories JOIN marks ON memory = row WHERE id IN ({})",
    "SELECT id, mark, 1.0 FROM marks JOIN memories ON memory = row WHERE mark IN ({})",
)
_SHARERS = (
    "SELECT target, count(*) FROM edges WHERE target IN ({}) GROUP BY target",
    "SELECT mark, count(*) FROM marks WHERE mark IN ({}) GROUP BY mark",
)

# A link counts only if a trusted origin states it: a clone must not hide what others know.
_REPLACES = f"""
SELECT e.{{0}}, e.{{1}} FROM edges AS e
JOIN memories AS m ON m.id = e.stated AND {TRUSTED}
JOIN judged AS n ON n.id = e.{{1}} AND n.status NOT IN ('rejected', 'retired')
WHERE e.{{0}} IN ({{{{}}}}) AND e.relation = '{{2}}'
"""  # noqa: S608 - constants
_WAYS = (
    _REPLACES.format("source", "target", "superseded_by"),
    _REPLACES.format("target", "source", "supersedes"),
)
_RESTING = """
SELECT m.row FROM edges AS e JOIN memories AS m ON m.id = e.source
WHERE e.target = ? AND e.relation = 'derived_from' AND m.kind IN ('pattern', 'anti-pattern')
ORDER BY m.confidence DESC, m.id
"""
_SAME_FILES = """
SELECT m.row FROM edges AS own
JOIN edges AS other ON other.target = own.target AND other.relation = 'touches'
JOIN edges AS e ON e.target = other.source AND e.relation = 'derived_from'
JOIN memories AS m ON m.id = e.source AND m.kind IN ('pattern', 'anti-pattern')
WHERE own.source = ? AND own.relation = 'touches'
GROUP BY m.row ORDER BY count(DISTINCT own.target) DESC, m.confidence DESC, m.id
"""


# What was said or done just before and just after a memory, in the same session.
_BESIDE_IN_TIME = """
WITH own AS (SELECT id, session, at FROM live WHERE id = ? AND session <> '')
SELECT * FROM (
  SELECT m.id, 'followed_by', own.id FROM own JOIN live AS m ON m.session = own.session
  WHERE (m.at, m.id) < (own.at, own.id) ORDER BY m.at DESC, m.id DESC LIMIT 1
)
UNION ALL
SELECT * FROM (
  SELECT own.id, 'followed_by', m.id FROM own JOIN live AS m ON m.session = own.session
  WHERE (m.at, m.id) > (own.at, own.id) ORDER BY m.at, m.id LIMIT 1
)
"""


class Relation(NamedTuple):
    """An edge without its weight."""

    source: str
    relation: str
    target: str


class DanglingEdge(NamedTuple):
    """An edge to a memory that is not there, and the memory that states it."""

    stated: str
    target: str


def edge_count(index: Index) -> int:
    return int(index.scalar("SELECT count(*) FROM edges"))


def relations_at(index: Index, name: str) -> list[Relation]:
    """The edges that begin or end at a name, the strongest first."""
    sql = """
        SELECT source, relation, target FROM edges WHERE source = ? OR target = ?
        GROUP BY source, relation, target
        ORDER BY max(weight) DESC, relation, source, target"""
    return [Relation(*row) for row in index.ask(sql, name, name)]


def beside_in_time(index: Index, memory_id: str) -> list[Relation]:
    """The memory before and the memory after one in its session, as edges."""
    return [Relation(*row) for row in index.ask(_BESIDE_IN_TIME, memory_id)]


def source_of_link(index: Index, memory_id: str) -> str | None:
    """The memory that a link record links from; None for all other records."""
    sql = "SELECT source FROM edges WHERE stated = ? AND source <> stated"
    source: str | None = index.scalar(sql, memory_id)
    return source


def associations(index: Index, memory_id: str) -> list[str]:
    """The memories linked with a memory in either direction, without its topic and its files."""
    sql = (
        "SELECT target FROM edges WHERE source = ?1 AND relation NOT IN ('part_of', 'touches') "
        "UNION SELECT source FROM edges WHERE target = ?1 AND relation <> 'part_of' ORDER BY 1"
    )
    return [row[0] for row in index.ask(sql, memory_id)]


def dangling(index: Index) -> list[DanglingEdge]:
    """Edges that lead nowhere, without those to episodes that are private to another machine."""
    sql = (
        "SELECT e.stated, e.target FROM edges AS e LEFT JOIN memories AS m ON m.id = e.target "
        "WHERE m.id IS NULL AND e.target NOT LIKE 'file:%' AND NOT EXISTS ("
        "SELECT 1 FROM memories AS b, json_each(b.body, '$.evidence.episodes') AS mark "
        "WHERE b.id = e.stated AND mark.key = e.target) ORDER BY 1, 2"
    )
    return [DanglingEdge(*row) for row in index.ask(sql)]


def links_at(index: Index, name: str) -> list[str]:
    """The link records that begin or end at a memory."""
    sql = "SELECT stated FROM edges WHERE (source = ?1 OR target = ?1) AND stated <> source"
    return [row[0] for row in index.ask(sql, name)]


def stating(index: Index, target: str) -> list[RecordPlace]:
    """The records that state an edge to a memory."""
    sql = (
        "SELECT m.id, m.path FROM edges AS e JOIN memories AS m ON m.id = e.stated "
        "WHERE e.target = ?"
    )
    return [RecordPlace(*row) for row in index.ask(sql, target)]


def superseded_by(index: Index, memory_id: str) -> list[str]:
    """The memories that name this one as their successor."""
    sql = "SELECT source FROM edges WHERE target = ? AND relation = 'superseded_by' ORDER BY 1"
    return [row[0] for row in index.ask(sql, memory_id)]


def names_of_rows(index: Index, rows: Sequence[int]) -> dict[int, str]:
    """The ids of memories, by row."""
    numbers = ",".join(map(str, rows))
    return dict(index.ask(f"SELECT row, id FROM memories WHERE row IN ({numbers})"))  # noqa: S608


def joined(index: Index, nodes: Sequence[str]) -> Iterator[tuple[str, str, float]]:
    """(memory, memory or thing, weight): the edges of some memories, files and marks."""
    for sql in _JOINED:
        yield from index.ask_of(nodes, sql)


def sharer_counts(index: Index, things: Sequence[str]) -> dict[str, int]:
    """Count the memories that share each of some files and marks."""
    counts: Counter[str] = Counter()
    for sql in _SHARERS:
        counts.update(dict(index.ask_of(things, sql)))
    return counts


def cited_files(index: Index) -> list[str]:
    """The files of the project that memories cite."""
    sql = (
        "SELECT DISTINCT substr(target, 6) FROM edges "
        "WHERE relation = 'cites' AND target LIKE 'file:%' ORDER BY 1"
    )
    return [row[0] for row in index.ask(sql)]


def replacements(index: Index, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of a memory and one that trusted links say replaces it."""
    for sql in _WAYS:
        yield from index.ask_of(names, sql)


def beliefs_resting_on(index: Index, episode: str) -> list[int]:
    """The rows of beliefs that were learned from an episode, the surest first."""
    return [row for (row,) in index.ask(_RESTING, episode)]


def beliefs_about_files_of(index: Index, episode: str) -> list[int]:
    """The rows of lessons from episodes that touched the same files as this one."""
    return [row for (row,) in index.ask(_SAME_FILES, episode)]


def sources(index: Index, ids: Sequence[str]) -> dict[str, set[str]]:
    """The memories that each of some memories was derived from."""
    sql = "SELECT source, target FROM edges WHERE relation = 'derived_from' AND source IN ({})"
    found: dict[str, set[str]] = {}
    for source, target in index.ask_of(ids, sql):
        found.setdefault(source, set()).add(target)
    return found
