"""Forget facts on request: the old, the irrelevant, or the most dispensable of too many.

All three limits are off by default. What goes is archived, never deleted, and consolidation does
not make it again. Pinned and important facts stay, and so does one that others stand under.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.consolidation.provenance import days_between
from loki_memory.editing.removal import archive
from loki_memory.models import Fact

if TYPE_CHECKING:
    from loki_memory.config import Config
    from loki_memory.homes import OpenWorkspace

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
