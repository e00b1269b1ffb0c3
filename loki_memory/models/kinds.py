"""The kinds of memory. Apart from the models, so that naming a kind costs no pydantic."""

from __future__ import annotations

from typing import Literal, get_args

Kind = Literal[
    "episode",
    "pattern",
    "anti-pattern",
    "fact",
    "link",
    "skill",
    "ledger",
    "handoff",
    "learning",
    "tombstone",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
