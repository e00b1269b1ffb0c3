"""A static model read by model2vec: the one that is shipped, or any other.

A text is never cut and its vector always has length 1, whatever the folder's config.json says:
recall compares directions.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from loki_memory.embedding.pooling import mean_directions, numbers
from loki_memory.embedding.static_model import Encoded
from loki_memory.errors import InvalidConfig

if TYPE_CHECKING:
    import model2vec
    from numpy.typing import NDArray

    from loki_memory.embedding.static_model import Tokens, Vectors

_SETTING = "embedding.model"


class Model2VecModel:
    """The weights and the tokeniser of a folder."""

    def __init__(self, folder: str, name: str = "") -> None:
        place = _existing(folder)
        model = _read(place)
        self._model = model
        self._vectors: NDArray[Any] = model.embedding
        self._weights, self._mapping = model.weights, model.token_mapping
        self.name = name or f"model2vec-{_digest(place)}"
        self.size = int(model.embedding.shape[1])
        self.vocabulary = len(model.tokens)

    def tokens(self, text: str) -> list[int]:
        return self._model.tokenize([_readable(text)])[0]

    def rows(self, tokens: Tokens) -> Vectors:
        chosen = numbers(tokens)
        lines = chosen if self._mapping is None else np.asarray(self._mapping)[chosen]
        rows: Vectors = self._vectors[lines].astype(np.float32)
        if self._weights is not None:
            rows *= self._weights[chosen].astype(np.float32)[:, None]
        return rows

    def embed(self, texts: Sequence[Tokens]) -> Vectors:
        return mean_directions(texts, self.size, self.rows)

    def encode(self, texts: Sequence[str]) -> Encoded:
        if not texts:
            return Encoded([], self.embed([]))
        readable = [_readable(text) for text in texts]
        vectors = self._model.encode(readable, normalize=True, max_length=None)
        return Encoded(self._model.tokenize(readable), vectors)


def _readable(text: str) -> str:
    """Replace halves of surrogate pairs, which no tokeniser takes."""
    return text.encode("utf-8", "ignore").decode()


def _existing(folder: str) -> str:
    """Check the folder: model2vec would try to download a name that does not exist."""
    place = os.path.expanduser(folder)
    if not os.path.isabs(place):
        raise InvalidConfig(_SETTING, f"{folder} is not a whole path; begin it with / or ~.")
    if not os.path.isdir(place):
        raise InvalidConfig(_SETTING, f"{place} is not a folder; name one that model2vec reads.")
    return place


def _read(folder: str) -> model2vec.StaticModel:
    from model2vec import StaticModel

    try:  # in the precision of our own vectors, whatever that of the weights is
        return StaticModel.from_pretrained(folder, max_length=None, quantize_to="float32")
    except BaseException as error:  # tokenizers raises plain exceptions, without a class of its own
        if not isinstance(error, Exception):
            raise
        raise InvalidConfig(
            _SETTING, f"{folder} is no model that model2vec reads ({error}); name another folder."
        ) from error


def _digest(folder: str) -> str:
    """A fingerprint, in twelve digits, of the weights and the tokeniser in a folder."""
    from hashlib import sha256

    digest = sha256()
    for path in sorted(_files(folder)):
        digest.update(os.path.relpath(path, folder).encode() + b"\0")
        with open(path, "rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()[:12]


def _files(folder: str) -> list[str]:
    """The places where model2vec, and sentence-transformers, keep the weights and the tokeniser."""
    places = (folder, os.path.join(folder, "0_StaticEmbedding"))
    names = ("model.safetensors", "tokenizer.json")
    paths = [os.path.join(place, name) for place in places for name in names]
    return [path for path in paths if os.path.isfile(path)]
