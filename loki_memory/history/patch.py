"""The memory files that differ from the last commit, as unified diffs."""

from __future__ import annotations

from difflib import unified_diff
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.files.layout import view_kind
from loki_memory.history.review import editions
from loki_memory.history.tree import changed

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_MOST_LINES, _WIDTH = 400, 400  # of one file, and characters of a line; the files have all


class FilePatch(NamedTuple):
    """A memory file that differs from the last commit."""

    path: str  # below .loki/memory
    what: str  # new, changed, gone
    lines: list[str]  # of the unified diff, without its head


def patch(workspace: OpenWorkspace) -> list[FilePatch]:
    """Compare the working tree with the last commit; raises NoHistory outside of git."""
    before, after = editions(workspace, None)
    paths = [path for path in changed(before, after) if not view_kind(path)]
    old = dict(before.read(path for path in paths if path in before.files))
    new = dict(after.read(path for path in paths if path in after.files))
    return [
        _patch(path, old.get(path), new.get(path))
        for path in paths
        if old.get(path) != new.get(path)
    ]


def _patch(path: str, old: bytes | None, new: bytes | None) -> FilePatch:
    what = "new" if old is None else "gone" if new is None else "changed"
    found = unified_diff(_lines(old), _lines(new), lineterm="", n=2)
    lines = [line[:_WIDTH] for line in list(found)[2 : _MOST_LINES + 2]]
    return FilePatch(path, what, lines)


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "replace").splitlines()
