"""Defects that a later session mended: it says so, or it was asked to and succeeded.

A statement tells of a defect if it begins with a name of the project's own code and says what is
wrong with it. A text of a later session is about the same defect if it has that name and most of
the words. What is wrong with a tool from outside stays true, and a rule stays a rule.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from loki_memory.consolidation.features import EpisodeFeatures
from loki_memory.consolidation.similarity import content
from loki_memory.consolidation.snapshot import Snapshot, cached_by_episodes
from loki_memory.models.lesson_text import asks_to_mend, faulty_name, own_names, says_mended

_MAY_BE_DEFECTS = frozenset({"", "fact", "entity", "relationship"})  # types of statements
_SHARED, _SHARE = 3, 0.5  # words of content that a defect and its mending have in common


class _Mending(NamedTuple):
    episode: EpisodeFeatures
    words: frozenset[str]


class Mendings:
    """The mendings that episodes tell of, by the names of code in them."""

    def __init__(self, episodes: Iterable[EpisodeFeatures]) -> None:
        self._by_name: defaultdict[str, list[_Mending]] = defaultdict(list)
        for episode in episodes:
            for text in _mending_texts(episode):
                mending = _Mending(episode, frozenset(content(text)))
                for name in own_names(text):
                    self._by_name[name].append(mending)

    def mend(self, text: str, type_: str, since: str, told_in: Collection[str]) -> bool:
        """Check whether an episode after a moment, and not among these, mended a defect."""
        name = faulty_name(text) if type_ in _MAY_BE_DEFECTS else ""
        if name not in self._by_name:
            return False
        words = frozenset(content(text))
        return any(
            mending.episode.timestamp > since
            and mending.episode.id not in told_in
            and _is_about_same(words, mending.words)
            for mending in self._by_name[name]
        )


@cached_by_episodes
def mendings(snapshot: Snapshot) -> Mendings:
    """The mendings of all episodes of a snapshot."""
    return Mendings(snapshot.episodes)


def _mending_texts(episode: EpisodeFeatures) -> Iterator[str]:
    yield from (entry.text for entry in episode.statements() if says_mended(entry.text))
    if episode.outcome == "success" and asks_to_mend(episode.goal):
        yield episode.goal


def _is_about_same(words: frozenset[str], other: frozenset[str]) -> bool:
    shared = len(words & other)
    return shared >= max(_SHARED, _SHARE * min(len(words), len(other)))
