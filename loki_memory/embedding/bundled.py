"""The model that is shipped: int8 rows with a weight each, mapped from the file.

It reads the folder that `model2vec.StaticModel` reads, without the 0.3 s that importing model2vec
takes. Token ids and vectors are equal, except for characters that are younger than the tables of
its tokeniser.
"""

from __future__ import annotations

import ast
import mmap
import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import float32, int8

from loki_memory.embedding.pooling import mean_directions, numbers
from loki_memory.embedding.static_model import Encoded
from loki_memory.embedding.tokenizer import Vocabulary, WordPiece

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loki_memory.embedding.static_model import Tokens, Vectors

FOLDER = os.path.join(os.path.dirname(__file__), "model")
# The first digits of the SHA-256 of model.safetensors and vocab.txt, one after the other.
# Written here because it takes longer to compute than to answer a question.
NAME = "loki-256-745702d7267b"
_TYPES: dict[str, type[np.generic]] = {"I8": int8, "F32": float32}


class StaticModel:
    """The shipped weights, each read when it is needed."""

    name = NAME

    def __init__(self) -> None:
        tensors = _tensors(os.path.join(FOLDER, "model.safetensors"))
        self._vectors: NDArray[int8] = tensors["embeddings"]
        self._weights: NDArray[float32] = tensors["weights"]
        self.vocabulary, self.size = self._vectors.shape

    @cached_property
    def _wordpiece(self) -> WordPiece:
        return WordPiece(Vocabulary(os.path.join(FOLDER, "vocab.txt")))

    def tokens(self, text: str) -> list[int]:
        return self._wordpiece.tokens(text)

    def rows(self, tokens: Tokens) -> Vectors:
        chosen = numbers(tokens)
        return self._vectors[chosen] * self._weights[chosen][:, None]

    def embed(self, texts: Sequence[Tokens]) -> Vectors:
        return mean_directions(texts, self.size, self.rows)

    def encode(self, texts: Sequence[str]) -> Encoded:
        tokens = [self.tokens(text) for text in texts]
        return Encoded(tokens, self.embed(tokens))


def _tensors(path: str) -> dict[str, NDArray[Any]]:
    """The arrays in a safetensors file: the header's length in 8 bytes, the header, the data."""
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = 8 + int.from_bytes(data[:8], "little")
    # The header is JSON without true, false and null, so Python's own literals read it; json
    # would have to be imported for it alone.
    header = ast.literal_eval(data[8:start].decode())
    return {name: _tensor(data, start, tensor) for name, tensor in header.items()}


def _tensor(data: mmap.mmap, start: int, tensor: dict[str, Any]) -> NDArray[Any]:
    begin, end = tensor["data_offsets"]
    kind = np.dtype(_TYPES[tensor["dtype"]]).newbyteorder("<")
    count = (end - begin) // kind.itemsize
    return np.frombuffer(data, kind, count, start + begin).reshape(tensor["shape"])
