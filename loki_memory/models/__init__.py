"""Records, ids and normal forms: the model of memory. No disk, no clock, no SQL.

Names are imported on first use: ids and kinds are needed to find a folder, pydantic is not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from loki_memory.models.links import Learning, Link, Tombstone, tombstone_id
    from loki_memory.models.skill import Skill
    from loki_memory.models.team import Handoff, Ledger

    MODELS: dict[Kind, type[Memory]]  # the model of each kind

_HOMES = {
    "base": (
        "RELATIONS",
        "Citation",
        "Edge",
        "Evidence",
        "LinkTo",
        "Memory",
        "Origin",
        "Passage",
        "Scope",
        "Status",
        "parse",
    ),
    "belief": ("AntiPattern", "Belief", "Fact", "Pattern", "Resolution"),
    "episode": ("Action", "Context", "Episode", "ErrorMet", "Recalled"),
    "kinds": ("KINDS", "Kind"),
    "links": ("Learning", "Link", "Tombstone", "tombstone_id"),
    "skill": ("Skill",),
    "team": ("Handoff", "Ledger"),
}
_RECORDS = (
    "Episode",
    "Pattern",
    "AntiPattern",
    "Fact",
    "Link",
    "Skill",
    "Ledger",
    "Handoff",
    "Learning",
    "Tombstone",
)
_MODULES = {name: module for module, names in _HOMES.items() for name in names}

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


def __getattr__(name: str) -> Any:
    if name == "MODELS":
        value: Any = {model.kind: model for model in map(__getattr__, _RECORDS)}
    elif name in _MODULES:
        value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value  # found without this function next time
    return value
