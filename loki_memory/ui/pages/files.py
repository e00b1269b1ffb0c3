"""Files: the files of the repository that memory knows something about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response

from loki_memory.ui.page import Visit, page, render

if TYPE_CHECKING:
    from loki_memory.browse.file_memory import FileMemory, KnownFiles


class FilesPage(NamedTuple):
    """The data of the page Files."""

    known: KnownFiles


class FilePage(NamedTuple):
    """The data of the page of one file."""

    known: FileMemory


def files(visit: Visit) -> Response:
    known = visit.workspace.browse.files(visit.query("q"))
    return render(visit, "files.html", FilesPage(known))


def file(visit: Visit) -> Response:
    known = visit.workspace.browse.file(visit.parameter("path"))
    return render(visit, "file.html", FilePage(known))


routes = [*page("/files", files), *page("/files/{path:path}", file)]
shapes: dict[str, Any] = {"files": FilesPage, "file": FilePage}
