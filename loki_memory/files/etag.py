"""Etags: which version of a file somebody saw."""

from __future__ import annotations

from hashlib import blake2b

_BYTES = 16


def etag(data: bytes) -> str:
    """A hash of the bytes: what a writer shows to prove which version it saw."""
    return blake2b(data, digest_size=_BYTES).hexdigest()
