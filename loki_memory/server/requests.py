"""The requests of a server: who asks, how often they may, what they reach, and what is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import InvalidRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loki_memory.server.database import Connection

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5)  # seconds of a request


class Caller(NamedTuple):
    """The token of a request."""

    secret: str
    id: int
    name: str
    scopes: list[str]


CALLER: ContextVar[Caller] = ContextVar("caller")  # of the request that is answered


def caller(connection: Connection, secret: str) -> Caller | None:
    """The token with this secret; None if nobody has it, or it expired or was revoked."""
    found = connection.execute("SELECT id, name, scopes FROM loki.caller()").fetchone()
    return Caller(secret, *found) if found else None


def only_repository(connection: Connection) -> str:
    """The repository that is meant if a call names none; raises InvalidRecord if several may be."""
    rows = connection.execute(
        "SELECT name FROM loki.repositories WHERE id = ANY (loki.reach('read')) ORDER BY name"
    ).fetchall()
    if len(rows) != 1:
        names = ", ".join(name for (name,) in rows) or "none yet"
        raise InvalidRecord("is missing", field="project", advice=f"Name one of these: {names}.")
    return str(rows[0][0])


def note(connection: Connection, repository: str, act: str, ids: Sequence[str]) -> None:
    """Write down who read or pushed what."""
    connection.execute(
        "INSERT INTO loki.audit (token, repository, act, ids) "
        "SELECT loki.token(), id, %s, %s FROM loki.repositories WHERE name = %s",
        (act, list(ids), repository),
    )


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


class RateLimit:
    """A bucket for each token: full at first, one request leaks in every so many seconds."""

    def __init__(self, per_minute: int) -> None:
        self._size = float(per_minute)
        self._levels: dict[int, tuple[float, float]] = {}
        self._lock = Lock()

    def wait(self, token: int, now: float) -> float:
        """Take a request out of the bucket; the seconds to wait if it is empty, else 0."""
        with self._lock:
            level, before = self._levels.get(token, (self._size, now))
            level = min(self._size, level + (now - before) * self._size / 60)
            if level < 1:
                self._levels[token] = (level, now)
                return (1 - level) * 60 / self._size
            self._levels[token] = (level - 1, now)
            return 0.0


class RequestMetrics:
    """Counters of this process, for Prometheus."""

    def __init__(self) -> None:
        self._answers: Counter[tuple[str, int]] = Counter()
        self._below: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._lock = Lock()

    def count(self, path: str, status: int, seconds: float) -> None:
        with self._lock:
            self._answers[path, status] += 1
            self._seconds[path] += seconds  # type: ignore[assignment]
            for limit in _BUCKETS:
                self._below[path, limit] += seconds <= limit

    def text(self, gauges: Sequence[tuple[str, str, float]]) -> str:
        """All of it in Prometheus' text format, with some gauges by repository."""
        with self._lock:
            return "\n".join([*self._lines(), *_gauge_lines(gauges), ""])

    def _lines(self) -> Iterator[str]:
        yield "# TYPE loki_requests_total counter"
        for (path, status), number in sorted(self._answers.items()):
            yield f'loki_requests_total{{path="{path}",status="{status}"}} {number}'
        yield "# TYPE loki_request_seconds histogram"
        for path in sorted(self._seconds):
            total = sum(number for (of, _), number in self._answers.items() if of == path)
            for limit in _BUCKETS:
                below = self._below[path, limit]
                yield f'loki_request_seconds_bucket{{path="{path}",le="{limit}"}} {below}'
            yield f'loki_request_seconds_bucket{{path="{path}",le="+Inf"}} {total}'
            yield f'loki_request_seconds_sum{{path="{path}"}} {self._seconds[path]:.6f}'
            yield f'loki_request_seconds_count{{path="{path}"}} {total}'


def _gauge_lines(gauges: Sequence[tuple[str, str, float]]) -> Iterator[str]:
    for name in dict.fromkeys(name for name, _, _ in gauges):
        yield f"# TYPE {name} gauge"
        for _, repository, value in (gauge for gauge in gauges if gauge[0] == name):
            quoted = repository.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            yield f'{name}{{repository="{quoted}"}} {value:g}'
