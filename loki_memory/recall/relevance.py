"""The chance that a memory is about a question, from signals that do not depend on other memories.

The score that orders memories compares them with each other: the best of a store that knows nothing
about a question has a high one. The chance is absolute, so it decides about silence.
"""

from __future__ import annotations

from typing import NamedTuple


class Nearness(NamedTuple):
    """How near a memory is to a question, each from 0 to about 1."""

    cover: float  # words of the question that it has, by their rarity
    alike: float  # MaxSim: the likeness of the question's words to its words
    cosine: float  # of the two texts, after what all memories have in common is taken off
