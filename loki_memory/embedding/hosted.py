"""Embeddings from a server that speaks OpenAI's API, by an address of the user's own.

The texts of memories and questions go to that server, so its address and key are read from the
user's config or the environment only. One request is one try: what failed is asked for again by
the next command, and until then the bundled model answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from loki_memory.embedding.sentence_model import endpoint, hosted_name
from loki_memory.errors import ModelUnavailable

if TYPE_CHECKING:
    from urllib.request import OpenerDirector

    from loki_memory.embedding.static_model import Vectors

_AT_ONCE = 64  # texts of a request: some 8,000 tokens, which every server takes
_QUESTION_SECONDS, _TEXTS_SECONDS = 3, 60
_MOST_BYTES = 64 << 20  # of an answer
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class HostedModel:
    """A model on a server."""

    def __init__(self, url: str, model: str, key: str = "") -> None:
        self.name = hosted_name(url, model)
        self._url, self._model, self._key = endpoint(url), model, key
        try:
            self._host = urlsplit(url).hostname or url
        except ValueError:
            raise ModelUnavailable(url, "is not an address") from None

    def encode(self, texts: Sequence[str]) -> Vectors:
        parts = [
            self._asked(texts[start : start + _AT_ONCE]) for start in range(0, len(texts), _AT_ONCE)
        ]
        if len({part.shape[1] for part in parts}) > 1:
            raise self._failed("answers with vectors of different sizes")
        return np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)

    def _asked(self, texts: Sequence[str]) -> Vectors:
        import json

        body = json.dumps({"model": self._model, "input": list(texts)}).encode()
        try:
            return _unit(_vectors(json.loads(self._sent(body, len(texts))), len(texts)))
        except (ValueError, LookupError, TypeError):
            raise self._failed("answers with something else than embeddings") from None

    def _sent(self, body: bytes, texts: int) -> bytes:
        from urllib.error import HTTPError
        from urllib.request import Request

        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        self._refuse_open_key()
        request = Request(self._url, body, headers, method="POST")  # noqa: S310 - http(s) only
        try:
            seconds = _QUESTION_SECONDS if texts == 1 else _TEXTS_SECONDS
            with _opener(is_here=self._host in _LOOPBACK).open(
                request, timeout=seconds
            ) as response:
                return bytes(response.read(_MOST_BYTES))
        except HTTPError as error:
            error.close()
            raise self._failed(f"answers {error.code} {error.reason}") from None
        except (OSError, HTTPException, UnicodeError) as error:  # of a host's name
            raise self._failed(str(getattr(error, "reason", "") or error)) from None

    def _refuse_open_key(self) -> None:
        """Refuse to send a key where others can read it."""
        if self._key and self._url.startswith("http://") and self._host not in _LOOPBACK:
            raise self._failed("a key is not sent without https")

    def _failed(self, reason: str) -> ModelUnavailable:
        return ModelUnavailable(self._host, reason)


def _opener(*, is_here: bool) -> OpenerDirector:
    """Open addresses without a redirect, or a proxy to this machine: both would get the key."""
    from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

    class Staying(HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    return build_opener(Staying, ProxyHandler({} if is_here else None))


def _vectors(answer: Any, texts: int) -> Vectors:
    """The vectors of an answer, in the order of the texts; raises ValueError or LookupError."""
    placed = sorted(answer["data"], key=lambda entry: entry["index"])
    if [entry["index"] for entry in placed] != list(range(texts)):
        raise ValueError("some texts have no vector")
    vectors = np.array([entry["embedding"] for entry in placed], np.float32)
    if vectors.ndim != 2 or not vectors.size or not np.isfinite(vectors).all():  # noqa: PLR2004
        raise ValueError("no vectors")
    return vectors


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = vectors / np.maximum(lengths, np.float32(1e-32))
    return unit
