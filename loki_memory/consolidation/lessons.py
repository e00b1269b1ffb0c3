"""What a cluster of episodes teaches: errors that came again with what resolved them, or steps
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
from loki_memory.consolidation.similarity import content, grams, jaccard, names
from loki_memory.consolidation.template import medoid
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
    """What to know: the trouble, the remedy, and the step that led into the trouble."""

    trouble: str
    remedy: str
    wrong: str = ""


class Met(NamedTuple):
    """An error that an episode met and resolved."""

    episode: str
    message: str
    resolution: str


def lessons(cluster: Sequence[EpisodeFeatures], least: int) -> list[Lesson]:
    """Those met by most episodes first; none if nothing came in as many as `least`."""
    if len(cluster) < least:
        return []
    return _resolved(cluster, least) or _told_apart(cluster, least)


def _resolved(cluster: Sequence[EpisodeFeatures], least: int) -> list[Lesson]:
    met = [Met(episode.id, *told) for episode in cluster for told in episode.resolved]
    return [
        Lesson(_trouble(those), _remedy(those), _wrong(cluster, those))
        for those in islice(_recurring(met, least), _MOST_LESSONS)
    ]


def _recurring(met: list[Met], least: int) -> Iterator[list[Met]]:
    """Remedies that agree, of enough episodes; those that most episodes share first.

    A remedy that stands alone may be right and teaches nobody; the anti-pattern keeps it. Whether
    two agree depends on their words alone, so what many episodes say alike is compared once.
    """
    said: dict[tuple[str, str], list[Met]] = defaultdict(list)
    for one in sorted(set(met), key=lambda one: (one.resolution, one.message, one.episode)):
        said[one.resolution, one.message].append(one)
    like = _alike(said)
    while like:
        groups = ([one for way in ways for one in said[way]] for ways in like.values())
        best = min(groups, key=lambda those: (-_episodes(those), those))
        if _episodes(best) < least:
            return
        yield best
        gone = {(one.resolution, one.message) for one in best}
        left = {way: ways for way, ways in like.items() if way not in gone}
        like = {way: [one for one in ways if one not in gone] for way, ways in left.items()}


def _alike(
    said: Mapping[tuple[str, str], Sequence[Met]],
) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """For each way to tell of an error and its remedy, those that agree with it, itself too."""
    like: dict[tuple[str, str], list[tuple[str, str]]] = {way: [] for way in said}
    firsts = [(way, those[0]) for way, those in said.items()]
    for at, (way, one) in enumerate(firsts):
        like[way].append(way)
        for other_way, other in firsts[at + 1 :]:
            if _agree(one, other):
                like[way].append(other_way)
                like[other_way].append(way)
    return like


def _episodes(those: Iterable[Met]) -> int:
    return len({one.episode for one in those})


def _agree(one: Met, other: Met) -> bool:
    """Whether two remedies are one. Of the same trouble they need share little; else a name."""
    if _value(one.resolution) == _value(other.resolution):
        return True
    share = jaccard(_content(one.resolution), _content(other.resolution))
    if not _SHARED <= share < _CLOSE:
        return share >= _CLOSE
    return not names(one.resolution).isdisjoint(names(other.resolution)) or _is_same(one, other)


def _is_same(one: Met, other: Met) -> bool:
    """Whether two errors are the same trouble: one signature, or nearly the same words."""
    first, second = _class(one.message), _class(other.message)
    if first and first == second:
        return True
    return jaccard(grams(line(one.message)), grams(line(other.message))) >= _NEARLY


# The same messages and remedies are compared with many others.
_value = lru_cache(maxsize=16384)(normal)


@lru_cache(maxsize=16384)
def _content(text: str) -> frozenset[str]:
    return frozenset(content(text))


@lru_cache(maxsize=16384)
def _class(message: str) -> str:
    found = signature(message)
    return found.broad if found else ""


def _trouble(those: Sequence[Met]) -> str:
    """What was met, each error in one wording; two at most."""
    told: list[Met] = []
    for one in sorted(those, key=lambda met: (len(met.message), met.message)):
        if not any(_is_same(one, other) for other in told):
            told.append(one)
    return " / ".join(line(one.message) for one in told[:_MOST_LESSONS])


def _remedy(those: Sequence[Met]) -> str:
    """The remedy that most episodes give word for word, else the most typical."""
    given = Counter(one.resolution for one in those)
    most = max(given.values())
    return line(medoid([text for text in sorted(given) if given[text] == most]))


def _wrong(cluster: Sequence[EpisodeFeatures], those: Sequence[Met]) -> str:
    """The step that failed where the error was met."""
    met_by = {one.episode for one in those}
    there = (episode.failed for episode in cluster if episode.id in met_by)
    return medoid([*chain.from_iterable(there)])


def _told_apart(cluster: Sequence[EpisodeFeatures], least: int) -> list[Lesson]:
    """Steps that nearly all that succeeded took, and hardly one that failed."""
    good = [frozenset(one.steps) for one in cluster if one.outcome == "success"]
    bad = [frozenset(one.steps) for one in cluster if one.outcome == "failure"]
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
    return sum(value in one for one in sets) / len(sets) if sets else 0.0


def _held(seen: Iterable[EpisodeFeatures]) -> Counter[str]:
    """In how many episodes each circumstance holds."""
    return Counter(chain.from_iterable(one.circumstances for one in seen))


class Surroundings:
    """In how many episodes of each scope something holds: what is true everywhere explains
    nothing.
    """

    def __init__(self, episodes: Iterable[EpisodeFeatures]) -> None:
        seen: dict[str, list[EpisodeFeatures]] = defaultdict(list)
        for one in episodes:
            seen[one.scope].append(one)
        self._held = {scope: _held(those) for scope, those in seen.items()}
        self._all = {scope: len(those) for scope, those in seen.items()}

    def conditions(self, cluster: Sequence[EpisodeFeatures]) -> list[str]:
        """What holds in most of a cluster and not in most other episodes; the oddest first."""
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
