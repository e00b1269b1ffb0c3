"""Edits of memory that a person or an agent asks for, one function each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from loki_memory.editing import removal
from loki_memory.errors import InvalidRecord, NotFound
from loki_memory.files.layout import place
from loki_memory.index.queries import paths_saying
from loki_memory.models import (
    MODELS,
    RELATIONS,
    AntiPattern,
    Belief,
    Fact,
    Learning,
    Link,
    Memory,
    Pattern,
    Skill,
    Tombstone,
    parse,
)
from loki_memory.models.base import ORIGINS, field_order
from loki_memory.models.field_slips import nearest
from loki_memory.models.ids import ID, digest
from loki_memory.models.kinds import FACT_TYPES, STATEMENT, article
from loki_memory.models.rejected import value_id

if TYPE_CHECKING:
    from loki_memory.editing.removal import Forgotten
    from loki_memory.files.store import Change
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
    record = statement(text, kind, given, now=workspace.now(), origin=workspace.origin)
    home = workspace.homes.prepare(str(fields.get("scope") or "project"), place(record))
    with home.store.change() as change:
        elsewhere = paths_saying(home.index, kind, value_id(record.value()))
        return written(change, record, elsewhere)


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
        new = corrected(record, fields, today, workspace.origin)
        return record, change.put(new, path)


def put_back(workspace: OpenWorkspace, record: Memory) -> Memory:
    """Give a memory the content that it had when it was read: the undo of a change."""
    with workspace.homes.changing(record.id) as (change, path, _):
        return change.put(record, path)


def pin(workspace: OpenWorkspace, memory_id: str, pinned: bool) -> tuple[Memory, Memory]:
    """Keep a memory from being forgotten by age, or not; returns it as it was and as it is."""
    with workspace.homes.changing(memory_id) as (change, path, record):
        return record, change.put(with_field(record, "pinned", pinned), path)


def supersede(workspace: OpenWorkspace, old: str, new: str) -> Memory:
    """Let a belief replace another; `new` is an id, or a statement in words."""
    before = workspace.get(workspace.resolve(old))
    superseded(before, "", workspace.now()[:10])  # a kind that cannot be is refused at once
    heir = _heir(workspace, before, new)
    with workspace.homes.changing(before.id) as (change, path, record):
        change.put(superseded(record, heir.id, workspace.now()[:10]), path)
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
        stone = change.put(tombstone(record, why, workspace.now()[:10], workspace.origin))
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
    memory_id = removal.kept_id(workspace.layout, memory_id)
    _restore_file(workspace, memory_id)
    return workspace.get(memory_id)


def _restore_file(workspace: OpenWorkspace, memory_id: str) -> None:
    try:
        removal.restore(workspace.store, memory_id)
    except NotFound:
        if workspace.homes.user is None:
            raise
        removal.restore(workspace.homes.user.store, memory_id)


# -- the records: pure functions -------------------------------------------------------------------


_STATEMENTS: dict[str, tuple[type[Memory], str]] = {
    "fact": (Fact, "statement"),
    "pattern": (Pattern, "pattern"),
    "anti-pattern": (AntiPattern, "what_fails"),
    "learning": (Learning, "lesson"),
}
_FIRST_SAID = ("id", "valid_from", "timestamp", "statement", "pattern", "what_fails", "lesson")
# A scope is a place, an origin a fact about the past.
_NOT_CORRECTED = {"id", "$schema", "history", "origin", "scope"}


def statement(text: str, kind: str, fields: Mapping[str, Any], *, now: str, origin: str) -> Memory:
    """Build a record with the text as its statement. Fields that were not given are left out."""
    if kind not in _STATEMENTS:
        known = ", ".join(_STATEMENTS)
        raise InvalidRecord(
            f"{kind!r} cannot be remembered from a text",
            field="kind",
            advice=f"Use one of: {known}.",
        )
    model, name = _STATEMENTS[kind]
    given = {key: value for key, value in fields.items() if value is not None}
    if given.get("scope") == "project":
        del given["scope"]
    if model is Learning:
        given = {"timestamp": given.pop("at", now), "agent": given.pop("by", None), **given}
    else:
        given.setdefault("valid_from", str(given.get("at", now))[:10])
    document = {name: text.strip(), **given, "origin": origin}
    return parse(model, {key: value for key, value in document.items() if value is not None})


def superseded(old: Memory, heir: str, today: str) -> Belief:
    """A belief in whose place another one stands from today on."""
    if not isinstance(old, Belief):
        advice = "Name a fact, a pattern or an anti-pattern."
        raise InvalidRecord(f"{old.id} is {article(old.kind)} and no belief", advice=advice)
    if old.id == heir:
        raise InvalidRecord(f"{old.id} cannot supersede itself", advice="Name another memory.")
    links = [link.model_dump(mode="json", exclude_unset=True) for link in old.links]
    link = {"to": heir, "relation": "superseded_by"}
    return old.changed(
        status="superseded", invalid_at=today, links=links if link in links else [*links, link]
    )


def written(change: Change, record: Memory, elsewhere: Iterable[str] = ()) -> Memory:
    """Write a statement, or update the record with the same value.

    `elsewhere` names files that may state the same value.
    """
    from loki_memory.files.layout import place, view_kind
    from loki_memory.files.store import sealed

    record = sealed(record)[0]
    change.admit(record)
    for path in elsewhere:
        there = None if view_kind(path) else change.record(path)
        if there is not None and there.key() == record.key():
            return change.put(_restated(there, record), path)
    number = 1
    while True:
        there = change.record(place(record))
        if there is None:
            return change.put(record)
        if there.key() == record.key():
            return change.put(_restated(there, record))
        # That record was corrected since and has another statement: both are kept.
        number += 1
        minted = digest(record.kind, *record.key(), str(number))
        record = record.changed(id=f"{record.prefix}-{minted}")


def _restated(there: Memory, record: Memory) -> Memory:
    """Update a known statement that is stated again.

    Its wording and since when it holds stay; the more trusted of both origins counts; and if it
    was superseded or retired, it is active again.
    """
    document = there.document()
    keep = {name: document[name] for name in _FIRST_SAID if name in document}
    origins = (getattr(there, "origin", None), getattr(record, "origin", None))
    origin = next((o for o in ORIGINS if o in origins), None)
    again = there.changed(**{**record.document(), **keep, "origin": origin})
    if isinstance(again, Belief) and again.status in {"superseded", "retired"}:
        return again.changed(status="active", invalid_at=None)
    return again


def corrected(record: Memory, fields: Mapping[str, Any], today: str, origin: str) -> Memory:
    """The record with other fields; a belief keeps its former values in its history.

    A correction cannot set the origin, but the author of a new statement becomes
    its origin from then on.
    """
    known = {*field_order(MODELS[record.kind]), *record.document()} - _NOT_CORRECTED
    for name in fields:
        if name == "scope":
            raise InvalidRecord(
                "a scope is not corrected, because the file goes to another place",
                advice=f"Use `loki-mem move {record.id} --scope {fields[name]}`.",
            )
        if name not in known:
            meant = nearest(name, tuple(known))
            raise InvalidRecord(
                f"{article(record.kind)} has no field {name!r} that can be corrected",
                advice=f"Did you mean {meant!r}?" if meant else _listed(known),
            )
    new = record.changed(**fields)
    before, after = record.document(), new.document()
    was = {name: before.get(name) for name in fields if before.get(name) != after.get(name)}
    if "origin" in before and not was.keys().isdisjoint(STATEMENT):
        new = new.changed(origin=origin)
    if not was or not isinstance(record, Belief):
        return new
    entry = {"on": today, "by": origin, "was": was}
    return new.changed(history=[*record.history, entry])


def _listed(known: set[str]) -> str:
    return f"Its fields: {', '.join(sorted(known))}."


def with_field(record: Memory, name: str, value: object) -> Memory:
    """The record with one field set, if its kind has that field."""
    if name not in type(record).model_fields:
        raise InvalidRecord(
            f"{article(record.kind)} cannot be {name}",
            advice="Episodes, patterns, anti-patterns, facts and learnings can.",
        )
    return record.changed(**{name: value})


def tombstone(record: Memory, why: str, today: str, origin: str) -> Tombstone:
    """The tombstone that refuses a record's value."""
    value = record.value()
    if not value:
        raise InvalidRecord(
            f"{article(record.kind)} is not a statement that could be rejected",
            advice=f"`loki-mem forget {record.id}` removes it.",
        )
    document = {"value": value, "why": why, "rejected": record.id, "at": today, "origin": origin}
    scope = getattr(record, "scope", "project")
    if scope in {"local", "session"}:  # a rejection does not publish a private text
        document["scope"] = scope
    return parse(Tombstone, {name: text for name, text in document.items() if text})


def complete_skill(skill: Skill | str, origin: str) -> Skill:
    """A skill with all fields of the agentskills format, and its origin."""
    from loki_memory.files.redaction import clip, redact

    if isinstance(skill, str):
        from loki_memory.files.codec import read_skill

        document = read_skill("", redact(skill).encode(errors="surrogatepass"))
        if not document.get("name"):
            from loki_memory.models.ids import slug

            title = parse(Skill, {**document, "name": "x"}).title()
            document["name"] = slug(title, 64) or f"skill-{digest('skill', title)}"
        skill = parse(Skill, document)
    metadata = {**skill.metadata, "loki-origin": origin}
    description = skill.description or clip(skill.title(), 1024)
    return skill.changed(description=description, metadata=metadata)
