"""Memory on a branch of its own: commits, merges and exchange without touching any checkout.

The branch `loki-memory` holds memory files only, at the paths that they have in the project. The
files lie in the working tree as ever, but no other branch tracks them. Which commit of the branch
the files of a worktree were last in step with is its *base*: what a worktree changed is what
differs from its base, so that two worktrees never undo each other's changes. The base is a ref of
the worktree's own (git keeps `refs/worktree/` apart for each), and an index of our own remembers
the stamps of the files, so that only what changed is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from loki_memory.errors import GitFailed
from loki_memory.history.commit import NOTHING, Entry, File, Message, Seal, advance, written
from loki_memory.history.repository import Repository

NAME = "loki-memory"
REF = f"refs/heads/{NAME}"
_BASE = "refs/worktree/loki-memory"
_INDEX = "loki-memory.index"
_ARCHIVE = "/memory/archive/"
_ONLY_THIS = ("--no-recurse-submodules", "--end-of-options")  # and a remote is never an option

Tree = dict[str, Entry]  # path from the root -> what a commit has there
# What a file becomes that both sides changed (path, base or None, ours, theirs); None: cannot say.
Merge = Callable[[str, bytes | None, bytes, bytes], bytes | None]


class Joined(NamedTuple):
    """Two lines of history as one commit."""

    commit: str
    merged: tuple[str, ...] = ()  # paths that both sides changed, with both changes in
    kept: tuple[str, ...] = ()  # paths that both changed, and that could not be merged: ours stays


class Choice(NamedTuple):
    """What becomes of our tree in a merge, path by path."""

    taken: Tree  # from the other side; NOTHING: removed
    both: list[str]  # changed on both sides


# -- where it stands -----------------------------------------------------------------------------


def begin(repository: Repository) -> str:
    """The newest commit of the branch, or empty. A fresh clone begins with what came along."""
    here = repository.resolve(REF)
    if here is None:
        here = repository.resolve(f"refs/remotes/origin/{NAME}")
        if here:
            advance(repository, REF, here, "", "begun as in origin")
    return here or ""


def base(repository: Repository) -> str:
    """The commit that this worktree's files were last in step with; empty if none was."""
    return repository.resolve(_BASE) or ""


def tree(repository: Repository, commit: str) -> Tree:
    """All files of a commit of the branch, of every workspace in the repository."""
    if not commit:
        return {}
    listed = os.fsdecode(repository.run("ls-tree", "-r", "-z", "--full-tree", commit))
    lines = (line.partition("\t") for line in listed.split("\0") if line)
    return {path: Entry(about.split()[0], about.split()[2]) for about, _, path in lines}


def changed(repository: Repository) -> list[str]:
    """Paths below the memory folder that may differ from the base: new, edited or gone."""
    asked = ("ls-files", "-z", "--modified", "--others", "--", repository.memory)
    told = os.fsdecode(repository.run(*asked, env=_own_index(repository)))
    return sorted({path for path in told.split("\0") if path})


def in_step(repository: Repository, commit: str) -> None:
    """Note that the files of this worktree are those of a commit, but for what is edited since."""
    env = _own_index(repository)
    repository.run("read-tree", "-i", "-m", commit, env=env)
    repository.run("update-index", "-q", "--refresh", env=env)
    repository.run("update-ref", _BASE, commit)


def _own_index(repository: Repository) -> dict[str, str]:
    return {"GIT_INDEX_FILE": str(repository.git_dir / _INDEX), **repository.unfiltered}


# -- merging -------------------------------------------------------------------------------------


def joined(
    repository: Repository, ours: str, theirs: str, merge: Merge, message: Message, seal: Seal
) -> Joined:
    """One commit that has both: one of the two if it has the other already, else a merge.

    Histories that share no commit are merged as if both had begun with nothing.
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
    """Decide what needs no look inside: who changed a path has it.

    What one side removed and the other changed stays, for nothing that somebody wrote is lost;
    unless it was removed into the archive, where it is kept.
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
    """What changes in our tree, and the paths of which nobody could make one."""
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


# -- others --------------------------------------------------------------------------------------


def fetched(repository: Repository, remote: str) -> str:
    """Fetch the branch from elsewhere; its newest commit, or empty if there is none yet."""
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
            raise  # nobody was faster: it is something else
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
