"""What becomes of a record when somebody states, corrects, rejects or advances it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from loki_memory.errors import InvalidRecord
from loki_memory.models import (
    MODELS,
    AntiPattern,
    Belief,
    Fact,
    Handoff,
    Learning,
    Memory,
    Pattern,
    Skill,
    Tombstone,
    parse,
)
from loki_memory.models.base import field_order
from loki_memory.models.ids import digest

if TYPE_CHECKING:
    from loki_memory.files.store import Change

_STATEMENTS: dict[str, tuple[type[Memory], str]] = {
    "fact": (Fact, "statement"),
    "pattern": (Pattern, "pattern"),
    "anti-pattern": (AntiPattern, "what_fails"),
    "learning": (Learning, "lesson"),
}
_STATES = {"open": {"accepted", "done", "expired"}, "accepted": {"done", "expired"}}


def statement(text: str, kind: str, fields: Mapping[str, Any], *, now: str, origin: str) -> Memory:
    """A record that says `text`. Fields that were not given are left out."""
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


def remember(change: Change, record: Memory) -> Memory:
    """Write a statement, or bring the one that says the same up to date."""
    from loki_memory.files.layout import place
    from loki_memory.files.store import sealed

    record = sealed(record)[0]
    number = 1
    while True:
        there = change.record(place(record))
        if there is None:
            return change.put(record)
        if there.key() == record.key():
            new = {**record.document(), **_first_said(there)}
            return change.put(there.changed(**new))
        # That one was corrected since and says something else now: both are kept.
        number += 1
        minted = digest(record.kind, *record.key(), str(number))
        record = record.changed(id=f"{record.prefix}-{minted}")


def _first_said(there: Memory) -> dict[str, Any]:
    """What a repetition does not change: since when it holds, and its wording."""
    document = there.document()
    keep = ("id", "valid_from", "timestamp", "statement", "pattern", "what_fails", "lesson")
    return {name: document[name] for name in keep if name in document}


def corrected(record: Memory, fields: Mapping[str, Any], today: str, origin: str) -> Memory:
    """The record with other fields; a belief keeps what it said before."""
    known = {*field_order(MODELS[record.kind]), *record.document()} - {"id", "$schema", "history"}
    for name in fields:
        if name not in known:
            raise InvalidRecord(
                f"a {record.kind} has no field {name!r} that can be corrected",
                field=name,
                advice=f"Its fields: {', '.join(sorted(known))}.",
            )
    new = record.changed(**fields)
    before, after = record.document(), new.document()
    was = {name: before.get(name) for name in fields if before.get(name) != after.get(name)}
    if not was or not isinstance(record, Belief):
        return new
    said = {"on": today, "by": origin, "was": was}
    return new.changed(history=[*record.history, said])


def with_field(record: Memory, name: str, value: object) -> Memory:
    """The record with one field of its own kind set."""
    if name not in type(record).model_fields:
        raise InvalidRecord(f"a {record.kind} cannot be {name}", field=name)
    return record.changed(**{name: value})


def tombstone(record: Memory, why: str, today: str, origin: str) -> Tombstone:
    """The stone that keeps a record's value out."""
    value = record.value()
    if not value:
        raise InvalidRecord(
            f"a {record.kind} is not a statement that could be rejected",
            advice=f"`loki-mem forget {record.id}` removes it.",
        )
    document = {"value": value, "why": why, "rejected": record.id, "at": today, "origin": origin}
    return parse(Tombstone, {name: text for name, text in document.items() if text})


def advanced(record: Memory, status: str, fields: Mapping[str, Any]) -> Handoff:
    """A handoff in its next state; going back is an error."""
    if not isinstance(record, Handoff):
        raise InvalidRecord(f"{record.id} is a {record.kind} and no handoff")
    if status not in _STATES.get(record.state, set()):
        raise InvalidRecord(
            f"{record.id} is {record.state} and cannot become {status}", field="status"
        )
    given = {name: value for name, value in fields.items() if value is not None}
    return record.changed(status=status, **given)


def complete_skill(skill: Skill | str) -> Skill:
    """A skill with everything that the agentskills format asks for."""
    if isinstance(skill, str):
        from loki_memory.files.codec import read_skill

        document = read_skill("", skill.encode())
        if not document.get("name"):
            from loki_memory.models.ids import slug

            title = parse(Skill, {**document, "name": "x"}).title()
            document["name"] = slug(title, 64)
        skill = parse(Skill, document)
    return skill if skill.description else skill.changed(description=skill.title())
