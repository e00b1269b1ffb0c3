"""Forget by age: what is old is summarised, what is older and rests under nothing is archived.

An episode that is summarised goes to the archive first as it was written: git may not have it, and
nothing that somebody wrote is lost. Ages are whole days between the evidence and the day of the
snapshot; use plays no part in it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from loki_memory.consolidation.actions import summary
from loki_memory.consolidation.features import EpisodeFeatures
from loki_memory.consolidation.provenance import (
    SAME,
    day_before,
    days_between,
    ids_in,
    is_live,
    replaced_because,
)
from loki_memory.consolidation.snapshot import BeliefChange, PhaseChanges, Record, Snapshot, Touched
from loki_memory.models import Belief, Episode, Link, Skill, parse

_IMPORTANT = 0.8  # from here on a memory is kept whatever its age


def forget(snapshot: Snapshot, touched: Touched | None = None) -> PhaseChanges:  # noqa: ARG001 - age comes to all
    """Summaries of old episodes, and what may leave the memory that is searched."""
    gone = {*_old_episodes(snapshot), *_replaced(snapshot)}
    put = {entry.id: entry for entry in _summaries(snapshot) if entry.id not in gone}
    orphans = {belief.id: belief for belief in _adopted(snapshot, gone)}
    steps = [
        BeliefChange("archived", old_episode, snapshot.records[old_episode].title())
        for old_episode in sorted(gone)
    ]
    steps += [
        BeliefChange("summarised", entry.id, entry.title(), (entry.id,)) for entry in put.values()
    ]
    return PhaseChanges(tuple({**put, **orphans}.values()), tuple(sorted(gone)), tuple(steps))


def _age(snapshot: Snapshot, moment: str) -> int:
    return days_between(moment, snapshot.day)


def _older(snapshot: Snapshot, days: int) -> list[EpisodeFeatures]:
    """The episodes that may be thinned, from more than so many days ago."""
    day = day_before(snapshot.day, days)
    end = bisect_left(snapshot.episodes, day, key=lambda episode: episode.timestamp)
    left_alone = {*snapshot.archived, *snapshot.tracked}
    return [episode for episode in snapshot.episodes[:end] if episode.id not in left_alone]


def _summaries(snapshot: Snapshot) -> Iterator[Episode]:
    due = summarised(_older(snapshot, snapshot.thresholds.summarise_days))
    shorter = (summary(snapshot.whole[episode.id]) for episode in due)
    yield from (entry for entry in shorter if entry)


def summarised(old: Iterable[EpisodeFeatures]) -> Iterator[EpisodeFeatures]:
    """Yield those of old episodes of which only a summary is kept; it is made from the whole."""
    return (episode for episode in old if not episode.pinned and not episode.is_terse)


def _old_episodes(snapshot: Snapshot) -> set[str]:
    """Old, not important, and nothing that lives rests on them; an old one holds nobody else."""
    old = _older(snapshot, snapshot.thresholds.archive_days)
    due = {
        episode.id
        for episode in old
        if not episode.pinned and (episode.importance or 0) < _IMPORTANT
    }
    if due:
        names = {episode.id for episode in old}
        others = (record for name, record in snapshot.records.items() if name not in names)
        due.difference_update(chain.from_iterable(map(_names, filter(is_live, others))))
    return due


def _names(record: Record) -> Sequence[str]:
    """The ids that a record names; what a learned skill was compared with counts too."""
    if isinstance(record, EpisodeFeatures):
        return record.names
    if isinstance(record, Belief):
        return _named_by(record)
    if isinstance(record, Link):
        return (record.from_, record.to)
    named = [edge.target for edge in record.edges()]
    return [*named, *ids_in(record, "loki-compared")] if isinstance(record, Skill) else named


def _named_by(belief: Belief) -> list[str]:
    """The targets of a belief's edges, without beliefs' arrows and without files."""
    rests = (*belief.rests_on(), *belief.episodes_against())
    return [*rests, *(link.to for link in belief.links), belief.parent or ""]


def _replaced(snapshot: Snapshot) -> Iterator[str]:
    """Beliefs that were superseded long ago by one that is there.

    Where the two say the same, that one rests on the evidence of both, which stays.
    """
    old = [
        belief
        for belief in snapshot.of(Belief)
        if belief.status == "superseded"
        and not belief.pinned
        and SAME not in replaced_because(belief)
    ]
    limit = snapshot.thresholds.superseded_days
    due = [belief for belief in old if _age(snapshot, belief.invalid_at or belief.when()) > limit]
    if not due:
        return
    inherited = _inherited(snapshot)
    yield from (belief.id for belief in due if belief.id in inherited)


def _inherited(snapshot: Snapshot) -> set[str]:
    """The ids of beliefs in whose place a live one stands, be it as the heir of an heir."""
    forerunners: dict[str, set[str]] = defaultdict(set)
    for belief in snapshot.of(Belief):
        for link in belief.links:
            if link.relation == "superseded_by":
                forerunners[link.to].add(belief.id)
            elif link.relation == "supersedes":
                forerunners[belief.id].add(link.to)
    found: set[str] = set()
    waiting = [forerunner for forerunner in sorted(forerunners) if _lives(forerunner, snapshot)]
    while waiting:
        more = forerunners[waiting.pop()] - found
        found |= more
        waiting += sorted(more)
    return found


def _lives(name: str, snapshot: Snapshot) -> bool:
    heir = snapshot.records.get(name)
    return heir is not None and is_live(heir)


def _adopted(snapshot: Snapshot, gone: set[str]) -> Iterator[Belief]:
    """Children of what goes, under the nearest ancestor that stays."""
    if not gone:
        return
    for child in snapshot.of(Belief):
        if child.id not in gone and child.parent in gone:
            rest = {name: value for name, value in child.document().items() if name != "parent"}
            parent = _ancestor(child, snapshot, gone)
            yield parse(type(child), {**rest, **({"parent": parent} if parent else {})})


def _ancestor(child: Belief, snapshot: Snapshot, gone: set[str]) -> str | None:
    parent, seen = child.parent, {child.id}
    while parent in gone and parent not in seen:
        seen.add(parent)
        parent = getattr(snapshot.records.get(parent), "parent", None)
    return parent if parent not in seen else None
