"""Answer a request: the data of a page as HTML, or as JSON at the same path with `.json`.

A page is a function from a `Visit` to a response. It collects a named tuple from the workspace and
passes it to `render`. All pages of a server share one thread, so that they see memory one after the
other, as commands do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

import orjson
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from loki_memory.errors import (
    Conflict,
    InvalidRecord,
    LokiMemoryError,
    NotFound,
    RejectedValue,
    StoreBusy,
)
from loki_memory.ui.site import UiSite
from loki_memory.ui.templates import environment
from loki_memory.workspace import quotable

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

_LARGEST_FORM = 1 << 20  # bytes
_THEMES = ("light", "dark")
_STATUS_CODES: tuple[tuple[type[LokiMemoryError], int], ...] = (
    (NotFound, 404),
    (Conflict, 409),
    (RejectedValue, 409),
    (InvalidRecord, 422),
    (StoreBusy, 503),
)


class ReadOnlyPage(LokiMemoryError):
    """The server was started with `--read-only`."""

    def __init__(self) -> None:
        super().__init__("this page only reads; start `loki-mem ui` without --read-only to write.")


class ForgedForm(LokiMemoryError):
    """A write without the token of our pages."""

    def __init__(self) -> None:
        super().__init__("the form is out of date; load the page again and repeat the change.")


class Visit(NamedTuple):
    """One request: the site, the parameters of the path, and the fields of a form."""

    site: UiSite
    request: Request
    form: Mapping[str, str] = {}

    @property
    def workspace(self) -> Workspace:
        return self.site.workspace

    def parameter(self, name: str) -> str:
        """A part of the path, such as the id in `/beliefs/{id}`."""
        return str(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default).strip()

    @property
    def root(self) -> str:
        """The path under which the pages are mounted; empty for a server of their own."""
        return str(self.request.scope.get("root_path", ""))

    @property
    def path(self) -> str:
        """The path of the page, wherever it is mounted."""
        return self.request.url.path.removeprefix(self.root)

    @property
    def wants_json(self) -> bool:
        return self.request.url.path.endswith(".json")

    @property
    def theme(self) -> str:
        """The theme that the user chose; empty: as the system has it."""
        chosen = self.request.cookies.get("loki-mem-theme", "")
        return chosen if chosen in _THEMES else ""


class PageError(NamedTuple):
    """An error as a page shows it."""

    type: str
    message: str


View = Callable[[Visit], Response]


def page(path: str, view: View) -> list[Route]:
    """The routes of a page: JSON first, because `{id}` would match `x.json` too."""
    return [Route(f"{path}.json", _endpoint(view)), Route(path, _endpoint(view))]


def document(path: str, view: View) -> list[Route]:
    """The route of an answer that has one form only."""
    return [Route(path, _endpoint(view))]


def write(path: str, view: View, *, is_memory: bool = True) -> list[Route]:
    """The route of a form; `is_memory` if it changes memory, which a read-only page refuses."""
    return [Route(path, _endpoint(view, check_write if is_memory else _check), methods=["POST"])]


def _endpoint(view: View, check: Callable[[Visit], None] | None = None) -> Callable[..., Any]:
    async def endpoint(request: Request) -> Response:
        site: UiSite = request.app.state.site
        visit = Visit(site, request, await _form(request) if check else {})
        try:
            if check:
                check(visit)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(site.worker, view if check else _reading(view), visit)
        except LokiMemoryError as error:
            return error_page(visit, error)

    return endpoint


def _reading(view: View) -> View:
    """A view that answers from one look at the folders, however many parts of the page ask.

    The server listens to the files, and reads one that was edited in place when it hears of it.
    """

    def looking_once(visit: Visit) -> Response:
        with visit.workspace.home.one_look(folders_only=True):
            return view(visit)

    return looking_once


async def _form(request: Request) -> dict[str, str]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_FORM:
            return {}  # without its token it is refused
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def _check(visit: Visit) -> None:
    given = visit.request.headers.get("x-csrf-token") or visit.form.get("csrf")
    if not visit.site.secrets.is_write_token(given):
        raise ForgedForm


def check_write(visit: Visit) -> None:
    """Refuse a change of memory without the token, or on a page that only reads."""
    _check(visit)
    if visit.site.read_only:
        raise ReadOnlyPage


def status_code(error: LokiMemoryError) -> int:
    """The status of the answer to a request that failed."""
    refused = 403 if isinstance(error, ReadOnlyPage | ForgedForm) else 500
    return next((code for kind, code in _STATUS_CODES if isinstance(error, kind)), refused)


def error_page(visit: Visit, error: LokiMemoryError) -> Response:
    """The answer to a request that failed; it may quote what was typed, without secrets."""
    shown = PageError(type(error).__name__, quotable(str(error)))
    response = render(visit, "error.html", shown)
    response.status_code = status_code(error)
    return response


def render(visit: Visit, template: str, data: tuple[Any, ...]) -> Response:
    """Answer with a page's data, a named tuple: as JSON, or in a template that calls it `page`."""
    if visit.wants_json:
        headers = _described(visit, template)
        return Response(as_json(data), media_type="application/json", headers=headers)
    text = environment().get_template(template).render(page=data, **_surroundings(visit))
    return HTMLResponse(text)


def _described(visit: Visit, template: str) -> dict[str, str]:
    """The header that names the schema of a page's JSON; it is called as the template is."""
    name = template.removesuffix(".html")
    return {"link": f'<{visit.root}/schemas/ui-{name}.schema.json>; rel="describedby"'}


def as_json(data: Any) -> bytes:
    return orjson.dumps(data, default=_object, option=orjson.OPT_INDENT_2)


def _object(value: Any) -> Any:
    """A named tuple as an object, any other tuple as a list."""
    return value._asdict() if hasattr(value, "_asdict") else list(value)


def _surroundings(visit: Visit) -> dict[str, Any]:
    """The values that the frame around every page needs."""
    site = visit.site
    return {
        "csrf": site.secrets.csrf,
        "done": site.undo.find(visit.query("done")),
        "navigation": site.navigation,
        "now": site.workspace.now(),
        "path": visit.path,
        "project": site.workspace.layout.root.name,
        "read_only": site.read_only,
        "root": visit.root,
        "theme": visit.theme,
    }


def back(visit: Visit, path: str, done: str = "") -> Response:
    """Return to a page after a write; `done` is the key of what can be undone."""
    path = f"{visit.root}{path}"
    target = f"{path}{'&' if '?' in path else '?'}done={done}" if done else path
    return RedirectResponse(target, 303)


def wrote(
    visit: Visit, words: str, path: str, undo: Callable[[], object] | None = None
) -> Response:
    """Finish a write as a command does, tell open pages, and go back to a page."""
    visit.workspace.browse.refresh_continuity()
    visit.workspace.flush()
    visit.site.broadcast.notify()
    return back(visit, path, visit.site.undo.push(words, undo))
