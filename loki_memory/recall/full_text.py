"""Ask the full text: which passages have a word, how much it says about each, which words stand
close together.

One question per word, so that ranking can lend a word to the neighbours of a passage. In a large
store the rarest words are asked first, and common ones only while the work stays small. A word
that nobody wrote is looked for among the words that were written, by the letters they share.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from math import log, log1p
from typing import TYPE_CHECKING, Any

import numpy as np

from loki_memory.index import search
from loki_memory.recall.question import STOP_WORDS
from loki_memory.recall.signals import Near, Word

if TYPE_CHECKING:
    from loki_memory.index.index import Index
    from loki_memory.recall.catalogue import Catalogue, Floats

_MOST_WORDS = 40  # that the full text is asked for: each is a query
_MOST_MATCHES = 30_000  # of one question, in all: FTS5 takes about 1 µs to weigh each
_KEPT_MATCHES = 4_000_000  # that are remembered between questions: 32 MB
_GUESS = 0.7  # what a word counts that is only like the one asked for
_LIKE = 0.5  # share of letters' triples that two words must have in common
_WITHIN = 0.25  # the same for scripts without spaces, where a "word" is a whole clause
_GUESSES = 3
_CLAUSES = 20
_LONGEST = 64  # letters of a word that are compared
_SHORTEST = 3  # letters that a trigram needs
# Scripts that are written without spaces: Thai to Khmer, Japanese, Chinese, Korean.
_SPACELESS = (
    *(("\u0e00", "\u0eff"), ("\u1000", "\u109f"), ("\u1780", "\u17ff")),
    *(("\u3040", "\u30ff"), ("\u3400", "\u9fff"), ("\uac00", "\ud7af")),
)


class Lexicon:
    """The full text of one state of the index."""

    def __init__(self, index: Index, catalogue: Catalogue) -> None:
        self._index = index
        self._catalogue = catalogue
        top = int(catalogue.passage.max()) + 1 if len(catalogue.passage) else 0
        self._place = np.full(top + 1, -1, np.int32)
        self._place[catalogue.passage] = np.arange(len(catalogue.passage), dtype=np.int32)
        self._known: dict[str, Word] = {}
        self._kept = 0
        self._passages = max(1, search.passage_count(index))

    def words(self, names: Sequence[str], title: Collection[str] = ()) -> list[Word]:
        """The matches of each word, in the order of the words.

        Of very many words, those of the title and the rarest are looked for.
        """
        uses = search.word_uses(self._index, names)
        found: dict[str, Word] = {}
        matches = 0
        for name in self._looked_for(names, uses, title):
            if found and matches + uses.get(name, 0) > _MOST_MATCHES:
                continue
            found[name] = self._word(name)
            matches += len(found[name].passages)
        strangers = [name for name in found if not len(found[name].passages)]
        guess = len(strangers) * 2 > len(found)
        for name in strangers:
            if guess or _is_spaceless(name):
                found[name] = self._guessed(name)
        return [found[name] for name in names if name in found]

    def _looked_for(
        self, names: Sequence[str], uses: Mapping[str, int], title: Collection[str]
    ) -> list[str]:
        """The words to ask for, the rarest first."""
        distinct = list(dict.fromkeys(names))
        if len(distinct) > _MOST_WORDS:
            distinct = [name for name in distinct if name in title or uses.get(name)]
            distinct.sort(key=lambda name: (name not in title, uses.get(name, 0), name))
        return sorted(distinct[:_MOST_WORDS], key=lambda name: (uses.get(name, 0), name))

    def near(self, words: Sequence[Word]) -> list[Near]:
        """Neighbouring words of the question that stand close together in a passage."""
        return [
            Near(min(a.rarity, b.rarity), places)
            for a, b in pairwise(words)
            if a.word != b.word
            and len(a.passages)
            and len(b.passages)
            and len(places := self._close(a, b))
        ]

    def _word(self, name: str) -> Word:
        known = self._known.get(name)
        if known is None:
            known = self._asked(name, search.phrase(name))
            self._kept += len(known.passages)
            if self._kept > _KEPT_MATCHES:
                self._known.clear()
                self._kept = len(known.passages)
            self._known[name] = known
        return known

    def _asked(self, name: str, match: str, share: float = 1.0) -> Word:
        """One question to FTS5, its weights brought to Lucene's: no word counts nothing or less."""
        rows = search.weighed_matches(self._index, match)
        odds = (max(self._passages - len(rows), 0) + 0.5) / (len(rows) + 0.5)
        if not rows:
            return Word(name, log1p(odds), np.zeros(0, np.int32), np.zeros(0, np.float32))
        table = np.array(rows)
        rarity, theirs = log1p(odds), max(log(odds), 1e-6)  # FTS5 lets no word count less than that
        rows_of, weights = table[:, 0].astype(np.int64), -table[:, 1] * (rarity / theirs) * share
        places = self._place[np.minimum(rows_of, len(self._place) - 1)]
        here = places >= 0
        places = places[here]
        scores: Floats = weights[here].astype(np.float32)
        return Word(name, rarity * share, places, scores)

    def _close(self, a: Word, b: Word) -> Any:
        match = f"NEAR({search.phrase(a.word)} {search.phrase(b.word)}, 2)"
        rows = search.matches(self._index, match)
        if not rows:
            return np.zeros(0, np.int32)
        places = self._place[np.minimum(np.array(rows)[:, 0], len(self._place) - 1)]
        return places[places >= 0]

    def _guessed(self, name: str) -> Word:
        """The matches of written words that look like a word that nobody wrote."""
        like = self._alike(name)
        if not like:
            return self._word(name)
        return self._asked(name, " OR ".join(map(search.phrase, like)), _GUESS)

    def _alike(self, name: str) -> list[str]:
        if _is_spaceless(name):
            return self._holding(name)
        if len(name) < _SHORTEST:
            return []
        own = _triples(f"^{name}$")
        likeness = {
            word: 2 * len(own & other) / (len(own) + len(other))
            for word in self._sharing(name)
            if word not in STOP_WORDS and (other := _triples(f"^{word}$"))
        }
        near = sorted((-share, word) for word, share in likeness.items() if share >= _LIKE)
        return [word for _, word in near[:_GUESSES]]

    def _holding(self, name: str) -> list[str]:
        """Clauses that hold a word, or much of it, in a script that is written without spaces."""
        if len(name) < _SHORTEST:
            return search.words_with(self._index, name)
        own = _triples(name)
        shares = {word: len(own & _triples(word)) / len(own) for word in self._sharing(name)}
        near = sorted((-share, word) for word, share in shares.items() if share >= _WITHIN)
        return [word for _, word in near[:_CLAUSES]]

    def _sharing(self, name: str) -> list[str]:
        """Written words that share triples of letters with this one, most of them first."""
        match = " OR ".join(sorted(map(search.phrase, _triples(name[:_LONGEST]))))
        return search.words_sharing(self._index, match)


def _is_spaceless(word: str) -> bool:
    return not word.isascii() and any(a <= c <= b for c in word for a, b in _SPACELESS)


def _triples(word: str) -> set[str]:
    return {word[n : n + 3] for n in range(len(word) - 2)}
