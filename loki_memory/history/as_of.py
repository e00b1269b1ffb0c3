"""Memory as it was: the memory of a commit, read without checking it out.

A commit never changes, so its index is built once and kept in the cache, from a copy of the present
one and the differences. It answers like an index that was built in a checkout of that commit: from
its memory, its settings, and those files of its code that its memories cite. The user's own memory
and this machine's journal take no part.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from loki_memory.errors import GitFailed, ReadOnlyPast
from loki_memory.files import disk
from loki_memory.files.layout import Layout, kind_of, made_here, view_kind
from loki_memory.files.scan import Changes, ScanResult, etag
from loki_memory.files.store import Store, Stored, failures_named
from loki_memory.git_repository import repository
from loki_memory.home import Home
from loki_memory.index import queries
from loki_memory.index.graph import cited_files
from loki_memory.index.index import Index
from loki_memory.sync import home_of
from loki_memory.sync.apply import Intake

if TYPE_CHECKING:
    from loki_memory.git_repository import Repository
    from loki_memory.homes import OpenWorkspace

W = TypeVar("W", bound="OpenWorkspace")

_FOLDER = "as-of"
_KEPT = 16  # past states that stay in the cache; a bisection over 1,000 commits visits fewer
_COMPLETE = "complete"
_DIGITS = 15  # of a commit id, as a number that SQLite can hold


class Past(Home):
    """The memory of a commit. Nothing in it changes, so nothing is compared again."""

    stands_alone = True  # memory of the user is not part of any commit
    commit_id = ""

    def ensure(self, *_: object, **__: object) -> Changes:
        """Report at once that the index is up to date: a commit does not change."""
        return Changes([], [], [], is_complete=True)

    def look_up(self, memory_id: str) -> None:
        """Find nothing: there are no files, only the index."""

    def place_of(self, memory_id: str) -> str | None:
        return self.index.path_of(memory_id)

    def before_write(self, *_: str) -> None:
        raise ReadOnlyPast(self.commit_id)


def as_of(workspace: OpenWorkspace, rev: str) -> Past:
    """Open the memory of a commit, or of the last commit until a date."""
    repo = repository(workspace.layout, workspace.config)
    commit = repo.commit_of(rev)
    place = past_layout(workspace.layout.cache / _FOLDER / commit)
    past = Past(place)
    past.commit_id, past.progress = commit, workspace.home.progress
    with failures_named(place.root):
        disk.refuse_links(place.root)
    if _is_complete(place.root):
        os.utime(place.root)
        return past
    shutil.rmtree(place.root, ignore_errors=True)
    workspace.home.ensure("current")
    _make(workspace, past, repo)
    lay_out_cited(past, repo)
    disk.write_bytes(place.root / _COMPLETE, made_here(os.lstat(place.root)))
    _drop_oldest(place.root.parent)
    return past


def workspace_as_of(workspace: W, rev: str) -> W:
    """Open a workspace on the memory of a commit: to be read, not written."""
    return type(workspace)(as_of(workspace, rev), origin=workspace.origin)


def _is_complete(root: Path) -> bool:
    """Check for a state that this machine made: a clone may bring a cache, but not its inode."""
    try:
        return disk.read_bytes(root / _COMPLETE) == made_here(os.lstat(root))
    except OSError:
        return False


def past_layout(root: Path) -> Layout:
    """The layout of a past state in a folder of its own."""
    loki = root / ".loki"
    return Layout(root, loki, loki / "memory", loki / "local", loki / "cache")


def _make(workspace: OpenWorkspace, past: Past, repo: Repository) -> None:
    """Build the index of a commit from the present one and the differences."""
    place = past.layout
    files = _files(repo, past.commit_id)
    lay_out(place, files, content(repo, past.commit_id, f"{repo.prefix}/config.toml"))
    workspace.index.copy_to(place.cache / "index.db")
    follow(place, past.index, files, int(past.commit_id[:_DIGITS], 16))


def lay_out(place: Layout, files: Mapping[str, bytes], settings: bytes | None) -> None:
    """Make the folders of a layout, and write what is read there although no index has it."""
    for path in ("episodic", "semantic", "learnings"):
        disk.make_folder(place.memory / path)
    disk.make_folder(place.local)
    for path, data in files.items():
        if view_kind(path):  # in an old layout its entries are memory
            _write(place.file(path), data)
    if settings is not None:
        _write(str(place.loki / "config.toml"), settings)


def _files(repo: Repository, commit: str) -> dict[str, bytes]:
    """Records, and views of an old layout: the files that a rebuild would read."""
    tree = {p: blob for p, blob in repo.tree(commit).items() if kind_of(p) or view_kind(p)}
    data = dict(repo.blobs(tree.values()))
    return {path: data[blob] for path, blob in tree.items()}


def _write(target: str, data: bytes) -> None:
    """Write a file without a flush: after a crash it is made again."""
    disk.replace_plainly(target, data)


def content(repo: Repository, commit: str, path: str) -> bytes | None:
    """The content of a file in a commit, by its path from the root; None if it is not there."""
    with suppress(GitFailed):
        return repo.run("cat-file", "blob", f"{commit}:{path}")
    return None


def lay_out_cited(past: Past, repo: Repository) -> None:
    """Write the code that memories cite as of that commit: stale citations are part of memory."""
    inside = repo.prefix.removesuffix(".loki")
    root = past.layout.root
    for path in cited_files(past.index):
        target = os.path.normpath(root / path)
        if target.startswith(f"{root}{os.sep}") and not target.startswith(f"{past.layout.loki}"):
            data = content(repo, past.commit_id, inside + path)
            if data is not None:
                _write(target, data)


def _drop_oldest(folder: Path) -> None:
    """Keep the states that were used last."""
    by_use = sorted(folder.iterdir(), key=lambda state: state.stat().st_mtime_ns, reverse=True)
    for old in by_use[_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)


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


def follow(
    layout: Layout,
    index: Index,
    files: Mapping[str, bytes],
    state: int,
    gone: Collection[str] | None = None,
) -> None:
    """Make an index say what these record files say, and the views that lie in the layout.

    Only what differs from the index is read. What the index says then is the same as if the files
    were laid out and it were built from nothing. The files are all there are, unless `gone` names
    those that are no more: then they are those that changed, and none of them is a view.

    `state` is a number for what they say: what was derived from the index before is of another.
    """
    known = index.file_hashes()
    changed = {
        path: (1, 1, len(data))
        for path, data in sorted(files.items())
        if view_kind(path) or (kind_of(path) and known.get(path) != etag(data))
    }
    views = [] if gone is not None else queries.memory_paths(index)
    if gone is None:
        gone = {path for path in (*known, *queries.problem_paths(index)) if path not in files}
    with index.change(wait=True, anew=not (known or views)) as revision:
        for path in views:
            if view_kind(path):
                revision.remove_path(path)
        Intake(Tree(layout, files), revision, ScanResult({}, changed, sorted(gone))).run()
        revision.set_note("home", home_of(layout))
        revision.set_note("changed_ns", str(state))
