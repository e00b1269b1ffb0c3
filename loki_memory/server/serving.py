"""One process of the server: it fetches its sources in turn, and answers requests."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

import psycopg
import uvicorn
from psycopg_pool import PoolTimeout

from loki_memory.errors import LokiMemoryError
from loki_memory.server.app import application
from loki_memory.server.database import Database
from loki_memory.server.projection import Mirror, RepositorySource, refresh
from loki_memory.server.replicas import Replicas

_SECONDS_TO_FINISH = 5


class ServerOptions(NamedTuple):
    """Options of one process of the server."""

    url: str  # of the database
    sources: Sequence[RepositorySource]
    state: Path  # mirrors and replicas: both may be deleted at any time
    poll: float  # seconds between two fetches
    per_minute: int  # requests of one token


def serve(options: ServerOptions, listening: socket.socket, log: Callable[[str], None]) -> None:
    """Serve until the process is stopped; raises DatabaseFailed."""
    database = Database(options.url)
    database.open()
    mirrors = [Mirror(source, options.state / "mirrors") for source in options.sources]
    replicas = Replicas(options.state / "replicas", mirrors)
    app = application(database, replicas, options.per_minute)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_SECONDS_TO_FINISH,
    )
    with _fetching(database, mirrors, options.poll, log):
        uvicorn.Server(config).run(sockets=[listening])
    database.close()


@contextmanager
def _fetching(
    database: Database, mirrors: Sequence[Mirror], poll: float, log: Callable[[str], None]
) -> Iterator[None]:
    """Fetch in a thread while this lasts; the first round is done before anything is answered."""
    stopped = Event()
    _round(database, mirrors, log)

    def work() -> None:
        while not stopped.wait(poll):
            _round(database, mirrors, log)

    thread = Thread(target=work, daemon=True, name="fetching")
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(_SECONDS_TO_FINISH)


def _round(database: Database, mirrors: Sequence[Mirror], log: Callable[[str], None]) -> None:
    for mirror in mirrors:
        try:
            if refresh(database, mirror):
                log(f"{mirror.source.name}: memory is at a new commit")
        except (LokiMemoryError, psycopg.Error, PoolTimeout) as error:  # the next round tries again
            log(f"{mirror.source.name}: {' '.join(str(error).split())}")
