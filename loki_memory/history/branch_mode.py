"""Memory on a branch of its own (`git.mode` is branch): commit, pull, push and restore.

The files of this worktree and the branch are kept in step by a merge of records, never by taking
one side whole: another worktree or another clone may have committed since. If the files change
during the merge, the branch still has everything, and the next run brings them in step.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import FileChanged, GitFailed, NotOnABranch
from loki_memory.files.layout import view_kind
from loki_memory.files.scan import scan
from loki_memory.git_repository import BRANCH as NAME
from loki_memory.git_repository import BRANCH_BASE, Repository
from loki_memory.history.inline_commit import (
    CommitOptions,
    Committed,
    KeptOut,
    composed,
    gathered,
    mode,
    one_at_a_time,
    opened,
    sealed,
)
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
from loki_memory.history.resolve import merge_files
from loki_memory.integrity.write_log import publish

if TYPE_CHECKING:
    from loki_memory.files.store import Change
    from loki_memory.home import Home
    from loki_memory.homes import OpenWorkspace

_TRIES = 5
_MERGED = Message("memory: merged with what others learned")


class Exchanged(NamedTuple):
    """The result of a pull or push."""

    commit: str
    what: str
    merged: tuple[str, ...] = ()  # both sides had changed them
    kept: tuple[str, ...] = ()  # both sides had changed them, and they could not be merged


def commit_to_branch(
    workspace: OpenWorkspace, repository: Repository, options: CommitOptions
) -> Committed:
    """Commit this worktree's changes of memory onto the branch, merged with what is there."""
    kept_off(repository)
    _restored(workspace.home, repository)
    start = repository.branch_base()
    anchor = ""
    known, (files, kept) = _differences(workspace, repository, start)
    result = Committed(branch=NAME, kept_out=kept, notes=_tracked_twice(repository, start))
    if files and not options.dry_run:  # the chain alone is no reason for a commit
        anchor = publish(workspace.store)
        known, (files, kept) = _differences(workspace, repository, start)
    made, parents = start, [start] if start else []
    if files:
        message = composed(repository, known, files, parents, options, anchor)
        result = result._replace(subject=message.subject, paths=tuple(files))
        if options.dry_run:
            return result
        seal, notes = sealed(workspace, repository)
        result = result._replace(notes=result.notes + notes)
        made = written(repository, files, parents, message, seal)
    landed = _land(workspace, repository, made)
    return result._replace(commit=landed.commit if files else "")


def pull(workspace: OpenWorkspace, remote: str = "origin") -> Exchanged:
    """Fetch memory of others and merge it; raises GitFailed."""
    repository = _on_a_branch(workspace)
    with one_at_a_time(workspace):
        restored = _restored(workspace.home, repository)
        before = begin(repository)
        done = _pulled(workspace, repository, remote)
    summary = "up to date" if done.commit == before else f"pulled from {remote}"
    if restored:
        files, were = ("1 file", "was") if restored == 1 else (f"{restored:,} files", "were")
        summary += f", with {files} of {NAME} that {were} not here"
    workspace.sync()
    return Exchanged(done.commit, summary, done.merged, done.kept)


def push(workspace: OpenWorkspace, remote: str = "origin") -> Exchanged:
    """Share memory with others, after merging theirs; raises GitFailed."""
    repository = _on_a_branch(workspace)
    with one_at_a_time(workspace):
        for _ in range(_TRIES):
            done = _pulled(workspace, repository, remote)
            if not done.commit or pushed(repository, remote):
                break
        else:
            raise GitFailed(("push",), f"others pushed to {remote} every time we tried")
    workspace.sync()
    summary = f"pushed to {remote}" if done.commit else "there is nothing to push"
    return Exchanged(done.commit, summary, done.merged, done.kept)


def restore(workspace: Home) -> int:
    """Restore the memory files from the branch if all are gone; returns their number."""
    repository = Repository.find(workspace.layout.root, workspace.layout.loki.name)
    return _restored(workspace, repository) if repository else 0


def _on_a_branch(workspace: OpenWorkspace) -> Repository:
    chosen = mode(workspace)
    if chosen != "branch":
        raise NotOnABranch(chosen)
    return opened(workspace)


def _restored(workspace: Home, repository: Repository) -> int:
    """Restore the files of the branch if there are none, as in a fresh clone or after `git clean
    -fdx`.
    """
    tip = begin(repository)
    if not tip or any(folder.files for _, folder in scan(workspace.layout)):
        return 0
    _bring_in_step(workspace, repository, "", tip)
    return len(_memory_of(repository, tip))


def _differences(
    workspace: OpenWorkspace, repository: Repository, base: str
) -> tuple[dict[str, TreeEntry], tuple[dict[str, File | None], tuple[KeptOut, ...]]]:
    """Paths that may differ from a commit, with its entries; and the files that do differ."""
    with workspace.store.change():
        there = _memory_of(repository, base)
        paths = (path for path in changed(repository) if _is_memory(repository, path))
        known = {path: there.get(path, NOTHING) for path in paths}
        return known, gathered(repository, known)


def _memory_of(repository: Repository, commit: str) -> Tree:
    """The memory files of this workspace in a commit."""
    found = tree(repository, commit)
    return {path: entry for path, entry in found.items() if _is_memory(repository, path)}


def _is_memory(repository: Repository, path: str) -> bool:
    """Check if a path is shared memory: views and dot files belong to one machine."""
    inside = path.removeprefix(f"{repository.memory}/")
    hidden = any(part[:1] == "." for part in inside.split("/"))
    return inside != path and not hidden and not view_kind(inside)


def _tracked_twice(repository: Repository, base: str) -> tuple[str, ...]:
    """Warn at the first commit: memory that was inline before is still on the user's branch."""
    head = "" if base else repository.head()
    if not head or not repository.tree(head):
        return ()
    advice = f"`git rm -r -q --cached {repository.memory}` and a commit take it out"
    return (f"this branch still tracks {repository.memory}; {advice}",)


def _pulled(workspace: OpenWorkspace, repository: Repository, remote: str) -> Joined:
    commit_to_branch(workspace, repository, CommitOptions())
    theirs = fetched(repository, remote)
    return _land(workspace, repository, repository.branch_base(), theirs)


def _land(workspace: OpenWorkspace, repository: Repository, mine: str, theirs: str = "") -> Joined:
    """Put a commit of this worktree's files onto the branch, merged with its tip and with the
    commit of others; then bring the files in step with the result.
    """
    for _ in range(_TRIES):
        tip = begin(repository)
        here = _joined(workspace, repository, mine, tip)
        both = _joined(workspace, repository, here.commit, theirs)
        if both.commit == tip or advance(repository, REF, both.commit, tip, "commit"):
            _bring_in_step(workspace.home, repository, mine, both.commit)
            return Joined(both.commit, here.merged + both.merged, here.kept + both.kept)
    raise GitFailed(("update-ref",), f"{NAME} moved whenever it was committed to")


def _joined(workspace: OpenWorkspace, repository: Repository, ours: str, theirs: str) -> Joined:
    seal, _ = sealed(workspace, repository)
    return joined(repository, ours, theirs, _merge, _MERGED, seal)


def _merge(path: str, base: bytes | None, ours: bytes, theirs: bytes) -> bytes | None:
    return merge_files(base or b"", ours, theirs, path)


def _bring_in_step(workspace: Home, repository: Repository, mine: str, new: str) -> None:
    """Change the files from one commit to another, unless one of them was edited since."""
    if not new:
        return
    before, after = _memory_of(repository, mine), _memory_of(repository, new)
    paths = sorted(before.keys() | after.keys())
    pairs = {path: (before.get(path, NOTHING), after.get(path, NOTHING)) for path in paths}
    differing = {path: pair for path, pair in pairs.items() if pair[0] != pair[1]}
    try:
        with workspace.store.change() as change:
            _refuse_edited(repository, change, differing)
            _write(repository, change, {path: entry for path, (_, entry) in differing.items()})
    except FileChanged:
        advice = f"what others changed waits in {NAME} for the next commit or pull"
        workspace.notices.append(f"memory files are being edited; {advice}")
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


# -- Memory on a branch of its own: commits, merges and exchange without touching any -------------


REF = f"refs/heads/{NAME}"
_INDEX = "loki-memory.index"
_STALE = 60  # seconds; git holds the lock of this index for milliseconds
_ARCHIVE = "/memory/archive/"
_ONLY_THIS = ("--no-recurse-submodules", "--end-of-options")  # and a remote is never an option

Tree = dict[str, TreeEntry]  # path from the root -> its entry in a commit
# Merges a file that both sides changed (path, base or None, ours, theirs); None: not possible.
Merge = Callable[[str, bytes | None, bytes, bytes], bytes | None]


class Joined(NamedTuple):
    """Two lines of history as one commit."""

    commit: str
    merged: tuple[str, ...] = ()  # paths that both sides changed, with both changes in
    kept: tuple[str, ...] = ()  # paths that both changed, and that could not be merged: ours stays


class Choice(NamedTuple):
    """The result of a merge of trees, path by path."""

    taken: Tree  # from the other side; NOTHING: removed
    both: list[str]  # changed on both sides


# -- the state of the branch -----------------------------------------------------------------------


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
    return {"GIT_INDEX_FILE": str(repository.git_dir / _INDEX), **repository.unfiltered}


def _drop_stale_lock(lock: Path) -> None:
    """Remove the lock of a git that was killed; nobody but us uses this index, for moments."""
    with suppress(FileNotFoundError):
        if time.time() - lock.lstat().st_mtime > _STALE:
            lock.unlink()


# -- merging -------------------------------------------------------------------------------------


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


# -- others --------------------------------------------------------------------------------------


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
