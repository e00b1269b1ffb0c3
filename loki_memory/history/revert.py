"""Undo one run or commit of memory, as a new change."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.errors import RejectedValue
from loki_memory.files.layout import ARCHIVE
from loki_memory.git_repository import repository
from loki_memory.history.blame import MEMORY, blobs, decoded
from loki_memory.history.commit import commit as make_commit
from loki_memory.history.inline_commit import Committed
from loki_memory.history.tree import TreeEdit, edits
from loki_memory.models import Belief, Learning, Link, Memory, Skill, parse

if TYPE_CHECKING:
    from loki_memory.files.store import Change
    from loki_memory.git_repository import Commit, Repository
    from loki_memory.homes import OpenWorkspace

_MADE = (Belief, Skill, Learning, Link)  # consolidation makes these; episodes and rejections stay


class Reverted(NamedTuple):
    """The records that a revert wrote, removed, or kept because they changed since."""

    commit: str
    written: list[str]
    removed: list[str]
    kept: list[str]
    committed: Committed


def revert(workspace: OpenWorkspace, name: str) -> Reverted:
    """Undo the changes of one run or commit to memory. Episodes and later changes stay."""
    repo = repository(workspace.layout, workspace.config)
    commit = _find_commit(repo, name)
    changed = edits(repo, commit)
    data = blobs(repo, [blob for edit in changed for blob in (edit.before, edit.after)])
    done = Reverted(commit.id, [], [], [], Committed())
    workspace.home.before_write()
    with workspace.store.change() as change:
        for edit in changed:
            before = decoded(edit.path, data.get(edit.before or ""))
            after = decoded(edit.path, data.get(edit.after or ""))
            if before is not None or isinstance(after, _MADE):
                _undo(change, edit.path, (before, after), done)
        _empty_archive(change, changed, data)
    workspace.sync()
    if not (done.written or done.removed):
        return done
    subject = f"memory: revert {commit.subject.removeprefix('memory: ')}"
    return done._replace(committed=make_commit(workspace, subject=subject))


def _undo(
    change: Change, path: str, pair: tuple[Memory | None, Memory | None], done: Reverted
) -> None:
    """Put a record into the state without the commit; later rejections stay."""
    now = change.record(path)
    result = undone(*pair, now)
    if result is None and now is not None:
        change.remove(path)
        done.removed.append(now.id)
        return
    with suppress(RejectedValue):
        if result is not None and result != now:
            change.put(result, path)
            done.written.append(result.id)
            return
    if now is not None:
        done.kept.append(now.id)


def _empty_archive(change: Change, changed: list[TreeEdit], data: Mapping[str, bytes]) -> None:
    """Remove archived copies of records that the commit moved there and that are back."""
    moved = {edit.path: edit.before for edit in changed if edit.after is None}
    for edit in changed:
        home = edit.path.removeprefix(ARCHIVE)
        if edit.before is None and home != edit.path and moved.get(home) == edit.after:
            there, copy = change.read(home), change.read(edit.path)
            if there and copy and there.data == copy.data == data[edit.after or ""]:
                change.remove(edit.path)


def _find_commit(repo: Repository, name: str) -> Commit:
    """The commit of a run, or the commit itself."""
    for commit in repo.commits(None, MEMORY):
        if commit.trailers.get("Loki-Run") == name:
            return commit
    return repo.commits(f"{repo.commit_of(name)}^!", ())[0]


# -- Undo the change of one commit to a record, and keep later changes -----------------------------


_GONE: Any = object()


def undone(before: Memory | None, after: Memory | None, now: Memory | None) -> Memory | None:
    """The record without the change from `before` to `after`; None if it is removed.

    A record that the commit made is removed, unless it was changed since.
    """
    if before is None:
        return None if now == after else now
    if now is None or after is None:
        return before if now == after else now
    if now == after:
        return before
    fields = _fields(before.document(), after.document(), now.document())
    return parse(type(now), fields)


def _fields(
    before: Mapping[str, Any], after: Mapping[str, Any], now: Mapping[str, Any]
) -> dict[str, Any]:
    names = dict.fromkeys((*now, *before))
    values = {
        name: _value(before.get(name, _GONE), after.get(name, _GONE), now.get(name, _GONE))
        for name in names
    }
    return {name: value for name, value in values.items() if value is not _GONE}


def _value(before: Any, after: Any, now: Any) -> Any:
    if before == after:
        return now
    if now == after:
        return before
    if all(isinstance(value, dict) for value in (before, after, now)):
        return _fields(before, after, now)
    lists = [[] if value is _GONE else value for value in (before, after, now)]
    if all(isinstance(value, list) for value in lists):
        return _listed(*lists)
    return now


def _listed(before: list[Any], after: list[Any], now: list[Any]) -> list[Any]:
    kept = [item for item in now if item in before or item not in after]
    return kept + [item for item in before if item not in after and item not in kept]
