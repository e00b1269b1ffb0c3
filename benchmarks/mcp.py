"""How soon the MCP server is ready, how fast it answers, and what killed clients leave.

    python benchmarks/mcp.py [--memories 1000] [--rounds 10] [--kills 100] [--json FILE]

Ready: from the start of `loki-mem mcp` until a client has its list of tools. The floor is a Python
that imports the SDK and does nothing: no server that is built on it can be there earlier. Answers:
a recall over stdio from a server that runs, with the same recall in this process as floor. Killed:
clients that end by SIGKILL in the middle of a call; their servers must be gone within 10 seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from table import Row, Spread, compared, in_turns, limited, machine, print_table, say, write_json

from loki_memory import Workspace

HERE = Path(__file__).resolve().parent
SERVER = [sys.executable, "-c", "from loki_memory.cli import program; program()", "mcp"]
FLOOR = [sys.executable, "-c", "from mcp.server import MCPServer"]
READY_SECONDS, ANSWER_SECONDS, GONE_SECONDS = 1.5, 0.05, 10
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}
# Starts a server, asks it something, and tells its process before it could answer.
CLIENT = f"""
import subprocess, sys
server = subprocess.Popen({SERVER!r}, stdin=-1, stdout=-1)
server.stdin.write(sys.stdin.buffer.readline())
server.stdin.flush()
server.stdout.readline()
server.stdin.write(sys.stdin.buffer.readline())
server.stdin.flush()
print(server.pid, flush=True)
server.wait()
"""


class Server:
    """A server that runs, and a client of it in a few lines."""

    def __init__(self, project: Path) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(SERVER, stdin=pipe, stdout=pipe, cwd=project)
        self._number = 0

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        assert self.process.stdout is not None  # noqa: S101 - it was asked for
        return json.loads(self.process.stdout.readline())["result"]

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None  # noqa: S101 - it was asked for
        self.process.stdin.write(line(message))
        self.process.stdin.flush()

    def greet(self) -> None:
        self.ask("initialize", HELLO)
        self._send({"method": "notifications/initialized"})

    def recall(self, query: str) -> Any:
        return self.ask("tools/call", {"name": "memory_recall", "arguments": {"query": query}})


def line(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


@contextmanager
def running(project: Path) -> Iterator[Server]:
    server = Server(project)
    try:
        server.greet()
        yield server
    finally:
        server.process.communicate()


def ready(project: Path, rounds: int) -> Row:
    def ours(_: int) -> None:
        with running(project) as server:
            server.ask("tools/list", {})
            server.process.kill()  # how it ends is no part of it

    def floor(_: int) -> None:
        subprocess.run(FLOOR, check=True, cwd=project)  # here, this file would be `mcp`

    row = compared("ready: tools are listed", len(tools(project)), *in_turns([ours, floor], rounds))
    return limited(row, READY_SECONDS)


def tools(project: Path) -> list[Any]:
    with running(project) as server:
        found: list[Any] = server.ask("tools/list", {})["tools"]
        return found


def answers(project: Path, memories: int, rounds: int) -> Row:
    with running(project) as server, Workspace.open(project) as workspace:

        def ours(number: int) -> None:
            server.recall(f"rule {number} about deployments")

        def floor(number: int) -> None:
            workspace.recall(f"rule {number} about deployments", 8)

        row = compared("recall over stdio", memories, *in_turns([ours, floor], rounds, warm=3))
        return limited(row, ANSWER_SECONDS)


def killed(project: Path, kills: int) -> Row:
    """Servers that are still there, `GONE_SECONDS` after their clients were killed."""
    left = sum(_outlives_its_client(project) for _ in range(kills))
    return Row(
        "servers left by killed clients", kills, "", Spread.of([left]), bar="<= 0", ok=not left
    )


def _outlives_its_client(project: Path) -> bool:
    command = [sys.executable, "-c", CLIENT]
    pipe = subprocess.PIPE
    call = {"name": "memory_recall", "arguments": {"query": "deployments"}}
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=project) as client:
        assert client.stdin is not None  # noqa: S101 - it was asked for
        assert client.stdout is not None  # noqa: S101 - it was asked for
        client.stdin.write(line({"id": 1, "method": "initialize", "params": HELLO}))
        client.stdin.write(line({"id": 2, "method": "tools/call", "params": call}))
        client.stdin.flush()
        server = os.pidfd_open(int(client.stdout.readline()))
        client.send_signal(signal.SIGKILL)
        ended, _, _ = select.select([server], [], [], GONE_SECONDS)
        os.close(server)
        return not ended


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--memories", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--json", type=Path, default=HERE / "results" / "mcp.json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=HERE.parent.parent) as folder:
        os.environ["LOKI_HOME"] = f"{folder}/home"
        project = Path(folder) / "project"
        with Workspace.init(project) as workspace:
            say(f"{given.memories} memories")
            for number in range(given.memories):
                workspace.remember(f"Rule {number} about deployments of service {number % 97}")
            workspace.sync()
            workspace.recall("deployments")
        rows = [
            ready(project, given.rounds),
            answers(project, given.memories, given.rounds * 5),
            killed(project, given.kills),
        ]
        print_table(rows)
        write_json(given.json, rows, machine(Path(folder)))
    return int(any(row.ok is False for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
