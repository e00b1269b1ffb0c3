"""How far a merged memory is trusted: never further than those whose words it has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from loki_memory.history.versions import ABSENT, Versions
from loki_memory.models.base import Origin

_FROM_MOST: tuple[str, ...] = get_args(Origin)
_OWNER = _FROM_MOST[0]


def least(origins: Iterable[Any]) -> Any:
    """The least trusted; who does not say stands below the owner and above everybody else."""
    return max(origins, key=_distance)


def _distance(origin: Any) -> float:
    if origin in _FROM_MOST:
        return _FROM_MOST.index(origin)
    return 0.5


def trusted(versions: Versions, says: tuple[bool, bool] = (True, True)) -> Any:
    """The origin of what was merged; `says` tells of each side whether it changed the words.

    A side that changed the words answers for them, and one that lowered the trust had its reason.
    Where an owner took over words that the other side did not change, they are the owner's.
    """
    base, *sides = versions.sides("origin")
    if not versions.base:
        return least(sides)
    answering = [
        one
        for one, words in zip(sides, says, strict=True)
        if words or _distance(one) > _distance(base)
    ]
    raised = [one for one in sides if _distance(one) < _distance(base)]
    return least(answering or raised or [base])


def is_owned(origin: Any) -> bool:
    return origin is not ABSENT and origin == _OWNER
