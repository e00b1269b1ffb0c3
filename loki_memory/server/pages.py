"""The pages of `loki-mem ui` over the repositories of a token: to be read, in any browser.

A browser sends no bearer token by itself, so its user signs in with one. It is kept in a cookie
that no script reads and that no other site makes the browser send, and every request is judged by
it as one over `/mcp` would be. The pages show the replica that answers over `/mcp`, to one request
at a time, and what they show is in the audit.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from jinja2 import FileSystemLoader
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from loki_memory.resources import resource
from loki_memory.server.requests import CALLER, standing
from loki_memory.ui.security import Fenced, Secrets
from loki_memory.ui.server import make_site, mountable
from loki_memory.ui.templates import NAVIGATION, environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from loki_memory.server.database import Database
    from loki_memory.server.tools import ServedProjects
    from loki_memory.workspace import Workspace

PREFIX = "/repositories"
SIGN_IN = f"{PREFIX}/sign-in"
_COOKIE = "loki-mem-token"
_LARGEST_FORM = 10_000  # bytes
_HERE = ("127.0.0.1", "localhost", "::1")  # where a browser may send the cookie without TLS
_AT_ONCE = 4  # pages that are made at the same time, of different repositories
# The other pages are about one machine: its sessions, its working tree, its health.
_SHOWN = ("beliefs", "timeline", "graph", "files", "handoffs")
_FRAME = ("static", "schemas", "pulse.json", "site.webmanifest", "theme")  # show no memory


def routes(
    database: Database, projects: ServedProjects, is_known: Callable[[str], bool]
) -> list[BaseRoute]:
    """The routes of all pages; `is_known` checks the token with which somebody signs in."""

    def repositories(_: Request) -> ASGIApp:
        with database.as_token(CALLER.get().secret) as connection:
            return _page("repositories.html", standing=standing(connection), prefix=PREFIX)

    async def sign_in(request: Request) -> ASGIApp:
        # Another site must not sign a browser in as somebody else.
        if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return form("Sign in from this page.", 403)
        given = parse_qs((await request.body())[:_LARGEST_FORM].decode("utf-8", "replace"))
        secret = given.get("token", [""])[0].strip()
        if secret and not await run_in_threadpool(is_known, secret):
            return form("That token is wrong, expired or revoked.")
        return _signed_in(secret, is_secure=request.url.hostname not in _HERE)

    return [
        Route(f"{PREFIX}/", repositories),
        Route(SIGN_IN, sign_in, methods=["POST"]),
        Mount(f"{PREFIX}/{{name}}", RepositoryPages(projects)),
    ]


def is_page(path: str) -> bool:
    """Check for a path that a browser asks for."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def secret_of(scope: Scope) -> str:
    """The token of a browser that signed in, if it asks for a page."""
    return HTTPConnection(scope).cookies.get(_COOKIE, "") if is_page(scope["path"]) else ""


def wants_form(scope: Scope) -> bool:
    """Check for a request of a browser whose user has to sign in first."""
    return is_page(scope["path"]) and "text/html" in Headers(scope=scope).get("accept", "")


def form(said: str = "", status: int = 401) -> ASGIApp:
    """The form that takes a token."""
    return _page("sign_in.html", status, action=SIGN_IN, said=said)


def _page(template: str, status: int = 200, **given: Any) -> ASGIApp:
    templates = FileSystemLoader(resource("templates") / "server")
    text = environment().overlay(loader=templates).get_template(template).render(**given)
    return Fenced(HTMLResponse(text, status))


def _signed_in(secret: str, *, is_secure: bool) -> Response:
    """Keep the token in the browser; an empty one is forgotten."""
    answer = RedirectResponse(f"{PREFIX}/", 303)
    answer.set_cookie(
        _COOKIE,
        secret,
        max_age=None if secret else 0,
        path=PREFIX,
        secure=is_secure,
        httponly=True,
        samesite="strict",
    )
    return answer


class RepositoryPages:
    """The pages of the repository that the path names, over its replica."""

    def __init__(self, projects: ServedProjects) -> None:
        self._projects = projects
        self._secrets = Secrets(0)  # for forms that choose a theme
        self._worker = ThreadPoolExecutor(_AT_ONCE, "pages")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = str(scope["path"]).removeprefix(scope["root_path"])
        top = path.split("/")[1] if path else ""
        if top.removesuffix(".json") not in _SHOWN and top not in _FRAME:
            await _elsewhere(scope, top)(scope, receive, send)
            return
        act = f"page {path}" if top not in _FRAME else ""
        turn = self._projects.at(scope["path_params"]["name"], act, _shown(path))
        workspace = await run_in_threadpool(turn.__enter__)
        try:
            await self._app(workspace)(scope, receive, send)
        finally:
            await run_in_threadpool(turn.__exit__, None, None, None)

    def _app(self, workspace: Workspace) -> ASGIApp:
        site = make_site(workspace, 0, read_only=True)
        shown = [entry for entry in NAVIGATION if entry.name in _SHOWN]
        site = site._replace(navigation=shown, worker=self._worker, secrets=self._secrets)
        return mountable(site)


def _elsewhere(scope: Scope, top: str) -> Response:
    """The answer for what is no page here; no content ends the asking for live updates."""
    if top in {"", "now"}:
        return RedirectResponse(f"{scope['root_path']}/{_SHOWN[0]}", 302)
    return Response(status_code=204 if top == "events" else 404)


def _shown(path: str) -> list[str]:
    """The memory that a page is about."""
    found = path.removeprefix("/beliefs/").removesuffix(".json")
    return [found] if path.startswith("/beliefs/") and "/" not in found else []
