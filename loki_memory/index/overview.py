"""Named queries for pages that show much of memory: sessions, files, lists, the whole graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.index.graph import Relation
from loki_memory.index.index import Index, Summary
from loki_memory.models.ids import digest

if TYPE_CHECKING:
    from loki_memory.index.index import Index
    from loki_memory.models import Learning


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


# Learnings of a day as a view over anti-patterns: no file repeats what an anti-pattern says.
#
# An anti-pattern with a remedy taught something on each day of an episode that it rests on.
# Learnings that somebody wrote down are records of their own, and stand beside these.

_SAYS = """
SELECT
  id, kind, title, status, scope, at, agent, confidence, pinned, path, etag,
  json_extract(body, '$.what_fails'), json_extract(body, '$.prevention')
FROM live
WHERE kind = 'anti-pattern' AND coalesce(json_extract(body, '$.prevention'), '') <> ''
ORDER BY id
"""
# Episodes that are here, and the days of those that only another machine has; any text may
# stand in place of such a day.
_DAYS = """
SELECT x.source, substr(e.at, 1, 10) AS day
FROM edges AS x JOIN memories AS e ON e.id = x.target AND e.kind = 'episode'
WHERE x.relation = 'derived_from' AND x.source IN (
  SELECT id FROM memories WHERE kind = 'anti-pattern')
UNION
SELECT a.id, mark.value ->> '$.day'
FROM memories AS a, json_each(a.body, '$.evidence.episodes') AS mark
WHERE a.kind = 'anti-pattern' AND date(mark.value ->> '$.day') = mark.value ->> '$.day'
"""


class Taught(NamedTuple):
    """The lesson of an anti-pattern on one day."""

    source: Summary
    etag: str
    day: str
    error: str
    resolution: str

    def summary(self) -> Summary:
        """Its line in a listing, under the id of the anti-pattern."""
        return self.source._replace(title=f"{self.error}: {self.resolution}", at=self.day)

    def learning(self) -> Learning:
        """Its entry in the view of the day."""
        from loki_memory.models import Learning

        return Learning.taught_by(self.source.id, self.day, self.error, self.resolution)

    def former_id(self) -> str:
        """The id of the record that held the same before learnings were a view."""
        return f"learn-{digest('learning', self.source.id, self.day)}"


def taught(index: Index) -> list[Taught]:
    """The lessons of all live anti-patterns, by anti-pattern and day."""
    days: dict[str, set[str]] = {}
    for source, day in index.ask(_DAYS):
        if day:
            days.setdefault(source, set()).add(day)
    written = {name for (name,) in index.ask("SELECT id FROM memories WHERE kind = 'learning'")}
    found = [
        Taught(summary, etag, day, error, resolution)
        for *row, etag, error, resolution in index.ask(_SAYS)
        for summary in [Summary(*row)]
        for day in sorted(days.get(summary.id) or filter(None, [summary.at[:10]]))
    ]
    return [lesson for lesson in found if lesson.former_id() not in written]


# Beliefs in a listing: filtered and counted in the index, without reading the records.
_TITLE, _NAME = 400, 100  # characters: a page shows lines, not texts
_IS_BELIEF = "kind IN ('pattern', 'anti-pattern', 'fact')"


class BeliefFilter(NamedTuple):
    """The beliefs that are wanted; an empty field lets all through.

    Without a status the live ones are meant; `all` means every one.
    """

    kind: str = ""
    type: str = ""  # of a fact: preference, decision, …
    status: str = ""
    category: str = ""
    scope: str = ""
    since: str = ""  # a day or a moment
    least: float = 0.0  # confidence

    def where(self) -> tuple[str, list[Any]]:
        """The table and the conditions in SQL, and their values."""
        table = "live" if not self.status else "memories"
        wanted: dict[str, Any] = {
            "kind = ?": self.kind,
            "json_extract(body, '$.type') = ?": self.type,
            "status = ?": "" if self.status == "all" else self.status,
            "category = ? COLLATE NOCASE": self.category,
            "scope = ?": self.scope,
            "at >= ?": self.since,
            "confidence >= ?": self.least,
        }
        given = {sql: value for sql, value in wanted.items() if value}
        return f"FROM {table} WHERE {' AND '.join([_IS_BELIEF, *given])}", list(given.values())


class BeliefLine(NamedTuple):
    """One belief in a listing."""

    id: str
    kind: str
    title: str
    status: str
    scope: str
    at: str
    confidence: float | None
    pinned: int
    category: str
    type: str


class BeliefList(NamedTuple):
    """A part of the beliefs that were asked for, and how many there are."""

    lines: list[BeliefLine]
    total: int


def belief_list(index: Index, wanted: BeliefFilter, most: int) -> BeliefList:
    """The beliefs that pass a filter: newest first, candidates last."""
    conditions, values = wanted.where()
    columns = (
        f"id, kind, substr(title, 1, {_TITLE}), status, scope, at, confidence, pinned, "
        f"substr(category, 1, {_NAME}), "
        "substr(coalesce(json_extract(body, '$.type'), ''), 1, 40)"
    )
    order = "status = 'candidate', at DESC, id"
    sql = f"SELECT {columns} {conditions} ORDER BY {order} LIMIT ?"
    lines = [BeliefLine(*row) for row in index.ask(sql, *values, most)]
    return BeliefList(lines, int(index.scalar(f"SELECT count(*) {conditions}", *values)))


def belief_ids(index: Index, wanted: BeliefFilter) -> set[str]:
    """The ids of all beliefs that pass a filter."""
    conditions, values = wanted.where()
    return {row[0] for row in index.ask(f"SELECT id {conditions}", *values)}


def largest_categories(index: Index, most: int) -> list[str]:
    """The categories of live beliefs, the largest first."""
    sql = (
        "SELECT category FROM live "
        "WHERE kind IN ('pattern', 'anti-pattern', 'fact') AND category != '' "
        "AND length(category) <= 100 "
        "GROUP BY category ORDER BY count(*) DESC, category LIMIT ?"
    )
    return [row[0] for row in index.ask(sql, most)]
