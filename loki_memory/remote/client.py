"""One request to a team server, repeated while the server says that it will pass.

The answer is data of somebody else: its size is limited, and no redirect is followed, since the
token would go along.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener, getproxies

from pydantic import BaseModel, ConfigDict, ValidationError

from loki_memory.errors import RemoteFailed, RemoteRefused
from loki_memory.models.text import printable_line

if TYPE_CHECKING:
    from urllib.request import OpenerDirector

    from loki_memory.remote.servers import RemoteServer

_PATIENCE = 15.0  # seconds that a request is repeated: a database fails over in ten
_TIMEOUT = 30.0  # seconds of one attempt
_LONGEST_WAIT = 5.0  # seconds, whatever the server asks for
_LARGEST = 256 << 20  # bytes of an answer: two thousand records of 100 kB
_PASSING = (429, 502, 503, 504)
_REFUSED = (401, 403)
_WIDTH = 300  # characters of what a server says of an error


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class RepositoryAnswer(_Answer):
    """A repository that the token reaches."""

    name: str
    cursor: str  # of one who has pulled all of it


class StatusAnswer(_Answer):
    """The answer of `/status`."""

    repositories: list[RepositoryAnswer]


class RecordAnswer(_Answer):
    """A record file that changed."""

    path: str
    id: str
    pushed: bool
    gone: bool
    content: str


class PullAnswer(_Answer):
    """The answer of `/pull`."""

    records: list[RecordAnswer]
    cursor: str
    more: bool


class RefusalAnswer(_Answer):
    """A record that was not taken."""

    reason: str


class PushAnswer(_Answer):
    """The answer of `/push`."""

    ids: list[str]
    changed: list[str]
    refused: list[RefusalAnswer]
    withdrawn: list[str]


class ElsewhereEntry(_Answer):
    """A memory of another repository."""

    repository: str
    id: str
    title: str


class ElsewhereAnswer(_Answer):
    """The answer of `/elsewhere`."""

    hits: list[ElsewhereEntry]


A = TypeVar("A", bound=_Answer)


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def _opener() -> OpenerDirector:
    """Open addresses as they are; a proxy sees no request that is not encrypted.

    A server without TLS is on this machine, and a proxy for http would get its token.
    """
    proxies = {scheme: url for scheme, url in getproxies().items() if scheme == "https"}
    return build_opener(_NoRedirect, ProxyHandler(proxies))


def get(
    server: RemoteServer,
    path: str,
    shape: type[A],
    given: Mapping[str, str | int] | None = None,
    *,
    patience: float = _PATIENCE,
    timeout: float = _TIMEOUT,
) -> A:
    """The answer of a server to a question; raises RemoteFailed or RemoteRefused."""
    query = f"?{urlencode(given)}" if given else ""
    request = Request(f"{server.url}{path}{query}")  # noqa: S310 - its scheme was checked
    return _parsed(server, shape, _asked(server, request, patience, timeout))


def push(server: RemoteServer, body: Mapping[str, Any]) -> PushAnswer:
    """Push or withdraw candidates; the server takes nothing in twice."""
    data = json.dumps(body).encode()
    request = Request(  # noqa: S310 - its scheme was checked
        f"{server.url}/push", data, {"Content-Type": "application/json"}
    )
    return _parsed(server, PushAnswer, _asked(server, request, _PATIENCE, _TIMEOUT))


def _parsed(server: RemoteServer, shape: type[A], data: bytes) -> A:
    try:
        return shape.model_validate_json(data)
    except ValidationError:
        raise RemoteFailed(server.name, "its answer is not that of a team server") from None


def _asked(server: RemoteServer, request: Request, patience: float, timeout: float) -> bytes:
    """Ask until there is an answer, an error that stays, or no patience left."""
    request.add_header("Authorization", f"Bearer {server.token}")
    end = time.monotonic() + patience
    wait = 0.2
    while True:
        try:
            with _opener().open(request, timeout=timeout) as answer:
                data: bytes = answer.read(_LARGEST + 1)
                return data if len(data) <= _LARGEST else b""
        except HTTPError as error:
            if error.code not in _PASSING or time.monotonic() + wait > end:
                raise _failure(server, error) from None
            asked_for = error.headers.get("Retry-After", "")
            wait = min(_LONGEST_WAIT, float(asked_for) if asked_for.isdecimal() else 2 * wait)
        except (OSError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, URLError) else error
            if time.monotonic() + wait > end:
                raise RemoteFailed(server.name, str(reason)) from None
            wait = min(_LONGEST_WAIT, 2 * wait)
        time.sleep(wait)


def _failure(server: RemoteServer, error: HTTPError) -> RemoteFailed | RemoteRefused:
    with error:
        data = error.read(10_000)
    try:
        said = json.loads(data)["error"]
    except (ValueError, KeyError, TypeError):
        said = error.reason
    reason = printable_line(str(said), _WIDTH)
    if error.code in _REFUSED:
        return RemoteRefused(server.name, reason)
    return RemoteFailed(server.name, f"{error.code}: {reason}")
