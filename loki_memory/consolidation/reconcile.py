"""Reconcile: facts that cannot both hold get a disposition, never silence.

Two facts are about one thing if they name the same slot (subject and attribute), or state one in
one of a few plain forms ("X runs on Y", "port of X is N"). Then

- *update*: the newer one was said on a later day. The older gets `invalid_at` and the status
  superseded, and links say so in both directions; it is kept.
- *conflict*: both are of one day, or undated. Both stay, disputed, with a `contradicts` link.
- *scoped*: they are of different scopes, or say under which condition they hold. Both stay.

A statement and its negation ("tests run in parallel", "tests do not run in parallel") are one slot.
What a person rejected is not here at all: the store refuses it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from loki_memory.consolidation.snapshot import Changes, Fact, Snapshot, Step
from loki_memory.models.normal import normal

_GONE = frozenset({"superseded", "rejected", "retired"})
# Plain statements of one value: the subject, what is said of it, and the value.
_FRAMES = (
    re.compile(
        r"^(?P<subject>.{2,60}?) (?P<attribute>runs on|lives in|listens on|is deployed to|"
        r"is stored in|defaults to|is pinned to|is owned by) (?P<value>.{1,80})$"
    ),
    re.compile(
        r"^the (?P<attribute>port|version|timeout|limit|owner|url|branch|region|database|"
        r"default \w+) (?:of|for) (?P<subject>.{2,60}?) is (?P<value>.{1,80})$"
    ),
)
_NOT = re.compile(r"\b(?:not|never|no longer|don't|doesn't|do not|does not|cannot|can't|isn't)\b")
_CONDITION = re.compile(r"\b(?:if|when|unless|only (?:in|on|for|if|when)|except)\b")

Slot = tuple[str, str, str]  # scope, subject, attribute


def reconcile(snapshot: Snapshot, touched: frozenset[str] | None = None) -> Changes:  # noqa: ARG001 - facts are few
    """Dispositions for all facts that contradict each other."""
    put: dict[str, Fact] = {}
    steps: list[Step] = []
    for facts in _about_one_thing(snapshot):
        for older, newer in combinations(sorted(facts, key=_order), 2):
            if _says(older) == _says(newer) or _is_conditional(older, newer):
                continue
            changed = _disposed(put.get(older.id, older), put.get(newer.id, newer))
            for one in changed:
                if one != snapshot.records[one.id]:
                    put[one.id] = one
            if any(one != snapshot.records[one.id] for one in changed):
                steps.append(_step(changed))
    return Changes(tuple(put[name] for name in sorted(put)), steps=tuple(steps))


def _about_one_thing(snapshot: Snapshot) -> Iterator[Sequence[Fact]]:
    slots: dict[Slot, list[Fact]] = defaultdict(list)
    for fact in snapshot.of(Fact):
        if fact.status not in _GONE and not fact.session:  # what was said in a talk is no setting
            slots[slot(fact)].append(fact)
    yield from (slots[name] for name in sorted(slots) if name[1] and len(slots[name]) > 1)


def slot(fact: Fact) -> Slot:
    """What a fact is about; no subject if it does not say so plainly."""
    if fact.subject and fact.attribute:
        return fact.scope, normal(fact.subject), normal(fact.attribute)
    text = normal(fact.statement).rstrip(".")
    for frame in _FRAMES:
        found = frame.match(text)
        if found:
            return fact.scope, found["subject"], found["attribute"]
    if _NOT.search(text) or not any(mark in text for mark in "?:"):
        return fact.scope, _affirmed(text), "is so"
    return fact.scope, "", ""


def _affirmed(text: str) -> str:
    """A statement without its negation, and without the verb forms that go with it."""
    words = _NOT.sub(" ", text).split()
    return " ".join(word.removesuffix("s") for word in words)


def _says(fact: Fact) -> str:
    return normal(fact.statement)


def _order(fact: Fact) -> tuple[str, str]:
    return _day(fact), fact.id


def _day(fact: Fact) -> str:
    return (fact.valid_from or fact.at or "")[:10]


def _is_conditional(a: Fact, b: Fact) -> bool:
    return bool(_CONDITION.search(_says(a))) != bool(_CONDITION.search(_says(b)))


def _disposed(older: Fact, newer: Fact) -> tuple[Fact, Fact]:
    if older.pinned and not newer.pinned:
        older, newer = newer, older
    if _day(older) and _day(newer) and _day(older) < _day(newer):
        moment = newer.valid_from or newer.at
        return (
            _linked(older, newer, "superseded_by", status="superseded", invalid_at=moment),
            _linked(newer, older, "supersedes"),
        )
    return (
        _linked(older, newer, "contradicts", status="disputed"),
        _linked(newer, older, "contradicts", status="disputed"),
    )


def _linked(fact: Fact, other: Fact, relation: str, **fields: Any) -> Fact:
    links = [link.model_dump(mode="json", exclude_unset=True) for link in fact.links]
    new = {"to": other.id, "relation": relation}
    if not any((one["to"], one.get("relation")) == (other.id, relation) for one in links):
        links.append(new)
    return fact.changed(links=links, **fields)


def _step(pair: tuple[Fact, Fact]) -> Step:
    older, newer = pair
    if older.status == "superseded":
        return Step("superseded", older.id, older.title(), why=f"updated by {newer.id}")
    return Step("disputed", older.id, older.title(), why=f"contradicts {newer.id}")
