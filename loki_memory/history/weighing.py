"""The confidence and the status that a merged belief has by its joined evidence.

Every episode counts as a session of its own: the next consolidation, which can look at the
episodes, counts exactly. Where one side's evidence is the base's, the other side's numbers stand.
"""

from __future__ import annotations

from typing import Any

from loki_memory.history.versions import ABSENT, CONTESTED, Document, Sides, listed, told
from loki_memory.models import Belief, Fact
from loki_memory.models.confidence import (
    SETTLED,
    UNSURE,
    Claim,
    claim,
    confidence,
    is_produced,
    is_weighed,
    status,
)

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
    if made is not CONTESTED and told(made.get("asserted")) == told(merged.get("confidence")):
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
    if len(set(map(told, _sides(three, ())))) == 1:  # the same evidence, other numbers
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
    if len(set(map(told, said))) == 1:
        return said[0]
    # Retiring it is left to consolidation, which knows how much each episode weighs.
    found = status(*observed, 0.0 if sure is ABSENT else sure)
    return "disputed" if found == "retired" else found


def _telling(three: Three) -> tuple[Document, ...]:
    """The sides whose evidence and confidence were taken as they are."""
    base, ours, theirs = map(told, _sides(three, ("confidence",)))
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
