"""What belongs together: average-link clusters inside the components of the likeness graph.

An average at or above a threshold needs at least one pair at or above it, so no cluster reaches
across components: each is clustered for itself, and the result is that of clustering everything.
Components are small (a dozen members), so this is plain Python; a linear-algebra library would
cost more to import than it saves. Items are put in the order of their content first: what comes
out does not depend on the order in which they came.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from loki_memory.consolidation.likeness import adds, content, grams, jaccard, marks, opposed

# Likeness of statements about one subject. `benchmarks/consolidation/calibrate.py`: the
# middle of the best thresholds (.22 to .26) for telling questions about 20 databases apart.
SUBJECT = 0.24
_LARGEST = 400  # distinct members: beyond, a component is divided at higher thresholds
_CROWD = 40  # items with one key
_NEXT = 8  # of a crowd that are compared with an item
_STRICTER = 0.05
_BANDS = 32  # of two hashes each: finds a pair that shares 30 % of its words 19 times of 20
_COMMON = 0.1  # a word in more of the texts than this proposes no pairs
_ALWAYS = 50  # … unless that is this few texts
_FEWEST = 3  # content words without which a statement has no subject


class Alike(NamedTuple):
    """How alike the items of a list are, and the keys of which two must share one to be compared.

    Pairs without a common key are taken as unlike: nobody compares everything with everything.
    """

    keys: Sequence[Iterable[Hashable]]
    pair: Callable[[int, int], float]


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

    return Alike([[stem for stem in sorted(one) if held_by[stem] <= most] for one in stems], pair)


def _sum(weight: dict[str, float], stems: frozenset[str]) -> float:
    return math.fsum(weight[stem] for stem in stems)  # exact, so the order of a set is no matter


def sameness(texts: Sequence[str]) -> Alike:
    """Statements that say the same in almost the same words, with the same marks."""

    def pair(i: int, j: int) -> float:
        if marks(texts[i]).differ(marks(texts[j])) or adds(texts[i], texts[j]):
            return 0.0
        return jaccard(grams(texts[i]), grams(texts[j]))

    return Alike([bands(frozenset(content(text))) for text in texts], pair)


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


def clusters(
    alike: Alike, weights: Sequence[int], threshold: float, touched: frozenset[int] | None = None
) -> list[list[int]]:
    """Clusters of items; with `touched`, only those of components that hold one of these."""
    items, edges = _graph(alike, threshold, touched)
    found: list[list[int]] = []
    for members in components(items, edges):
        found += _divided(members, edges, alike, weights, threshold)
    return sorted(found)


def _graph(
    alike: Alike, threshold: float, touched: frozenset[int] | None
) -> tuple[list[int], Edges]:
    """All items, or those that touched ones hang together with, and the edges among them."""
    near = _neighbours(alike.keys)
    edges = Edges(array("l"), array("l"), array("d"))
    waiting = list(range(len(alike.keys))) if touched is None else sorted(touched)
    reached, compared = set(waiting), set[int]()
    while waiting:
        item = waiting.pop()
        compared.add(item)
        for other in near(item):
            if other in compared:
                continue  # then it has been compared with this one
            likeness = alike.pair(min(item, other), max(item, other))
            if likeness < threshold:
                continue
            edges.add(item, other, likeness)
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    return sorted(reached), edges


class Edges(NamedTuple):
    """Pairs that are alike, and how much. Arrays: of 100,000 episodes there are millions."""

    ones: array[int]
    others: array[int]
    likeness: array[float]

    def add(self, one: int, other: int, likeness: float) -> None:
        self.ones.append(one)
        self.others.append(other)
        self.likeness.append(likeness)

    def within(self, members: Iterable[int], threshold: float) -> Edges:
        """Those between members that are at least so much alike."""
        wanted = frozenset(members)
        inner = Edges(array("l"), array("l"), array("d"))
        for one, other, likeness in zip(*self, strict=True):
            if likeness >= threshold and one in wanted and other in wanted:
                inner.add(one, other, likeness)
        return inner


def components(items: Iterable[int], edges: Edges) -> list[list[int]]:
    """What hangs together, sorted; the first item of each decides the order."""
    root = {item: item for item in items}

    def find(item: int) -> int:
        while root[item] != item:
            root[item] = root[root[item]]
            item = root[item]
        return item

    for i, j in zip(edges.ones, edges.others, strict=True):
        one, other = find(i), find(j)
        root[max(one, other)] = min(one, other)
    members: dict[int, list[int]] = defaultdict(list)
    for item in sorted(root):
        members[find(item)].append(item)
    return [members[top] for top in sorted(members)]


def _divided(
    members: list[int], edges: Edges, alike: Alike, weights: Sequence[int], threshold: float
) -> Iterator[list[int]]:
    """The clusters of a component. Boilerplate can chain thousands of items: then stricter ones."""
    if len(members) <= _LARGEST:
        yield from average_link(members, alike.pair, weights, threshold)
        return
    stricter = threshold + _STRICTER
    closer = edges.within(members, stricter)
    for part in components(members, closer):
        yield from _divided(part, closer, alike, weights, stricter)


def average_link(
    members: Sequence[int],
    likeness: Callable[[int, int], float],
    weights: Sequence[int],
    threshold: float,
) -> list[list[int]]:
    """Join the closest until no two clusters are on average as alike as the threshold.

    Follows nearest neighbours until two are each other's; these are joined whatever else is, as
    joining others never brings a third closer. A cluster whose nearest is too far is complete.
    """
    total = _totals(members, likeness, weights)
    size = {item: weights[item] for item in members}
    inside = {item: [item] for item in members}
    complete: list[list[int]] = []
    chain: list[int] = []
    while inside:
        chain = chain or [min(inside)]
        top = chain[-1]
        near = _nearest(top, chain[-2:-1], total, size)
        if near is None or total[top][near] / (size[top] * size[near]) < threshold:
            complete.append(sorted(inside.pop(top)))
            chain.pop()
            _drop(top, total)
        elif near in chain[-2:-1]:
            del chain[-2:]
            inside[near] += inside.pop(top)
            _join(near, top, total, size)
        else:
            chain.append(near)
    return sorted(complete)


Totals = dict[int, dict[int, float]]  # sums of likeness between the members of two clusters


def _totals(
    members: Sequence[int], likeness: Callable[[int, int], float], weights: Sequence[int]
) -> Totals:
    total: Totals = {item: {} for item in members}
    for i, j in combinations(members, 2):
        if value := likeness(i, j):
            total[i][j] = total[j][i] = value * weights[i] * weights[j]
    return total


def _nearest(item: int, before: Sequence[int], total: Totals, size: dict[int, int]) -> int | None:
    """The most alike; among equals the one it came from, so that chains end, then the first."""
    return min(
        total[item],
        key=lambda other: (-total[item][other] / size[other], other not in before, other),
        default=None,
    )


def _join(kept: int, gone: int, total: Totals, size: dict[int, int]) -> None:
    for other, value in total.pop(gone).items():
        del total[other][gone]
        if other != kept:
            total[kept][other] = total[other][kept] = total[kept].get(other, 0.0) + value
    size[kept] += size.pop(gone)


def _drop(item: int, total: Totals) -> None:
    for other in total.pop(item):
        del total[other][item]


def _neighbours(keys: Sequence[Iterable[Hashable]]) -> Callable[[int], list[int]]:
    """For each item, those that it is to be compared with: they share a key.

    Of a crowd that shares a key only the nearest are: items are in the order of their content, so
    these begin alike, and the number of comparisons stays in proportion to the items.
    """
    holders: dict[Hashable, list[int]] = defaultdict(list)
    for at, own in enumerate(keys):
        for key in own:
            holders[key].append(at)

    def near(item: int) -> list[int]:
        found: set[int] = set()
        for key in keys[item]:
            together = holders[key]
            if len(together) > _CROWD:
                place = bisect_left(together, item)
                together = together[max(0, place - _NEXT) : place + _NEXT + 1]
            found.update(together)
        return sorted(found - {item})

    return near


def bands(terms: frozenset[str]) -> list[tuple[int, int, int]]:
    """Keys that two sets share the likelier the more terms they share (MinHash).

    They depend on the set alone: a new memory never changes which others were compared.
    """
    if not terms:
        return []
    least = list(map(min, zip(*map(_hashes, sorted(terms)), strict=True)))
    return [(band, least[2 * band], least[2 * band + 1]) for band in range(_BANDS)]


@lru_cache(maxsize=262144)
def _hashes(term: str) -> tuple[int, ...]:
    """Numbers of 16 bits, two for each band, the same on every machine."""
    import hashlib
    import struct

    count = 2 * _BANDS // 32
    data = b"".join(
        hashlib.blake2b(term.encode(), digest_size=64, salt=bytes([part])).digest()
        for part in range(count)
    )
    return struct.unpack(f"<{2 * _BANDS}H", data)
