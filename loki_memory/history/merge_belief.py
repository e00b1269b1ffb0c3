"""Merge two versions of a belief: its words, its evidence, its origin and its confidence.

Consolidation rewrites the words of a belief that it made, so the version with the newest evidence
wins. Words that a person wrote, by a correction or by accepting the belief, take precedence; of two
such, the later correction wins and the other one is listed in `history`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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
from loki_memory.models.base import ORIGINS, distrust, least_trusted_origin
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
    """Merge two versions of a belief; `given` has their documents."""
    words = _WORDS[type(ours)]
    first, *sides = map(bare, (base, ours, theirs), given.all())
    versions = Versions(first, *(_noted(first, side, words) for side in sides))
    voices = [_Voice.of(first, side, words) for side in versions.all()]
    rules = {**_RULES, **_word_rules(versions, words, voices)}
    if "key" in versions.ours or "key" in versions.theirs:
        rules |= _PRODUCED
    elif base is None:
        versions.days = tuple(_since(version, words[0]) for version in versions.all())
    document = versions.with_history(merged(versions, rules, stated))
    return weighed(type(ours), given.all(), document)


# -- words ---------------------------------------------------------------------------------------


class _Voice(NamedTuple):
    """The author of a version's words: a person or agent, or its evidence."""

    words: Document
    is_stated: bool
    at: str  # of the newest evidence, where that wrote the words
    is_changed: bool  # since the base; a word that was changed and changed back counts

    @classmethod
    def of(cls, base: Document, side: Document, words: tuple[str, ...]) -> _Voice:
        said = {name: side[name] for name in words if name in side}
        marks = (*words, "origin")
        is_corrected = side is not base and not _corrected(base, side).isdisjoint(marks)
        is_stated = is_corrected or not _is_produced(side)
        is_changed = is_corrected or any(_differs(base, side, name) for name in words)
        at = max(base.get("at") or "", side.get("at") or "")
        return cls(said, is_stated, "" if is_stated else at, is_changed)


def _is_produced(side: Document) -> bool:
    return "key" in side and not is_owned(side.get("origin"))


def _differs(base: Document, side: Document, name: str) -> bool:
    return comparable_bytes(base.get(name, ABSENT)) != comparable_bytes(side.get(name, ABSENT))


def _corrected(base: Document, side: Document) -> set[str]:
    """The fields that a side's history mentions and the base's does not."""
    known = {comparable_bytes(entry) for entry in listed(base.get("history"))}
    entries = [
        entry for entry in listed(side.get("history")) if comparable_bytes(entry) not in known
    ]
    return {name for entry in entries for name in former(entry)}


def _noted(base: Document, side: Document, words: tuple[str, ...]) -> Document:
    """The side with an entry in its history for each word that it changed without one.

    Later merges find the date of the change there, whatever becomes of the record's own date; and
    that a person took over words that evidence had written, whatever becomes of its origin.
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
    """Date two statements without a common base: each is as old as its record."""
    known = days(side)
    return {**known, statement: max(known.get(statement, ""), side.get("at") or "")}


def _word_rules(
    versions: Versions, words: tuple[str, ...], voices: list[_Voice]
) -> dict[str, Rule]:
    """The rules for the words, and for their origin."""
    _, ours, theirs = voices
    if ours.is_stated and theirs.is_stated:
        says = (ours.is_changed, theirs.is_changed)
        return {"conditions": joined, "origin": lambda versions, _: trusted(versions, says)}
    sides = Sides(*([voice.words, voice.is_stated, voice.at] for voice in voices))
    if not versions.base:
        sides = sides._replace(base=ABSENT)
    chosen = _chosen_words(sides)
    taken: dict[str, Rule] = dict.fromkeys(words, lambda _, name: chosen.get(name, ABSENT))
    return {**taken, "origin": _origin_rule(sides, voices)}


def _chosen_words(sides: Sides) -> Document:
    """The words of one side: a stated one first, then the one with the newest evidence."""
    chosen = sides.settled()
    if chosen is CONTESTED:
        chosen = max(sides[1:], key=lambda side: (side[1], side[2], comparable_bytes(side[0])))
    words: Document = chosen[0]
    return words


def _origin_rule(sides: Sides, voices: list[_Voice]) -> Rule:
    """The rule for the origin: stated words replace those of evidence, unless trust was lowered."""
    _, ours, theirs = voices
    is_overridden = ours.is_stated != theirs.is_stated and sides.settled() is CONTESTED
    changed = (
        comparable_bytes(sides.ours) != comparable_bytes(sides.base),
        comparable_bytes(sides.theirs) != comparable_bytes(sides.base),
    )
    says = (ours.is_stated, theirs.is_stated) if is_overridden else changed

    def rule(versions: Versions, name: str) -> Any:
        if versions.base or not is_overridden:
            return trusted(versions, says)
        origins = versions.sides(name)
        return origins.ours if ours.is_stated else origins.theirs

    return rule


# -- sets ----------------------------------------------------------------------------------------


def _resolutions(versions: Versions, name: str) -> Any:
    """Join the resolutions, the surest first; spellings of one resolution are one."""
    sides = versions.sides(name)
    value = sides.settled()
    if value is not CONTESTED:
        return value
    found = keyed(lambda resolution: normal(resolution["do"]), _resolution)(versions, name)
    return sorted(found, key=lambda resolution: (-_worth(resolution), resolution["do"]))


def _worth(resolution: Document) -> float:
    support, against = (len(listed(resolution.get(name))) for name in ("for", "against"))
    return lower_bound(support, against)


def _resolution(sides: Sides) -> Document:
    """Join one resolution with the episodes of both; of two spellings the longer."""
    base = {} if sides.base is ABSENT else sides.base
    found = max(
        sides.ours, sides.theirs, key=lambda side: (len(side["do"]), comparable_bytes(side))
    )
    lists = {
        name: union(Sides(*(side.get(name, ABSENT) for side in (base, sides.ours, sides.theirs))))
        for name in ("for", "against")
        if name in sides.ours or name in sides.theirs
    }
    return {**sides.ours, **sides.theirs, **found, **lists}


def _newest(versions: Versions, name: str) -> Any:
    """The date of the newest evidence, which does not go back."""
    there = [date for date in versions.sides(name)[1:] if date is not ABSENT and date is not None]
    return max(there, default=None)


# A rejection stays, and a side that did not know of a successor does not undo it.
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
    "evidence": nested({"for": joined, "against": joined, "episodes": nested({})}),
    "resolutions": _resolutions,
    "links": keyed(lambda link: (link.get("relation", "related_to"), link["to"])),
    "citations": keyed(lambda citation: (citation["path"], citation.get("symbol") or "")),
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
# Fields that consolidation writes beside the words, and that follow from the evidence.
_PRODUCED: dict[str, Rule] = {
    **dict.fromkeys(("category", "parent", "depth", "key", "scope", "surprise"), rendered),
    **dict.fromkeys(("confidence", "status"), elsewhere),
    "at": _newest,
}


# -- The origin of a merged memory: no more trusted than the authors of its words -----------------


_OWNER = ORIGINS[0]


def trusted(versions: Versions, says: tuple[bool, bool] = (True, True)) -> Any:
    """The origin of a merged memory; `says` has True for each side that changed the words.

    A side that changed the words answers for them, and one that lowered the trust had its reason.
    Where an owner took over words that the other side did not change, they are the owner's.
    """
    base, *sides = versions.sides("origin")
    if not versions.base:
        return least_trusted_origin(sides)
    answering = [
        origin
        for origin, words in zip(sides, says, strict=True)
        if words or distrust(origin) > distrust(base)
    ]
    raised = [origin for origin in sides if distrust(origin) < distrust(base)]
    return least_trusted_origin(answering or raised or [base])


def is_owned(origin: Any) -> bool:
    return origin is not ABSENT and origin == _OWNER


# -- The confidence and the status of a merged belief, by its joined evidence ---------------------


_EVIDENCE = ("evidence", "source_episodes")
_NUMBERS = ("confidence", "asserted", "weighed", "asserted_knowing")
_LIVE = "live"
_ENDS = ("rejected", "superseded", "retired", _LIVE)

Three = tuple[Document, Document, Document]  # base, ours, theirs


def bare(belief: Belief | None, document: Document) -> Document:
    """A belief as it was stated, without the numbers that its evidence added."""
    if belief is None or is_produced(belief) or not is_weighed(belief):
        return document
    stated, knowing = claim(belief)
    rest = {name: value for name, value in document.items() if name not in _NUMBERS}
    known = {"asserted_knowing": sorted(knowing)} if knowing else {}
    return {**rest, "confidence": stated, **known}


def weighed(model: type[Belief], three: Three, merged: Document) -> Document:
    """The merged document with the numbers of its evidence."""
    if "key" in merged:
        return {**merged, **_produced(model, three, merged)}
    if any("asserted" in side for side in three[1:]):
        return {**merged, **_asserted(model, three, merged)}
    return merged


# -- stated beliefs ------------------------------------------------------------------------------


def _asserted(model: type[Belief], three: Three, merged: Document) -> Document:
    """The numbers of one side, if it weighed what was merged; else computed anew."""
    made = _sides(three, _NUMBERS).settled()
    if made is not CONTESTED and comparable_bytes(made.get("asserted")) == comparable_bytes(
        merged.get("confidence")
    ):
        return {name: value for name, value in made.items() if name in _NUMBERS}
    knowing = frozenset(map(str, listed(merged.get("asserted_knowing"))))
    stated = Claim(merged.get("confidence"), knowing)
    sure = confidence(*_observed(model, merged, knowing), stated.prior())
    return {"confidence": sure, **stated.fields(sure)}


# -- beliefs that consolidation made ---------------------------------------------------------------


def _produced(model: type[Belief], three: Three, merged: Document) -> Document:
    """The confidence and status of a belief; a topic sums up its members and has neither."""
    observed = _observed(model, merged)
    sure = _sure(three, observed) if _is_stated_in(three, "confidence") else ABSENT
    state = _status(three, observed, sure) if _is_stated_in(three, "status") else ABSENT
    found = {"confidence": sure, "status": state}
    return {name: value for name, value in found.items() if value is not ABSENT}


def _is_stated_in(three: Three, name: str) -> bool:
    return any(name in side for side in three[1:])


def _sure(three: Three, observed: tuple[float, float]) -> Any:
    made = _sides(three, ("confidence",)).settled()
    if made is not CONTESTED:
        return made.get("confidence", ABSENT)
    if len(set(map(comparable_bytes, _sides(three, ())))) == 1:  # the same evidence, other numbers
        there = (side.get("confidence") for side in three[1:])
        return min((value for value in there if value is not None), default=ABSENT)
    return confidence(*observed)


def _status(three: Three, observed: tuple[float, float], sure: Any) -> Any:
    """The end status if there is one; while it lives, the status of the side with its evidence."""
    ended = Sides(*map(_end, three)).settled()
    if ended is CONTESTED:
        ended = min(map(_end, three[1:]), key=_ENDS.index)
    if ended != _LIVE:
        return ended
    states = [side.get("status", ABSENT) for side in _deciding(three) if _end(side) == _LIVE]
    if len(set(map(comparable_bytes, states))) == 1:
        return states[0]
    # Retiring it is left to consolidation, which knows how much each episode weighs.
    found = status(*observed, 0.0 if sure is ABSENT else sure)
    return "disputed" if found == "retired" else found


def _deciding(three: Three) -> tuple[Document, ...]:
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
    """Count the observations for and against a belief, without those already known."""
    evidence = merged.get("evidence") or {}
    for_ = frozenset(listed(evidence.get("for"))) - known
    against = frozenset(listed(evidence.get("against"))) - known
    named = frozenset(listed(merged.get("source_episodes"))) - known
    sources = frozenset() if issubclass(model, Fact) else named - for_
    return len(for_ - against) + UNSURE * len(sources - against), len(against)
