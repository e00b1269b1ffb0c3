"""Index files that are in no folder: the memory of a commit.

It starts from a copy of another index, so that only what differs is read. What the index says
then is the same as if the files were laid out and it were built from nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from loki_memory.files.etag import etag
from loki_memory.files.layout import Layout, kind_of, view_kind
from loki_memory.files.store import Store, Stored
from loki_memory.index import queries
from loki_memory.index.index import Index
from loki_memory.sync import home_of
from loki_memory.sync.apply import Intake
from loki_memory.sync.changes import ScanResult


class Tree(Store):
    """Record files by path, read from memory; views are read from the layout's folder."""

    def __init__(self, layout: Layout, files: Mapping[str, bytes]) -> None:
        super().__init__(layout)
        self._files = files

    def read(self, path: str) -> Stored | None:
        data = self._files.get(path)
        if data is not None:
            return Stored(data, etag(data))
        return super().read(path) if view_kind(path) else None


def follow(layout: Layout, index: Index, files: Mapping[str, bytes], state: int) -> None:
    """Make an index say what these record files say, and the views that lie in the layout.

    `state` is a number for what they say: what was derived from the index before is of another.
    """
    known = index.file_hashes()
    changed = {
        path: (1, 1, len(data))
        for path, data in sorted(files.items())
        if kind_of(path) and known.get(path) != etag(data)
    }
    told = queries.problem_paths(index)
    gone = sorted({path for path in (*known, *told) if path not in files})
    views = queries.memory_paths(index)
    with index.change(wait=True) as revision:
        for path in views:
            if view_kind(path):
                revision.remove_path(path)
        Intake(Tree(layout, files), revision, ScanResult({}, changed, gone)).run()
        revision.set_note("home", home_of(layout))
        revision.set_note("changed_ns", str(state))
