"""The confidence and the status that a merged belief has by its joined evidence.

Every episode counts as a session of its own: the next consolidation, which can look at the
episodes, counts exactly. Where one side's evidence is the base's, the other side's numbers stand.
"""

from __future__ import annotations

from typing import Any

from loki_memory.history.versions import ABSENT, CONTESTED, Document, Sides, told
from loki_memory.models import Belief, Fact, parse
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

Beliefs = tuple[Belief | None, Belief, Belief]


def bare(belief: Belief) -> Document:
    """A belief with what somebody stated of it, without what evidence made of that."""
    document = belief.document()
    if is_produced(belief) or not is_weighed(belief):
        return document
    stated, knowing = claim(belief)
    rest = {name: value for name, value in document.items() if name not in _NUMBERS}
    known = {"asserted_knowing": sorted(knowing)} if knowing else {}
    return {**rest, "confidence": stated, **known}


def weighed(beliefs: Beliefs, merged: Document) -> Document:
    """The merged document with the numbers that its evidence gives it."""
    belief = parse(type(beliefs[1]), merged)
    if is_produced(belief):
        return {**merged, **_produced(beliefs, belief)}
    if any(is_weighed(one) for one in beliefs[1:]):
        return {**merged, **_asserted(beliefs, belief)}
    return merged


# -- what somebody asserted ----------------------------------------------------------------------


def _asserted(beliefs: Beliefs, belief: Belief) -> Document:
    """As one side weighed it, if what it weighed is what was merged; else anew."""
    made = _sides(beliefs, _NUMBERS).settled()
    if made is not CONTESTED and told(made.get("asserted")) == told(belief.confidence):
        return {name: value for name, value in made.items() if name in _NUMBERS}
    extra = belief.model_extra or {}
    stated = Claim(belief.confidence, frozenset(map(str, extra.get("asserted_knowing") or ())))
    sure = confidence(*_observed(belief, stated.knowing), stated.prior())
    return {"confidence": sure, **stated.fields(sure)}


# -- what consolidation made ---------------------------------------------------------------------


def _produced(beliefs: Beliefs, belief: Belief) -> Document:
    sure = _sure(beliefs, belief)
    found = {"confidence": sure, "status": _status(beliefs, belief, sure)}
    return {name: value for name, value in found.items() if value is not ABSENT}


def _sure(beliefs: Beliefs, belief: Belief) -> Any:
    made = _sides(beliefs, ("confidence",)).settled()
    if made is not CONTESTED:
        return made.get("confidence", ABSENT)
    if len({told(one) for one in _sides(beliefs, ())}) == 1:  # the same evidence, other numbers
        there = [one.confidence for one in beliefs[1:] if one and one.confidence is not None]
        return min(there, default=ABSENT)
    return confidence(*_observed(belief))


def _status(beliefs: Beliefs, belief: Belief, sure: Any) -> Any:
    """Where it ended if it did; while it lives, what the side says whose evidence it has."""
    ended = Sides(*map(_end, beliefs)).settled()
    if ended is CONTESTED:
        ended = min((_end(one) for one in beliefs[1:]), key=_ENDS.index)
    if ended != _LIVE:
        return ended
    living = [one for one in _telling(beliefs) if _end(one) == _LIVE]
    said = {
        told(found): found for found in (one.document().get("status", ABSENT) for one in living)
    }
    if len(said) == 1:
        return next(iter(said.values()))
    return _counted(belief, sure)


def _telling(beliefs: Beliefs) -> tuple[Belief, ...]:
    """The sides whose evidence and confidence were taken as they are."""
    base, ours, theirs = map(told, _sides(beliefs, ("confidence",)))
    if ours == theirs:
        return beliefs[1:]
    return beliefs[2:] if ours == base else beliefs[1:2] if theirs == base else ()


def _end(belief: Belief | None) -> str:
    return belief.status if belief and belief.status in SETTLED else _LIVE


def _counted(belief: Belief, sure: Any) -> str:
    """Retiring it is left to consolidation, which knows how much each episode weighs."""
    found = status(*_observed(belief), 0.0 if sure is ABSENT else sure)
    return "disputed" if found == "retired" else found


# -- evidence ------------------------------------------------------------------------------------


def _sides(beliefs: Beliefs, names: tuple[str, ...]) -> Sides:
    """The evidence of each version, with some of its numbers."""
    found = []
    for one in beliefs:
        document = one.document() if one else {}
        found.append({n: document[n] for n in (*_EVIDENCE, *names) if n in document})
    return Sides(*found)


def _observed(belief: Belief, known: frozenset[str] = frozenset()) -> tuple[float, float]:
    """The observations for and against a belief that nobody had made before."""
    for_, against = set(belief.evidence.for_) - known, set(belief.evidence.against) - known
    sources = set() if isinstance(belief, Fact) else set(belief.source_episodes) - known
    return len(for_ - against) + UNSURE * len(sources - for_ - against), len(against)
