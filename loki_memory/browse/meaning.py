"""A map of meaning: memories near each other say similar things.

The vector of a memory is the mean of its passages'; the two directions in which all vectors differ
most (PCA) are the axes. scikit-learn fixes the signs of the axes, so a map does not flip.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from loki_memory.browse.layout import Point

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loki_memory.home import Home
    from loki_memory.index.overview import MapRow

_AXES = 2


def positions(home: Home, rows: Sequence[MapRow]) -> dict[str, Point]:
    """Positions of the memories that have a vector; embeds those that were never embedded."""
    found = _vectors(home)
    known = [row for row in rows if row.row in found]
    if len(known) <= _AXES:
        return {row.id: Point(float(number), 0.0) for number, row in enumerate(known)}
    placed = projected(np.stack([found[row.row] for row in known]))
    return {
        row.id: Point(round(float(x), 3), round(float(y), 3))
        for row, (x, y) in zip(known, placed, strict=True)
    }


def projected(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Vectors on a plane, so large that each has about one unit of room."""
    from sklearn.decomposition import PCA

    placed = PCA(_AXES, svd_solver="covariance_eigh").fit_transform(vectors.astype(np.float64))
    widest = max(float(np.abs(placed).max()), 1e-9)
    return np.asarray(placed * (sqrt(len(vectors)) * 1.5 / widest), np.float64)


def _vectors(home: Home) -> dict[int, NDArray[np.float32]]:
    """The mean vector of each memory, by its row in the index."""
    catalogue = home.retriever.prepare()
    corpus, matrix = catalogue.corpus, home.retriever.vectors.matrix
    found = {}
    for number, row in enumerate(corpus.row):
        entries = catalogue.entry[corpus.first[number] : corpus.first[number + 1]]
        entries = entries[entries >= 0]
        if len(entries):
            found[int(row)] = matrix[entries].mean(axis=0)
    return found
