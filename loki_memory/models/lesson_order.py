"""The order of lessons for somebody who has not asked: the best first."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

from loki_memory.models.base import Memory
from loki_memory.models.belief import AntiPattern, Belief, Fact
from loki_memory.models.kinds import USERS_WORDS
from loki_memory.models.lesson_text import objection, worth
from loki_memory.models.text import stem

_WORD = re.compile(r"\w{4,}")
_SAME = 0.6  # of the words of the shorter of two lessons that both have
_SHARED = 4  # words, at least
_UNSCORED = 0.3  # the score of a statement that has none
_IN_WORDS = 0.7  # of worth: a remedy says what to do
_EXAMPLE = " E.g. "


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


def told_once(beliefs: Iterable[Memory]) -> Iterator[Memory]:
    """Beliefs without those that say what one before them says."""
    seen: list[frozenset[str]] = []
    for belief in beliefs:
        words = frozenset(stem(word) for word in _WORD.findall(_said(belief).lower()))
        if words and any(_says(words, other) for other in seen):
            continue
        seen.append(words)
        yield belief


def _said(belief: Memory) -> str:
    """The words of a lesson: of an error, what to do about it."""
    told = belief.prevention if isinstance(belief, AntiPattern) else None
    return (told or "").partition(_EXAMPLE)[0] or belief.title()


def _says(words: frozenset[str], other: frozenset[str]) -> bool:
    return words == other or len(words & other) >= max(_SHARED, _SAME * min(len(words), len(other)))
