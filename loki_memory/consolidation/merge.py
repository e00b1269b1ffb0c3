"""Merge: beliefs that say the same in almost the same words become one.

Only among beliefs of one kind, scope and category with the same marks (values, versions, negation,
directions, names of code), whatever their likeness. The one that stays is untouched; the others
keep their text and their evidence, are superseded, and say by which and why.

Which one stays is decided anew each time, from all that say the same, those included that a merge
superseded before: evidence from another branch may make another one the better confirmed, and two
branches may each have chosen the other's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from loki_memory.consolidation.clustering import clusters, same
from loki_memory.consolidation.features import statement_features
from loki_memory.consolidation.provenance import (
    DEAD,
    LATER,
    SAME,
    differs,
    extra,
    given_back,
    is_refuted,
    is_touched,
    replaced_because,
    standing,
)
from loki_memory.consolidation.similarity import (
    covers,
    differ,
    grams,
    jaccard,
    sameness,
)
from loki_memory.consolidation.snapshot import BeliefChange, PhaseChanges, Snapshot, Touched
from loki_memory.models import Belief, Fact, Pattern, parse
from loki_memory.models.base import ORIGINS
from loki_memory.models.confidence import confidence

Prose = Pattern | Fact  # anti-patterns are merged by their key, which is their id
_OURS = frozenset({SAME, LATER})
_FEW = 300  # beliefs that are compared with each other sooner than scikit-learn is loaded
_SUPPOSED = 0.80  # how sure somebody is taken to be who told a belief and did not say


def merge(snapshot: Snapshot, touched: Touched | None = None) -> PhaseChanges:
    """Supersede near-duplicates; with `touched`, those of beliefs that rest on these episodes."""
    put: list[Belief] = []
    steps: list[BeliefChange] = []
    for group in _duplicates(snapshot, touched):
        kept = min(group, key=_rank)
        for old in group:
            new = _placed(old, kept)
            if differs(new, snapshot.records):
                put.append(new)
                steps.append(_step(new, kept))
    return PhaseChanges(put=tuple(put), steps=tuple(steps))


Shelf = tuple[str, str, str, tuple[str | None, ...], bool, tuple[tuple[str, ...], ...]]


def _duplicates(snapshot: Snapshot, touched: Touched | None) -> Iterator[list[Prose]]:
    """Beliefs that say the same; alone, one that was superseded by a twin that it no longer has."""
    shelves: dict[Shelf, list[Prose]] = defaultdict(list)
    prose: list[Prose] = [*snapshot.of(Pattern), *snapshot.of(Fact)]
    for belief in prose:
        if belief.id not in snapshot.archived and _is_open(belief):
            shelves[_shelf(belief)].append(belief)
    for beliefs in shelves.values():
        if any(is_touched(known_belief, touched) for known_belief in beliefs):
            yield from _same(beliefs, snapshot.thresholds.merge)


def repeated_statements(
    beliefs: Iterable[Prose], threshold: float
) -> Iterator[tuple[Prose, Prose]]:
    """Beliefs that say nothing that another does not say, each with that other one.

    Unlike a merge, it does not matter when and in which category they were stated.
    """
    shelves: dict[tuple[object, ...], list[Prose]] = defaultdict(list)
    for belief in beliefs:
        said = statement_features(belief)
        slot = (belief.subject, belief.attribute) if isinstance(belief, Fact) else ()
        shelves[belief.kind, slot, said.is_negated, said.marks].append(belief)
    for shelf in shelves.values():
        for group in _near(shelf, threshold):
            yield from _covered(group, threshold)


def _near(shelf: list[Prose], threshold: float) -> list[list[Prose]]:
    """The groups within which beliefs are compared one by one: a small shelf is one group."""
    if len(shelf) <= _FEW:
        return [shelf]
    found = clusters([belief.value() for belief in shelf], threshold, same)
    return [[shelf[at] for at in places] for places in found]


def _covered(group: Iterable[Prose], threshold: float) -> Iterator[tuple[Prose, Prose]]:
    kept: list[Prose] = []
    for belief in sorted(group, key=lambda entry: (-_said_words(entry), _rank(entry))):
        text = belief.value()
        alike = (other for other in kept if jaccard(grams(other.value()), grams(text)) >= threshold)
        holder = next((other for other in alike if _says_all(other.value(), text)), None)
        if holder is None:
            kept.append(belief)
        else:
            yield belief, holder


def _says_all(text: str, other: str) -> bool:
    return text == other or (covers(text, other) and not differ(text, other))


def _said_words(belief: Prose) -> int:
    return len(statement_features(belief).words)


def _same(beliefs: Sequence[Prose], threshold: float) -> Iterator[list[Prose]]:
    found = _groups([belief.value() for belief in beliefs], threshold)
    for group in ([beliefs[at] for at in places] for places in found):
        if len(group) > 1 or SAME in replaced_because(group[0]):
            yield group


def _groups(texts: Sequence[str], threshold: float) -> list[list[int]]:
    """The places of texts that say the same; of two that is seen without clustering."""
    if len(texts) != 2:  # noqa: PLR2004
        return clusters(texts, threshold, same)
    is_same = texts[0] == texts[1] or sameness(*texts) >= threshold
    return [[0, 1]] if is_same else [[0], [1]]


def _is_open(belief: Prose) -> bool:
    """Check whether it speaks, or was superseded by nothing but what is decided here anew.

    What evidence retired is still what others were found to say: else they would speak for it.
    A topic, which says what others say, has its key, as errors do.
    """
    if "topic" in (extra(belief, "key") or ()):
        return False
    if belief.status not in DEAD or is_refuted(belief):
        return True
    reasons = replaced_because(belief)
    return belief.status == "superseded" and bool(reasons) and reasons <= _OURS


def _shelf(belief: Prose) -> Shelf:
    """The place where twins are compared: facts of other sessions or moments differ."""
    placed: tuple[str | None, ...] = ()
    if isinstance(belief, Fact):
        moments = (belief.at, belief.valid_from)
        placed = (belief.session, *moments, belief.subject, belief.attribute)
    said = statement_features(belief)
    place = (belief.kind, belief.scope, belief.category or "", placed)
    return (*place, said.is_negated, said.marks)


def _rank(belief: Prose) -> tuple[bool, int, float, int, str]:
    """Pinned and trusted first, then the better confirmed, then the smaller id."""
    evidence = len(belief.rests_on())
    return (not belief.pinned, _trust(belief), -_sure(belief), -evidence, belief.id)


def _sure(belief: Prose) -> float:
    """The confidence of a belief by itself, without the evidence of its twins."""
    if extra(belief, "key"):
        return confidence(len(belief.evidence.for_), len(belief.evidence.against))
    is_weighed = belief.confidence == extra(belief, "weighed")
    stated = extra(belief, "asserted") if is_weighed else belief.confidence
    return _SUPPOSED if stated is None else float(stated)


def _trust(belief: Belief) -> int:
    return ORIGINS.index(belief.origin or "agent")


def _placed(belief: Prose, kept: Prose) -> Belief:
    """The belief as it stands beside the one that is kept."""
    if belief.id == kept.id or belief.pinned or _trust(belief) < _trust(kept):
        is_merged = SAME in replaced_because(belief)
        return parse(type(belief), given_back(belief, {SAME})) if is_merged else belief
    free = given_back(belief, {SAME})
    link = {"to": kept.id, "relation": "superseded_by", "why": SAME, **standing(belief, {SAME})}
    return belief.changed(status="superseded", links=[*free.get("links", ()), link])


def _step(new: Belief, kept: Prose) -> BeliefChange:
    evidence = tuple(new.episodes_for())
    if new.status == "superseded":
        return BeliefChange("merged", new.id, new.title(), evidence, f"says the same as {kept.id}")
    return BeliefChange("restored", new.id, new.title(), evidence, "no better twin is left")
