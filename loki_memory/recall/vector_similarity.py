"""Likeness of meaning: a question's tokens against passages and against their tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loki_memory.embedding import Embedding
    from loki_memory.index.vectors import Vectors
    from loki_memory.recall.catalogue import Catalogue

    Floats = NDArray[np.float32]
    Ints = NDArray[np.int32]

_LONGEST = 4000  # characters of a question that are embedded


class Lengths:
    """Lengths of the vectors of tokens, each measured once."""

    def __init__(self, embedding: Embedding) -> None:
        self._known: Floats = np.zeros(embedding.vocabulary, np.float32)

    def of(self, tokens: Ints, rows: Floats) -> Floats:
        new = self._known[tokens] == 0
        if new.any():
            squares = np.einsum("ij,ij->i", rows[new], rows[new])
            self._known[tokens[new]] = np.maximum(np.sqrt(squares), 1e-9)
        known: Floats = self._known[tokens]
        return known


class Meaning:
    """One question's tokens, each as rare as it is in this store."""

    def __init__(
        self,
        store: Catalogue,
        vectors: Vectors,
        embedding: Embedding,
        lengths: Lengths,
        text: str,
    ) -> None:
        self._store = store
        self._vectors = vectors
        self._embedding = embedding
        self._lengths = lengths
        self.tokens: Ints = np.array(embedding.tokens(text[:_LONGEST]), np.int32)
        self.weights: Floats = store.corpus.rarity[self.tokens]
        self._rows: Floats = embedding.rows(self.tokens)

    def cosine(self) -> Floats:
        """Cosine with every passage, after half of the store's mean is taken off both sides.

        What all memories of a project have in common tells none of them apart.
        """
        store = self._store
        if not len(self.tokens) or not len(self._vectors):
            return np.zeros(len(store.entry), np.float32)
        vector = unit(unit(self.weights @ self._rows) - store.mean * np.float32(0.5))
        along = self._vectors.matrix @ vector - np.float32(store.mean @ vector / 2)
        cosine: Floats = along[store.entry] / store.norm
        cosine[store.entry < 0] = 0
        return cosine

    def similar(self) -> Callable[[Ints], Floats]:
        """Asks for the cosine of each token of the question with other tokens."""
        own: Floats = np.divide(
            self._rows, self._lengths.of(self.tokens, self._rows)[:, None], dtype=np.float32
        )

        def similar(tokens: Ints) -> Floats:
            rows = self._embedding.rows(tokens)
            like: Floats = (own @ rows.T) / self._lengths.of(tokens, rows)
            return like

        return similar


def unit(vector: Floats) -> Floats:
    length = float(np.sqrt(vector @ vector))
    return (vector / length).astype(np.float32) if length else vector.astype(np.float32)
