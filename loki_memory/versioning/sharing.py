"""Memory on a branch of its own (`git.mode` is branch): commit, pull, push and restore.

The files of this worktree and the branch are kept in step by a merge of records, never by taking
one side whole: another worktree or another clone may have committed since. Should the files
change under our hands, the branch still has everything, and the next run brings them in step.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import FileChanged, GitFailed, NotOnABranch
from loki_memory.files.layout import view_kind
from loki_memory.files.scan import scan
from loki_memory.files.witness import publish
from loki_memory.history import branch
from loki_memory.history.branch import Joined, Tree
from loki_memory.history.commit import (
    NOTHING,
    PROGRAM,
    Entry,
    File,
    Message,
    advance,
    written,
)
from loki_memory.history.repository import Repository
from loki_memory.versioning.committing import (
    Committed,
    KeptOut,
    Wish,
    composed,
    gathered,
    mode,
    one_at_a_time,
    opened,
    sealed,
)
from loki_memory.versioning.resolving import merge_files

if TYPE_CHECKING:
    from loki_memory.files.store import Change
    from loki_memory.parts import Parts
    from loki_memory.workspace import Workspace

_TRIES = 5
_MERGED = Message("memory: merged with what others learned")


class Exchanged(NamedTuple):
    """What a pull or push came to."""

    commit: str
    what: str
    merged: tuple[str, ...] = ()  # both sides had changed them
    kept: tuple[str, ...] = ()  # both sides had changed them, and they could not be merged


def commit_to_branch(workspace: Workspace, repository: Repository, wish: Wish) -> Committed:
    """Commit what changed in this worktree's memory onto the branch, merged with what is there."""
    branch.kept_off(repository)
    _restored(workspace, repository)
    base = branch.base(repository)
    anchor = ""
    known, (files, kept) = _found(workspace, repository, base)
    told = Committed(branch=branch.NAME, kept_out=kept, notes=_tracked_twice(repository, base))
    if files and not wish.dry_run:  # the chain alone is no reason for a commit
        anchor = publish(workspace.store)
        known, (files, kept) = _found(workspace, repository, base)
    made, parents = base, [base] if base else []
    if files:
        said = composed(repository, known, files, parents, wish, anchor)
        told = told._replace(subject=said.subject, paths=tuple(files))
        if wish.dry_run:
            return told
        seal, notes = sealed(workspace, repository)
        told = told._replace(notes=told.notes + notes)
        made = written(repository, files, parents, said, seal)
    landed = _land(workspace, repository, made)
    return told._replace(commit=landed.commit if files else "")


def pull(workspace: Workspace, remote: str = "origin") -> Exchanged:
    """Fetch what others learned and merge it; raises GitFailed."""
    repository = _on_a_branch(workspace)
    with one_at_a_time(workspace):
        restored = _restored(workspace, repository)
        before = branch.begin(repository)
        done = _pulled(workspace, repository, remote)
    what = "up to date" if done.commit == before else f"pulled from {remote}"
    if restored:
        what += f", with {restored:,} files of {branch.NAME} that were not here"
    workspace.sync()
    return Exchanged(done.commit, what, done.merged, done.kept)


def push(workspace: Workspace, remote: str = "origin") -> Exchanged:
    """Share what was learned here, after merging what others shared; raises GitFailed."""
    repository = _on_a_branch(workspace)
    with one_at_a_time(workspace):
        for _ in range(_TRIES):
            done = _pulled(workspace, repository, remote)
            if not done.commit or branch.pushed(repository, remote):
                break
        else:
            raise GitFailed(("push",), f"others pushed to {remote} every time we tried")
    workspace.sync()
    what = f"pushed to {remote}" if done.commit else "there is nothing to push"
    return Exchanged(done.commit, what, done.merged, done.kept)


def restore(workspace: Parts) -> int:
    """Bring the memory files back from the branch if all are gone; how many there are then."""
    repository = Repository.find(workspace.layout.root, workspace.layout.loki.name)
    return _restored(workspace, repository) if repository else 0


def _on_a_branch(workspace: Workspace) -> Repository:
    chosen = mode(workspace)
    if chosen != "branch":
        raise NotOnABranch(chosen)
    return opened(workspace)


def _restored(workspace: Parts, repository: Repository) -> int:
    """A fresh clone and `git clean -fdx` leave no memory files: those of the branch are taken."""
    tip = branch.begin(repository)
    if not tip or any(folder.files for _, folder in scan(workspace.layout)):
        return 0
    _bring_in_step(workspace, repository, "", tip)
    return len(_memory_of(repository, tip))


def _found(
    workspace: Workspace, repository: Repository, base: str
) -> tuple[dict[str, Entry], tuple[dict[str, File | None], tuple[KeptOut, ...]]]:
    """What may differ from a commit, with what that has there; and what does differ."""
    with workspace.store.change():
        there = _memory_of(repository, base)
        paths = (path for path in branch.changed(repository) if _is_memory(repository, path))
        known = {path: there.get(path, NOTHING) for path in paths}
        return known, gathered(repository, known)


def _memory_of(repository: Repository, commit: str) -> Tree:
    """The memory files of this workspace in a commit."""
    found = branch.tree(repository, commit)
    return {path: entry for path, entry in found.items() if _is_memory(repository, path)}


def _is_memory(repository: Repository, path: str) -> bool:
    """Views and what starts with a dot are of this machine only, and taken from nobody."""
    inside = path.removeprefix(f"{repository.memory}/")
    hidden = any(part[:1] == "." for part in inside.split("/"))
    return inside != path and not hidden and not view_kind(inside)


def _tracked_twice(repository: Repository, base: str) -> tuple[str, ...]:
    """Said at the first commit: memory that was inline before is still on the user's branch."""
    head = "" if base else repository.head()
    if not head or not repository.tree(head):
        return ()
    told = f"`git rm -r -q --cached {repository.memory}` and a commit take it out"
    return (f"this branch still tracks {repository.memory}; {told}",)


def _pulled(workspace: Workspace, repository: Repository, remote: str) -> Joined:
    commit_to_branch(workspace, repository, Wish())
    theirs = branch.fetched(repository, remote)
    return _land(workspace, repository, branch.base(repository), theirs)


def _land(workspace: Workspace, repository: Repository, mine: str, theirs: str = "") -> Joined:
    """Put a commit of this worktree's files onto the branch, joined with what is there already,
    and with somebody else's; then bring the files in step with the result.
    """
    for _ in range(_TRIES):
        tip = branch.begin(repository)
        here = _joined(workspace, repository, mine, tip)
        both = _joined(workspace, repository, here.commit, theirs)
        if both.commit == tip or advance(repository, branch.REF, both.commit, tip, "commit"):
            _bring_in_step(workspace, repository, mine, both.commit)
            return Joined(both.commit, here.merged + both.merged, here.kept + both.kept)
    raise GitFailed(("update-ref",), f"{branch.NAME} moved whenever it was committed to")


def _joined(workspace: Workspace, repository: Repository, ours: str, theirs: str) -> Joined:
    seal, _ = sealed(workspace, repository)
    return branch.joined(repository, ours, theirs, _merge, _MERGED, seal)


def _merge(path: str, base: bytes | None, ours: bytes, theirs: bytes) -> bytes | None:
    return merge_files(base or b"", ours, theirs, path)


def _bring_in_step(workspace: Parts, repository: Repository, mine: str, new: str) -> None:
    """Change the files from one commit to another, unless one of them was edited since."""
    if not new:
        return
    before, after = _memory_of(repository, mine), _memory_of(repository, new)
    paths = sorted(before.keys() | after.keys())
    pairs = {path: (before.get(path, NOTHING), after.get(path, NOTHING)) for path in paths}
    differing = {path: pair for path, pair in pairs.items() if pair[0] != pair[1]}
    try:
        with workspace.store.change() as change:
            _refuse_edited(repository, change, {path: old for path, (old, _) in differing.items()})
            _write(repository, change, {path: entry for path, (_, entry) in differing.items()})
    except FileChanged:
        told = f"what others changed waits in {branch.NAME} for the next commit or pull"
        workspace.notices.append(f"memory files are being edited; {told}")
        return
    for path, (_, entry) in differing.items():
        if entry.mode == PROGRAM:
            os.chmod(repository.root / path, 0o755)  # noqa: S103 - as whoever shared it has it
    branch.in_step(repository, new)


def _refuse_edited(repository: Repository, change: Change, known: Mapping[str, Entry]) -> None:
    """Raise FileChanged if a file is not as a commit has it."""
    for path, entry in known.items():
        there = change.read(path.removeprefix(f"{repository.memory}/"))
        if (repository.blob_id(there.data) if there else "") != entry.blob:
            raise FileChanged(path)


def _write(repository: Repository, change: Change, wanted: Mapping[str, Entry]) -> None:
    blobs = dict(repository.blobs(entry.blob for entry in wanted.values() if entry.blob))
    for path, entry in wanted.items():
        inside = path.removeprefix(f"{repository.memory}/")
        if entry.blob:
            change.render(inside, blobs[entry.blob])
        else:
            change.remove(inside)
