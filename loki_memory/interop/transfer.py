"""Copy or move a memory to another scope or workspace, with its evidence.

A belief takes along what others must know of the episodes that it rests on (day, agent, outcome, a
hash of the session), so that it can be weighed where these episodes are not. A moved memory keeps
its id; a copy in another scope gets one of its own, because two files of one id are one memory.

What comes from a workspace that is not trusted on this machine arrives with the origin `import`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.editing.removal import candidate_beside
from loki_memory.errors import IdTaken, InvalidRecord, NotFound
from loki_memory.files.layout import place
from loki_memory.models import Belief, Episode, Memory
from loki_memory.models.kinds import article

if TYPE_CHECKING:
    from loki_memory.files.store import Change
    from loki_memory.homes import OpenWorkspace

SCOPES = ("project", "local", "user")


class Transferred(NamedTuple):
    """A memory in its new place."""

    id: str
    kind: str
    title: str
    scope: str  # empty where its kind has none
    workspace: str  # to which it went
    path: str
    moved: bool  # else it is in its old place too


def transfer(
    source: OpenWorkspace, memory_id: str, target: OpenWorkspace, scope: str, *, move: bool
) -> Transferred:
    """Bring a memory to a workspace or scope; an empty scope leaves it as it is."""
    record = source.get(source.resolve(memory_id))
    _check(source, target, record, scope)
    new = _arriving(source, target, record, scope, move=move)
    home = target.homes.prepare(str(getattr(new, "scope", "project")), place(new))
    if move and home is source.homes.find(record.id)[0]:
        stored, path = _moved_inside(source, record.id, new)
    else:
        path = place(new)
        with home.store.change() as change:
            stored = _put(change, new, path)
        if move:
            _remove(source, record.id)
    scope_now = str(getattr(stored, "scope", ""))
    where = str(home.layout.resolve(path))
    root = str(home.layout.root)
    return Transferred(stored.id, stored.kind, stored.title(), scope_now, root, where, move)


def _check(source: OpenWorkspace, target: OpenWorkspace, record: Memory, scope: str) -> None:
    now = getattr(record, "scope", "")
    if scope and scope not in SCOPES:
        raise InvalidRecord(f"{scope!r} is not a scope", advice=f"Use: {', '.join(SCOPES)}.")
    if scope and not now:
        raise InvalidRecord(
            f"{article(record.kind)} has no scope", advice="Name another workspace with --to."
        )
    is_same_place = target.layout == source.layout
    if is_same_place and scope in {"", now}:
        raise InvalidRecord(
            f"{record.id} is there already",
            advice="Name another workspace (--to DIR) or another scope (--scope).",
        )


def _arriving(
    source: OpenWorkspace, target: OpenWorkspace, record: Memory, scope: str, *, move: bool
) -> Memory:
    """The record as it is written in its new place."""
    document = record.document()
    if scope:
        document["scope"] = scope
        if not move and scope != getattr(record, "scope", ""):
            document.pop("id", None)
    if isinstance(record, Belief):
        document.update(_with_marks(source, record))
        _leave_behind(target, record, document)
    if not source.home.trust().is_trusted and target.layout != source.layout:
        document.update({"origin": "import"} if "origin" in type(record).model_fields else {})
    return type(record).model_validate(document)


def _with_marks(source: OpenWorkspace, belief: Belief) -> dict[str, Any]:
    """The evidence with a mark for each episode that is here and has none."""
    from loki_memory.consolidation.features import episode_features
    from loki_memory.consolidation.publish import mark

    evidence = belief.evidence.model_dump(mode="json", exclude_unset=True, by_alias=True)
    marks = dict(evidence.get("episodes", {}))
    for name in {*belief.episodes_for(), *belief.episodes_against()} - marks.keys():
        try:
            episode = source.get(name)
        except NotFound:
            continue
        if isinstance(episode, Episode):
            marks[name] = mark(episode_features(episode))
    return {"evidence": {**evidence, "episodes": dict(sorted(marks.items()))}} if marks else {}


def _leave_behind(target: OpenWorkspace, belief: Belief, document: dict[str, Any]) -> None:
    """Drop what names nothing there: citations of other files, a parent that did not come."""
    root = target.layout.root
    kept = [c for c in document.get("citations", ()) if (root / c["path"]).is_file()]
    if len(kept) < len(belief.citations):
        document["citations"] = kept
    if belief.parent:
        try:
            target.get(belief.parent)
        except NotFound:
            document.pop("parent")


def _put(change: Change, new: Memory, path: str) -> Memory:
    """Write the record; one that says the same gains its evidence."""
    from loki_memory.consolidation.publish import joined

    there = change.record(path)
    if there is None:
        return change.create(new, path)
    if isinstance(there, Belief) and isinstance(new, Belief) and there.key() == new.key():
        return change.put(joined(there, new), path)
    if there.document() == new.document():
        return there
    raise IdTaken(new.id, path)


def _moved_inside(source: OpenWorkspace, memory_id: str, new: Memory) -> tuple[Memory, str]:
    """Write the new file and remove the old one, in one change."""
    with source.homes.changing(memory_id) as (change, path, _):
        target = place(new)
        for beside in (path, *candidate_beside(change, path)):
            change.remove(beside)
        return change.put(new, target), target


def _remove(source: OpenWorkspace, memory_id: str) -> None:
    with source.homes.changing(memory_id) as (change, path, _):
        for beside in (path, *candidate_beside(change, path)):
            change.remove(beside)
    for home in source.homes:
        home.wrote()
