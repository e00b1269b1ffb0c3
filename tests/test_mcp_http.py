"""The server over HTTP: who may ask, and many who ask at once."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from loki_memory import Workspace
from loki_memory.errors import StoreFailed
from loki_memory.mcp.http import token

PROGRAM = [sys.executable, "-c", "from loki_memory.cli import program; program()", "mcp"]
LONG = 300.0
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


class Served(NamedTuple):
    """A server that runs, and how it is reached."""

    process: subprocess.Popen[str]
    port: int
    token_path: Path
    project: Path

    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def token(self) -> str:
        return self.token_path.read_text(encoding="ascii").strip()

    def answer_to(self, **changed: str | None) -> int:
        """The status of a request that is right but for what was changed."""
        right: dict[str, str | None] = {
            "Authorization": f"Bearer {self.token()}",
            "Host": f"127.0.0.1:{self.port}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-06-18",
        }
        headers = {name: value for name, value in {**right, **changed}.items() if value is not None}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONG)
        connection.request("POST", "/mcp", json.dumps(CALL), headers)
        status = connection.getresponse().status
        connection.close()
        return status


@contextmanager
def serving(top: Path, project: Path | None = None) -> Iterator[Served]:
    """Run a server in a project, by default a new one; `top` is the user's home."""
    project = project or Workspace.init(top / "project").layout.root
    home = {"HOME": str(top), "LOKI_HOME": str(top / "home")}
    with subprocess.Popen(
        [*PROGRAM, "--http"],
        cwd=project,
        env={**os.environ, **home},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp, with the bearer token in (.+)", said)
        assert found, said
        yield Served(process, int(found[1]), Path(found[2]), project)
        process.kill()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served")) as server:
        yield server


def calling(served: Served, secret: str) -> Any:
    client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=LONG)
    return Client(streamable_http_client(served.url(), http_client=client))


def test_a_client_with_the_token_is_served(served: Served) -> None:
    async def main() -> tuple[Any, Any]:
        async with calling(served, served.token()) as client:
            stored = await client.call_tool("memory_remember", {"text": "We deploy on Mondays"})
            return stored, await client.call_tool("memory_recall", {"query": "deploy on Mondays"})

    stored, answer = anyio.run(main)
    assert answer.structured_content["hits"][0]["id"] == stored.structured_content["id"]


def test_several_clients_at_once_lose_nothing(served: Served) -> None:
    async def write(name: str) -> None:
        async with calling(served, served.token()) as client:
            for number in range(5):
                answer = await client.call_tool("memory_remember", {"text": f"{name} {number}"})
                assert not answer.is_error, answer.content

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for name in ("Ana says", "Ben says", "Cem says", "Dea says"):
                group.start_soon(write, name)

    anyio.run(main)
    titles = [memory.title() for memory in Workspace.open(served.project).list(kind="fact")]
    assert len([title for title in titles if " says " in title]) == 20


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, 200),
        ({"Authorization": None}, 401),
        ({"Authorization": "Bearer "}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Basic é"}, 401),
        ({"Host": "evil.example.org"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Origin": "http://evil.example.org"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content-Type": "text/plain"}, 400),
    ],
)
def test_only_the_right_token_host_and_origin_are_served(
    served: Served, changed: dict[str, str | None], status: int
) -> None:
    assert served.answer_to(**changed) == status
    modern = {"MCP-Protocol-Version": "2026-07-28"}
    if status not in {200, 400}:  # the newer protocol has checks of its own
        assert served.answer_to(**{**modern, **changed}) == status


def test_its_own_origin_is_served(served: Served) -> None:
    assert served.answer_to(Origin=f"http://127.0.0.1:{served.port}") == 200
    assert served.answer_to(Host=f"localhost:{served.port}") == 200


def test_only_the_owner_can_read_the_token(served: Served) -> None:
    assert stat.S_IMODE(served.token_path.stat().st_mode) == 0o600
    assert len(served.token()) >= 32


def test_a_port_that_is_taken_is_named(served: Served) -> None:
    done = subprocess.run(
        [*PROGRAM, "--http", str(served.port)],
        capture_output=True,
        text=True,
        check=False,
        cwd=served.project,
    )
    assert done.returncode == 2
    assert f"Port {served.port} cannot be used" in done.stderr


def test_a_token_is_made_once_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "home" / "mcp-token"
    first = token(path)
    assert token(path) == first
    assert [one.name for one in path.parent.iterdir()] == ["mcp-token"]
    assert token(tmp_path / "other") != first


def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mcp-token"
    token(path)
    path.chmod(0o644)
    with pytest.raises(StoreFailed, match="users other than its owner"):
        token(path)


def test_a_file_that_is_a_link_or_holds_no_token_is_refused(tmp_path: Path) -> None:
    token(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(StoreFailed):
        token(tmp_path / "link")
    for text in ("short", "é" * 40):
        (tmp_path / "real").write_text(text, encoding="utf-8")
        with pytest.raises(StoreFailed, match="holds no token"):
            token(tmp_path / "real")


def test_a_server_stops_when_told_and_prints_nothing(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert server.answer_to() == 200
        server.process.send_signal(signal.SIGTERM)
        out, _ = server.process.communicate(timeout=LONG)
        assert out == ""
        with pytest.raises(ConnectionRefusedError):
            server.answer_to()
