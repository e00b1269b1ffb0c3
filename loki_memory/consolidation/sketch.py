"""The sketch of a set of terms: its MinHash, by which likely pairs are found.

It is read in bands of two hashes. Two sets share a band the likelier the more terms they share, and
a sketch depends on its set alone: a new memory never changes what an old one is known by.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache

BANDS = 32  # finds a pair that shares 30 % of its words 19 times of 20
BITS = 16  # of a hash
_HASHES = 2 * BANDS
_AT_ONCE = 64  # bytes that one digest gives


def sketch(terms: Iterable[str]) -> bytes:
    """The least hashes, two for each band; nothing if there are no terms."""
    least = [*map(min, zip(*map(_hashes, terms), strict=True))]
    return struct.pack(f"<{len(least)}H", *least)


def meet(one: bytes, other: bytes) -> bool:
    """Whether two sketches share a band."""
    both = zip(_bands(one), _bands(other), strict=False)  # one of them may have none
    return any(band == others for band, others in both)


def _bands(sketched: bytes) -> Iterator[bytes]:
    size = 2 * BITS // 8
    return (sketched[at : at + size] for at in range(0, len(sketched), size))


@lru_cache(maxsize=65536)
def _hashes(term: str) -> tuple[int, ...]:
    """Numbers of 16 bits, the same on every machine."""
    data = b"".join(
        hashlib.blake2b(term.encode(), digest_size=_AT_ONCE, salt=bytes([part])).digest()
        for part in range(_HASHES * BITS // 8 // _AT_ONCE)
    )
    return struct.unpack(f"<{_HASHES}H", data)
