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
FactType = Literal["preference", "rule", "decision", "convention", "gotcha"]
FACT_TYPES: tuple[FactType, ...] = get_args(FactType)  # those that somebody states as such
USERS_WORDS = frozenset({"preference", "rule"})  # types of what a user said
# Values for `list --status`: the states of beliefs, those of handoffs, and all.
STATUSES = (
    "candidate",
    "active",
    "disputed",
    "superseded",
    "rejected",
    "retired",
    "open",
    "accepted",
    "done",
    "expired",
    "resolved",
    "all",
)
SCOPES = ("project", "local", "user", "session")
# The fields of a statement: other words here are another belief.
STATEMENT = (
    "statement",
    "subject",
    "attribute",
    "pattern",
    "conditions",
    "correct_approach",
    "incorrect_approach",
    "what_fails",
    "why",
    "prevention",
    "resolutions",
    "lesson",
    "error",
    "resolution",
)


def article(kind: str) -> str:
    """`a fact`, `an episode`."""
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
