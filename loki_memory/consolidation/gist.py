"""What consolidation knows of a belief's words at a glance.

All statements are compared with each other, new ones and old ones, and the words of an old one are
what they were. By what they are compared is taken from each of them once, as plain values that can
be kept (see `glance`, which is the same for episodes).
"""

from __future__ import annotations

from typing import NamedTuple

from loki_memory.consolidation.likeness import content, marks
from loki_memory.models import Belief

_GIST = "_gist"  # where a belief keeps its own; a changed one is another belief, and has none yet


class Gist(NamedTuple):
    """Nothing but texts, truths and tuples of them: what `marshal` can keep."""

    words: tuple[str, ...]  # the stems of its content, each once, sorted
    is_negated: bool
    marks: tuple[tuple[str, ...], ...]  # what else must agree before two statements count as one


def gist(belief: Belief) -> Gist:
    """What is known of a belief's words; taken once."""
    known = known_gist(belief)
    if known is None:
        known = belief.__dict__[_GIST] = _taken(belief.value())
    return known


def known_gist(belief: Belief) -> Gist | None:
    """What was taken already: nobody asks for that of an error's message."""
    known: Gist | None = belief.__dict__.get(_GIST)
    return known


def with_gist(belief: Belief, known: Gist) -> None:
    """Give a belief that was read again what was taken from it, word for word, before."""
    belief.__dict__[_GIST] = known


def _taken(text: str) -> Gist:
    found = marks(text)
    sets = (found.values, found.sides, found.names, found.bounds)
    return Gist(
        words=tuple(sorted(set(content(text)))),
        is_negated=found.is_negated,
        marks=tuple(tuple(sorted(one)) for one in sets),
    )
