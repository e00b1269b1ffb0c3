"""Beliefs in a listing: filtered and counted in the index, without reading the records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from loki_memory.index.index import Index

_TITLE, _NAME = 400, 100  # characters: a page shows lines, not texts
_BELIEFS = "kind IN ('pattern', 'anti-pattern', 'fact')"


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
        return f"FROM {table} WHERE {' AND '.join([_BELIEFS, *given])}", list(given.values())


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
    """The beliefs that pass a filter: the most certain first, candidates last."""
    conditions, values = wanted.where()
    columns = (
        f"id, kind, substr(title, 1, {_TITLE}), status, scope, at, confidence, pinned, "
        f"substr(category, 1, {_NAME}), "
        "substr(coalesce(json_extract(body, '$.type'), ''), 1, 40)"
    )
    order = "status = 'candidate', confidence DESC, at DESC, id"
    sql = f"SELECT {columns} {conditions} ORDER BY {order} LIMIT ?"
    lines = [BeliefLine(*row) for row in index.ask(sql, *values, most)]
    return BeliefList(lines, int(index.one(f"SELECT count(*) {conditions}", *values)))


def belief_ids(index: Index, wanted: BeliefFilter) -> set[str]:
    """The ids of all beliefs that pass a filter."""
    conditions, values = wanted.where()
    return {row[0] for row in index.ask(f"SELECT id {conditions}", *values)}


def categories(index: Index, most: int) -> list[str]:
    """The categories of live beliefs, the largest first."""
    sql = (
        "SELECT category FROM live "
        "WHERE kind IN ('pattern', 'anti-pattern', 'fact') AND category != '' "
        "AND length(category) <= 100 "
        "GROUP BY category ORDER BY count(*) DESC, category LIMIT ?"
    )
    return [row[0] for row in index.ask(sql, most)]
