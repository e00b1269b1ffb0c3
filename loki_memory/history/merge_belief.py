"""Merge two versions of a belief: its words, its evidence, its origin and its confidence.

Consolidation rewrites the words of a belief that it made, so the version with the newest evidence
wins. Words that a person wrote, by a correction or by accepting the belief, take precedence; of two
such, the later correction wins and the other one is listed in `history`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, get_args

from loki_memory.history.merge_fields import (
    ABSENT,
    CONTESTED,
    Document,
    Rule,
    Sides,
    Versions,
    among,
    comparable_bytes,
    counted,
    days,
    earliest,
    either,
    elsewhere,
    former,
    joined,
    keyed,
    latest,
    listed,
    merged,
    nested,
    rendered,
    stated,
    union,
)
from loki_memory.models import AntiPattern, Belief, Fact, Pattern
from loki_memory.models.base import Origin
from loki_memory.models.confidence import (
    SETTLED,
    UNSURE,
    Claim,
    claim,
    confidence,
    is_produced,
    is_weighed,
    lower_bound,
    status,
)
from loki_memory.models.text import normal

# The statement first: it is always there, so `at` can date it.
_WORDS: dict[type[Belief], tuple[str, ...]] = {
    Pattern: ("pattern", "correct_approach", "incorrect_approach", "conditions"),
    AntiPattern: ("what_fails", "why", "prevention"),
    Fact: ("statement",),
}


def merged_belief(base: Belief | None, ours: Belief, theirs: Belief, given: Versions) -> Document:
    """The document that both sides made of a belief; `given` has their documents."""
    words = _WORDS[type(ours)]
    first, *sides = map(bare, (base, ours, theirs), given.all())
    versions = Versions(first, *(_noted(first, side, words) for side in sides))
    voices = [_Voice.of(first, side, words) for side in versions.all()]
    rules = {**_RULES, **_word_rules(versions, words, voices)}
    if "key" in versions.ours or "key" in versions.theirs:
        rules |= _PRODUCED
    elif base is None:
        versions.days = tuple(_since(one, words[0]) for one in versions.all())
    document = versions.with_history(merged(versions, rules, stated))
    return weighed(type(ours), given.all(), document)


# -- words ---------------------------------------------------------------------------------------


class _Voice(NamedTuple):
    """Whose words a version has: somebody's, or those that its evidence gave it."""

    words: Document
    is_somebodys: bool
    at: str  # of the newest evidence, where that wrote the words
    is_changed: bool  # since the base; a word that was changed and changed back counts

    @classmethod
    def of(cls, base: Document, side: Document, words: tuple[str, ...]) -> _Voice:
        said = {name: side[name] for name in words if name in side}
        marks = (*words, "origin")
        is_corrected = side is not base and not _corrected(base, side).isdisjoint(marks)
        is_somebodys = is_corrected or not _is_produced(side)
        is_changed = is_corrected or any(_differs(base, side, name) for name in words)
        at = max(base.get("at") or "", side.get("at") or "")
        return cls(said, is_somebodys, "" if is_somebodys else at, is_changed)


def _is_produced(side: Document) -> bool:
    return "key" in side and not is_owned(side.get("origin"))


def _differs(base: Document, side: Document, name: str) -> bool:
    return comparable_bytes(base.get(name, ABSENT)) != comparable_bytes(side.get(name, ABSENT))


def _corrected(base: Document, side: Document) -> set[str]:
    """The fields that a side's history tells of and the base's does not."""
    known = {comparable_bytes(entry) for entry in listed(base.get("history"))}
    entries = [one for one in listed(side.get("history")) if comparable_bytes(one) not in known]
    return {name for entry in entries for name in former(entry)}


def _noted(base: Document, side: Document, words: tuple[str, ...]) -> Document:
    """The side with an entry in its history for each word that it changed without one.

    Later merges find there when that was, whatever becomes of the record's own date; and that
    somebody took over words that evidence had written, whatever becomes of its origin.
    """
    if not base or _is_produced(side):
        return side
    day = {"on": side["at"]} if side.get("at") and _differs(base, side, "at") else {}
    names = (*words, "origin") if "key" in side else words
    changed = [name for name in names if _differs(base, side, name)]
    news = [name for name in changed if name not in _corrected(base, side)]
    entries = [{**day, "was": {name: base.get(name)}} for name in news]
    return {**side, "history": [*listed(side.get("history")), *entries]} if entries else side


def _since(side: Document, statement: str) -> dict[str, str]:
    """Where two statements have no common beginning, each is as old as its record."""
    known = days(side)
    return {**known, statement: max(known.get(statement, ""), side.get("at") or "")}


def _word_rules(
    versions: Versions, words: tuple[str, ...], voices: list[_Voice]
) -> dict[str, Rule]:
    """Rules for the words, and for who answers for them."""
    _, ours, theirs = voices
    if ours.is_somebodys and theirs.is_somebodys:
        says = (ours.is_changed, theirs.is_changed)
        return {"conditions": joined, "origin": lambda versions, _: trusted(versions, says)}
    sides = Sides(*([one.words, one.is_somebodys, one.at] for one in voices))
    if not versions.base:
        sides = sides._replace(base=ABSENT)
    heard = _heard(sides)
    taken: dict[str, Rule] = dict.fromkeys(words, lambda _, name: heard.get(name, ABSENT))
    return {**taken, "origin": _origin_rule(sides, voices)}


def _heard(sides: Sides) -> Document:
    """The words of one side: somebody's before all, then those of the newest evidence."""
    chosen = sides.settled()
    if chosen is CONTESTED:
        chosen = max(sides[1:], key=lambda one: (one[1], one[2], comparable_bytes(one[0])))
    words: Document = chosen[0]
    return words


def _origin_rule(sides: Sides, voices: list[_Voice]) -> Rule:
    """Who put words where evidence had written some is their origin, if nobody lowered it."""
    _, ours, theirs = voices
    is_overridden = ours.is_somebodys != theirs.is_somebodys and sides.settled() is CONTESTED
    changed = (
        comparable_bytes(sides.ours) != comparable_bytes(sides.base),
        comparable_bytes(sides.theirs) != comparable_bytes(sides.base),
    )
    says = (ours.is_somebodys, theirs.is_somebodys) if is_overridden else changed

    def rule(versions: Versions, name: str) -> Any:
        if versions.base or not is_overridden:
            return trusted(versions, says)
        origins = versions.sides(name)
        return origins.ours if ours.is_somebodys else origins.theirs

    return rule


# -- sets ----------------------------------------------------------------------------------------


def _resolutions(versions: Versions, name: str) -> Any:
    """The ones that surely helped first; one that is spelled otherwise is the same."""
    sides = versions.sides(name)
    value = sides.settled()
    if value is not CONTESTED:
        return value
    found = keyed(lambda one: normal(one["do"]), _resolution)(versions, name)
    return sorted(found, key=lambda one: (-_worth(one), one["do"]))


def _worth(one: Document) -> float:
    return lower_bound(len(listed(one.get("for"))), len(listed(one.get("against"))))


def _resolution(sides: Sides) -> Document:
    """One remedy with the episodes of both; of two spellings the longer."""
    base = {} if sides.base is ABSENT else sides.base
    found = max(sides.ours, sides.theirs, key=lambda one: (len(one["do"]), comparable_bytes(one)))
    lists = {
        name: union(Sides(*(one.get(name, ABSENT) for one in (base, sides.ours, sides.theirs))))
        for name in ("for", "against")
        if name in sides.ours or name in sides.theirs
    }
    return {**sides.ours, **sides.theirs, **found, **lists}


def _newest(versions: Versions, name: str) -> Any:
    """The date of the newest evidence, which does not go back."""
    there = [one for one in versions.sides(name)[1:] if one is not ABSENT and one is not None]
    return max(there, default=None)


# What is rejected stays so, and what was replaced is not brought back by who did not know.
_STATUSES = (
    "rejected",
    "superseded",
    "retired",
    "resolved",
    "disputed",
    "active",
    "candidate",
)
_RULES: dict[str, Rule] = {
    "status": among(min, _STATUSES.index),
    "evidence": nested({"for": joined, "against": joined}),
    "resolutions": _resolutions,
    "links": keyed(lambda link: (link.get("relation", "related_to"), link["to"])),
    "citations": keyed(lambda one: (one["path"], one.get("symbol") or "")),
    "source_episodes": joined,
    "asserted_knowing": joined,
    "otherwise": joined,
    "tags": joined,
    "conflicts": joined,
    "pinned": either,
    "usage_count": counted,
    "last_used": latest,
    "at": latest,
    "valid_from": earliest,
    "invalid_at": earliest,
}
# What consolidation writes beside the words, and what follows from the evidence.
_PRODUCED: dict[str, Rule] = {
    **dict.fromkeys(("category", "parent", "depth", "key", "scope"), rendered),
    **dict.fromkeys(("confidence", "status"), elsewhere),
    "at": _newest,
}


# -- How far a merged memory is trusted: never further than those whose words it has --------------


_FROM_MOST: tuple[str, ...] = get_args(Origin)
_OWNER = _FROM_MOST[0]


def least(origins: Iterable[Any]) -> Any:
    """The least trusted; who does not say stands below the owner and above everybody else."""
    return max(origins, key=_distance)


def _distance(origin: Any) -> float:
    if origin in _FROM_MOST:
        return _FROM_MOST.index(origin)
    return 0.5


def trusted(versions: Versions, says: tuple[bool, bool] = (True, True)) -> Any:
    """The origin of what was merged; `says` tells of each side whether it changed the words.

    A side that changed the words answers for them, and one that lowered the trust had its reason.
    Where an owner took over words that the other side did not change, they are the owner's.
    """
    base, *sides = versions.sides("origin")
    if not versions.base:
        return least(sides)
    answering = [
        one
        for one, words in zip(sides, says, strict=True)
        if words or _distance(one) > _distance(base)
    ]
    raised = [one for one in sides if _distance(one) < _distance(base)]
    return least(answering or raised or [base])


def is_owned(origin: Any) -> bool:
    return origin is not ABSENT and origin == _OWNER


# -- The confidence and the status that a merged belief has by its joined evidence ----------------


_EVIDENCE = ("evidence", "source_episodes")
_NUMBERS = ("confidence", "asserted", "weighed", "asserted_knowing")
_LIVE = "live"
_ENDS = ("rejected", "superseded", "retired", _LIVE)

Three = tuple[Document, Document, Document]  # base, ours, theirs


def bare(belief: Belief | None, document: Document) -> Document:
    """A belief with what somebody stated of it, without what evidence made of that."""
    if belief is None or is_produced(belief) or not is_weighed(belief):
        return document
    stated, knowing = claim(belief)
    rest = {name: value for name, value in document.items() if name not in _NUMBERS}
    known = {"asserted_knowing": sorted(knowing)} if knowing else {}
    return {**rest, "confidence": stated, **known}


def weighed(model: type[Belief], three: Three, merged: Document) -> Document:
    """The merged document with the numbers that its evidence gives it."""
    if "key" in merged:
        return {**merged, **_produced(model, three, merged)}
    if any("asserted" in side for side in three[1:]):
        return {**merged, **_asserted(model, three, merged)}
    return merged


# -- what somebody asserted ----------------------------------------------------------------------


def _asserted(model: type[Belief], three: Three, merged: Document) -> Document:
    """As one side weighed it, if what it weighed is what was merged; else anew."""
    made = _sides(three, _NUMBERS).settled()
    if made is not CONTESTED and comparable_bytes(made.get("asserted")) == comparable_bytes(
        merged.get("confidence")
    ):
        return {name: value for name, value in made.items() if name in _NUMBERS}
    knowing = frozenset(map(str, listed(merged.get("asserted_knowing"))))
    stated = Claim(merged.get("confidence"), knowing)
    sure = confidence(*_observed(model, merged, knowing), stated.prior())
    return {"confidence": sure, **stated.fields(sure)}


# -- what consolidation made ---------------------------------------------------------------------


def _produced(model: type[Belief], three: Three, merged: Document) -> Document:
    """Numbers for what has them: a topic sums up its members, and nobody weighs it."""
    observed = _observed(model, merged)
    sure = _sure(three, observed) if _is_said(three, "confidence") else ABSENT
    state = _status(three, observed, sure) if _is_said(three, "status") else ABSENT
    found = {"confidence": sure, "status": state}
    return {name: value for name, value in found.items() if value is not ABSENT}


def _is_said(three: Three, name: str) -> bool:
    return any(name in side for side in three[1:])


def _sure(three: Three, observed: tuple[float, float]) -> Any:
    made = _sides(three, ("confidence",)).settled()
    if made is not CONTESTED:
        return made.get("confidence", ABSENT)
    if len(set(map(comparable_bytes, _sides(three, ())))) == 1:  # the same evidence, other numbers
        there = (side.get("confidence") for side in three[1:])
        return min((one for one in there if one is not None), default=ABSENT)
    return confidence(*observed)


def _status(three: Three, observed: tuple[float, float], sure: Any) -> Any:
    """Where it ended if it did; while it lives, what the side says whose evidence it has."""
    ended = Sides(*map(_end, three)).settled()
    if ended is CONTESTED:
        ended = min(map(_end, three[1:]), key=_ENDS.index)
    if ended != _LIVE:
        return ended
    said = [side.get("status", ABSENT) for side in _telling(three) if _end(side) == _LIVE]
    if len(set(map(comparable_bytes, said))) == 1:
        return said[0]
    # Retiring it is left to consolidation, which knows how much each episode weighs.
    found = status(*observed, 0.0 if sure is ABSENT else sure)
    return "disputed" if found == "retired" else found


def _telling(three: Three) -> tuple[Document, ...]:
    """The sides whose evidence and confidence were taken as they are."""
    base, ours, theirs = map(comparable_bytes, _sides(three, ("confidence",)))
    if ours == theirs:
        return three[1:]
    return three[2:] if ours == base else three[1:2] if theirs == base else ()


def _end(side: Document) -> str:
    found = side.get("status")
    return str(found) if found in SETTLED else _LIVE


# -- evidence ------------------------------------------------------------------------------------


def _sides(three: Three, names: tuple[str, ...]) -> Sides:
    """The evidence of each version, with some of its numbers."""
    wanted = (*_EVIDENCE, *names)
    return Sides(*({name: side[name] for name in wanted if name in side} for side in three))


def _observed(
    model: type[Belief], merged: Document, known: frozenset[str] = frozenset()
) -> tuple[float, float]:
    """The observations for and against a belief that nobody had made before."""
    evidence = merged.get("evidence") or {}
    for_ = frozenset(listed(evidence.get("for"))) - known
    against = frozenset(listed(evidence.get("against"))) - known
    told_by = frozenset(listed(merged.get("source_episodes"))) - known
    sources = frozenset() if issubclass(model, Fact) else told_by - for_
    return len(for_ - against) + UNSURE * len(sources - against), len(against)
