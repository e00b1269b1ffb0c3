"""One process of the server: it fetches its sources in turn, and answers requests."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Condition, Event, Thread
from typing import NamedTuple

import psycopg
import uvicorn
from psycopg_pool import PoolTimeout

from loki_memory.errors import LokiMemoryError
from loki_memory.server.app import application
from loki_memory.server.database import Database
from loki_memory.server.oauth import Issuer
from loki_memory.server.projection import Mirror, RepositorySource, refresh
from loki_memory.server.replicas import Replicas
from loki_memory.server.webhook import Webhook

_SECONDS_TO_BEGIN, _SECONDS_TO_FINISH = 60, 5


class ServerOptions(NamedTuple):
    """Options of one process of the server."""

    url: str  # of the database
    sources: Sequence[RepositorySource]
    state: Path  # mirrors and replicas: both may be deleted at any time
    poll: float  # seconds between two fetches
    per_minute: int  # requests of one token
    webhook_secret: str = ""  # that forges share; empty: none may call
    oauth: Path | None = None  # rules for the people of an issuer


def serve(
    options: ServerOptions,
    listening: socket.socket,
    begun: Callable[[], None],
    log: Callable[[str], None],
) -> None:
    """Serve until the process is stopped; `begun` is called once its parts are there.

    Raises DatabaseFailed, and InvalidRecord for rules that cannot be read.
    """
    issuer = Issuer.of_file(options.oauth) if options.oauth else None
    database = Database(options.url)
    database.open()
    mirrors = [Mirror(source, options.state / "mirrors") for source in options.sources]
    replicas = Replicas(options.state / "replicas", mirrors)
    fetcher = Fetcher(database, mirrors, log)
    app = application(
        database,
        replicas,
        options.per_minute,
        issuer=issuer,
        webhook=Webhook(options.webhook_secret, fetcher.fetch_soon),
    )
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_SECONDS_TO_FINISH,
    )
    begun()
    with fetcher.running(options.poll):
        uvicorn.Server(config).run(sockets=[listening])
    database.close()


class Fetcher:
    """The thread that fetches: every so often all sources, and one at once when its forge calls."""

    def __init__(
        self, database: Database, mirrors: Sequence[Mirror], log: Callable[[str], None]
    ) -> None:
        self._database, self._log = database, log
        self._mirrors = {mirror.source.name: mirror for mirror in mirrors}
        self._wake = Condition()
        self._called: set[str] = set()
        self._problems: dict[str, str] = {}  # that were logged, by name of the source
        self._first_round = Event()
        self._stopped = False

    def fetch_soon(self, name: str) -> bool:
        """Have a source fetched now; False if there is none of that name."""
        if name not in self._mirrors:
            return False
        with self._wake:
            self._called.add(name)
            self._wake.notify()
        return True

    @contextmanager
    def running(self, poll: float) -> Iterator[None]:
        """Fetch while this lasts; nothing is answered before the first round, unless it hangs."""
        thread = Thread(target=self._work, args=(poll,), daemon=True, name="fetching")
        thread.start()
        self._first_round.wait(_SECONDS_TO_BEGIN)
        try:
            yield
        finally:
            with self._wake:
                self._stopped = True
                self._wake.notify()
            thread.join(_SECONDS_TO_FINISH)

    def _work(self, poll: float) -> None:
        self.fetch(self._mirrors)
        self._first_round.set()
        due = time.monotonic() + poll
        while True:
            with self._wake:
                self._wake.wait_for(
                    lambda: self._stopped or self._called, max(0.0, due - time.monotonic())
                )
                if self._stopped:
                    return
                names, self._called = self._called, set()
            if not names:
                due = time.monotonic() + poll
            self.fetch(names or self._mirrors)

    def fetch(self, names: Iterable[str]) -> None:
        for name in sorted(names):
            if self._stopped:
                return
            problem = ""
            try:
                if refresh(self._database, self._mirrors[name]):
                    self._log(f"{name}: memory is at a new commit")
            except (LokiMemoryError, psycopg.Error, PoolTimeout) as error:  # the next round tries
                problem = " ".join(str(error).split())
            if problem != self._problems.get(name, ""):
                self._log(f"{name}: {problem or 'fetched again'}")
            self._problems[name] = problem
