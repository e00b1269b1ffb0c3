"""The server as a program of its own, over standard input and output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from loki_memory import Workspace

PROGRAM = ["-c", "from loki_memory.cli import program; program()", "mcp"]
LONG = 300.0  # seconds that something may take on a machine that is busy
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
# A client that starts a server, greets it, tells its process, and then waits to be killed.
CLIENT = f"""
import json, subprocess, sys
server = subprocess.Popen([sys.executable, *{PROGRAM!r}], stdin=-1, stdout=-1)
server.stdin.write(json.dumps({HELLO!r}).encode() + b"\\n")
server.stdin.flush()
server.stdout.readline()
print(server.pid, flush=True)
server.wait()
"""


def server(project: Path, *options: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=[*PROGRAM, *options], env=dict(os.environ), cwd=project
    )


@contextmanager
def started(project: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, *PROGRAM, *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=project) as process:
        try:
            yield process
        finally:
            process.kill()


def greet(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(HELLO).encode() + b"\n")
    process.stdin.flush()
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


def test_a_client_lists_tools_and_calls_them(ws: Workspace, project: Path) -> None:
    ws.remember("Contract tests need the database running")

    async def main() -> tuple[Any, Any]:
        async with Client(server(project)) as client:
            tools = await client.list_tools()
            return tools, await client.call_tool("memory_recall", {"query": "contract tests"})

    tools, answer = anyio.run(main)
    assert "memory_recall" in [tool.name for tool in tools.tools]
    assert answer.structured_content["hits"][0]["title"].startswith("Contract tests")


@pytest.mark.parametrize(
    ("options", "entry"),
    [
        ([], {"command": "loki-mem", "args": ["mcp"]}),
        (["--tools", "lore"], {"command": "loki-mem", "args": ["mcp", "--tools", "lore"]}),
        (["--http", "8123"], {"type": "http", "url": "http://127.0.0.1:8123/mcp"}),
    ],
)
def test_what_a_client_needs_is_printed_without_serving(
    options: list[str], entry: dict[str, Any]
) -> None:
    command = [sys.executable, *PROGRAM, "--json", *options]
    done = subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    assert json.loads(done.stdout) == {"mcpServers": {"loki": entry}}


def test_the_sdk_is_loaded_by_nothing_but_serving() -> None:
    modules = "loki_memory.cli.serve, loki_memory.interop.anthropic_memory_tool"
    code = f"import sys, {modules}; print('mcp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


def test_several_clients_at_once_lose_nothing(ws: Workspace, project: Path) -> None:
    async def write(name: str) -> None:
        async with Client(server(project)) as client:
            for number in range(5):
                told = {"text": f"Rule {number} of {name}"}
                answer = await client.call_tool("memory_remember", told)
                assert not answer.is_error, answer.content

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for name in ("ana", "ben", "cem"):
                group.start_soon(write, name)

    anyio.run(main)
    expected = {f"Rule {number} of {name}" for number in range(5) for name in ("ana", "ben", "cem")}
    assert {memory.title() for memory in ws.list(kind="fact")} == expected


def test_an_older_client_is_served_and_nothing_else_is_printed(
    ws: Workspace, project: Path
) -> None:
    with started(project, "--tools", "lore") as process:
        answer = greet(process)
        assert answer["result"]["protocolVersion"] == "2025-06-18"
        assert answer["result"]["serverInfo"]["name"] == "loki-memory"
        out, _ = process.communicate(timeout=LONG)
        assert out == b""
        assert process.returncode == 0


def test_the_server_works_in_the_folder_that_c_names(
    ws: Workspace, project: Path, tmp_path: Path
) -> None:
    program = [*PROGRAM[:2], "-C", str(project), *PROGRAM[2:]]
    parameters = server(tmp_path).model_copy(update={"args": program})

    async def main() -> Any:
        async with Client(parameters) as client:
            return await client.call_tool("memory_status", {})

    assert anyio.run(main).structured_content["workspace"] == str(project)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")
def test_a_killed_client_leaves_no_server(ws: Workspace, project: Path) -> None:
    command = [sys.executable, "-c", CLIENT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=project) as client:
        assert client.stdout is not None
        left = os.pidfd_open(int(client.stdout.readline()))
        client.send_signal(signal.SIGKILL)
        ended = wait([left], LONG)
        os.close(left)
    assert ended


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_is_told_to_stop_stops(ws: Workspace, project: Path, number: int) -> None:
    with started(project) as process:
        greet(process)
        process.send_signal(number)
        assert process.wait(LONG) == -number
