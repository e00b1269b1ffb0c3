"""Clear the memory of a project: all records at once, after a backup of them was written.

The backup is an export that `import --as-is` takes back word for word, in the user's own folder
unless another place is named. It is on disk before the first record goes, and both happen under the
lock of the store, so that nothing that somebody writes meanwhile is lost.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.files.layout import user_folder
from loki_memory.interop.export_memory import (
    StoredFile,
    backup,
    counts,
    refuse_existing,
    stored_files,
)

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace


class ClearedMemory(NamedTuple):
    """The result of clearing a memory."""

    backup: str  # the file that `import --as-is` takes back
    removed: dict[str, int]  # records by kind
    left: list[str]  # files that hold no readable record, and stay
    planned: bool


def clear_memory(
    workspace: OpenWorkspace, to: Path | None = None, *, plan_only: bool = False
) -> ClearedMemory:
    """Remove every record of a project, shared, private and archived; the user's memory stays."""
    path = to or _free_name(workspace)
    refuse_existing(path)
    workspace.home.before_write()
    left: list[str] = []
    if plan_only:
        files = list(stored_files(workspace.layout, left, everything=True))
    else:
        files = _removed(workspace, path, left)
    return ClearedMemory(str(path), counts(files), left, plan_only)


def _removed(workspace: OpenWorkspace, path: Path, left: list[str]) -> list[StoredFile]:
    with workspace.store.change() as change:
        files = backup(workspace, path, left)
        for file in files:
            change.remove(file.path)
    workspace.home.wrote()
    return files


def _free_name(workspace: OpenWorkspace) -> Path:
    """A name that says which project and when, and that is not taken."""
    moment = re.sub(r"\D", "", workspace.now())[:14]
    name = f"{workspace.layout.root.resolve().name}-{moment}"
    folder, number = user_folder() / "backups", 1
    path = folder / f"{name}.jsonl"
    while path.exists():
        number += 1
        path = folder / f"{name}~{number}.jsonl"
    return path
