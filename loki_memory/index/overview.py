"""Named queries for pages that show much of memory: sessions, files, and the whole graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from loki_memory.index.graph import Relation

if TYPE_CHECKING:
    from loki_memory.index.index import Index

_BELIEFS = "'pattern', 'anti-pattern', 'fact', 'skill'"


class EpisodeBody(NamedTuple):
    """An episode as JSON, and the hash of its file."""

    id: str
    etag: str
    body: str


class MapRow(NamedTuple):
    """A memory as a map shows it."""

    row: int
    id: str
    kind: str
    title: str
    status: str
    at: str


class FileRow(NamedTuple):
    """A file of the project, and the number of memories that cite or touched it."""

    path: str
    citing: int
    touching: int


class AboutRow(NamedTuple):
    """A memory about a file: what it says, and how the two are related."""

    relation: str
    id: str
    kind: str
    title: str
    status: str
    at: str
    body: str


def latest_episodes(index: Index, limit: int) -> list[EpisodeBody]:
    """The newest episodes, the oldest of them first."""
    sql = "SELECT id, etag, body FROM live WHERE kind = 'episode' ORDER BY at DESC, id LIMIT ?"
    return [EpisodeBody(*row) for row in reversed(index.ask(sql, limit))]


def lessons_by_mark(index: Index) -> dict[str, list[str]]:
    """The lessons about each error and each rule of a linter, by its mark."""
    sql = """
        SELECT mark, m.id FROM marks JOIN memories AS m ON m.row = memory
        WHERE m.kind IN ('anti-pattern', 'pattern') AND (mark LIKE 'error:%' OR mark LIKE 'rule:%')
        ORDER BY mark, m.id"""
    found: dict[str, list[str]] = {}
    for mark, memory_id in index.ask(sql):
        found.setdefault(mark, []).append(memory_id)
    return found


def map_rows(index: Index, *, with_episodes: bool, limit: int) -> list[MapRow]:
    """Memories that are shown on a map, newest first."""
    kinds = f"{_BELIEFS}, 'episode', 'handoff'" if with_episodes else _BELIEFS
    sql = f"""
        SELECT row, id, kind, title, status, at FROM live WHERE kind IN ({kinds})
        ORDER BY at DESC, id LIMIT ?"""  # noqa: S608 - constants
    return [MapRow(*row) for row in index.ask(sql, limit)]


def relations(index: Index) -> list[Relation]:
    """All edges, each once."""
    sql = "SELECT DISTINCT source, relation, target FROM edges ORDER BY 1, 2, 3"
    return [Relation(*row) for row in index.ask(sql)]


def known_files(index: Index, containing: str, limit: int) -> list[FileRow]:
    """The files that memories name, those that are cited most first."""
    sql = """
        SELECT substr(target, 6),
               count(DISTINCT CASE WHEN relation = 'cites' THEN source END) AS citing,
               count(DISTINCT CASE WHEN relation = 'touches' THEN source END) AS touching
        FROM edges WHERE target LIKE 'file:%' AND instr(lower(target), lower(?)) > 0
        GROUP BY target ORDER BY citing DESC, touching DESC, target LIMIT ?"""
    return [FileRow(*row) for row in index.ask(sql, containing, limit)]


def about_file(index: Index, path: str) -> list[AboutRow]:
    """The memories that cite or touched a file, and the beliefs learned where it was touched."""
    sql = """
        SELECT e.relation, m.id, m.kind, m.title, m.status, m.at, m.body FROM edges AS e
        JOIN live AS m ON m.id = e.source WHERE e.target = ?1
        UNION
        SELECT 'learned there', m.id, m.kind, m.title, m.status, m.at, m.body FROM edges AS e
        JOIN edges AS d ON d.target = e.source AND d.relation = 'derived_from'
        JOIN live AS m ON m.id = d.source
        WHERE e.target = ?1 AND e.relation = 'touches'
          AND m.id NOT IN (SELECT source FROM edges WHERE target = ?1)
        ORDER BY 1, 6 DESC, 2"""
    return [AboutRow(*row) for row in index.ask(sql, f"file:{path}")]


def categories(index: Index) -> dict[str, list[str]]:
    """The memories of each category."""
    sql = "SELECT category, id FROM live WHERE category <> '' AND kind <> 'link' ORDER BY 1, 2"
    found: dict[str, list[str]] = {}
    for category, memory_id in index.ask(sql):
        found.setdefault(category, []).append(memory_id)
    return found
