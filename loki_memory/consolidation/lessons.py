"""Lessons of a cluster of episodes: errors that came again with what resolved them, or steps
that tell those that succeeded from those that failed.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple

from loki_memory.consolidation.failures import line
from loki_memory.consolidation.features import EpisodeFeatures
from loki_memory.consolidation.similarity import content, grams, jaccard, medoid, names
from loki_memory.models.error_signature import signature
from loki_memory.models.text import normal

_SHARED = 0.15  # of the content words of two resolutions: they tell of the same remedy
_CLOSE = 0.4  # … where the errors differ
_NEARLY = 0.5  # of the trigrams of two messages: they tell of the same trouble
_MOST_LESSONS = 2
_MOST_CONDITIONS = 3
_MOSTLY, _RARELY = 0.8, 0.2
_ELSEWHERE = 0.5


class Lesson(NamedTuple):
    """One lesson: the trouble, the remedy, and the step that led into the trouble."""

    trouble: str
    remedy: str
    wrong: str = ""


class Met(NamedTuple):
    """An error that an episode met and resolved."""

    episode: str
    message: str
    resolution: str


def lessons(cluster: Sequence[EpisodeFeatures], least: int) -> list[Lesson]:
    """Return those met by most episodes first; none if nothing came in as many as `least`."""
    if len(cluster) < least:
        return []
    return _resolved(cluster, least) or _told_apart(cluster, least)


def _resolved(cluster: Sequence[EpisodeFeatures], least: int) -> list[Lesson]:
    met = [Met(episode.id, *told) for episode in cluster for told in episode.resolved]
    return [
        Lesson(_trouble(occurrences), _remedy(occurrences), _wrong(cluster, occurrences))
        for occurrences in islice(_recurring(met, least), _MOST_LESSONS)
    ]


def _recurring(met: list[Met], least: int) -> Iterator[list[Met]]:
    """Remedies that agree, of enough episodes; those that most episodes share first.

    A remedy that stands alone may be right and teaches nobody; the anti-pattern keeps it. Whether
    two agree depends on their words alone, so what many episodes say alike is compared once.
    """
    said: dict[tuple[str, str], list[Met]] = defaultdict(list)
    for entry in sorted(
        set(met), key=lambda entry: (entry.resolution, entry.message, entry.episode)
    ):
        said[entry.resolution, entry.message].append(entry)
    like = _alike(said)
    while like:
        groups = ([entry for way in ways for entry in said[way]] for ways in like.values())
        best = min(groups, key=lambda group: (-_episodes(group), group))
        if _episodes(best) < least:
            return
        yield best
        gone = {(group.resolution, group.message) for group in best}
        left = {way: ways for way, ways in like.items() if way not in gone}
        like = {way: [entry for entry in ways if entry not in gone] for way, ways in left.items()}


def _alike(
    said: Mapping[tuple[str, str], Sequence[Met]],
) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """For each way to tell of an error and its remedy, those that agree with it, itself too."""
    like: dict[tuple[str, str], list[tuple[str, str]]] = {way: [] for way in said}
    firsts = [(way, members[0]) for way, members in said.items()]
    for at, (way, first) in enumerate(firsts):
        like[way].append(way)
        for other_way, other in firsts[at + 1 :]:
            if _agree(first, other):
                like[way].append(other_way)
                like[other_way].append(way)
    return like


def _episodes(occurrences: Iterable[Met]) -> int:
    return len({met.episode for met in occurrences})


def _agree(met: Met, other: Met) -> bool:
    """Check that two remedies are one: of the same trouble they share little, else a name."""
    if _value(met.resolution) == _value(other.resolution):
        return True
    share = jaccard(_content(met.resolution), _content(other.resolution))
    if not _SHARED <= share < _CLOSE:
        return share >= _CLOSE
    return not names(met.resolution).isdisjoint(names(other.resolution)) or _is_same(met, other)


def _is_same(met: Met, other: Met) -> bool:
    """Check whether two errors are the same trouble: one signature, or nearly the same words."""
    first, second = _class(met.message), _class(other.message)
    if first and first == second:
        return True
    return jaccard(grams(line(met.message)), grams(line(other.message))) >= _NEARLY


# The same messages and remedies are compared with many others.
_value = lru_cache(maxsize=16384)(normal)


@lru_cache(maxsize=16384)
def _content(text: str) -> frozenset[str]:
    return frozenset(content(text))


@lru_cache(maxsize=16384)
def _class(message: str) -> str:
    found = signature(message)
    return found.broad if found else ""


def _trouble(occurrences: Sequence[Met]) -> str:
    """Return what was met, each error in one wording; two at most."""
    told: list[Met] = []
    for entry in sorted(occurrences, key=lambda met: (len(met.message), met.message)):
        if not any(_is_same(entry, other) for other in told):
            told.append(entry)
    return " / ".join(line(entry.message) for entry in told[:_MOST_LESSONS])


def _remedy(occurrences: Sequence[Met]) -> str:
    """The remedy that most episodes give word for word, else the most typical."""
    given = Counter(met.resolution for met in occurrences)
    most = max(given.values())
    return line(medoid([text for text in sorted(given) if given[text] == most]))


def _wrong(cluster: Sequence[EpisodeFeatures], occurrences: Sequence[Met]) -> str:
    """The step that failed where the error was met."""
    met_by = {met.episode for met in occurrences}
    there = (episode.failed for episode in cluster if episode.id in met_by)
    return medoid([*chain.from_iterable(there)])


def _told_apart(cluster: Sequence[EpisodeFeatures], least: int) -> list[Lesson]:
    """Steps that nearly all that succeeded took, and hardly one that failed."""
    good = [frozenset(episode.steps) for episode in cluster if episode.outcome == "success"]
    bad = [frozenset(episode.steps) for episode in cluster if episode.outcome == "failure"]
    if min(len(good), len(bad)) < max(least, 1):
        return []
    do, avoid = _telling(good, bad), _telling(bad, good)
    if not do:
        return []
    wrong = ", ".join(avoid) if avoid else f"leaving out {', '.join(do)}"
    return [Lesson("what succeeds does this, what fails does not", ", ".join(do), wrong)]


def _telling(here: Sequence[frozenset[str]], there: Sequence[frozenset[str]]) -> list[str]:
    return [
        f"`{step}`"
        for step in sorted(frozenset().union(*here))
        if _share(step, here) >= _MOSTLY and _share(step, there) <= _RARELY
    ]


def _share(value: str, sets: Collection[frozenset[str]]) -> float:
    return sum(value in entry for entry in sets) / len(sets) if sets else 0.0


def _held(seen: Iterable[EpisodeFeatures]) -> Counter[str]:
    """In how many episodes each circumstance holds."""
    return Counter(chain.from_iterable(episode.circumstances for episode in seen))


class Surroundings:
    """In how many episodes of each scope something holds: what is true everywhere explains
    nothing.
    """

    def __init__(self, episodes: Iterable[EpisodeFeatures]) -> None:
        seen: dict[str, list[EpisodeFeatures]] = defaultdict(list)
        for episode in episodes:
            seen[episode.scope].append(episode)
        self._held = {scope: _held(members) for scope, members in seen.items()}
        self._all = {scope: len(members) for scope, members in seen.items()}

    def conditions(self, cluster: Sequence[EpisodeFeatures]) -> list[str]:
        """Circumstances that hold in most of a cluster and few other episodes; the oddest first."""
        scope, size = cluster[0].scope, len(cluster)
        inside = _held(cluster)
        others = self._all[scope] - size
        odds = self._odds(inside, self._held[scope], size, others)
        telling = [
            value
            for value, count in inside.items()
            if count / size >= _MOSTLY
            and (self._held[scope][value] - count) < _ELSEWHERE * max(others, 1)
        ]
        return sorted(telling, key=lambda value: (-odds(value), value))[:_MOST_CONDITIONS]

    @staticmethod
    def _odds(
        inside: Counter[str], held: Counter[str], size: int, others: int
    ) -> Callable[[str], float]:
        def odds(value: str) -> float:
            here, there = inside[value], held[value] - inside[value]
            ratio = (here + 0.5) * (others - there + 0.5) / ((size - here + 0.5) * (there + 0.5))
            return round(math.log(ratio), 6)

        return odds
