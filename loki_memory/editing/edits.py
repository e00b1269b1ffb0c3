"""Edits of memory that a person or an agent asks for, one function each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from loki_memory.editing import removal, statements
from loki_memory.errors import InvalidRecord, NotFound
from loki_memory.files.layout import place
from loki_memory.index.queries import paths_saying
from loki_memory.models import RELATIONS, Belief, Link, Memory, parse
from loki_memory.models.ids import ID
from loki_memory.models.kinds import FACT_TYPES
from loki_memory.models.rejected import value_id

if TYPE_CHECKING:
    from loki_memory.editing.removal import Forgotten
    from loki_memory.home import Home
    from loki_memory.homes import OpenWorkspace
    from loki_memory.models import Tombstone


def remember(workspace: OpenWorkspace, text: str, kind: str, fields: Mapping[str, Any]) -> Memory:
    """Store a statement, or update the record that states the same.

    `kind` may also be the type of a fact, such as `preference`.
    """
    if kind in FACT_TYPES:
        kind, fields = "fact", {**fields, "type": kind}
    depth = _depth_below(workspace, fields.get("parent"))
    given = {**fields, "depth": fields.get("depth", depth)}
    record = statements.statement(text, kind, given, now=workspace.now(), origin=workspace.origin)
    home = workspace.homes.prepare(str(fields.get("scope") or "project"), place(record))
    with home.store.change() as change:
        elsewhere = paths_saying(home.index, kind, value_id(record.value()))
        return statements.remember(change, record, elsewhere)


def _depth_below(workspace: OpenWorkspace, parent: str | None) -> int | None:
    if parent is None:
        return None
    return (getattr(workspace.get(parent), "depth", None) or 0) + 1


def correct(
    workspace: OpenWorkspace, memory_id: str, fields: Mapping[str, Any]
) -> tuple[Memory, Memory]:
    """Change fields of a memory; returns it as it was and as it is."""
    with workspace.homes.changing(memory_id) as (change, path, record):
        today = workspace.now()[:10]
        new = statements.corrected(record, fields, today, workspace.origin)
        return record, change.put(new, path)


def put_back(workspace: OpenWorkspace, record: Memory) -> Memory:
    """Give a memory the content that it had when it was read: the undo of a change."""
    with workspace.homes.changing(record.id) as (change, path, _):
        return change.put(record, path)


def pin(workspace: OpenWorkspace, memory_id: str, pinned: bool) -> tuple[Memory, Memory]:
    """Keep a memory from being forgotten by age, or not; returns it as it was and as it is."""
    with workspace.homes.changing(memory_id) as (change, path, record):
        return record, change.put(statements.with_field(record, "pinned", pinned), path)


def supersede(workspace: OpenWorkspace, old: str, new: str) -> Memory:
    """Let a belief replace another; `new` is an id, or a statement in words."""
    before = workspace.get(workspace.resolve(old))
    statements.superseded(
        before, "", workspace.now()[:10]
    )  # a kind that cannot be is refused at once
    heir = _heir(workspace, before, new)
    with workspace.homes.changing(before.id) as (change, path, record):
        change.put(statements.superseded(record, heir.id, workspace.now()[:10]), path)
    return workspace.get(heir.id)


def _heir(workspace: OpenWorkspace, before: Memory, new: str) -> Memory:
    if " " not in new.strip() and ID.fullmatch(new.strip()):
        return workspace.get(workspace.resolve(new))
    category = getattr(before, "category", None)
    scope = str(getattr(before, "scope", "project"))
    return remember(workspace, new, before.kind, {"category": category, "scope": scope})


def link(workspace: OpenWorkspace, a: str, relation: str, b: str) -> Link:
    """State how one memory relates to another."""
    if relation not in RELATIONS:
        raise InvalidRecord(
            f"{relation!r} is not a relation",
            field="relation",
            advice=f"Use one of: {', '.join(RELATIONS)}.",
        )
    if a == b:
        raise InvalidRecord(f"{a} cannot be linked to itself", advice="Name another memory.")
    home, _ = workspace.homes.find(a)
    workspace.homes.find(b)
    workspace.home.before_write()
    record = parse(Link, {"from": a, "relation": relation, "to": b, "origin": workspace.origin})
    with home.store.change() as change:
        return change.create(record)  # type: ignore[return-value]


def reject(workspace: OpenWorkspace, memory_id: str, why: str) -> Tombstone:
    """Reject a value: a tombstone refuses it from now on.

    Beliefs that were derived from nothing else are retired with it.
    """
    home = workspace.homes.up_to_date(memory_id)
    resting = sorted(removal.closure(home.index, memory_id) - {memory_id})
    with workspace.homes.changing(memory_id) as (change, path, record):
        stone = change.put(
            statements.tombstone(record, why, workspace.now()[:10], workspace.origin)
        )
        if isinstance(record, Belief):
            change.put(record.changed(status="rejected"), path)
        for beside in home.paths_of(resting):
            other = change.record(beside)
            if isinstance(other, Belief):
                change.put(other.changed(status="retired"), beside)
        return stone  # type: ignore[return-value]


def forget(workspace: OpenWorkspace, memory_id: str, why: str) -> Forgotten:
    """Remove a memory and what was derived only from it."""
    workspace.home.before_write()
    home = workspace.homes.up_to_date(memory_id)
    forgotten = removal.forget(home.store, home.index, memory_id, why, workspace.now()[:10])
    home.wrote()
    return forgotten


def archive(workspace: OpenWorkspace, memory_id: str) -> str:
    """Move a memory to the archive; returns the path of its file there."""
    with workspace.homes.changing(memory_id) as (change, path, _):
        kept = removal.archive(change, path)
    for home in workspace.homes:
        home.wrote()
    return kept


def restore(workspace: OpenWorkspace, memory_id: str) -> Memory:
    """Undo an archive, a forget or a reject; a summarised episode is whole again."""
    workspace.home.before_write()
    try:
        home: Home | None = workspace.homes.up_to_date(memory_id)
    except NotFound:
        home = None
    if home is not None and not removal.is_summary(workspace.get(memory_id)):
        return removal.lift(home.store, home.index, memory_id)
    _restore_file(workspace, memory_id)
    return workspace.get(memory_id)


def _restore_file(workspace: OpenWorkspace, memory_id: str) -> None:
    try:
        removal.restore(workspace.store, memory_id)
    except NotFound:
        if workspace.homes.user is None:
            raise
        removal.restore(workspace.homes.user.store, memory_id)
