"""The pipeline: phase after phase over one snapshot, then one set of changes.

    digest         what waits becomes episodes (what is an episode already needs nothing)
    key, induce    errors by their signature become anti-patterns and learnings; episodes that are
                   alike, patterns
    weigh          evidence -> confidence and status
    merge          what says the same becomes one, guarded
    reconcile      facts that cannot both hold get a disposition
    proceduralise  what successes have in common -> skills
    reflect        what several beliefs have in common; links between them
    forget         by age: summaries, then the archive
    seal           nothing may be lost

Each is a pure function of the snapshot that the ones before it left. Run again, none has anything
to do; in any order of episodes, the same bytes come out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from loki_memory.consolidation.antipatterns import antipatterns
from loki_memory.consolidation.forget import forget
from loki_memory.consolidation.lint import lint
from loki_memory.consolidation.merge import merge
from loki_memory.consolidation.patterns import patterns
from loki_memory.consolidation.reconcile import reconcile
from loki_memory.consolidation.reflect import reflect
from loki_memory.consolidation.relate import relate
from loki_memory.consolidation.skills import proceduralise
from loki_memory.consolidation.snapshot import Changes, Memory, Snapshot, Step
from loki_memory.consolidation.weigh import weigh
from loki_memory.models import Belief

Phase = Callable[[Snapshot, frozenset[str] | None], Changes]

EARLY: tuple[tuple[str, Phase], ...] = (("induce", antipatterns), ("weigh", weigh))
ALL: tuple[tuple[str, Phase], ...] = (
    ("induce", antipatterns),
    ("induce", patterns),
    ("weigh", weigh),
    ("merge", merge),
    ("reconcile", reconcile),
    ("reflect", reflect),  # before skills: they name the errors that reflection finds common
    ("proceduralise", proceduralise),
    ("reflect", relate),
    ("forget", forget),
)


class Plan(NamedTuple):
    """What a run comes to: whole records to write, ids to archive, and the story of it."""

    put: tuple[Memory, ...]
    archive: tuple[str, ...]
    steps: tuple[Step, ...]
    lost: tuple[str, ...]  # beliefs that would vanish without a record that supersedes them
    day: str


def consolidate(
    snapshot: Snapshot,
    touched: frozenset[str] | None = None,
    phases: Sequence[tuple[str, Phase]] = ALL,
    progress: Callable[[int, int], None] | None = None,
) -> Plan:
    """Run the phases. `touched` names the episodes that are new; None means all."""
    now = snapshot
    steps: list[Step] = []
    for number, (_, phase) in enumerate(phases):
        if progress:
            progress(number, len(phases))
        changes = _sound(phase(now, touched), now)
        steps += changes.steps
        if changes:
            now = now.with_changes(changes)
    return seal(snapshot, now, tuple(steps))


def _sound(changes: Changes, snapshot: Snapshot) -> Changes:
    """Without records that say nothing specific, or that were archived before."""
    refused = {
        one.id
        for one in changes.put
        if one.id in snapshot.archived or (one.id not in snapshot.records and lint(one))
    }
    if not refused:
        return changes
    put = tuple(one for one in changes.put if one.id not in refused)
    told = tuple(step for step in changes.steps if step.id not in refused)
    return changes._replace(put=put, steps=told)


def seal(before: Snapshot, after: Snapshot, steps: tuple[Step, ...]) -> Plan:
    """What changed between two snapshots, and whether a belief would be lost by it."""
    put = tuple(one for name, one in after.records.items() if one != before.records.get(name))
    archive = tuple(name for name in before.records if name not in after.records)
    told = {step.id for step in steps}
    lost = tuple(
        name for name in archive if isinstance(before.records[name], Belief) and name not in told
    )
    return Plan(put, archive, steps, lost, before.day)
