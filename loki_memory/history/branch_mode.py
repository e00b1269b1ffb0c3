"""Memory on a branch of its own (`git.mode` is branch): commit, pull and push.

The files of this worktree and the branch are kept in step by a merge of records, never by taking
one side whole: another worktree or another clone may have committed since. If the files change
during the merge, the branch still has everything, and the next run brings them in step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import GitFailed, NotOnABranch
from loki_memory.git_repository import BRANCH as NAME
from loki_memory.git_repository import Repository
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
from loki_memory.history.memory_branch import (
    REF,
    Joined,
    begin,
    bring_in_step,
    changed,
    fetched,
    is_memory,
    joined,
    kept_off,
    memory_of,
    pushed,
    restore_files,
)
from loki_memory.history.plumbing_commit import (
    NOTHING,
    File,
    Message,
    TreeEntry,
    advance,
    written,
)
from loki_memory.history.resolve import merge_files

if TYPE_CHECKING:
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
    restore_files(workspace.home, repository)
    start = repository.branch_base()
    anchor = ""
    known, (files, kept) = _differences(workspace, repository, start)
    result = Committed(branch=NAME, kept_out=kept, notes=_tracked_twice(repository, start))
    if files and not options.dry_run:  # the chain alone is no reason for a commit
        anchor = workspace.store.publish_writes()
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
        restored = restore_files(workspace.home, repository)
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


def _on_a_branch(workspace: OpenWorkspace) -> Repository:
    chosen = mode(workspace)
    if chosen != "branch":
        raise NotOnABranch(chosen)
    return opened(workspace)


def _differences(
    workspace: OpenWorkspace, repository: Repository, base: str
) -> tuple[dict[str, TreeEntry], tuple[dict[str, File | None], tuple[KeptOut, ...]]]:
    """Paths that may differ from a commit, with its entries; and the files that do differ."""
    with workspace.store.change():
        there = memory_of(repository, base)
        paths = (path for path in changed(repository) if is_memory(repository, path))
        known = {path: there.get(path, NOTHING) for path in paths}
        return known, gathered(repository, known)


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
            bring_in_step(workspace.home, repository, mine, both.commit)
            return Joined(both.commit, here.merged + both.merged, here.kept + both.kept)
    raise GitFailed(("update-ref",), f"{NAME} moved whenever it was committed to")


def _joined(workspace: OpenWorkspace, repository: Repository, ours: str, theirs: str) -> Joined:
    seal, _ = sealed(workspace, repository)
    return joined(repository, ours, theirs, _merge, _MERGED, seal)


def _merge(path: str, base: bytes | None, ours: bytes, theirs: bytes) -> bytes | None:
    return merge_files(base or b"", ours, theirs, path)
