"""Run a command in this process on behalf of a client.

The working directory, environment, arguments and standard streams are those of the client while the
command runs, and are restored afterwards. Only one command runs at a time.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from loki_memory.daemon import client, protocol
from loki_memory.daemon.server import Reply, Request
from loki_memory.errors import LokiMemoryError
from loki_memory.workspace import Workspace, kept

_UNKNOWN = 1


class CommandRunner:
    """A runner of commands for one workspace, which it keeps open in between."""

    def __init__(self, workspace: Workspace, program: Callable[[], NoReturn]) -> None:
        """`program` runs the command line of this process, and exits."""
        self._home = workspace.home
        self._program = program
        self._name = protocol.name_of(workspace.layout.loki)
        self._open: Workspace | None = None
        self._opened_with: object = None

    def answer(self, request: Request, is_current: bool) -> Reply | None:
        """Run a command and return its output; None if it must run in the client."""
        try:
            with _as_the_client(request) as streams:
                start, words = client.read(request.arguments)
                is_ours = client.is_for_us(words) and self._is_asked(start)
                return self._done(request, streams, is_current) if is_ours else None
        except (LokiMemoryError, OSError):  # the client will run into it too, and report it
            return None

    def _is_asked(self, start: str) -> bool:
        """Check if the command is about this workspace; it will open it by itself."""
        return protocol.name_of(client.loki_of(start)) == self._name

    def _done(self, request: Request, streams: Streams, is_current: bool) -> Reply:
        workspace = self._workspace(request.environment)
        if is_current:
            workspace.home.assume_scanned()
        with kept(workspace):
            code = self._exit_code()
        return Reply(code, streams.out.getvalue(), streams.complaints.getvalue())

    def _workspace(self, environment: dict[str, str]) -> Workspace:
        """The workspace, opened anew if settings or the client's variables changed."""
        variables = {n: v for n, v in environment.items() if n.startswith(("LOKI_", "HOME"))}
        now = (self._home.settings_stamp(), variables)
        if self._open is None or now != self._opened_with:
            if self._open is not None:
                self._open.close()
            home = self._home.opened_anew()
            home.is_long_lived = True
            self._open, self._opened_with = Workspace(home), now
        return self._open

    def _exit_code(self) -> int:
        try:
            self._program()
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else _UNKNOWN


class Streams:
    """The standard streams of a command, in memory."""

    def __init__(self, given: bytes) -> None:
        self.given, self.out, self.complaints = io.BytesIO(given), io.BytesIO(), io.BytesIO()

    def wrapped(self) -> tuple[io.TextIOWrapper, io.TextIOWrapper, io.TextIOWrapper]:
        return (
            io.TextIOWrapper(self.given, encoding="utf-8", errors="surrogateescape"),
            io.TextIOWrapper(self.out, encoding="utf-8", write_through=True),
            io.TextIOWrapper(self.complaints, "utf-8", "backslashreplace", write_through=True),
        )


@contextmanager
def _as_the_client(request: Request) -> Iterator[Streams]:
    """Take on the working directory, environment and streams of the client."""
    streams = Streams(request.given)
    wrapped = streams.wrapped()
    before = (sys.stdin, sys.stdout, sys.stderr), sys.argv, os.getcwd()
    environment = {n: v for n, v in os.environ.items() if n.startswith(client.VARIABLES)}
    os.chdir(request.folder)
    try:
        _exchange(environment, request.environment)
        sys.stdin, sys.stdout, sys.stderr = wrapped
        sys.argv = ["loki-mem", *request.arguments]
        yield streams
    finally:
        (sys.stdin, sys.stdout, sys.stderr), sys.argv, folder = before
        _exchange(request.environment, environment)
        os.chdir(folder)


def _exchange(old: dict[str, str], new: dict[str, str]) -> None:
    """Replace variables of the environment by others."""
    for name in old.keys() - new.keys():
        del os.environ[name]
    os.environ.update({name: value for name, value in new.items() if old.get(name) != value})
