"""The phases of consolidation, in their order: episodes become beliefs.

    antipatterns   errors, by their class, with what got over them
    facts          what sessions say in so many words
    routine        what sessions run before they commit
    patterns       what episodes that are alike have taught
    merge          what says the same becomes one, guarded
    weigh          evidence -> confidence and status; that of twins counts for the one that stays
    reconcile      facts that cannot both hold get a disposition
    reflect        what several beliefs have in common: errors of one form, topics
    proceduralise  what successes have in common -> skills, which name the errors found common
    relate         links between what was met together
    forget         by age: summaries, then the archive

Each phase is a pure function of the snapshot that the ones before it left. Run again, none has
anything to do, and a run that changes nothing tells nothing; in any order of episodes, the same
bytes come out. After an episode was recorded only three of them run, for what it met. `publish.py`
decides which files the records of a plan are written to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from loki_memory.consolidation.lint import lint
from loki_memory.consolidation.provenance import differs
from loki_memory.consolidation.snapshot import BeliefChange, PhaseChanges, Snapshot, Touched
from loki_memory.models import Belief, Episode, Link, Memory, Skill, parse
from loki_memory.models.rejected import value_id, without_rejected

_WEIGHED = frozenset({"strengthened", "weakened"})

Phase = Callable[[Snapshot, Touched | None], PhaseChanges]
Phases = Sequence[Phase]


def all_phases() -> Phases:
    """All phases in their order; they are imported when a run asks for them."""
    from loki_memory.consolidation.archive import forget
    from loki_memory.consolidation.links import relate
    from loki_memory.consolidation.merge import merge
    from loki_memory.consolidation.patterns import patterns
    from loki_memory.consolidation.reconcile import reconcile
    from loki_memory.consolidation.reflect import reflect
    from loki_memory.consolidation.routines import routine
    from loki_memory.consolidation.skills import proceduralise

    antipatterns, facts, weigh = first_phases()
    learned = (antipatterns, facts, routine, patterns)
    return (*learned, merge, weigh, reconcile, reflect, proceduralise, relate, forget)


def first_phases() -> Phases:
    """The phases that also run when an episode is recorded: they load little."""
    from loki_memory.consolidation.anti_patterns import antipatterns
    from loki_memory.consolidation.statements import facts
    from loki_memory.consolidation.weigh import weigh

    return (antipatterns, facts, weigh)


class Plan(NamedTuple):
    """The plan of a run: whole records to write, ids to archive, and the story of it."""

    put: tuple[Memory, ...]
    archive: tuple[str, ...]
    whole: tuple[str, ...]  # of what is put: episodes that go to the archive as they were first
    steps: tuple[BeliefChange, ...]
    lost: tuple[str, ...]  # beliefs that would vanish without a record that supersedes them
    day: str


def consolidate(
    snapshot: Snapshot,
    phases: Phases,
    touched: Touched | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Plan:
    """Run the phases. `touched` is what is new; None means everything."""
    now = snapshot
    made: dict[str, Memory] = {}
    steps: list[BeliefChange] = []
    for number, phase in enumerate(phases):
        if progress:
            progress(number, len(phases))
        changes = _sound(phase(now, touched), now)
        steps += changes.steps
        if changes:
            made.update({memory.id: memory for memory in changes.put})
            touched = None if touched is None else touched.union(_reached(changes, now))
            now = now.with_changes(changes)
    return seal(snapshot, made, now.records.keys(), steps)


def _reached(changes: PhaseChanges, before: Snapshot) -> Iterator[str]:
    """Yield what was changed, and what it had been merged into: that may have lost its evidence."""
    for memory in changes.put:
        yield memory.id
        old = before.records.get(memory.id)
        for link in old.links if isinstance(old, Belief) else ():
            if link.relation == "superseded_by":
                yield link.to


def _sound(changes: PhaseChanges, snapshot: Snapshot) -> PhaseChanges:
    """Without records that say nothing specific, or that were taken out before."""
    changes = _unrejected(changes, snapshot)
    refused = {memory.id for memory in changes.put if _is_refused(memory, snapshot)}
    if not refused:
        return changes
    put = tuple(memory for memory in changes.put if memory.id not in refused)
    told = tuple(step for step in changes.steps if step.id not in refused)
    return changes._replace(put=put, steps=told)


def _unrejected(changes: PhaseChanges, snapshot: Snapshot) -> PhaseChanges:
    """Without records that say what a person rejected, and without remedies that do."""
    if not snapshot.rejected:
        return changes
    put: list[Memory] = []
    for memory in changes.put:
        document = memory.document()
        if getattr(memory, "status", "") == "rejected" or isinstance(memory, Episode):
            put.append(memory)
            continue
        kept = without_rejected(document, lambda text: value_id(text) in snapshot.rejected)
        if kept is not None:
            put.append(memory if kept is document else parse(type(memory), kept))
    return changes._replace(put=tuple(put))


def _is_refused(record: Memory, snapshot: Snapshot) -> bool:
    """Leave out what lies in the archive, unless it went there because it had faded or
    was no longer taught: links come back as they were, skills with new evidence.
    """
    archived = snapshot.archived.get(record.id)
    if archived is None:
        return record.id not in snapshot.records and bool(lint(record))
    if isinstance(record, Skill):
        return not differs(record, snapshot.archived)
    return not isinstance(record, Link)


def seal(
    before: Snapshot,
    made: Mapping[str, Memory],
    stay: Collection[str],
    steps: Sequence[BeliefChange],
) -> Plan:
    """Return what changed, and whether a belief would be lost by it.

    What goes to the archive goes as the phases left it: it says what it was superseded by.
    """
    archive = tuple(name for name in before.records if name not in stay)
    put = tuple(
        entry
        for name, entry in sorted(made.items())
        if entry != before.records.get(name) and (name in stay or name in before.records)
    )
    whole = tuple(
        entry.id for entry in put if isinstance(entry, Episode) and entry.id in before.records
    )
    told = {step.id for step in steps}
    lost = tuple(
        name for name in archive if isinstance(before.records[name], Belief) and name not in told
    )
    changed = {*archive, *(entry.id for entry in put)}
    known = {*before.records, *stay}
    news = (step for step in steps if step.id in changed or step.id not in before.records)
    story = tuple(_once(news, known)) if changed else ()
    return Plan(put, archive, whole, story, lost, before.day)


def _once(steps: Iterable[BeliefChange], known: Collection[str]) -> Iterator[BeliefChange]:
    """Without the weighing of what was just learned, which is one piece of news, and without the
    end of what never was: learned and merged in one run.
    """
    learned: set[str] = set()
    for step in steps:
        if step.what == "learned":
            learned.add(step.id)
        is_repeated = step.what in _WEIGHED and step.id in learned
        if not is_repeated and (step.what != "merged" or step.id in known):
            yield step
