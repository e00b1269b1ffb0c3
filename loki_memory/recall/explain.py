"""Explain hits: the reasons for each, and the parts of its score."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from loki_memory.recall.relevance import Nearness

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loki_memory.recall.catalogue import Catalogue
    from loki_memory.recall.ranking import Ranked, Word

_CLOSE = 0.8  # of the best cosine, from which on meaning is a reason of its own
_WORDS_TOLD = 6


class Hit(NamedTuple):
    """A memory that was chosen: its row, its score, the reasons, what the score is made of."""

    row: int
    score: float
    why: list[str]
    parts: dict[str, float]
    nearness: Nearness | None = None  # None where nothing was ranked


def explained(
    store: Catalogue,
    asked: Sequence[Word],
    ranked: Ranked,
    chosen: Sequence[tuple[int, float]],
    reasons: Mapping[int, Sequence[str]],
    sure: Collection[int],
) -> list[Hit]:
    """The chosen documents as hits; those in `sure` have a reason that cannot be an accident."""
    documents = ranked.documents[[number for number, _ in chosen]]
    words = _words_in(store, asked, documents)
    cosine = ranked.parts.get("cosine")
    best = float(cosine.max(initial=0)) if cosine is not None else 0.0
    hits = []
    for (number, score), document in zip(chosen, documents.tolist(), strict=True):
        parts = {name: float(values[number]) for name, values in ranked.parts.items()}
        close = best > 0 and parts.get("cosine", 0.0) >= _CLOSE * best
        why = _why(reasons.get(document, []), words.get(document, []), close=close)
        if not why:
            lent = parts.get("bm25", 0.0) > 0
            why = ["stands beside what matches" if lent else "the nearest there is"]
        alike, near_by = float(ranked.alike[number]), float(ranked.cosine[number])
        near = Nearness(alike, near_by, document in sure)
        was_ranked = near.alike != 0 or near.cosine != 0
        row = int(store.corpus.row[document])
        hits.append(Hit(row, score, why, parts, near if was_ranked else None))
    return hits


def _words_in(
    store: Catalogue, asked: Sequence[Word], documents: NDArray[np.int32]
) -> dict[int, list[str]]:
    """The words of the question that each document has."""
    found: dict[int, list[str]] = {}
    for word in asked:
        has = np.zeros(len(store.corpus.row), np.bool_)
        has[store.corpus.document[word.passages]] = True
        for document in documents[has[documents]].tolist():
            found.setdefault(document, []).append(word.word)
    return found


def _why(reasons: Sequence[str], words: Sequence[str], *, close: bool) -> list[str]:
    why = list(dict.fromkeys(reasons))
    if words:
        why.append("matches " + ", ".join(f"'{word}'" for word in words[:_WORDS_TOLD]))
    if close:
        why.append("close in meaning")
    return why
