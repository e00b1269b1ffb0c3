"""The standing of the repositories of a token, for people and for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from loki_memory.server.requests import CALLER

if TYPE_CHECKING:
    from loki_memory.server.database import Connection


class RepositoryStanding(NamedTuple):
    """A repository that a token reaches."""

    name: str
    commit: str  # of the trusted branch; empty if only pushes are here
    version: int
    records: int  # files in that commit
    pushed: int  # records that clients pushed
    fetched_seconds_ago: float | None
    problem: str  # why the last fetch failed


class ServerStanding(NamedTuple):
    """The answer of `/status`."""

    token: str
    scopes: list[str]
    repositories: list[RepositoryStanding]


_REPOSITORIES = """
SELECT o.name, o.commit, o.version,
  count(*) FILTER (WHERE r.pushed_by IS NULL AND NOT r.gone AND r.path IS NOT NULL),
  count(*) FILTER (WHERE r.pushed_by IS NOT NULL AND NOT r.gone),
  extract(epoch FROM clock_timestamp() - o.fetched)::float8, o.problem
FROM loki.repositories AS o LEFT JOIN loki.records AS r ON r.repository = o.id
GROUP BY o.id ORDER BY o.name
"""


def standing(connection: Connection) -> ServerStanding:
    """The repositories that a token reaches, and how fresh they are."""
    rows = connection.execute(_REPOSITORIES).fetchall()
    who = CALLER.get()
    return ServerStanding(who.name, who.scopes, [RepositoryStanding(*row) for row in rows])


def gauges(connection: Connection) -> list[tuple[str, str, float]]:
    """Records and freshness of the repositories that a token reaches: name, repository, value."""
    found = standing(connection).repositories
    return [
        *(("loki_records", place.name, float(place.records)) for place in found),
        *(("loki_pushed_records", place.name, float(place.pushed)) for place in found),
        *(("loki_fetch_failing", place.name, float(bool(place.problem))) for place in found),
        *(
            ("loki_fetched_seconds_ago", place.name, place.fetched_seconds_ago)
            for place in found
            if place.fetched_seconds_ago is not None
        ),
    ]
