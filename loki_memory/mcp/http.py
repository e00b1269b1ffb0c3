"""The server over Streamable HTTP, for clients on this machine.

Any program on the machine can reach the port, and so can a web page, through a host name that
resolves to this machine. So a request needs the token, which only this user can read, and must
name this server as host (and as origin, if it names one).
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Sequence
from hmac import compare_digest
from pathlib import Path

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from loki_memory.errors import StoreFailed
from loki_memory.mcp.server import make_server

HOST = "127.0.0.1"
_PATH = "/mcp"
_TOKEN_BYTES = 32
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)  # Windows has none
_OTHERS = 0o077  # permissions of everybody but the owner
_SECONDS_TO_FINISH = 1


def serve_http(
    listening: socket.socket,
    tool_set: str,
    project: str | None,
    token_path: Path,
    log: Callable[[str], None],
    within: Sequence[str] = (),
) -> None:
    """Serve until the process is stopped."""
    port: int = listening.getsockname()[1]
    app = application(tool_set, project, port, token(token_path), within)
    log(f"http://{HOST}:{port}{_PATH}, with the bearer token in {token_path}")
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # it would go to standard output
        timeout_graceful_shutdown=_SECONDS_TO_FINISH,
    )
    uvicorn.Server(config).run(sockets=[listening])


def listen(port: int) -> socket.socket:
    """Open a port that only this machine reaches; 0 is any that is free."""
    return socket.create_server((HOST, port))


def application(
    tool_set: str, project: str | None, port: int, secret: str, within: Sequence[str] = ()
) -> ASGIApp:
    """The server as a web application that refuses clients without the token.

    No call depends on an earlier one, so there are no sessions that a killed client could leave.
    """
    names = [f"{HOST}:{port}", f"localhost:{port}"]
    server = make_server(tool_set, project, within).streamable_http_app(
        streamable_http_path=_PATH,
        json_response=True,
        stateless_http=True,
        transport_security=TransportSecuritySettings(
            allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
        ),
    )
    return Guarded(server, secret)


class Guarded:
    """An application behind a bearer token."""

    def __init__(self, app: ASGIApp, secret: str) -> None:
        self._app = app
        self._expected = f"Bearer {secret}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._admits(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        refusal = PlainTextResponse(
            "the bearer token is missing or wrong", 401, {"WWW-Authenticate": "Bearer"}
        )
        await refusal(scope, receive, send)

    def _admits(self, headers: Headers) -> bool:
        given = headers.get("authorization", "").encode("utf-8", "replace")
        return compare_digest(given, self._expected)


def token(path: Path) -> str:
    """The token in a file that only its owner can read; the file is made if there is none."""
    try:
        if not path.is_symlink() and not path.exists():
            _make_token(path)
        with open(os.open(path, os.O_RDONLY | _NOFOLLOW), "rb") as file:
            if os.name == "posix" and os.fstat(file.fileno()).st_mode & _OTHERS:
                raise StoreFailed(path, "users other than its owner can read it")
            found = file.read().strip()
    except OSError as error:
        raise StoreFailed(path, error.strerror or "cannot be read") from error
    if len(found) < _TOKEN_BYTES or not found.isascii():
        raise StoreFailed(path, "holds no token; delete it and one is made")
    return found.decode()


def _make_token(path: Path) -> None:
    """Write the token before the file gets its name: two servers that start at once share it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}-{os.getpid()}")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW, 0o600)
    try:
        with open(fd, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(_TOKEN_BYTES) + "\n")
        os.link(draft, path)
    except FileExistsError:  # another server was faster
        pass
    finally:
        os.unlink(draft)
