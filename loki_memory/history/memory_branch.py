"""The branch of memory: its commits and merges, exchange with a remote, and files made from it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import FileChanged, GitFailed
from loki_memory.files.layout import view_kind
from loki_memory.files.scan import scan
from loki_memory.git_repository import BRANCH as NAME
from loki_memory.git_repository import BRANCH_BASE, Repository
from loki_memory.history.plumbing_commit import (
    NOTHING,
    PROGRAM,
    File,
    Message,
    Seal,
    TreeEntry,
    advance,
    written,
)

if TYPE_CHECKING:
    from loki_memory.files.store import Change
    from loki_memory.home.folder import HomeFolder

REF = f"refs/heads/{NAME}"
_INDEX = "loki-memory.index"
_STALE = 60  # seconds; git holds the lock of this index for milliseconds
_ARCHIVE = "/memory/archive/"
_ONLY_THIS = ("--no-recurse-submodules", "--end-of-options")  # and a remote is never an option
Tree = dict[str, TreeEntry]  # path from the root -> its entry in a commit
# Merges a file that both sides changed (path, base or None, ours, theirs); None: not possible.
Merge = Callable[[str, bytes | None, bytes, bytes], bytes | None]


def restore(home: HomeFolder) -> int:
    """Restore the memory files from the branch if all are gone; returns their number."""
    repository = Repository.find(home.layout.root, home.layout.loki.name)
    return restore_files(home, repository) if repository else 0


def restore_files(home: HomeFolder, repository: Repository) -> int:
    """Restore the files of the branch if there are none, as in a fresh clone or after `git clean
    -fdx`.
    """
    tip = begin(repository)
    if not tip or any(folder.files for _, folder in scan(home.layout)):
        return 0
    bring_in_step(home, repository, "", tip)
    return len(memory_of(repository, tip))


def memory_of(repository: Repository, commit: str) -> Tree:
    """The memory files of this workspace in a commit."""
    found = tree(repository, commit)
    return {path: entry for path, entry in found.items() if is_memory(repository, path)}


def is_memory(repository: Repository, path: str) -> bool:
    """Check if a path is shared memory: views and dot files belong to one machine."""
    inside = path.removeprefix(f"{repository.memory}/")
    hidden = any(part[:1] == "." for part in inside.split("/"))
    return inside != path and not hidden and not view_kind(inside)


def bring_in_step(home: HomeFolder, repository: Repository, mine: str, new: str) -> None:
    """Change the files from one commit to another, unless one of them was edited since."""
    if not new:
        return
    before, after = memory_of(repository, mine), memory_of(repository, new)
    paths = sorted(before.keys() | after.keys())
    pairs = {path: (before.get(path, NOTHING), after.get(path, NOTHING)) for path in paths}
    differing = {path: pair for path, pair in pairs.items() if pair[0] != pair[1]}
    try:
        with home.store.change() as change:
            _refuse_edited(repository, change, differing)
            _write(repository, change, {path: entry for path, (_, entry) in differing.items()})
    except FileChanged:
        advice = f"what others changed waits in {NAME} for the next commit or pull"
        home.notices.append(f"memory files are being edited; {advice}")
        return
    for path, (_, entry) in differing.items():
        if entry.mode == PROGRAM:
            os.chmod(repository.root / path, 0o755)  # noqa: S103 - as whoever shared it has it
    in_step(repository, new)


def _refuse_edited(
    repository: Repository, change: Change, known: Mapping[str, tuple[TreeEntry, TreeEntry]]
) -> None:
    """Raise FileChanged if a file is neither that of the old commit nor that of the new one.

    A pull that was killed has written those of the new one already.
    """
    for path, entries in known.items():
        there = change.read(path.removeprefix(f"{repository.memory}/"))
        found = repository.blob_id(there.data) if there else ""
        if found not in {entry.blob for entry in entries}:
            raise FileChanged(path)


def _write(repository: Repository, change: Change, wanted: Mapping[str, TreeEntry]) -> None:
    blobs = dict(repository.blobs(entry.blob for entry in wanted.values() if entry.blob))
    for path, entry in wanted.items():
        inside = path.removeprefix(f"{repository.memory}/")
        if entry.blob:
            change.render(inside, blobs[entry.blob])
        else:
            change.remove(inside)


# -- commits and merges of the branch -------------------------------------------------------------


class Joined(NamedTuple):
    """Two lines of history as one commit."""

    commit: str
    merged: tuple[str, ...] = ()  # paths that both sides changed, with both changes in
    kept: tuple[str, ...] = ()  # paths that both changed, and that could not be merged: ours stays


class Choice(NamedTuple):
    """The result of a merge of trees, path by path."""

    taken: Tree  # from the other side; NOTHING: removed
    both: list[str]  # changed on both sides


def begin(repository: Repository) -> str:
    """The newest commit of the branch, or empty. A fresh clone starts with the remote's."""
    here = repository.resolve(REF)
    if here is None:
        here = repository.resolve(f"refs/remotes/origin/{NAME}")
        if here:
            advance(repository, REF, here, "", "begun as in origin")
    return here or ""


def tree(repository: Repository, commit: str) -> Tree:
    """All files of a commit of the branch, of every workspace in the repository."""
    if not commit:
        return {}
    listed = os.fsdecode(repository.run("ls-tree", "-r", "-z", "--full-tree", commit))
    lines = (line.partition("\t") for line in listed.split("\0") if line)
    return {path: TreeEntry(about.split()[0], about.split()[2]) for about, _, path in lines}


def changed(repository: Repository) -> list[str]:
    """Paths below the memory folder that may differ from the base: new, edited or gone."""
    asked = ("ls-files", "-z", "--modified", "--others", "--", repository.memory)
    answer = os.fsdecode(repository.run(*asked, env=_own_index(repository)))
    return sorted({path for path in answer.split("\0") if path})


def in_step(repository: Repository, commit: str) -> None:
    """Note that the files of this worktree are those of a commit, except for later edits.

    The index comes last: if a kill leaves an old one, it lists more paths that may differ.
    """
    repository.run("update-ref", BRANCH_BASE, commit)
    env = _own_index(repository)
    repository.run("read-tree", "-i", "-m", commit, env=env)
    repository.run("update-index", "-q", "--refresh", env=env)


def _own_index(repository: Repository) -> dict[str, str]:
    _drop_stale_lock(repository.git_dir / f"{_INDEX}.lock")
    return {"GIT_INDEX_FILE": str(repository.git_dir / _INDEX)}


def _drop_stale_lock(lock: Path) -> None:
    """Remove the lock of a git that was killed; nobody but us uses this index, for moments."""
    with suppress(FileNotFoundError):
        if time.time() - lock.lstat().st_mtime > _STALE:
            lock.unlink()


def joined(
    repository: Repository, ours: str, theirs: str, merge: Merge, message: Message, seal: Seal
) -> Joined:
    """Merge two commits: one of them if it contains the other, else a merge commit.

    Histories without a common commit are merged with an empty base.
    """
    if not ours or not theirs or ours == theirs:
        return Joined(ours or theirs)
    shared = repository.base(ours, theirs)
    if shared in {ours, theirs}:
        return Joined(theirs if shared == ours else ours)
    trees = (tree(repository, shared), tree(repository, ours), tree(repository, theirs))
    choice = chosen(*trees)
    files, kept = _merged(repository, choice, trees, merge)
    commit = written(repository, files, [ours, theirs], message, seal)
    return Joined(commit, tuple(path for path in choice.both if path in files), tuple(kept))


def chosen(base: Tree, ours: Tree, theirs: Tree) -> Choice:
    """Decide by path alone: a change of one side is taken.

    A file that one side removed and the other changed stays, so that nothing written is lost;
    unless it was moved to the archive, where it is kept.
    """
    choice = Choice({}, [])
    for path in sorted(base.keys() | ours.keys() | theirs.keys()):
        was, here, there = (side.get(path, NOTHING) for side in (base, ours, theirs))
        if there in {here, was}:
            continue
        if here == was or (here == NOTHING and not _archived(path, ours)):
            choice.taken[path] = there
        elif there == NOTHING and _archived(path, theirs):
            choice.taken[path] = NOTHING
        elif NOTHING not in {here, there}:
            choice.both.append(path)
    return choice


def _archived(path: str, side: Tree) -> bool:
    return path.replace("/memory/", _ARCHIVE, 1) in side


def _merged(
    repository: Repository, choice: Choice, trees: tuple[Tree, Tree, Tree], merge: Merge
) -> tuple[dict[str, File | None], list[str]]:
    """The files that change in our tree, and the paths that could not be merged."""
    base, ours, theirs = trees
    sides = [side[path] for path in choice.both for side in trees if path in side]
    wanted = (entry.blob for entry in [*choice.taken.values(), *sides] if entry.blob)
    blobs = dict(repository.blobs(wanted))
    files: dict[str, File | None] = {
        path: File(entry.mode, blobs[entry.blob]) if entry.blob else None
        for path, entry in choice.taken.items()
    }
    kept = []
    for path in choice.both:
        was = blobs[base[path].blob] if path in base else None
        result = merge(path, was, blobs[ours[path].blob], blobs[theirs[path].blob])
        if result is None:
            kept.append(path)
        else:
            files[path] = File(theirs[path].mode, result)
    return files, kept


def fetched(repository: Repository, remote: str) -> str:
    """Fetch the branch from a remote; returns its newest commit, or empty if there is none yet."""
    found = _advertised(repository, remote)
    if found:
        named = f"remote.{remote}.url" in repository.settings
        kept = f"+{REF}:refs/remotes/{remote}/{NAME}" if named else REF
        asked = ("--quiet", "--no-tags", "--no-prune", "--no-write-fetch-head", *_ONLY_THIS)
        repository.reach("fetch", *asked, remote, kept)
    return found


def _advertised(repository: Repository, remote: str) -> str:
    asked = ("ls-remote", "--heads", "--end-of-options", remote, REF)
    return (repository.reach(*asked).decode().split() or [""])[0]


def pushed(repository: Repository, remote: str) -> bool:
    """Push the branch, never by force; False if others pushed first."""
    try:
        asked = ("--quiet", "--no-follow-tags", "--no-signed", *_ONLY_THIS)
        repository.reach("push", *asked, remote, f"{REF}:{REF}")
    except GitFailed:
        theirs = _advertised(repository, remote)
        if not theirs or repository.base(REF, theirs) == theirs:
            raise  # not a race with another push
        return False
    return True


def kept_off(repository: Repository) -> None:
    """Keep the memory folder out of every other branch of this clone."""
    line = f"/{repository.memory}/"
    path = repository.common_dir / "info/exclude"
    there = path.read_text(encoding="utf-8") if path.exists() else ""
    if line not in there.splitlines():
        path.parent.mkdir(exist_ok=True)
        gap = "" if not there or there.endswith("\n") else "\n"
        path.write_text(f"{there}{gap}{line}\n", encoding="utf-8")
