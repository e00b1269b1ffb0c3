"""The frame around every page: theme, undo, the state of the watcher, the web manifest."""

from __future__ import annotations

from typing import Any, NamedTuple

from starlette.responses import JSONResponse, Response

from loki_memory.ui.page import Visit, back, document, page, render, write

_YEAR = 31_536_000  # seconds


class Pulse(NamedTuple):
    """The state of the watcher, for the badge."""

    watcher: str  # stopped, idle, ingesting, consolidating


def pulse(visit: Visit) -> Response:
    return render(visit, "pulse.html", Pulse(visit.site.watcher_state()))


def choose_theme(visit: Visit) -> Response:
    """Keep the theme in a cookie; an empty one follows the system again."""
    response = back(visit, _own_path(visit.form.get("next", "")))
    chosen = visit.form.get("theme", "")
    response.set_cookie("loki-mem-theme", chosen, max_age=_YEAR if chosen else 0, samesite="strict")
    return response


def undo(visit: Visit) -> Response:
    """Take a change back, once."""
    change = visit.site.undo.take(visit.form.get("key", ""))
    done = ""
    if change is not None and change.undo is not None:
        change.undo()
        done = visit.site.undo.push(f"Undone: {change.words}")
        visit.site.broadcast.notify()
    return back(visit, _own_path(visit.form.get("next", "")), done)


def _own_path(given: str) -> str:
    """A path of this server, and never an address elsewhere."""
    is_path = given.startswith("/") and not given.startswith(("//", "/\\"))
    return given if is_path else "/now"


def manifest(visit: Visit) -> Response:
    """The web manifest, with which a browser offers the page as an app of its own."""
    icon = {"src": f"{visit.root}/static/icon.svg", "sizes": "any", "type": "image/svg+xml"}
    return JSONResponse(
        {
            "name": f"loki-mem: {visit.workspace.layout.root.name}",
            "short_name": "loki-mem",
            "start_url": f"{visit.root}/now",
            "display": "standalone",
            "background_color": "#f7f7f5",
            "theme_color": "#3b5bdb",
            "icons": [icon],
        },
        media_type="application/manifest+json",
    )


routes = [
    *page("/pulse", pulse),
    *document("/site.webmanifest", manifest),
    *write("/theme", choose_theme, is_memory=False),
    *write("/undo", undo),
]
shapes: dict[str, Any] = {"pulse": Pulse}
