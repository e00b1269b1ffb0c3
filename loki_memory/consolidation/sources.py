"""What derived memory takes over from its sources: trust, dates, and how sure they make it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import exp, fsum, lgamma, log
from typing import Any, get_args

from loki_memory.models import Memory, Origin, Skill

TRUST: tuple[str, ...] = get_args(Origin)  # most trusted first
DEAD = frozenset({"superseded", "rejected", "retired"})


def least_trusted(records: Iterable[Memory]) -> str:
    """The origin of what is derived from records: at best an agent's, at worst their worst."""
    origins = (getattr(one, "origin", None) or "agent" for one in records)
    return max(("agent", *origins), key=TRUST.index)


def is_live(record: Memory) -> bool:
    """Whether a record still speaks: it was neither replaced nor taken back."""
    return getattr(record, "status", "active") not in DEAD


def extra(record: Memory, name: str) -> Any:
    """A field that the model does not know, or None."""
    return (record.model_extra or {}).get(name)


def days_between(earlier: str, later: str) -> int:
    """Whole days from one moment or date to another; 0 where either is not known."""
    from datetime import date

    if not earlier or not later:
        return 0
    return (date.fromisoformat(later[:10]) - date.fromisoformat(earlier[:10])).days


def ids_in(skill: Skill, name: str) -> list[str]:
    """The ids that a skill's metadata lists under a name."""
    return skill.metadata.get(name, "").replace(",", " ").split()


def episodes_of(record: Memory) -> list[str]:
    """The episodes that a belief or a learned skill rests on."""
    if isinstance(record, Skill):
        return ids_in(record, "loki-evidence")
    found: list[str] = getattr(record, "episodes_for", list)()
    return found


def differs(record: Memory, known: Mapping[str, Memory]) -> bool:
    """Whether writing the record would change what memory says."""
    old = known.get(record.id)
    return old is None or old.document() != record.document()


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
