"""Provenance: the trust, dates and certainty that derived memory takes over from its sources."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date
from functools import lru_cache
from math import exp, fsum, lgamma, log
from typing import Any

from loki_memory.consolidation.features import EpisodeFeatures
from loki_memory.consolidation.snapshot import Record, Touched
from loki_memory.models import Belief, LinkTo, Memory, Skill
from loki_memory.models.base import least_trusted_origin
from loki_memory.models.confidence import is_produced

DEAD = frozenset({"superseded", "rejected", "retired"})
# Why a link is there, as consolidation writes it. What it decided it may decide anew.
SAME = "says the same"
LATER = "a later value"
UNDECIDED = "no later value decides"
_OPTIONAL = ("status", "links")
_CITED = 1000  # episodes
_UNLIKELY = 0.60  # confidence below which a belief that is contradicted is disputed, or retired


def least_trusted(records: Iterable[Record]) -> str:
    """The origin of what is derived from records: at best an agent's, at worst their worst."""
    return str(least_trusted_origin(["agent", *(getattr(r, "origin", None) for r in records)]))


def is_live(record: Record) -> bool:
    """Check whether a record still speaks: it was neither replaced nor taken back.

    What happened in an episode did happen, whatever somebody calls its status.
    """
    if isinstance(record, EpisodeFeatures):
        return True
    status = record.status if isinstance(record, Belief) else extra(record, "status")
    return status not in DEAD


def why(link: LinkTo) -> str:
    """The reason that a link gives for itself; empty if it gives none."""
    return str((link.model_extra or {}).get("why", ""))


def replaced_because(belief: Belief) -> frozenset[str]:
    """The reasons for which a belief was superseded, as far as its links say."""
    return frozenset(why(link) for link in belief.links if link.relation == "superseded_by")


def standing(belief: Belief, reasons: Iterable[str]) -> dict[str, Any]:
    """Return what a belief counted as before a link for one of these reasons changed it, as `was`.

    Empty if it did not say: one that is given back must have the bytes that it had.
    """
    given = {"was": belief.status} if "status" in belief.document() else {}
    for link in belief.links:
        if why(link) in reasons and link.relation in {"superseded_by", "contradicts"}:
            known = link.model_extra or {}
            return {"was": known["was"]} if "was" in known else {}
    return given


def given_back(belief: Belief, reasons: Collection[str]) -> dict[str, Any]:
    """A belief without the links of these reasons, and as it counted before they were set."""
    document = {**belief.document(), "status": standing(belief, reasons).get("was")}
    document["links"] = [
        link.model_dump(mode="json", exclude_unset=True)
        for link in belief.links
        if why(link) not in reasons
    ]
    return {name: value for name, value in document.items() if value or name not in _OPTIONAL}


def extra(record: Memory, name: str) -> Any:
    """A field that the model does not know, or None."""
    return (record.model_extra or {}).get(name)


def days_between(earlier: str, later: str) -> int:
    """Whole days from one moment or date to another; 0 where either is not known."""
    if not earlier or not later:
        return 0
    return _number(later[:10]) - _number(earlier[:10])


def day_before(day: str, count: int) -> str:
    """The date so many days before another one, or the first; of an unknown one, none."""
    return date.fromordinal(max(1, _number(day[:10]) - count)).isoformat() if day else ""


@lru_cache(maxsize=4096)  # there are fewer days than records
def _number(day: str) -> int:
    return date.fromisoformat(day).toordinal()


def ids_in(skill: Skill, name: str) -> list[str]:
    """The ids that a skill's metadata lists under a name."""
    return skill.metadata.get(name, "").replace(",", " ").split()


def newest(names: Iterable[str]) -> list[str]:
    """As many episodes as a belief names, the newest: the ids that we give begin with their day.

    More would make its file one that nobody can read, and none of them would make it surer.
    """
    return sorted(set(names))[-_CITED:]


def oldest(names: Iterable[str]) -> list[str]:
    """As many, the oldest: what sums up other beliefs does not change with each that they cite."""
    return sorted(set(names))[:_CITED]


def is_refuted(belief: Belief) -> bool:
    """Check whether evidence retired it: what is no longer taught is retired as sure as it was."""
    is_unlikely = (belief.confidence or 1.0) < _UNLIKELY
    return belief.status == "retired" and is_produced(belief) and is_unlikely


def is_touched(belief: Belief, touched: Touched | None) -> bool:
    """Check whether a belief is new, or has evidence that is."""
    if touched is None or belief.id in touched:
        return True
    named = (belief.source_episodes, belief.evidence.for_, belief.evidence.against)
    return not all(map(touched.isdisjoint, named))


def differs(record: Memory, known: Mapping[str, Record]) -> bool:
    """Check whether writing the record would change what memory says."""
    old = known.get(record.id)
    return not isinstance(old, Memory) or old.document() != record.document()


def at_least(count: int, trials: int, chance: float) -> float:
    """The probability of so many successes or more, if each has only this chance."""
    if not 0 < chance < 1:
        return float(chance >= 1 or count <= 0)
    whole = lgamma(trials + 1)  # in logarithms: of a thousand trials the numbers overflow
    return fsum(
        exp(
            whole
            - lgamma(n + 1)
            - lgamma(trials - n + 1)
            + n * log(chance)
            + (trials - n) * log(1 - chance)
        )
        for n in range(count, trials + 1)
    )
