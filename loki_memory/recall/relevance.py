"""The chance that a memory is about a question, from signals that do not depend on other memories.

The score that orders memories compares them with each other: the best of a store that knows nothing
about a question has a high one. The chance is absolute. It is what a reader is shown, what brings
the memories of a project and of its user to one scale, and what a line needs to be told unasked.

`benchmarks/recall/calibrate.py` fits the weights: a logistic regression over several kinds of
questions, some of which belong to another store. It prints how far chances are from the shares of
memories that are relevant, each kind left out in turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, log, log1p
from typing import NamedTuple

BIAS = -3.67
WEIGHTS = {"alike": 1.48, "cosine": 5.24, "place": -0.62}
_CHANCE = 0.04  # for each factor e in memories; picked from .03 to .05 on all open sets together
_USUAL = 1000  # memories among which a certainty counts as it is
_EXACT = 0.95  # an id, a field, an error or a file that was asked for


class Nearness(NamedTuple):
    """The nearness of a memory to a question."""

    alike: float  # MaxSim: how like the question's words are to its words, 0 to 1
    cosine: float  # of the two texts, after what all memories have in common is taken off
    is_exact: bool = False  # an id, a field, an error or a file led to it


def chance(near: Nearness, place: int) -> float:
    """The chance that a memory is relevant; `place` counts the better ones.

    >>> chance(Nearness(0.9, 0.6), 0) > 0.6 > 0.1 > chance(Nearness(0.3, 0.1), 0)
    True
    """
    if near.is_exact:
        return _EXACT
    found = {"alike": near.alike, "cosine": near.cosine, "place": log1p(place)}
    odds = BIAS + sum(weight * found[name] for name, weight in WEIGHTS.items())
    return 1 / (1 + exp(-odds))


def chances(hits: Iterable[Nearness | None]) -> list[float]:
    """The chances of hits in their order, none above the one before it.

    A hit without a nearness was found through the one before it, by a link, and shares its chance;
    the first was named.
    """
    found: list[float] = []
    for place, near in enumerate(hits):
        above = found[-1] if found else 1.0
        found.append(above if near is None else min(above, chance(near, place)))
    return found


def among(memories: int, certainty: float) -> float:
    """Allow for the size of a store: the best of many is near to any question by chance.

    >>> among(1000, 0.6) == 0.6 < among(20, 0.6)
    True
    """
    return certainty + _CHANCE * log(_USUAL / max(1, memories))
