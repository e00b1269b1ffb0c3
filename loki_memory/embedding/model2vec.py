"""Any other static model: a folder that model2vec reads, read by model2vec.

A text is never cut and its vector always has length 1, whatever the folder's config.json says:
recall compares directions.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from loki_memory.embedding.pooling import directions, numbers
from loki_memory.errors import InvalidConfig

if TYPE_CHECKING:
    import model2vec
    from numpy.typing import NDArray

    from loki_memory.embedding import Tokens, Vectors

_SETTING = "embedding.model"


class ForeignModel:
    """The weights and the tokeniser of a folder."""

    def __init__(self, folder: str) -> None:
        place = _existing(folder)
        model = _read(place)
        model.tokenizer.no_truncation()
        self._model = model
        self._vectors: NDArray[Any] = model.embedding
        self._weights, self._mapping = model.weights, model.token_mapping
        self.name = f"model2vec-{_digest(place)}"
        self.size = int(model.embedding.shape[1])
        self.vocabulary = len(model.tokens)

    def tokens(self, text: str) -> list[int]:
        """Half of a surrogate pair is no character, and no tokeniser would take it."""
        readable = text.encode("utf-8", "ignore").decode()
        return self._model.tokenize([readable])[0]

    def rows(self, tokens: Tokens) -> Vectors:
        chosen = numbers(tokens)
        lines = chosen if self._mapping is None else np.asarray(self._mapping)[chosen]
        rows: Vectors = self._vectors[lines].astype(np.float32)
        if self._weights is not None:
            rows *= self._weights[chosen].astype(np.float32)[:, None]
        return rows

    def embed(self, texts: Sequence[Tokens]) -> Vectors:
        return directions(texts, self.size, self._total)

    def _total(self, tokens: Tokens) -> Vectors:
        total: Vectors = self.rows(tokens).sum(axis=0)
        return total


def _existing(folder: str) -> str:
    """The folder itself: model2vec would take a name that does not exist for one to download."""
    place = os.path.expanduser(folder)
    if not os.path.isabs(place):
        raise InvalidConfig(_SETTING, f"{folder} is not a whole path; begin it with / or ~.")
    if not os.path.isdir(place):
        raise InvalidConfig(_SETTING, f"{place} is not a folder; name one that model2vec reads.")
    return place


def _read(folder: str) -> model2vec.StaticModel:
    try:
        from model2vec import StaticModel
    except ImportError as missing:
        raise InvalidConfig(
            _SETTING,
            f"reading {folder} takes model2vec ({missing}); install `loki-memory[model2vec]`, or "
            "leave the setting empty for the model that is shipped.",
        ) from missing
    try:
        return StaticModel.from_pretrained(folder)
    except BaseException as error:  # tokenizers raises plain ones, of no class of its own
        if not isinstance(error, Exception):
            raise
        raise InvalidConfig(
            _SETTING, f"{folder} is no model that model2vec reads ({error}); name another folder."
        ) from error


def _digest(folder: str) -> str:
    """What the folder holds, in twelve digits: weights and tokeniser, wherever they lie in it."""
    from hashlib import sha256

    digest = sha256()
    for path in sorted(_files(folder)):
        digest.update(os.path.relpath(path, folder).encode() + b"\0")
        with open(path, "rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()[:12]


def _files(folder: str) -> list[str]:
    """Where model2vec keeps the weights and the tokeniser, and where sentence-transformers does."""
    places = (folder, os.path.join(folder, "0_StaticEmbedding"))
    names = ("model.safetensors", "tokenizer.json")
    paths = [os.path.join(place, name) for place in places for name in names]
    return [path for path in paths if os.path.isfile(path)]
