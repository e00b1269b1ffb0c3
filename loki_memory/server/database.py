"""The database: its schema, and the two ways to work in it.

Migrations are the numbered files in `migrations/`. Each runs once, in a transaction of its own, and
its hash is written down: a database on which another text ran under that number is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib import resources
from typing import NamedTuple

import psycopg
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool

from loki_memory.errors import DatabaseFailed

Connection = psycopg.Connection[TupleRow]
REQUESTS = "loki_memory_requests"  # the role of requests, made by the first migration
_OLDEST_POSTGRES, _OLDEST_PGVECTOR = 150_000, (0, 8)
_CONNECTIONS = 8
_CONNECTING, _PATIENCE = 5, 5.0  # seconds to reach the database, and to wait for a free connection
_LONGEST = "5s"  # of a statement of a request
_MIGRATING = 0x6C6F6B69  # the advisory lock under which a schema changes: "loki"


class _Migration(NamedTuple):
    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return sha256(self.sql.encode()).hexdigest()


class Database:
    """A pool of connections to one PostgreSQL database."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool = ConnectionPool(
            url,
            min_size=1,
            max_size=_CONNECTIONS,
            timeout=_PATIENCE,
            # Attempts come ever more rarely; given up, the next request begins with the first.
            reconnect_timeout=_PATIENCE,
            check=ConnectionPool.check_connection,  # one that died with the server is replaced
            open=False,
        )

    def open(self) -> None:
        """Connect, and bring the schema up to date; raises DatabaseFailed."""
        try:
            with psycopg.connect(self._url, connect_timeout=_CONNECTING) as connection:
                migrate(connection)
        except psycopg.Error as error:
            raise DatabaseFailed(str(error)) from None
        self._pool.open()

    def close(self) -> None:
        self._pool.close()

    @contextmanager
    def as_owner(self) -> Iterator[Connection]:
        """One transaction of the server itself: it fetches, and makes tokens."""
        with self._pool.connection() as connection, connection.transaction():
            yield connection

    @contextmanager
    def as_token(self, secret: str) -> Iterator[Connection]:
        """One transaction of a request: it sees what its token may see."""
        with self._pool.connection() as connection, connection.transaction():
            connection.execute(
                "SELECT set_config('role', %s, true), set_config('app.token', %s, true), "
                "set_config('statement_timeout', %s, true)",
                (REQUESTS, secret, _LONGEST),
            )
            yield connection


def migrate(connection: Connection) -> None:
    """Run the migrations that did not run yet, one process at a time."""
    _check_versions(connection)
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
    connection.execute("CREATE SCHEMA IF NOT EXISTS loki")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS loki.migrations ("
        "number int PRIMARY KEY, checksum text NOT NULL, ran timestamptz NOT NULL DEFAULT now())"
    )
    ran: dict[int, str] = dict(
        connection.execute("SELECT number, checksum FROM loki.migrations").fetchall()
    )
    ours = {migration.number: migration for migration in migrations()}
    if ran.keys() - ours.keys():
        raise DatabaseFailed("it was made by a newer loki-memory; install that one")
    for number, migration in ours.items():
        if number not in ran:
            connection.execute(migration.sql.encode())
            connection.execute(
                "INSERT INTO loki.migrations (number, checksum) VALUES (%s, %s)",
                (number, migration.checksum),
            )
        elif ran[number] != migration.checksum:
            raise DatabaseFailed(f"another text of the migration {migration.name} ran in it")


def migrations() -> list[_Migration]:
    """The migrations of this version, in their order."""
    folder = resources.files("loki_memory.server") / "migrations"
    files = sorted((file for file in folder.iterdir()), key=lambda file: file.name)
    return [
        _Migration(int(file.name.partition("_")[0]), file.name, file.read_text(encoding="utf-8"))
        for file in files
        if file.name.endswith(".sql")
    ]


def _check_versions(connection: Connection) -> None:
    if connection.info.server_version < _OLDEST_POSTGRES:
        raise DatabaseFailed("PostgreSQL 15 or newer is needed")
    found = connection.execute(
        "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'"
    ).fetchone()
    if found is None or tuple(map(int, found[0].split(".")[:2])) < _OLDEST_PGVECTOR:
        raise DatabaseFailed("the extension pgvector 0.8 or newer is not installed there")
