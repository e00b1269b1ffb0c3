"""Mean pooling: the vector of a text is the direction of the mean of its token vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from loki_memory.embedding.static_model import Tokens, Vectors


def mean_directions(
    texts: Sequence[Tokens], size: int, rows: Callable[[Tokens], Vectors]
) -> Vectors:
    """Unit vectors of the texts, given the rows of one text's tokens.

    The operations and their order are those of `model2vec.StaticModel.encode`, so that the last
    bit is the same. One mean per text is as fast as any sum over segments of a batch, and a text's
    vector does not depend on what it is embedded with.
    """
    vectors = np.zeros((len(texts), size), np.float32)
    for number, tokens in enumerate(texts):
        if len(tokens):
            vectors[number] = rows(tokens).mean(axis=0)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True) + np.float32(1e-32)
    unit: Vectors = vectors / lengths
    return unit


def numbers(tokens: Tokens) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Token ids as numpy takes them for an index, however they were given."""
    return np.asarray(tokens, np.intp)
