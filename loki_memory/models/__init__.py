"""What a memory is: records, ids, normal forms. No disk, no clock, no SQL."""

from __future__ import annotations

from loki_memory.models.base import (
    RELATIONS,
    Citation,
    Edge,
    Evidence,
    LinkTo,
    Memory,
    Origin,
    Passage,
    Scope,
    Status,
    parse,
)
from loki_memory.models.belief import AntiPattern, Belief, Fact, Pattern, Resolution
from loki_memory.models.episode import Action, Context, Episode, ErrorMet, Recalled
from loki_memory.models.kinds import KINDS, Kind
from loki_memory.models.note import Learning, Link, Tombstone, tombstone_id
from loki_memory.models.skill import Skill
from loki_memory.models.team import Handoff, Ledger

MODELS: dict[Kind, type[Memory]] = {
    model.kind: model
    for model in (
        Episode,
        Pattern,
        AntiPattern,
        Fact,
        Link,
        Skill,
        Ledger,
        Handoff,
        Learning,
        Tombstone,
    )
}

__all__ = [
    "KINDS",
    "MODELS",
    "RELATIONS",
    "Action",
    "AntiPattern",
    "Belief",
    "Citation",
    "Context",
    "Edge",
    "Episode",
    "ErrorMet",
    "Evidence",
    "Fact",
    "Handoff",
    "Kind",
    "Learning",
    "Ledger",
    "Link",
    "LinkTo",
    "Memory",
    "Origin",
    "Passage",
    "Pattern",
    "Recalled",
    "Resolution",
    "Scope",
    "Skill",
    "Status",
    "Tombstone",
    "parse",
    "tombstone_id",
]
