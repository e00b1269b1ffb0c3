"""Rescue memory that was written in a worktree and would be lost with it.

An agent's worktree is removed when its work is done, committed or not. Its records that are in no
commit are copied into the main worktree where their path is free, and into this machine's own zone
where another file has that path: nothing is overwritten, and nothing is lost.

Some ways to remove a worktree tell hooks nothing. So at the end of a session or of a subagent the
records are copied into this machine's own zone, and brought back once the worktree is gone, unless
git has come to know them meanwhile.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import GitFailed
from loki_memory.files import disk
from loki_memory.files.git_files import git_home
from loki_memory.files.layout import PRIVATE, Layout, kind_of, layout
from loki_memory.files.scan import scan
from loki_memory.files.store import failures_named
from loki_memory.git_repository import Repository
from loki_memory.models.ids import digest, file_stem

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_MOST_BYTES = 10_000_000  # no record is as long
_COPIES = "worktrees"  # the folder of copies, in the local zone


class Salvaged(NamedTuple):
    """Records that were copied: into the main worktree, or aside; paths as in the index."""

    kept: list[str]
    aside: list[str]
    folder: str  # of the records set aside

    def sentence(self) -> str:
        """A sentence for a person; empty if nothing had to be done."""
        parts = []
        if self.kept:
            parts.append(f"{len(self.kept)} kept here")
        if self.aside:
            parts.append(f"{len(self.aside)} laid aside in {self.folder}")
        return f"uncommitted memory of the worktree: {', '.join(parts)}" if parts else ""


def salvage(workspace: OpenWorkspace, worktree: str) -> Salvaged:
    """Copy the uncommitted records of a worktree; nothing if it is no worktree of this one."""
    folder = f"{workspace.layout.local}/salvaged/{_name(worktree, workspace.now())}"
    found = Salvaged([], [], folder)
    places = _places(workspace, worktree)
    if places is None:
        return found
    source, target = places
    with failures_named(target.memory):
        for path, data in _uncommitted(source):
            _copy(path, data, target, found)
    return found


def keep_copies(workspace: OpenWorkspace, worktree: str) -> int:
    """Copy the uncommitted records of a worktree that may be removed; returns how many there are.

    The copies replace those that were made before.
    """
    places = _places(workspace, worktree)
    if places is None:
        return 0
    source, _ = places
    folder = f"{workspace.layout.local}/{_COPIES}/{digest('worktree', str(source.root))}"
    records = list(_uncommitted(source))
    _drop(folder)
    with failures_named(folder):
        for path, data in records:
            disk.write_bytes(f"{folder}/memory/{path}", data)
        if records:
            disk.write_bytes(f"{folder}/worktree", os.fsencode(source.root))
    return len(records)


def bring_back(workspace: OpenWorkspace) -> Salvaged:
    """Copy what is left of worktrees that are gone into the main worktree."""
    aside = f"{workspace.layout.local}/salvaged/worktrees"
    found = Salvaged([], [], aside)
    repository = Repository.find(workspace.layout.root, workspace.layout.loki.name)
    main = _main(workspace)
    for named in sorted(Path(workspace.layout.local, _COPIES).glob("*/worktree")):
        if repository is None or main is None or Path(os.fsdecode(named.read_bytes())).exists():
            continue
        with failures_named(main.memory):
            for file in sorted(named.parent.glob("memory/**/*.*")):
                data = disk.read_bytes(file)
                if data and not _is_known(repository, data):
                    path = file.relative_to(named.parent / "memory").as_posix()
                    _copy(path, data, main, found)
        _drop(str(named.parent))
    return found


def _is_known(repository: Repository, data: bytes) -> bool:
    """Check if git has a content: somebody committed or staged it."""
    try:
        repository.run("cat-file", "-e", repository.blob_id(data))
    except GitFailed:
        return False
    return True


def _main(workspace: OpenWorkspace) -> Layout | None:
    ours = git_home(workspace.layout.root)
    if ours is None or ours[1].name != ".git":
        return None
    return layout(ours[1].parent / workspace.layout.root.relative_to(ours[0]))


def _drop(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _copy(path: str, data: bytes, target: Layout, found: Salvaged) -> None:
    there = disk.read_bytes(target.file(path))
    if there is None:
        disk.write_bytes(target.file(path), data)
        found.kept.append(path)
    elif there != data:
        disk.write_bytes(f"{found.folder}/{path}", data)
        found.aside.append(path)


def _places(workspace: OpenWorkspace, worktree: str) -> tuple[Layout, Layout] | None:
    """Our layout in the worktree, and in the main worktree of the same repository."""
    ours, theirs = git_home(workspace.layout.root), git_home(Path(worktree))
    if ours is None or theirs is None or ours[1].resolve() != theirs[1].resolve():
        return None
    inside, main = workspace.layout.root.relative_to(ours[0]), ours[1].parent
    if ours[1].name != ".git" or theirs[0].resolve() == main.resolve():
        return None
    return layout(theirs[0] / inside), layout(main / inside)


def _uncommitted(source: Layout) -> Iterator[tuple[str, bytes]]:
    """Records of a worktree that differ from its last commit."""
    repository = Repository.open(source.root)
    known = repository.tree("HEAD") if repository.head() else {}
    for path in _records(source):
        data = disk.read_bytes(source.file(path))
        if data is not None and known.get(path) != repository.blob_id(data):
            yield path, data


def _records(source: Layout) -> Iterator[str]:
    for folder, content in scan(source):
        for name, (_, _, size) in sorted(content.files.items()):
            path = f"{folder}/{name}"
            if not path.startswith(PRIVATE) and 0 < size <= _MOST_BYTES and kind_of(path):
                yield path


def _name(worktree: str, now: str) -> str:
    digits = "".join(filter(str.isdigit, now))
    return f"{file_stem(os.path.basename(worktree.rstrip(os.sep)))}-{digits}"
