"""Filters of listed memories: the rows that a command such as `list` asks for."""

from __future__ import annotations

from typing import NamedTuple

from loki_memory.models.kinds import FACT_TYPES


class ListFilter(NamedTuple):
    """The memories of a listing: live ones, or those with a status; `all` stands for every one."""

    kind: str | None = None
    status: str | None = None
    since: str | None = None
    scope: str | None = None

    def sql(self) -> tuple[str, list[str]]:
        """The part of a query that chooses the rows, and its values."""
        table = "live" if self.status is None else "judged"
        typed = self.kind if self.kind in FACT_TYPES else None
        kind = "fact" if typed else self.kind
        status = None if self.status == "all" else self.status
        wanted = {"kind": kind, "status": status, "scope": self.scope}
        clauses = [f"{name} = ?" for name, value in wanted.items() if value]
        values = [value for value in wanted.values() if value]
        if typed:
            clauses.append("json_extract(body, '$.type') = ?")
            values.append(typed)
        if self.since:
            clauses.append("at >= ?")
            values.append(self.since)
        if kind is None and self.status is None:
            clauses.append("kind <> 'tombstone'")
        where = " AND ".join(clauses) or "true"
        return f"FROM {table} WHERE {where}", values
