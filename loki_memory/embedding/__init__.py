"""Text to vectors, with a static model: each token has a row, a text is the mean of its rows.

The model that is shipped has two readers that give the same vectors, bit by bit: ours needs numpy
alone and starts at once, for questions and for a few new memories; model2vec takes 0.3 s to start
and embeds memories where that does not matter. `embedding.model` names a folder with another model,
which model2vec reads.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

# Several threads make a search slower as soon as the machine has other work (0.35 ms with one,
# 8 ms with two), and the first import of numpy decides how many there are.
for _library in ("OPENBLAS", "OMP", "MKL", "VECLIB"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Tokens = Sequence[int] | NDArray[np.integer[Any]]
    Vectors = NDArray[np.float32]


class Encoded(NamedTuple):
    """Texts as token ids and as unit vectors, in the order of the texts."""

    tokens: list[list[int]]
    vectors: Vectors


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

    def encode(self, texts: Sequence[str]) -> Encoded:
        """Tokenise and embed texts."""


def load(folder: str = "") -> Embedding:
    """The model that is shipped, or the one in another folder in the format of model2vec."""
    if folder:
        return load_with_model2vec(folder)
    from loki_memory.embedding.bundled import StaticModel

    return StaticModel()


def load_with_model2vec(folder: str = "") -> Embedding:
    """The same model, read by model2vec."""
    from loki_memory.embedding.bundled import FOLDER, NAME
    from loki_memory.embedding.model2vec import Model2VecModel

    return Model2VecModel(folder) if folder else Model2VecModel(FOLDER, NAME)
