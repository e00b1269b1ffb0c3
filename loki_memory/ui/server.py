"""The application of all pages, and the server that runs it on this machine."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from loki_memory.errors import NotFound
from loki_memory.resources import resource
from loki_memory.ui.page import Visit, error_page
from loki_memory.ui.pages import ROUTES
from loki_memory.ui.rest import REST_ROUTES
from loki_memory.ui.security import HOST, Fenced, Guard, Secrets
from loki_memory.ui.site import Broadcast, UiSite, UndoStack

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

_SECONDS_TO_FINISH = 1
_SMALLEST_COMPRESSED = 1000  # bytes
_COMPRESSION = 5  # of 9: a page in 2 ms


def listen(port: int) -> socket.socket:
    """Open a port that only this machine reaches; 0 is any that is free."""
    return socket.create_server((HOST, port))


def make_site(
    workspace: Workspace,
    port: int,
    *,
    read_only: bool = False,
    watcher_state: Callable[[], str] = lambda: "stopped",
) -> UiSite:
    """The parts that the pages share; all of them work in one thread."""
    worker = ThreadPoolExecutor(1, "pages")
    parts = (workspace, Secrets(port), Broadcast(), UndoStack(), worker)
    return UiSite(*parts, read_only=read_only, watcher_state=watcher_state)


def application(site: UiSite) -> ASGIApp:
    """The pages behind the guard."""
    return Fenced(Guard(_pages(site), site.secrets))


def mountable(site: UiSite) -> ASGIApp:
    """The pages without a guard, for a server that has let its own users in.

    Mount it under any path, with a site that only reads, and call `site.close()` at the end.
    """
    return Fenced(_pages(site))


def _pages(site: UiSite) -> Starlette:
    routes: list[BaseRoute] = [
        Route("/", _first_page),
        Route("/events", _events),
        Mount("/static", StaticFiles(directory=resource("templates") / "ui" / "static")),
        Route("/schemas/{name}", _schema),
        *ROUTES,
        *REST_ROUTES,
    ]
    pages = Starlette(
        routes=routes,
        middleware=[
            Middleware(
                GZipMiddleware, minimum_size=_SMALLEST_COMPRESSED, compresslevel=_COMPRESSION
            )
        ],
        exception_handlers={404: _not_found},
        lifespan=_lifespan,
    )
    pages.state.site = site
    return pages


async def _first_page(request: Request) -> Response:
    return RedirectResponse(f"{request.scope.get('root_path', '')}/now", 302)


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    """Let go of the thread of the pages when the server ends."""
    site: UiSite = app.state.site
    try:
        yield
    finally:
        site.close()


async def _events(request: Request) -> Response:
    site: UiSite = request.app.state.site
    return StreamingResponse(site.broadcast.events(), media_type="text/event-stream")


async def _schema(request: Request) -> Response:
    """A schema by its file name, as in the folder `schemas/`."""
    folder = resource("schemas")
    name = request.path_params["name"]
    if name not in {path.name for path in folder.glob("*.json")}:
        return await _not_found(request, None)
    return FileResponse(folder / name, media_type="application/schema+json")


async def _not_found(request: Request, _: object) -> Response:
    return error_page(Visit(request.app.state.site, request), NotFound(request.url.path))


class UiServer(uvicorn.Server):
    """A server that ends the connections of live updates when it is asked to stop."""

    def __init__(self, site: UiSite) -> None:
        super().__init__(
            uvicorn.Config(
                application(site),
                log_level="warning",
                access_log=False,  # it would go to standard output
                timeout_graceful_shutdown=_SECONDS_TO_FINISH,
                server_header=False,
            )
        )
        self._site = site

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._site.broadcast.close()
        await super().shutdown(sockets)


def serve(site: UiSite, listening: socket.socket) -> None:
    """Serve until the process is stopped; Ctrl-C is the way to do that."""
    with suppress(KeyboardInterrupt):
        UiServer(site).run(sockets=[listening])
