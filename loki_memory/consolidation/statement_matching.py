"""Match statements: with the fact that says the same, and the defect that one mended.

A statement tells of a defect if it begins with a name of the project's own code and says what is
wrong with it. A text of a later session is about the same defect if it has that name and most of
the words. What is wrong with a tool from outside stays true, and a rule stays a rule.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.consolidation.features import EpisodeFeatures, StatedSentence
from loki_memory.consolidation.positions import Position, position
from loki_memory.consolidation.provenance import extra
from loki_memory.consolidation.similarity import content, marks, opposed
from loki_memory.consolidation.snapshot import Snapshot, cached_by_episodes
from loki_memory.consolidation.surprise import repeated, says_nothing, surprise
from loki_memory.models import Fact
from loki_memory.models.belief import Surprise
from loki_memory.models.ids import digest
from loki_memory.models.lesson_text import asks_to_mend, faulty_name, own_names, says_mended
from loki_memory.models.text import normal

if TYPE_CHECKING:
    from loki_memory.embedding.static_model import Embedding

_SHARED = 3  # words of content that two statements of one lesson have in common, at least
_SAME_LESSON = 0.7  # of similarity; chosen by reading what joins on two projects
_MAY_REPEAT = 0.4  # of the words of a statement: with fewer in common nothing repeats it
_GRID = 1024  # parts of 1 to which a vector is rounded


class Stated(NamedTuple):
    """One statement in one episode."""

    episode: EpisodeFeatures
    statement: StatedSentence
    before: str = ""  # what was stated before it in the episode, or its goal

    @property
    def id(self) -> str:
        return f"fact-{digest('fact', self.episode.scope, normal(self.statement.text))}"


class Shelf:
    """Facts by the stems of their words, in which those that say the same are found."""

    def __init__(self, least: float) -> None:
        self.surprises: dict[str, Surprise] = {}  # of the statements that began facts here
        self._least = least
        self._texts: dict[str, str] = {}
        self._begun: dict[str, tuple[str, str]] = {}  # the day and the episode; of those put here
        self._meanings = _Meanings()
        self._having: defaultdict[str, list[str]] = defaultdict(list)

    def put(self, known: Iterable[Fact]) -> None:
        """Put facts on the shelf that earlier runs made."""
        for fact in sorted(known, key=lambda belief: (belief.valid_from or "", belief.id)):
            self._add(fact.id, extra(fact, "key")["statement"])
            self._begun[fact.id] = (fact.valid_from or "", min(fact.evidence.for_, default=""))

    def joined(self, stated: Stated) -> str:
        """The id of the fact that a statement joins, or begins; empty if it says nothing."""
        if stated.id in self._texts:
            if self._is_later(stated.id, stated):
                self.surprises[stated.id] = self._surprise(stated)
                del self._begun[stated.id]
            return stated.id
        return self._same(stated.statement.text) or self._begin(stated)

    def _same(self, text: str) -> str:
        """The id of the fact that says the same; empty if none does."""
        shared = self._sharing(text)
        near = {id_: count for id_, count in shared.items() if count >= _SHARED}
        alike = {id_: self._similarity(text, id_, count) for id_, count in near.items()}
        best = max(sorted(alike), key=alike.__getitem__, default="")
        return best if best and alike[best] >= _SAME_LESSON else ""

    def _begin(self, stated: Stated) -> str:
        """Begin a fact, unless it is no surprise: then it joins the one that it repeats."""
        text = stated.statement.text
        found = self._surprise(stated)
        if found.score < self._least:
            known = [] if says_nothing(text) else sorted(self._known(stated))
            return max(known, key=lambda id_: repeated(text, self._texts[id_]), default="")
        self._add(stated.id, text)
        self.surprises[stated.id] = found
        return stated.id

    def _surprise(self, stated: Stated) -> Surprise:
        said = stated.statement
        known = [self._texts[id_] for id_ in self._known(stated)]
        return surprise(said.text, known, stated.before, said.type)

    def _known(self, stated: Stated) -> list[str]:
        """The facts that began before a statement and may be about the same."""
        text = stated.statement.text
        enough = _MAY_REPEAT * len(set(content(text)))
        near = {id_ for id_, count in self._sharing(text).items() if count >= enough}
        chosen = position(text)
        near.update(self._having[_choice(chosen)] if chosen else ())
        return [
            id_
            for id_ in near
            if id_ != stated.id
            and not self._is_later(id_, stated)
            and not _tells_of_mending(self._texts[id_], text)
        ]

    def _is_later(self, id_: str, stated: Stated) -> bool:
        """Check whether a fact of an earlier run began not before this statement."""
        begun = self._begun.get(id_)
        return begun is not None and begun >= (stated.episode.date, stated.episode.id)

    def _sharing(self, text: str) -> Counter[str]:
        """Count how many words of content facts have in common with a text."""
        words = set(content(text))
        return Counter(chain.from_iterable(self._having.get(word, ()) for word in words))

    def _similarity(self, text: str, id_: str, shared: int) -> float:
        """Half the cosine of the embeddings, half the share of words; 0 if one denies the other."""
        other = self._texts[id_]
        cover = shared / min(len(set(content(text))), len(set(content(other))))
        if 1 + cover < 2 * _SAME_LESSON or not _may_be_same(text, other):
            return 0.0
        return round((self._meanings.cosine(text, other) + cover) / 2, 4)

    def _add(self, id_: str, text: str) -> None:
        self._texts[id_] = text
        for word in set(content(text)):
            self._having[word].append(id_)
        if chosen := position(text):
            self._having[_choice(chosen)].append(id_)


def _choice(chosen: Position) -> str:
    """The place on the shelf of what chooses among the same alternatives; no word has a space."""
    return f"choice {chosen.group}"


class _Meanings:
    """Embeddings of texts, each computed once; on a grid, so that every machine decides alike."""

    def __init__(self) -> None:
        self._vectors: dict[str, Any] = {}

    def cosine(self, text: str, other: str) -> float:
        return float(self._vector(text) @ self._vector(other)) / _GRID**2

    def _vector(self, text: str) -> Any:
        if text not in self._vectors:
            import numpy as np

            model = _model()
            self._vectors[text] = np.rint(model.embed([model.tokens(text)])[0] * _GRID)
        return self._vectors[text]


@cache
def _model() -> Embedding:
    from loki_memory.embedding import load

    return load()


def _may_be_same(text: str, other: str) -> bool:
    """Check whether neither text denies the other, nor tells that it was mended."""
    if _tells_of_mending(text, other):
        return False
    return marks(text).is_negated == marks(other).is_negated and not opposed(text, other)


def _tells_of_mending(text: str, other: str) -> bool:
    """Check whether one text tells of a defect and the other of its mending."""
    pairs = ((text, other), (other, text))
    return any(faulty_name(defect) and says_mended(mending) for defect, mending in pairs)


# -- Defects that a later session mended: it says so, or it was asked to and succeeded ------------

_MAY_BE_DEFECTS = frozenset({"", "fact", "entity", "relationship"})  # types of statements
_SHARE = 0.5  # of the words of content of a defect that its mending has too


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
