"""Cluster episodes by goal, files and steps; reuse earlier clusters whose members are unchanged."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from operator import and_
from typing import Any, NamedTuple

import numpy as np

from loki_memory.consolidation.average_link import Alike, average_link, parts
from loki_memory.consolidation.features import EpisodeFeatures, episode_features
from loki_memory.consolidation.minhash import Floats, Ints, bands
from loki_memory.consolidation.snapshot import (
    KnownClusters,
    Snapshot,
    Thresholds,
    cached_by_episodes,
    in_time,
)
from loki_memory.models import Episode

_GOAL, _FILES, _STEPS = 0.6, 0.2, 0.2  # decision: the goal outweighs the rest
_LEAST = 0.2  # of the words of two goals
_FEW = 500  # sets: a table of all pairs is made in less time than it saves


def cluster_episodes(
    episodes: Iterable[Episode], threshold: float, before: Iterable[KnownClusters]
) -> list[KnownClusters]:
    """Cluster episodes scope by scope; reuse earlier clusters whose members are unchanged."""
    scopes: dict[str, list[Episode]] = defaultdict(list)
    for episode in episodes:
        scopes[episode.scope].append(episode)
    known = {(one.threshold, *sorted(one.names())): one for one in before}
    return [one for _, those in sorted(scopes.items()) for one in _related(those, threshold, known)]


def _related(
    episodes: Iterable[Episode], threshold: float, known: Mapping[tuple[Any, ...], KnownClusters]
) -> Iterator[KnownClusters]:
    """Clusters of one scope: those of episodes that were together before are what they were."""
    same: dict[Traits, list[Episode]] = defaultdict(list)
    for episode in episodes:
        same[traits(episode)].append(episode)
    distinct = sorted(same)
    alike = _alike([episode_features(same[own][0]) for own in distinct])
    weights = [len(same[own]) for own in distinct]
    for part in parts(alike, len(distinct), threshold):
        names = sorted(one.id for at in part.members for one in same[distinct[at]])
        before = known.get((part.threshold, *names))
        if before:
            yield before
            continue
        found = average_link(part.members, alike.likeness, weights, part.threshold)
        clusters = ((one for at in group for one in same[distinct[at]]) for group in found)
        yield KnownClusters(
            part.threshold, tuple(tuple(one.id for one in in_time(group)) for group in clusters)
        )


def _alike(distinct: Sequence[EpisodeFeatures]) -> Alike:
    """How alike episodes are. What neither tells of does not count against them.

    Goals that share too little are another kind of work, in whatever files and with whatever
    tools: in a small project these are always the same.
    """
    goals, files, steps = (
        Sets([getattr(seen, name) for seen in distinct]) for name in ("words", "files", "steps")
    )

    def likeness(ones: Ints, others: Ints) -> Floats:
        found = np.zeros(len(ones))
        goal = goals.likeness(ones, others)
        near = np.flatnonzero(goal >= _LEAST)
        share, whole = _GOAL * goal[near], np.full(len(near), _GOAL)
        for sets, weight in ((files, _FILES), (steps, _STEPS)):
            share += weight * sets.likeness(ones[near], others[near])
            whole += weight * sets.is_told(ones[near], others[near])
        found[near] = share / whole
        return found

    return Alike(bands([seen.sketch for seen in distinct]), likeness)


class Sets:
    """Sets of words, one for each item.

    A set is a number with a bit for each word that others have too: of two numbers it takes a tenth
    of the time to see what they share that it takes of two sets. The commonest words are the lowest
    bits, which keeps numbers short. Many items have the same set, which is one: where there are few
    of them, each is compared with each once.
    """

    def __init__(self, sets: Sequence[tuple[str, ...]]) -> None:
        held = Counter(chain.from_iterable(sets)).most_common()
        bits = {word: 1 << at for at, (word, holders) in enumerate(held) if holders > 1}
        place = {one: at for at, one in enumerate(dict.fromkeys(sets))}
        self._numbers = [sum(bits.get(word, 0) for word in one) for one in place]
        self._places = np.array([place[one] for one in sets], dtype=np.int64)
        self._sizes = np.array([*map(len, sets)], dtype=np.int64)
        self._table = self._each_with_each() if len(place) <= _FEW else None

    def is_told(self, ones: Ints, others: Ints) -> Floats:
        """1 where one of the two has any words, else 0."""
        return np.where((self._sizes[ones] == 0) & (self._sizes[others] == 0), 0.0, 1.0)

    def likeness(self, ones: Ints, others: Ints) -> Floats:
        """The share of what both have among what either has; two empty sets share nothing."""
        places = self._places[ones], self._places[others]
        both = self._shared(*places) if self._table is None else self._table[places]
        either = self._sizes[ones] + self._sizes[others] - both
        found: Floats = both / np.maximum(either, 1)
        return found

    def _shared(self, ones: Ints, others: Ints) -> Ints:
        """How many words two sets have in common; without a step of Python per pair."""
        number = self._numbers.__getitem__
        pairs = map(number, ones.tolist()), map(number, others.tolist())
        shared = map(int.bit_count, map(and_, *pairs))
        return np.fromiter(shared, dtype=np.int64, count=len(ones))

    def _each_with_each(self) -> Ints:
        many = len(self._numbers)
        table = np.zeros((many, many), dtype=np.int64)
        sides = np.triu_indices(many)
        table[sides] = table.T[sides] = self._shared(*sides)
        return table


# -- Which episodes are of one kind: alike in goal, files and steps -------------------------------


class Traits(NamedTuple):
    """What an episode is compared by; its order is the one in which episodes are compared."""

    scope: str
    goal: str
    files: tuple[str, ...]
    steps: tuple[str, ...]


@cached_by_episodes
def clusters_of_goals(snapshot: Snapshot) -> list[list[Episode]]:
    """The clusters of all episodes, each of one scope and in the order of time."""
    by_id = {episode.id: episode for episode in snapshot.episodes}
    clusters = (
        [by_id[name] for name in ids] for one in known_clusters(snapshot) for ids in one.clusters
    )
    return sorted(clusters, key=lambda cluster: (cluster[0].timestamp, cluster[0].id))


@cached_by_episodes
def known_clusters(snapshot: Snapshot) -> list[KnownClusters]:
    """The clusters of all episodes, grouped by what was clustered together."""
    return cluster_episodes(snapshot.episodes, snapshot.thresholds.cluster, snapshot.kin)


def clusters_at(episodes: Iterable[Episode], threshold: float) -> list[list[Episode]]:
    """The clusters of these episodes."""
    return clusters_of_goals(Snapshot(episodes, thresholds=Thresholds(cluster=threshold)))


def mark(cluster: Iterable[Episode]) -> str:
    """What tells a cluster from any other: a hash of who is in it."""
    return blake2b(" ".join(one.id for one in cluster).encode(), digest_size=16).hexdigest()


def traits(episode: Episode) -> Traits:
    seen = episode_features(episode)
    return Traits(seen.scope, seen.goal, seen.files, seen.steps)
