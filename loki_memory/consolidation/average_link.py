"""What belongs together: average-link clusters inside the components of the likeness graph.

An average at or above a threshold needs at least one pair at or above it, so no cluster reaches
across components: each is clustered for itself, and the result is that of clustering everything.
Items are put in the order of their content first: what comes out does not depend on the order in
which they came.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from loki_memory.consolidation.minhash import (
    Floats,
    Ints,
    Keys,
    Likeness,
    bands,
    components,
    edges,
    keys_of,
    sketch,
    together,
)
from loki_memory.consolidation.similarity import content, opposed, sameness

# Likeness of statements about one subject. `benchmarks/consolidation/calibrate.py`: the
# middle of the best thresholds (.22 to .26) for telling questions about 20 databases apart.
SUBJECT = 0.24
_LARGEST = 400  # distinct members: beyond, a component is divided at higher thresholds
_STRICTER = 0.05
_COMMON = 0.1  # a word in more of the texts than this proposes no pairs
_ALWAYS = 50  # … unless that is this few texts
_FEWEST = 3  # content words without which a statement has no subject


class Alike(NamedTuple):
    """How alike the items of a list are, and the keys of which two must share one to be compared.

    Pairs without a common key are taken as unlike: nobody compares everything with everything.
    """

    keys: Keys
    likeness: Likeness


def each(pair: Callable[[int, int], float]) -> Likeness:
    """The likeness of many pairs, one by one."""

    def likeness(ones: Ints, others: Ints) -> Floats:
        found = map(pair, ones.tolist(), others.tolist())
        return np.fromiter(found, dtype=np.float64, count=len(ones))

    return likeness


Measure = Callable[[Sequence[str]], Alike]


def subject(texts: Sequence[str]) -> Alike:
    """Statements about one thing: the rarer the words that the shorter one shares, the more alike.

    Statements that are opposed are not alike at all.
    """
    stems = [frozenset(content(text)) for text in texts]
    held_by = Counter(stem for one in stems for stem in one)
    weight = {stem: 1 + math.log((len(texts) + 1) / (n + 1)) for stem, n in held_by.items()}
    totals = [_sum(weight, one) for one in stems]
    most = max(_ALWAYS, _COMMON * len(texts))

    def pair(i: int, j: int) -> float:
        shared = stems[i] & stems[j]
        if not shared or min(len(stems[i]), len(stems[j])) < _FEWEST:
            return 0.0
        if opposed(texts[i], texts[j]):
            return 0.0
        return _sum(weight, shared) / min(totals[i], totals[j])

    rare = ([stem for stem in sorted(one) if held_by[stem] <= most] for one in stems)
    return Alike(keys_of([*rare]), each(pair))


def _sum(weight: dict[str, float], stems: frozenset[str]) -> float:
    return math.fsum(weight[stem] for stem in stems)  # exact, so the order of a set is no matter


def same(texts: Sequence[str]) -> Alike:
    """Statements that say the same in almost the same words, with the same marks."""
    keys = bands([sketch(content(text)) for text in texts])
    return Alike(keys, each(lambda i, j: sameness(texts[i], texts[j])))


def groups(
    texts: Sequence[str], threshold: float = SUBJECT, measure: Measure = subject
) -> list[list[int]]:
    """Positions of texts that belong together, smallest first; everyone is in one group."""
    distinct = sorted(set(texts))
    position = {text: at for at, text in enumerate(distinct)}
    holders: list[list[int]] = [[] for _ in distinct]
    for at, text in enumerate(texts):
        holders[position[text]].append(at)
    found = clusters(measure(distinct), [len(one) for one in holders], threshold)
    return sorted(sorted(at for one in group for at in holders[one]) for group in found)


def clusters(alike: Alike, weights: Sequence[int], threshold: float) -> list[list[int]]:
    """Clusters of items; an item counts as many times as its weight says."""
    return sorted(
        cluster
        for part in parts(alike, len(weights), threshold)
        for cluster in average_link(part.members, alike.likeness, weights, part.threshold)
    )


class ClusterPart(NamedTuple):
    """Items that are clustered for themselves, and from which likeness on."""

    members: list[int]
    threshold: float


def parts(alike: Alike, many: int, threshold: float) -> Iterator[ClusterPart]:
    """The components of so many items.

    Boilerplate can chain thousands of them: what is too large is divided at stricter thresholds.
    """
    near = edges(alike.keys, alike.likeness, threshold)
    left = np.ones(many, dtype=bool)
    while left.any():
        root = components(many, near)
        small = left & (np.bincount(root)[root] <= _LARGEST)
        yield from (ClusterPart(part, threshold) for part in together(np.flatnonzero(small), root))
        left &= ~small
        threshold += _STRICTER
        near = near.among(left, threshold)


def average_link(
    members: Sequence[int],
    likeness: Likeness,
    weights: Sequence[int],
    threshold: float,
) -> list[list[int]]:
    """Join the closest until no two clusters are on average as alike as the threshold.

    Follows nearest neighbours until two are each other's; these are joined whatever else is, as
    joining others never brings a third closer. A cluster whose nearest is too far is complete.
    """
    if len(members) == 1:
        return [[*members]]
    size = np.array([weights[item] for item in members], dtype=np.float64)
    total = _totals(members, likeness, size)
    inside = [[item] for item in members]
    complete: list[list[int]] = []
    left = np.ones(len(members), dtype=bool)
    chain: list[int] = []
    while left.any():
        chain = chain or [int(left.argmax())]
        top = chain[-1]
        near, average = _nearest(top, chain[-2:-1], total, size)
        if not average or average < threshold:
            complete.append(sorted(inside[top]))
            chain.pop()
            left[top] = False
            total[top] = total[:, top] = 0.0
        elif near in chain[-2:-1]:
            del chain[-2:]
            inside[near] += inside[top]
            left[top] = False
            _join(near, top, total, size)
        else:
            chain.append(near)
    return sorted(complete)


def _totals(members: Sequence[int], likeness: Likeness, size: Floats) -> Floats:
    """Sums of likeness between the members of two clusters, which are single items yet."""
    ones, others = np.triu_indices(len(members), 1)
    items = np.array(members)
    total = np.zeros((len(members), len(members)))
    total[ones, others] = likeness(items[ones], items[others]) * size[ones] * size[others]
    return total + total.T


def _nearest(item: int, before: Sequence[int], total: Floats, size: Floats) -> tuple[int, float]:
    """The most alike, and how much; among equals the one it came from, so that chains end, then
    the first.
    """
    averages = total[item] / size
    near = int(averages.argmax())
    if before and averages[before[0]] == averages[near]:
        near = before[0]
    return near, float(total[item, near] / (size[item] * size[near]))


def _join(kept: int, gone: int, total: Floats, size: Floats) -> None:
    total[kept] += total[gone]
    total[:, kept] = total[kept]
    total[kept, kept] = 0.0
    total[gone] = total[:, gone] = 0.0
    size[kept] += size[gone]
