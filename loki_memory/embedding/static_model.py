"""A static model: text to tokens, tokens to rows, a text is the direction of their mean.

The model that is shipped has int8 rows with a weight each, mapped from the file. `StaticModel`
reads it with numpy alone, without the 0.3 s that importing model2vec takes; `Model2VecModel` reads
it and any other. Token ids and vectors are equal, except for characters that are younger than the
tables of our tokeniser.
"""

from __future__ import annotations

import ast
import mmap
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy import float32, int8

from loki_memory.embedding.tokenizer import Vocabulary, WordPiece
from loki_memory.errors import InvalidConfig

if TYPE_CHECKING:
    import model2vec
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


# -- the model that is shipped ---------------------------------------------------------------------


FOLDER = os.path.join(os.path.dirname(__file__), "model")
# The first digits of the SHA-256 of model.safetensors and vocab.txt, one after the other.
# Written here because it takes longer to compute than to answer a question.
NAME = "loki-256-e89370790736"
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


# -- any model, read by model2vec ------------------------------------------------------------------


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
