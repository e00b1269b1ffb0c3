"""Which episodes are of one kind: alike in goal, files and steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from loki_memory.consolidation.cluster import Alike, clusters
from loki_memory.consolidation.glance import glance
from loki_memory.consolidation.neighbours import Floats, Ints, bands
from loki_memory.consolidation.snapshot import Snapshot
from loki_memory.models import Episode
from loki_memory.models.ids import digest

_GOAL, _FILES, _STEPS = 0.6, 0.2, 0.2  # consolidation's reference document, 2.1
_LEAST = 0.2  # of the words of two goals


class Traits(NamedTuple):
    """What an episode is compared by; its order is the one in which episodes are compared."""

    scope: str
    goal: str
    files: tuple[str, ...]
    steps: tuple[str, ...]
    words: tuple[str, ...]
    terms: tuple[str, ...]


def kindred(episodes: Iterable[Episode], threshold: float) -> list[list[Episode]]:
    """Clusters of episodes of one scope, each in the order of time."""
    holders: dict[Traits, list[Episode]] = defaultdict(list)
    for episode in episodes:
        holders[traits(episode)].append(episode)
    distinct = sorted(holders)
    weights = [len(holders[own]) for own in distinct]
    found = _grouped(distinct, weights, threshold)
    return sorted(
        (_in_time(one for own in group for one in holders[own]) for group in found),
        key=lambda group: (group[0].timestamp, group[0].id),
    )


def kinds(snapshot: Snapshot) -> list[list[Episode]]:
    """The clusters of all episodes."""
    return snapshot.once("kinds", lambda those: kindred(those.episodes, those.thresholds.cluster))


def mark(cluster: Iterable[Episode]) -> str:
    """What tells a cluster from any other: a hash of who is in it."""
    return digest("cluster", *(one.id for one in cluster))


def traits(episode: Episode) -> Traits:
    seen = glance(episode)
    return Traits(seen.scope, seen.goal, seen.files, seen.steps, seen.words, seen.terms)


def _grouped(
    distinct: Sequence[Traits], weights: Sequence[int], threshold: float
) -> list[list[Traits]]:
    weighed = zip(distinct, weights, strict=True)
    return [
        [those[at][0] for at in group]
        for _, same_scope in groupby(weighed, key=lambda one: one[0].scope)
        for those in [list(same_scope)]
        for group in clusters(_alike([own for own, _ in those]), [n for _, n in those], threshold)
    ]


def _in_time(episodes: Iterable[Episode]) -> list[Episode]:
    return sorted(episodes, key=lambda one: (one.timestamp, one.id))


def _alike(distinct: Sequence[Traits]) -> Alike:
    """How alike episodes are. What neither tells of does not count against them.

    Goals that share too little are another kind of work, in whatever files and with whatever
    tools: in a small project these are always the same.
    """
    goals, files, steps = (
        Sets([getattr(own, name) for own in distinct]) for name in ("words", "files", "steps")
    )

    def likeness(ones: Ints, others: Ints) -> Floats:
        goal = goals.likeness(ones, others)
        share, whole = _GOAL * goal, np.full(len(ones), _GOAL)
        for sets, weight in ((files, _FILES), (steps, _STEPS)):
            share += weight * sets.likeness(ones, others)
            whole += weight * sets.is_told(ones, others)
        return np.where(goal < _LEAST, 0.0, share / whole)

    # A goal without words of content (`do it again`) is about all its words.
    return Alike(bands([own.terms or own.words for own in distinct]), likeness)


class Sets:
    """Sets of words, one for each item; many items have the same, which are compared once.

    A set is a number with a bit for each of its words: of two numbers it takes a fifth of the time
    to see what they share that it takes of two sets.
    """

    def __init__(self, sets: Sequence[Collection[str]]) -> None:
        bits: dict[str, int] = {}
        number: dict[int, int] = {}
        masks = [sum(1 << bits.setdefault(word, len(bits)) for word in one) for one in sets]
        self._number = np.array([number.setdefault(one, len(number)) for one in masks], dtype=int)
        self._sizes = [mask.bit_count() for mask in number]
        self._masks = list(number)
        self._is_empty = np.array([not one for one in masks])

    def is_told(self, ones: Ints, others: Ints) -> Floats:
        """1 where one of the two has any words, else 0."""
        return np.where(self._is_empty[ones] & self._is_empty[others], 0.0, 1.0)

    def likeness(self, ones: Ints, others: Ints) -> Floats:
        """The share of what both have among what either has; two empty sets share nothing."""
        pairs = np.sort((self._number[ones], self._number[others]), axis=0)
        codes, place = np.unique(pairs[0] * len(self._masks) + pairs[1], return_inverse=True)
        return np.fromiter(self._each(codes), dtype=np.float64, count=len(codes))[place]

    def _each(self, codes: Ints) -> Iterator[float]:
        masks, sizes = self._masks, self._sizes
        for one, other in zip(
            *(half.tolist() for half in np.divmod(codes, len(masks))), strict=True
        ):
            both = (masks[one] & masks[other]).bit_count()
            yield both / (sizes[one] + sizes[other] - both) if both else 0.0
