"""MinHash sketches of sets of terms, and the candidate pairs and components that they give.

A sketch is read in bands of two hashes: the more terms two sets share, the likelier they share a
band. A sketch depends on its set alone, so a new memory never changes the sketch of an old one.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

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


# -- Which items are compared with each other, and what hangs together: on arrays -----------------


Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Likeness = Callable[[Ints, Ints], Floats]  # of the pairs of two lists of items

_CROWD = 40  # items with one key
_NEXT = 8  # of a crowd that are compared with an item


class Keys(NamedTuple):
    """The keys of all items: whose each is, and what it is."""

    owners: Ints
    values: Ints


class Edges(NamedTuple):
    """Pairs that are alike, and how much."""

    ones: Ints
    others: Ints
    likeness: Floats

    def among(self, items: Flags, threshold: float) -> Edges:
        """Those of some items, whose neighbours are among them, that are at least so much alike."""
        kept = (self.likeness >= threshold) & items[self.ones]
        return Edges(self.ones[kept], self.others[kept], self.likeness[kept])


def keys_of(lists: Sequence[Iterable[Hashable]]) -> Keys:
    """The keys that each item lists."""
    number: dict[Hashable, int] = {}
    pairs = [
        (at, number.setdefault(key, len(number))) for at, own in enumerate(lists) for key in own
    ]
    both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Keys(both[:, 0], both[:, 1])


def bands(sketches: Sequence[bytes]) -> Keys:
    """The bands of each item, given its sketch."""
    told = np.array([at for at, one in enumerate(sketches) if one], dtype=np.int64)
    pairs = np.frombuffer(b"".join(sketches), dtype="<u4").astype(np.int64).reshape(-1, BANDS)
    values = np.arange(BANDS) << 2 * BITS | pairs
    return Keys(np.repeat(told, BANDS), values.ravel())


def edges(keys: Keys, likeness: Likeness, threshold: float) -> Edges:
    """The pairs that share a key and are at least so much alike."""
    ones, others = _compared(keys)
    found = likeness(ones, others)
    kept = found >= threshold
    return Edges(ones[kept], others[kept], found[kept])


def _compared(keys: Keys) -> tuple[Ints, Ints]:
    """Pairs of items with a common key, the smaller first, each once.

    Those that have a key stand side by side in the order of items: from step to step fewer have
    another one so far behind them.
    """
    many = int(keys.owners.max(initial=0)) + 1
    values, owners = np.divmod(np.sort(keys.values * many + keys.owners), many)
    starts = _changes(values)
    crowd = np.diff(np.append(starts, len(values)))
    crowd = np.repeat(crowd, crowd)  # how many have the key, for each of them
    found = [np.array([], dtype=np.int64)]
    left = np.arange(len(values))
    for apart in range(1, _CROWD):
        left = left[left + apart < len(values)]
        left = left[values[left] == values[left + apart]]
        if apart == _NEXT + 1:
            left = left[crowd[left] <= _CROWD]
        if not len(left):
            break
        found.append(owners[left] * many + owners[left + apart])
    pairs = np.sort(np.concatenate(found))  # `np.unique` takes many times as long
    ones, others = np.divmod(pairs[_changes(pairs)], many)
    return ones, others


def _changes(values: Ints) -> Ints:
    """Where a sorted list has another value than just before."""
    return np.flatnonzero(np.diff(values, prepend=values[:1] - 1))


def components(many: int, near: Edges) -> Ints:
    """What hangs together among so many items: for each, the smallest that it hangs on to."""
    root = np.arange(many)
    while len(near.ones):
        ends = root[near.ones], root[near.others]
        lower = np.minimum(*ends)
        joined = root.copy()
        for end in ends:
            np.minimum.at(joined, end, lower)
        while (joined[joined] != joined).any():
            joined = joined[joined]
        if (joined == root).all():
            break
        root = joined
    return root


def together(items: Ints, root: Ints) -> Iterator[list[int]]:
    """Items by what they hang on to, smallest first."""
    order = np.argsort(root[items], kind="stable")
    ordered = items[order]
    ends = np.flatnonzero(np.diff(root[ordered])) + 1
    bounds = [0, *ends.tolist(), len(items)] if len(items) else []
    values = ordered.tolist()
    yield from (values[start:end] for start, end in pairwise(bounds))
