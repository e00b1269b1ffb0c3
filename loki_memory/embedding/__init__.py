"""Text to vectors, with a static model: each token has a row, a text is the mean of its rows.

The model that is shipped needs no network and no package but numpy; `embedding.model` names
a folder with another one in the format of model2vec.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

# Several threads make a search slower as soon as the machine has other work (0.35 ms with one,
# 8 ms with two), and the first import of numpy decides how many there are.
for _library in ("OPENBLAS", "OMP", "MKL", "VECLIB"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Tokens = Sequence[int] | NDArray[np.integer[Any]]
    Vectors = NDArray[np.float32]


class Embedding(Protocol):
    """A static model: weights and tokeniser."""

    @property
    def name(self) -> str:
        """What the weights and the tokeniser are; another name means other vectors."""

    @property
    def size(self) -> int:
        """The dimensions of a vector."""

    @property
    def vocabulary(self) -> int:
        """How many tokens there are; every token id is less."""

    def tokens(self, text: str) -> list[int]:
        """The token ids of a text; what is in no vocabulary adds nothing."""

    def rows(self, tokens: Tokens) -> Vectors:
        """What each token adds to the mean: [tokens, size]."""

    def embed(self, texts: Sequence[Tokens]) -> Vectors:
        """Unit vectors of texts given as token ids: [texts, size]; a text of none is zeros."""


def load(folder: str = "") -> Embedding:
    """The model that is shipped, or the one in another folder in the format of model2vec."""
    if folder:
        from loki_memory.embedding.model2vec import ForeignModel

        return ForeignModel(folder)
    from loki_memory.embedding.bundled import StaticModel

    return StaticModel()
