"""Retention on request: what `gc` thins, takes out of git, or archives.

Consolidation thins the episodes of this machine as they grow old. Those that git tracks it leaves
alone, because a feature branch that learns something should change no old files: `retain` thins
them. `untrack_sessions` moves captured sessions to the local zone, and completes the beliefs that
rest on them, so that other clones can still weigh these. `prune` archives facts beyond limits that
are all off by default; pinned and important facts stay, and so does one that others stand under.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.consolidation import phases
from loki_memory.consolidation.archive import forget
from loki_memory.consolidation.features import EpisodeFeatures, episode_features
from loki_memory.consolidation.input import read_input
from loki_memory.consolidation.provenance import days_between
from loki_memory.consolidation.publish import Placed, RecordWrite, mark
from loki_memory.consolidation.run import apply, follow
from loki_memory.editing.removal import archive
from loki_memory.errors import InvalidRecord
from loki_memory.files.codec import decode
from loki_memory.files.layout import ARCHIVE, PRIVATE, archived_path, place
from loki_memory.files.scan import archived
from loki_memory.index import queries
from loki_memory.models import Belief, Episode, Fact

if TYPE_CHECKING:
    from loki_memory.config import Config
    from loki_memory.consolidation.input import RunInput
    from loki_memory.files.store import Change
    from loki_memory.homes import OpenWorkspace


class Retained(NamedTuple):
    """The tracked episodes that were summarised, and those that went to the archive."""

    summarised: list[str]  # ids
    archived: list[str]  # ids


def retain(workspace: OpenWorkspace, *, day: str = "", dry_run: bool = False) -> Retained:
    """Summarise and archive old tracked episodes, as of a day or of the newest episode."""
    workspace.home.before_write()
    workspace.home.ensure("edits")
    found = read_input(workspace, day, leave_tracked=False)
    plan = phases.consolidate(found.snapshot, [forget])
    placed = _placed(plan, found)
    if placed.ids and not dry_run:
        changed = apply(workspace, plan, placed)
        workspace.home.wrote()
        follow(workspace, changed)
        workspace.home.flush()
    summarised = sorted(write.record.id for write in placed.writes)
    return Retained(summarised, sorted(placed.ids.difference(summarised)))


def _placed(plan: phases.Plan, found: RunInput) -> Placed:
    """The files of tracked episodes that a plan changes."""
    before, files = found.snapshot.records, found.files.shared

    def is_tracked(name: str) -> bool:
        return name in files and isinstance(before.get(name), EpisodeFeatures)

    gone = [name for name in plan.archive if is_tracked(name)]
    writes = [
        RecordWrite(files[record.id][0], record, files[record.id][1])
        for record in plan.put
        if is_tracked(record.id) and record.id not in gone
    ]
    ids = frozenset((*gone, *(write.record.id for write in writes)))
    return Placed(writes, [files[name][0] for name in gone], ids, [], frozenset())


# -- Captured sessions that git tracks --


class Untracked(NamedTuple):
    """The episodes that left git, and the beliefs that were completed."""

    episodes: list[str]  # ids
    completed: list[str]  # ids


def untrack_sessions(workspace: OpenWorkspace, *, dry_run: bool) -> Untracked:
    """Move every captured episode that git may track to the local zone."""
    workspace.home.before_write()
    workspace.home.ensure("edits")
    with workspace.store.change() as change:
        moved = {episode.id: episode for episode in _moved(workspace, change, dry_run=dry_run)}
        completed = [*_completed(workspace, change, moved, dry_run=dry_run)]
    return Untracked(sorted(moved), sorted(completed))


def _moved(workspace: OpenWorkspace, change: Change, *, dry_run: bool) -> Iterator[Episode]:
    shared = [path for _, path in workspace.index.places("episode")]
    shared += list(archived(workspace.layout))
    for path in shared:
        if path.startswith(PRIVATE):
            continue
        original = path.removeprefix(ARCHIVE)
        stored = change.read(path)
        with suppress(InvalidRecord):
            record = decode(original, stored.data) if stored else None
            if isinstance(record, Episode) and record.captured:
                if not dry_run:
                    private = record.changed(scope="local")
                    target = place(private)
                    change.put(private, target if path == original else archived_path(target))
                    change.remove(path)
                yield record


def _completed(
    workspace: OpenWorkspace, change: Change, moved: dict[str, Episode], *, dry_run: bool
) -> Iterator[str]:
    """Say in each tracked belief what others must know of episodes that they will not have."""
    kinds = ("pattern", "anti-pattern", "fact")
    for name, path, _, _ in queries.records(workspace.index, kinds):
        belief = None if path.startswith(PRIVATE) else change.record(path)
        if not isinstance(belief, Belief):
            continue
        gone = {*belief.rests_on(), *belief.episodes_against()} & moved.keys()
        if gone:
            marks = {entry: mark(episode_features(moved[entry])) for entry in sorted(gone)}
            evidence = belief.evidence.model_dump(mode="json", exclude_unset=True)
            known = evidence.get("episodes", {})
            if not dry_run:
                both = dict(sorted({**known, **marks}.items()))
                change.put(belief.changed(evidence={**evidence, "episodes": both}), path)
            yield name


# -- Facts beyond a limit --

_IMPORTANT = 0.8  # from here on a fact is kept, as an episode is
_USUAL = 0.5  # the importance of a fact that does not say
_HALF_LIFE_DAYS = 90  # decision: a season, as for superseded beliefs


class Limits(NamedTuple):
    """Limits beyond which facts go; 0 is off."""

    days: int = 0  # neither said nor used for longer
    relevance: int = 0  # below, in hundredths
    facts: int = 0  # of more than so many, the least relevant

    @classmethod
    def of(cls, config: Config) -> Limits:
        return cls(
            config.get("prune.days"), config.get("prune.relevance"), config.get("prune.facts")
        )


class Aged(NamedTuple):
    """A fact that may go, how old it is, and how relevant, in hundredths."""

    fact: Fact
    age: int
    relevance: float


class Pruned(NamedTuple):
    """A fact that was, or would be, archived, and why."""

    id: str
    title: str
    why: str


def prune(workspace: OpenWorkspace, *, dry_run: bool = False) -> list[Pruned]:
    """Archive the facts that the settings say are dispensable."""
    limits = Limits.of(workspace.config)
    if not any(limits):
        return []
    found = [*dispensable(_aged(workspace), limits)]
    if found and not dry_run:
        places = [workspace.home.record_path(gone.id) for gone in found]
        with workspace.store.change() as change:
            for path in filter(None, places):
                archive(change, path)
        workspace.home.wrote()
    return found


def dispensable(facts: Iterable[Aged], limits: Limits) -> Iterator[Pruned]:
    """List the facts that are over a limit, the least relevant first."""
    by_relevance = sorted(facts, key=lambda aged: (aged.relevance, -aged.age, aged.fact.id))
    spare = len(by_relevance) - limits.facts if limits.facts else 0
    for number, (fact, age, relevance) in enumerate(by_relevance):
        if limits.days and age > limits.days:
            yield Pruned(fact.id, fact.title(), f"neither said nor used for {age} days")
        elif relevance < limits.relevance:
            yield Pruned(fact.id, fact.title(), f"has a relevance of {relevance:.0f} of 100")
        elif number < spare:
            yield Pruned(fact.id, fact.title(), f"is not among the {limits.facts} most relevant")


def relevance_of(fact: Fact, age: int) -> float:
    """Importance in hundredths, halved for every season without a use."""
    importance = _USUAL if fact.importance is None else fact.importance
    return float(round(100 * importance * 0.5 ** (age / _HALF_LIFE_DAYS), 2))


def _aged(workspace: OpenWorkspace) -> Iterator[Aged]:
    workspace.home.before_write()
    workspace.home.ensure("edits")
    facts = [fact for fact in workspace.homes.memories(kind="fact") if isinstance(fact, Fact)]
    parents = {fact.parent for fact in facts}
    today = workspace.now()[:10]
    for fact in facts:
        is_kept = fact.pinned or (fact.importance or 0) >= _IMPORTANT or fact.scope == "user"
        last = max(fact.when(), workspace.home.journal.uses(fact.id).last)[:10]
        if last and not is_kept and fact.id not in parents:
            age = max(0, days_between(last, today))
            yield Aged(fact, age, relevance_of(fact, age))
