"""How a memory stands: its status, its confidence, and the episodes for and against it."""

from __future__ import annotations

from typing import NamedTuple

from loki_memory.models import Belief, Learning, Memory, Skill

DEAD = frozenset({"superseded", "rejected", "retired"})


class Evidence(NamedTuple):
    """The episodes that speak for a memory, and against it."""

    support: frozenset[str]
    against: frozenset[str]

    def since(self, old: Evidence) -> Evidence:
        """What came in since."""
        return Evidence(self.support - old.support, self.against - old.against)

    def ids(self) -> tuple[str, ...]:
        return tuple(sorted(self.support | self.against))


def evidence_of(record: Memory) -> Evidence:
    """The episodes that a belief, a learning or a learned skill rests on."""
    if isinstance(record, Belief):
        return Evidence(frozenset(record.episodes_for()), frozenset(record.episodes_against()))
    if isinstance(record, (Learning, Skill)):
        rests_on = (edge.target for edge in record.edges() if edge.relation == "derived_from")
        return Evidence(frozenset(rests_on), frozenset())
    return Evidence(frozenset(), frozenset())


def status(record: Memory) -> str:
    if isinstance(record, Skill):
        return record.metadata.get("loki-status", "active")
    return str(getattr(record, "status", None) or "active")


def confidence(record: Memory) -> float | None:
    if not isinstance(record, Skill):
        stated: float | None = getattr(record, "confidence", None)
        return stated
    try:
        return float(record.metadata.get("loki-confidence", ""))
    except ValueError:
        return None


def contradicted(record: Memory) -> set[str]:
    """The memories that a record says it contradicts."""
    return {edge.target for edge in record.edges() if edge.relation == "contradicts"}


def reviews(record: Memory) -> list[dict[str, str]]:
    """Who accepted a memory, and when. In a skill they stand as text: its metadata is nothing else.

    >>> from loki_memory.models import Fact
    >>> reviews(Fact(statement="A", reviewed=[{"by": "Ana", "at": "2026-01-20"}]))
    [{'by': 'Ana', 'at': '2026-01-20'}]
    """
    if isinstance(record, Skill):
        entries = record.metadata.get("loki-reviewed", "").split("; ")
        parts = (entry.rsplit(" ", 2) for entry in entries)
        return [dict(zip(("by", "at", "origin"), part, strict=False)) for part in parts if part[0]]
    listed = (record.model_extra or {}).get("reviewed")
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
