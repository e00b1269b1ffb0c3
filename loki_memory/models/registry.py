"""The model of each kind."""

from __future__ import annotations

from loki_memory.models.base import Memory
from loki_memory.models.belief import AntiPattern, Fact, Pattern
from loki_memory.models.episode import Episode
from loki_memory.models.kinds import Kind
from loki_memory.models.links import Learning, Link, Tombstone
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
