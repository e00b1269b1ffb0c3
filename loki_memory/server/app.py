"""The web application: every path but `/healthz` needs a token.

No request depends on an earlier one, so any process of the server may answer it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import psycopg
from mcp.server.transport_security import TransportSecuritySettings
from psycopg_pool import PoolTimeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from loki_memory.errors import LokiMemoryError, NoAccess
from loki_memory.server import exchange, pages
from loki_memory.server.elsewhere import RepositoryHit, search
from loki_memory.server.oauth import METADATA, Issuer, admit
from loki_memory.server.requests import (
    CALLER,
    Caller,
    RateLimit,
    RequestMetrics,
    caller,
    gauges,
    note,
    note_webhook,
    standing,
)
from loki_memory.server.tools import ServedProjects, make_server
from loki_memory.server.webhook import PATH as WEBHOOK
from loki_memory.server.webhook import Webhook
from loki_memory.workspace import quotable

if TYPE_CHECKING:
    from loki_memory.server.database import Connection, Database
    from loki_memory.server.replicas import Replicas

    Answering = Callable[[Connection, Request, bytes], Any]

_MCP, _HEALTH = "/mcp", "/healthz"
_HITS, _MOST_HITS, _DIGITS = 8, 50, 4  # of a search elsewhere
_MOST_BYTES = 16 << 20  # of a request: a thousand records, with room
_UNAVAILABLE = (psycopg.OperationalError, PoolTimeout)


class TooLarge(Exception):
    """A request that sends more than is taken."""


_REFUSED = (*_UNAVAILABLE, LokiMemoryError, ValidationError, psycopg.DataError, TooLarge)
_DOWN = "the database does not answer; repeat the request, since a push is never taken in twice"
_FULL = "the database has no room left; nothing of this request was kept"
_JSON = "application/json"


class PushBody(BaseModel):
    """The body of a push."""

    model_config = ConfigDict(extra="forbid")

    project: str
    records: list[dict[str, Any]] = Field(default_factory=list, max_length=exchange.MOST_PUSHED)
    withdraw: list[str] = Field(default_factory=list, max_length=exchange.MOST_PUSHED)


def application(
    database: Database,
    replicas: Replicas,
    per_minute: int,
    *,
    issuer: Issuer | None = None,
    webhook: Webhook | None = None,
) -> ASGIApp:
    """The server as a web application."""
    metrics = RequestMetrics()
    projects = ServedProjects(database, replicas)
    app = make_server(database, projects).streamable_http_app(
        streamable_http_path=_MCP,
        json_response=True,
        stateless_http=True,
        # A page that reaches this host under another name has no token.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    app.router.routes += _routes(database, metrics)
    app.router.routes += [*_metadata_routes(issuer), *_webhook_routes(database, webhook)]
    for error in _REFUSED:
        app.add_exception_handler(error, lambda _, raised: refused(raised))
    guarded = TokenRequired(app, database, RateLimit(per_minute), metrics, issuer)
    app.router.routes += pages.routes(database, projects, guarded.knows)
    return guarded


def _routes(database: Database, metrics: RequestMetrics) -> list[Route]:
    def health(_: Request) -> Response:
        with database.as_owner() as connection:
            connection.execute("SELECT 1")
        return PlainTextResponse("ok\n")

    def counted(connection: Connection, _: Request, __: bytes) -> Response:
        if "admin" not in CALLER.get().scopes:
            raise NoAccess("read", "the metrics")
        return PlainTextResponse(metrics.text(gauges(connection)))

    return [
        Route(_HEALTH, health),
        Route("/metrics", _answered(database, counted)),
        Route("/status", _answered(database, lambda connection, *_: standing(connection))),
        Route("/elsewhere", _answered(database, _elsewhere)),
        Route("/pull", _answered(database, _pull)),
        Route("/push", _answered(database, _push), methods=["POST"]),
    ]


def _metadata_routes(issuer: Issuer | None) -> list[Route]:
    """Metadata for clients that have no token yet; for the tools at a path of their own too."""
    if issuer is None:
        return []
    found = issuer.metadata()
    return [
        Route(f"{METADATA}{path}", lambda _: _json(found, 200), name=f"metadata{path}")
        for path in ("", _MCP)
    ]


def _webhook_routes(database: Database, webhook: Webhook | None) -> list[Route]:
    """The path that forges call; a call is written into the audit, then the fetch begins."""
    if webhook is None or not webhook.secret:
        return []

    def called(forge: str, name: str) -> Response:
        if not webhook.fetch_soon(name):
            return _refusal("this server fetches no repository of that name", 404)
        with database.as_owner() as connection:
            note_webhook(connection, name, forge)
        return _json({"fetching": name}, 202)

    async def endpoint(request: Request) -> Response:
        forge = webhook.sender(request.headers, await request.body())
        if forge is None:
            return _refusal("the signature is missing or wrong", 401)
        return await run_in_threadpool(called, forge, str(request.path_params["name"]))

    return [Route(WEBHOOK, endpoint, methods=["POST"])]


class ElsewhereHits(NamedTuple):
    """The answer of `/elsewhere`."""

    hits: list[RepositoryHit]


def _elsewhere(connection: Connection, request: Request, _: bytes) -> ElsewhereHits:
    """Search all repositories of a token but the one that asks."""
    query, own = (request.query_params.get(name, "") for name in ("q", "project"))
    wanted = request.query_params.get("k", "")
    k = min(_MOST_HITS, int(wanted)) if wanted.isdecimal() and len(wanted) < _DIGITS else _HITS
    found = search(connection, query.replace("\0", " "), k, own) if query.strip() else []
    note(connection, own, "elsewhere", [hit.id for hit in found])
    return ElsewhereHits(found)


def _pull(connection: Connection, request: Request, _: bytes) -> exchange.Pulled:
    project, since = (request.query_params.get(name, "") for name in ("project", "since"))
    found = exchange.pull(connection, project, since)
    note(connection, project, "pull", [record.id for record in found.records])
    return found


def _push(connection: Connection, _: Request, body: bytes) -> exchange.Pushed:
    given = PushBody.model_validate_json(body)
    done = exchange.push(connection, given.project, given.records, given.withdraw)
    note(connection, given.project, "push", [*done.changed, *done.withdrawn])
    return done


def _answered(database: Database, answer: Answering) -> Callable[[Request], Any]:
    """An endpoint that answers as the token of the request, in one transaction.

    The answer is sent after the commit: what a client sees acknowledged is on disk.
    """

    def ask(request: Request, body: bytes) -> Any:
        with database.as_token(CALLER.get().secret) as connection:
            return answer(connection, request, body)

    async def endpoint(request: Request) -> Response:
        found = await run_in_threadpool(ask, request, await request.body())
        return found if isinstance(found, Response) else _json(found, 200)

    return endpoint


def _json(value: Any, status: int, headers: Mapping[str, str] | None = None) -> Response:
    return Response(orjson.dumps(value, default=_plain), status, headers, _JSON)


def _plain(value: Any) -> Any:
    return value._asdict()


def _refusal(reason: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    return _json({"error": quotable(reason)}, status, headers)


def refused(error: Exception) -> Response:
    """Refuse in a sentence; a request that is refused has changed nothing."""
    if isinstance(error, psycopg.errors.DiskFull):
        return _refusal(_FULL, 507)
    if isinstance(error, _UNAVAILABLE):
        return _refusal(_DOWN, 503, {"Retry-After": "1"})
    if isinstance(error, ValidationError):
        wrong = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, wrong["loc"])) or "the body"
        return _refusal(f"{field}: {wrong['msg']}", 400)
    if isinstance(error, TooLarge):
        return _refusal(f"more than {_MOST_BYTES:,} bytes are not taken at once", 413)
    return _refusal(str(error), 403 if isinstance(error, NoAccess) else 400)


class TokenRequired:
    """An application that answers tokens only, and each of them only so often."""

    def __init__(
        self,
        app: Starlette,
        database: Database,
        limit: RateLimit,
        metrics: RequestMetrics,
        issuer: Issuer | None = None,
    ) -> None:
        self._app, self._database, self._limit, self._metrics = app, database, limit, metrics
        self._issuer = issuer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), [500]

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
            await send(message)

        try:
            await self._answer(scope, _limited(receive), sending)
        finally:
            path = self._counted_as(scope["path"])
            self._metrics.count(path, status[0], time.monotonic() - began)

    def _counted_as(self, path: str) -> str:
        """The path in the metrics, which must not be one for each name that somebody asks for."""
        known = {route.path for route in self._app.routes if isinstance(route, Route)}
        return pages.PREFIX if pages.is_page(path) else path if path in known else "other"

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            refusal: ASGIApp | None = None
            if not _is_open(scope["path"]):
                refusal = await self._refused(scope)
        except _REFUSED as error:
            refusal = refused(error)
        await (refusal or self._app)(scope, receive, send)

    async def _refused(self, scope: Scope) -> ASGIApp | None:
        """Why a request is not answered; None notes its caller for those who answer it."""
        kind, _, secret = Headers(scope=scope).get("authorization", "").partition(" ")
        given = secret if kind == "Bearer" else pages.secret_of(scope)
        found = await run_in_threadpool(self._caller, given) if given else None
        if found is None and pages.wants_form(scope):
            return pages.form()
        if found is None:
            said = "the bearer token is missing, wrong, expired or revoked"
            challenge = self._issuer.challenge() if self._issuer else "Bearer"
            return _refusal(said, 401, {"WWW-Authenticate": challenge})
        seconds = self._limit.wait(found.id, time.monotonic())
        if seconds:
            later = {"Retry-After": str(int(seconds) + 1)}
            return _refusal("this token asks too often; wait and repeat the request", 429, later)
        CALLER.set(found)
        return None

    def knows(self, secret: str) -> bool:
        """Check if somebody has this secret, and may use it now."""
        return self._caller(secret) is not None

    def _caller(self, secret: str) -> Caller | None:
        found = self._known(secret)
        if found is None and self._issuer is not None:
            person = self._issuer.admitted(secret)
            if person is not None:
                admit(self._database, person, secret)
                return self._known(secret)
        return found

    def _known(self, secret: str) -> Caller | None:
        with self._database.as_token(secret) as connection:
            return caller(connection, secret)


def _is_open(path: str) -> bool:
    """Check for a path that needs no token, or that checks a signature or token itself."""
    return path in {_HEALTH, pages.SIGN_IN} or path.startswith((METADATA, "/webhook/"))


def _limited(receive: Receive) -> Receive:
    """Receive a request until it is too large."""
    taken = 0

    async def receiving() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > _MOST_BYTES:
            raise TooLarge
        return message

    return receiving
