"""Etags: identify the version of a file that a writer has seen."""

from __future__ import annotations

from hashlib import blake2b

_BYTES = 16


def etag(data: bytes) -> str:
    """A hash of the bytes, by which a writer proves which version it saw."""
    return blake2b(data, digest_size=_BYTES).hexdigest()
