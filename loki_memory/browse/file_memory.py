"""Memory about the files of the repository: beliefs that cite them, sessions that touched them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from loki_memory.index.overview import AboutRow, about_file, known_files
from loki_memory.integrity.citations import content, has_changed

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_MOST = 500  # files in one list


class KnownFile(NamedTuple):
    """A file that memories name."""

    path: str
    citing: int  # beliefs that cite it
    touching: int  # episodes that read or changed it
    is_there: bool


class KnownFiles(NamedTuple):
    """Files that memories name, those that are cited most first."""

    containing: str
    files: list[KnownFile]
    more: bool


class FileBelief(NamedTuple):
    """A memory about a file."""

    id: str
    kind: str
    title: str
    status: str
    at: str
    relation: str  # cites, touches, or learned there
    stale: bool  # the file changed since it was cited, or is gone


class FileMemory(NamedTuple):
    """All that memory knows about one file."""

    path: str
    is_there: bool
    beliefs: list[FileBelief]  # that cite it, or were learned where it was touched
    episodes: list[FileBelief]


def files_known(workspace: OpenWorkspace, containing: str = "") -> KnownFiles:
    """List the files that memories name; `containing` is a part of the path."""
    workspace.home.ensure("read")
    index, root = workspace.index, workspace.layout.root
    rows = workspace.home.answer(partial(known_files, index, containing, _MOST + 1))
    shown = [KnownFile(*row, is_there=_is_there(root, row.path)) for row in rows[:_MOST]]
    return KnownFiles(containing, shown, len(rows) > _MOST)


def file_memory(workspace: OpenWorkspace, path: str) -> FileMemory:
    """Collect what memory knows about a file, stale citations marked."""
    workspace.home.ensure("read")
    root = workspace.layout.root
    rows = workspace.home.answer(partial(about_file, workspace.index, path))
    found = [_belief(root, path, row) for row in rows]
    return FileMemory(
        path=path,
        is_there=_is_there(root, path),
        beliefs=[belief for belief in found if belief.kind != "episode"],
        episodes=[belief for belief in found if belief.kind == "episode"],
    )


def _is_there(root: Path, path: str) -> bool:
    return content(root, path) is not None


def _belief(root: Path, path: str, row: AboutRow) -> FileBelief:
    cited = orjson.loads(row.body).get("citations") if row.relation == "cites" else []
    stale = any(has_changed(root, citation) for citation in cited if _is_of(citation, path))
    return FileBelief(row.id, row.kind, row.title, row.status, row.at, row.relation, stale)


def _is_of(citation: Any, path: str) -> bool:
    return isinstance(citation, dict) and citation.get("path") == path
