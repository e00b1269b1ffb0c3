"""Mean pooling: the vector of a text is the direction of the sum of its token vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from loki_memory.embedding import Tokens, Vectors


def directions(texts: Sequence[Tokens], size: int, total: Callable[[Tokens], Vectors]) -> Vectors:
    """Unit vectors of the texts, given the sum of the rows of one.

    The sum points where the mean points. One product per text is faster than any sum over
    segments of a batch, and a text's vector does not depend on what it is embedded with.
    """
    vectors = np.zeros((len(texts), size), np.float32)
    for number, tokens in enumerate(texts):
        if len(tokens):
            vectors[number] = total(tokens)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    lengths[lengths == 0] = 1
    vectors /= lengths[:, None]
    return vectors


def numbers(tokens: Tokens) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Token ids as numpy takes them for an index, however they were given."""
    return np.asarray(tokens, np.intp)
