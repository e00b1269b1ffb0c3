"""A static model as its readers offer it: text to tokens, tokens to vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

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
        """The name of these weights and this tokeniser; another name means other vectors."""

    @property
    def size(self) -> int:
        """The dimensions of a vector."""

    @property
    def vocabulary(self) -> int:
        """The number of tokens; every token id is less."""

    def tokens(self, text: str) -> list[int]:
        """The token ids of a text; unknown words add nothing."""

    def rows(self, tokens: Tokens) -> Vectors:
        """The row that each token adds to the mean: [tokens, size]."""

    def embed(self, texts: Sequence[Tokens]) -> Vectors:
        """Unit vectors of texts given as token ids: [texts, size]; a text of none is zeros."""

    def encode(self, texts: Sequence[str]) -> Encoded:
        """Tokenise and embed texts."""
