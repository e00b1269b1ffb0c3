"""The order of lessons for somebody who has not asked: the best first."""

from __future__ import annotations

import math
from collections.abc import Iterable

from loki_memory.models.base import Memory
from loki_memory.models.belief import AntiPattern, Belief, Fact
from loki_memory.models.kinds import USERS_WORDS
from loki_memory.models.lesson_text import objection, worth

_UNSCORED = 0.3  # the score of a statement that has none
_IN_WORDS = 0.7  # of worth: a remedy says what to do


def ranked(beliefs: Iterable[Memory]) -> list[Memory]:
    """Beliefs that read as lessons, then the others; what is worth more comes first."""
    return sorted(beliefs, key=lambda belief: (*_rank(belief), belief.id))


def _rank(belief: Memory) -> tuple[bool, float]:
    sessions = len(belief.episodes_for()) if isinstance(belief, Belief) else 1
    if isinstance(belief, Fact):
        reason = objection(belief.statement, is_stated=belief.type in USERS_WORDS)
        score = _UNSCORED if belief.score is None else belief.score
        return bool(reason), -worth(belief.statement, belief.type or "", score, sessions)
    is_worded = not isinstance(belief, AntiPattern) or bool(belief.prevention)
    return not is_worded, -(_IN_WORDS + 0.9 * math.log2(max(1, sessions)))
