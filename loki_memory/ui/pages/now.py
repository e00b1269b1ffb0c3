"""Now: what agents are told at this moment, and what waits for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response

from loki_memory.ui.page import Visit, page, render

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace


class NowPage(NamedTuple):
    """The data of the page Now."""

    memories: int


def now_page(workspace: Workspace) -> NowPage:
    return NowPage(len(workspace.browse.summaries()))


def now(visit: Visit) -> Response:
    return render(visit, "now.html", now_page(visit.workspace))


routes = page("/now", now)
shapes: dict[str, Any] = {"now": NowPage}
