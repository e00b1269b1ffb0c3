"""Build the record for a statement that is made, corrected or rejected. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from loki_memory.errors import InvalidRecord
from loki_memory.models import (
    MODELS,
    AntiPattern,
    Belief,
    Fact,
    Learning,
    Memory,
    Pattern,
    Skill,
    Tombstone,
    parse,
)
from loki_memory.models.base import ORIGINS, field_order
from loki_memory.models.ids import digest
from loki_memory.models.kinds import STATEMENT, article

if TYPE_CHECKING:
    from loki_memory.files.store import Change

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


def remember(change: Change, record: Memory, elsewhere: Iterable[str] = ()) -> Memory:
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

    A correction cannot set the origin, but the author of a new statement becomes its origin.
    origin from then on.
    """
    known = {*field_order(MODELS[record.kind]), *record.document()} - _NOT_CORRECTED
    for name in fields:
        if name == "scope":
            raise InvalidRecord(
                "a scope is not corrected, because the file goes to another place",
                advice=f"Use `loki-mem move {record.id} --scope {fields[name]}`.",
            )
        if name not in known:
            raise InvalidRecord(
                f"{article(record.kind)} has no field {name!r} that can be corrected",
                advice=f"Its fields: {', '.join(sorted(known))}.",
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
