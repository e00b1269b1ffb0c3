"""Merge: beliefs that say the same in almost the same words become one.

Only among beliefs of one kind, scope and category with the same marks (values, versions, negation,
directions, names of code), whatever their likeness. The one that stays is untouched; the others
keep their text and their evidence, are superseded, and say by which.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from loki_memory.consolidation.cluster import groups, sameness
from loki_memory.consolidation.likeness import Marks, marks
from loki_memory.consolidation.snapshot import Changes, Snapshot, Step
from loki_memory.models import Fact, Memory, Pattern

Prose = Pattern | Fact  # anti-patterns are merged by their key, which is their id
_LIVE = {"candidate", "active", "disputed"}
_TRUST = {"owner": 0, "agent": 1, None: 1, "import": 2, "external": 3}
_REPLACED_BY = "superseded_by"


def merge(snapshot: Snapshot, touched: frozenset[str] | None = None) -> Changes:
    """Supersede near-duplicates; with `touched`, those of beliefs that rest on these episodes."""
    put: list[Memory] = []
    steps: list[Step] = []
    for group in _duplicates(snapshot, touched):
        for record, step in _merged(group):
            put.append(record)
            steps.append(step)
    return Changes(put=tuple(put), steps=tuple(steps))


Shelf = tuple[str, str, str, tuple[str, ...], Marks]


def _duplicates(snapshot: Snapshot, touched: frozenset[str] | None) -> Iterator[list[Prose]]:
    """Beliefs that say the same, those included that were superseded by one of them."""
    shelves: dict[Shelf, list[Prose]] = defaultdict(list)
    prose: list[Prose] = [*snapshot.of(Pattern), *snapshot.of(Fact)]
    for belief in prose:
        if belief.status in _LIVE or _replacements(belief):
            shelves[_shelf(belief)].append(belief)
    for beliefs in shelves.values():
        if len(beliefs) > 1 and (touched is None or any(_rests_on(b, touched) for b in beliefs)):
            same = groups([b.value() for b in beliefs], snapshot.thresholds.merge, sameness)
            yield from ([beliefs[at] for at in group] for group in same if len(group) > 1)


def _shelf(belief: Prose) -> Shelf:
    """Where twins stand together. A fact of a session or a moment is another one elsewhere."""
    placed: tuple[str, ...] = ()
    if isinstance(belief, Fact):
        placed = (
            belief.session or "",
            belief.at or "",
            belief.subject or "",
            belief.attribute or "",
        )
    return (belief.kind, belief.scope, belief.category or "", placed, marks(belief.value()))


def _rests_on(belief: Prose, touched: frozenset[str]) -> bool:
    return not touched.isdisjoint((*belief.episodes_for(), *belief.episodes_against()))


def _replacements(belief: Prose) -> set[str]:
    return {link.to for link in belief.links if link.relation == _REPLACED_BY}


def _merged(group: list[Prose]) -> Iterator[tuple[Memory, Step]]:
    """What changes in a group of equals so that exactly one of them is live."""
    ids = {belief.id for belief in group}
    live = [belief for belief in group if belief.status in _LIVE]
    if not live:
        # Two branches can each have chosen the other's: one comes back, or both would be lost.
        if all(_replacements(belief) & ids for belief in group):
            yield _revived(min(group, key=_rank), ids)
        return
    kept = min(live, key=_rank)
    for belief in live:
        if belief.id != kept.id and not belief.pinned and _trust(belief) >= _trust(kept):
            yield _superseded(belief, kept)


def _rank(belief: Prose) -> tuple[bool, int, float, int, str]:
    """Pinned and trusted first, then the better confirmed, then the smaller id."""
    evidence = len(belief.episodes_for())
    return (not belief.pinned, _trust(belief), -(belief.confidence or 0), -evidence, belief.id)


def _trust(belief: Prose) -> int:
    return _TRUST[belief.origin]


def _superseded(belief: Prose, kept: Prose) -> tuple[Memory, Step]:
    links = [*(link.model_dump(mode="json", exclude_unset=True) for link in belief.links)]
    links.append({"to": kept.id, "relation": _REPLACED_BY})
    why = f"says the same as {kept.id}"
    return (
        belief.changed(status="superseded", links=links),
        Step("merged", belief.id, belief.title(), tuple(belief.episodes_for()), why),
    )


def _revived(belief: Prose, ids: set[str]) -> tuple[Memory, Step]:
    links = [
        link.model_dump(mode="json", exclude_unset=True)
        for link in belief.links
        if link.relation != _REPLACED_BY or link.to not in ids
    ]
    why = "every one of these was superseded by another"
    return (
        belief.changed(status="candidate", links=links),
        Step("restored", belief.id, belief.title(), tuple(belief.episodes_for()), why),
    )
