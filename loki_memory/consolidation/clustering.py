"""Cluster texts: average link inside the connected components of similar pairs.

Two texts are as similar as the mean of two cosines says: that of their TF-IDF vectors over the
stems of content words, and that of their embeddings. Neither alone does well on lessons of a
project on which no threshold was tuned (`benchmarks/consolidation/clusters.py`).

An average at or above a threshold needs at least one pair at or above it, so no cluster reaches
across components: each component is clustered by itself, with the result of clustering everything.
Equal texts count once and texts are sorted first: the result depends neither on how often something
is said nor on the order in which it came.

scikit-learn and scipy are imported inside the functions that compare texts: they take half a second
to load, and only a consolidation run may wait for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.consolidation.features import EpisodeFeatures
from loki_memory.consolidation.similarity import (
    can_oppose,
    content,
    differ,
    grams,
    opposed,
    words,
)
from loki_memory.consolidation.snapshot import Snapshot, cached_by_episodes, in_time

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

# Similarity of texts about one subject: `benchmarks/consolidation/clusters.py` prints the curves.
SUBJECT = 0.30
_LARGEST = 1000  # texts: boilerplate can chain thousands, whose table of pairs would fill memory
_STRICTER = 0.05  # how much the threshold rises where a component is larger
_ROWS = 256  # texts that are compared with others at once
_GRID = 1024  # a sum of whole numbers is the same in every order, on every machine
_DIGITS = 6
_NEVER = 1e9  # distance of what must stay apart: no average over a component makes up for it


class Measure(NamedTuple):
    """The similarity of the texts of a list, and which pairs never share a cluster."""

    similarity: Callable[[Ints, Ints], Floats]  # of some texts (rows) with others (columns)
    apart: Callable[[Sequence[int]], Iterable[tuple[int, int]]]  # among some texts


class SimilarPairs(NamedTuple):
    """Pairs of texts, the smaller first, and how similar they are."""

    ones: Ints
    others: Ints
    similarity: Floats


def subject(texts: Sequence[str]) -> Measure:
    """The similarity of what texts are about; statements that contradict each other stay apart."""
    from loki_memory.embedding import load

    model = load()
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    terms = TfidfVectorizer(analyzer=_terms).fit_transform(texts)
    vectors = np.rint(model.embed([model.tokens(text) for text in texts]) * _GRID)

    def similarity(rows: Ints, columns: Ints) -> Floats:
        shared = (terms[rows] @ terms[columns].T).toarray()
        meant = vectors[rows] @ vectors[columns].T / _GRID**2
        found: Floats = np.round((shared + meant) / 2, _DIGITS)
        return found

    def apart(items: Sequence[int]) -> Iterator[tuple[int, int]]:
        named = [at for at in items if can_oppose(texts[at])]
        return (pair for pair in combinations(named, 2) if opposed(*(texts[at] for at in pair)))

    return Measure(similarity, apart)


def _terms(text: str) -> Sequence[str]:
    """The terms of a text; one without words of content (`do it again`) is about all its words."""
    return content(text) or sorted(words(text)) or [text]


def same(texts: Sequence[str]) -> Measure:
    """The share of trigrams that statements have in common; those that differ stay apart."""
    import numpy as np
    from sklearn.feature_extraction.text import CountVectorizer

    held = CountVectorizer(analyzer=lambda text: grams(text) or [text]).fit_transform(texts)
    sizes = np.ravel(held.sum(axis=1))

    def similarity(rows: Ints, columns: Ints) -> Floats:
        both = (held[rows] @ held[columns].T).toarray()
        either = np.add.outer(sizes[rows], sizes[columns]) - both
        found: Floats = both / either
        return found

    def apart(items: Sequence[int]) -> Iterator[tuple[int, int]]:
        return (pair for pair in combinations(items, 2) if differ(*(texts[at] for at in pair)))

    return Measure(similarity, apart)


def clusters(
    texts: Sequence[str],
    threshold: float = SUBJECT,
    measure: Callable[[Sequence[str]], Measure] = subject,
) -> list[list[int]]:
    """The positions of texts that belong together, smallest first; each is in one cluster."""
    holders: dict[str, list[int]] = defaultdict(list)
    for at, text in enumerate(texts):
        holders[text].append(at)
    distinct = sorted(holders)
    if len(distinct) < 2:  # noqa: PLR2004 - nothing to compare, and nothing to import for it
        return [*holders.values()]
    found = _clusters(measure(distinct), len(distinct), threshold)
    return sorted(
        sorted(at for item in cluster for at in holders[distinct[item]]) for cluster in found
    )


def _clusters(measure: Measure, size: int, threshold: float) -> list[list[int]]:
    pairs = _pairs(measure, size, threshold)
    return [
        cluster
        for members, limit in _components(pairs, size, threshold)
        for cluster in _average_link(measure, members, limit)
    ]


def _pairs(measure: Measure, size: int, threshold: float) -> SimilarPairs:
    """The pairs that are at least so similar, found block by block: few of all pairs are."""
    import numpy as np

    found = []
    for start in range(0, size, _ROWS):
        rows = np.arange(start, min(start + _ROWS, size))
        block = np.triu(measure.similarity(rows, np.arange(start, size)), 1)
        ones, others = np.nonzero(block >= threshold)
        found.append((ones + start, others + start, block[ones, others]))
    return SimilarPairs(*(np.concatenate(part) for part in zip(*found, strict=True)))


def _components(
    pairs: SimilarPairs, size: int, threshold: float
) -> Iterator[tuple[list[int], float]]:
    """The components of similar pairs, each with the threshold from which on pairs are similar.

    What is in too large a component is divided at stricter thresholds.
    """
    import numpy as np
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    left = np.ones(size, dtype=bool)
    while left.any():
        near = left[pairs.ones] & (pairs.similarity >= threshold)
        ends = pairs.ones[near], pairs.others[near]
        graph = coo_array((np.ones(len(ends[0])), ends), shape=(size, size))
        _, labels = connected_components(graph, directed=False)
        small = left & (np.bincount(labels)[labels] <= _LARGEST)
        yield from ((members, threshold) for members in _by_label(np.flatnonzero(small), labels))
        left &= ~small
        threshold += _STRICTER


def _by_label(items: Ints, labels: Ints) -> list[list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for item, label in zip(items.tolist(), labels[items].tolist(), strict=True):
        found[label].append(item)
    return [*found.values()]


def _average_link(measure: Measure, members: list[int], threshold: float) -> list[list[int]]:
    """The clusters of a component: the closest are joined until none are similar enough."""
    if len(members) == 1:
        return [members]
    import numpy as np
    from sklearn.cluster import AgglomerativeClustering

    items = np.array(members)
    distance = 1 - measure.similarity(items, items)
    np.fill_diagonal(distance, 0)
    for pair in measure.apart(members):
        entry, other = np.searchsorted(items, pair)
        distance[entry, other] = distance[other, entry] = _NEVER
    limit = 1 - threshold + 0.5 * 10**-_DIGITS  # clusters exactly as far apart are joined
    linkage: dict[str, Any] = {"metric": "precomputed", "linkage": "average"}
    found = AgglomerativeClustering(None, **linkage, distance_threshold=limit).fit(distance)
    return [items[inside].tolist() for inside in _by_label(np.arange(len(items)), found.labels_)]


@cached_by_episodes
def clusters_of_goals(snapshot: Snapshot) -> list[list[EpisodeFeatures]]:
    """The clusters of all episodes by their goals, each of one scope and in the order of time."""
    scopes: dict[str, list[EpisodeFeatures]] = defaultdict(list)
    for episode in snapshot.episodes:
        scopes[episode.scope].append(episode)
    found = [
        in_time(episodes[at] for at in cluster)
        for episodes in scopes.values()
        for cluster in clusters(
            [other_episode.goal for other_episode in episodes], snapshot.thresholds.cluster
        )
    ]
    return sorted(found, key=lambda cluster: (cluster[0].timestamp, cluster[0].id))
