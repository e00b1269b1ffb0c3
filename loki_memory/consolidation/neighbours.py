"""Which items are compared with each other, and what hangs together: on arrays.

Nobody compares everything with everything: two items are compared if they share a key. Where a
set of terms is what an item is about, its keys are bands of its MinHash: two sets share one the
likelier the more terms they share, and they depend on the set alone, so that a new memory never
changes what an old one is known by. Of a crowd that shares a key only the nearest are compared:
items are in the order of their content, so these begin alike, and the number of comparisons stays
in proportion to the items.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Likeness = Callable[[Ints, Ints], Floats]  # of the pairs of two lists of items

_CROWD = 40  # items with one key
_NEXT = 8  # of a crowd that are compared with an item
_BANDS = 32  # of two hashes each: finds a pair that shares 30 % of its words 19 times of 20
_BITS = 16  # of a hash


class Keys(NamedTuple):
    """The keys of all items: whose each is, and what it is."""

    owners: Ints
    values: Ints


class Edges(NamedTuple):
    """Pairs that are alike, and how much."""

    ones: Ints
    others: Ints
    likeness: Floats

    def within(self, members: Ints, threshold: float) -> Edges:
        """Those between members that are at least so much alike."""
        kept = self.likeness >= threshold
        kept &= np.isin(self.ones, members) & np.isin(self.others, members)
        return Edges(self.ones[kept], self.others[kept], self.likeness[kept])


def keys_of(lists: Sequence[Iterable[Hashable]]) -> Keys:
    """The keys that each item lists."""
    number: dict[Hashable, int] = {}
    pairs = [
        (at, number.setdefault(key, len(number))) for at, own in enumerate(lists) for key in own
    ]
    both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Keys(both[:, 0], both[:, 1])


def bands(items: Sequence[Collection[str]]) -> Keys:
    """The bands of each item's terms; an item without terms has none."""
    told = np.array([at for at, terms in enumerate(items) if terms], dtype=np.int64)
    if not len(told):
        return Keys(told, told)
    number: dict[str, int] = {}
    flat = [number.setdefault(one, len(number)) for terms in items for one in terms]
    starts = np.cumsum([0, *(len(terms) for terms in items if terms)])[:-1]
    hashes = np.array([_hashes(term) for term in number], dtype=np.int64)
    least = np.minimum.reduceat(hashes[flat], starts, axis=0)
    band = np.arange(_BANDS) << 2 * _BITS
    values = band | least[:, 0::2] << _BITS | least[:, 1::2]
    return Keys(np.repeat(told, _BANDS), values.ravel())


@lru_cache(maxsize=262144)
def _hashes(term: str) -> tuple[int, ...]:
    """Numbers of 16 bits, two for each band, the same on every machine."""
    count = 2 * _BANDS // 32
    data = b"".join(
        hashlib.blake2b(term.encode(), digest_size=64, salt=bytes([part])).digest()
        for part in range(count)
    )
    return struct.unpack(f"<{2 * _BANDS}H", data)


def edges(keys: Keys, likeness: Likeness, threshold: float) -> Edges:
    """The pairs that share a key and are at least so much alike."""
    ones, others = _compared(keys)
    found = likeness(ones, others)
    kept = found >= threshold
    return Edges(ones[kept], others[kept], found[kept])


def _compared(keys: Keys) -> tuple[Ints, Ints]:
    """Pairs of items with a common key, the smaller first, each once."""
    order = np.lexsort((keys.owners, keys.values))
    owners, values = keys.owners[order], keys.values[order]
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    is_crowd = (counts > _CROWD)[place] if len(place) else np.array([], dtype=bool)
    many = int(owners.max(initial=-1)) + 1
    found = [np.array([], dtype=np.int64)]
    for apart in range(1, min(_CROWD, len(values))):
        same = values[apart:] == values[:-apart]
        if apart > _NEXT:
            same &= ~is_crowd[apart:]
        if not same.any():
            break
        found.append(owners[:-apart][same] * many + owners[apart:][same])
    ones, others = np.divmod(np.unique(np.concatenate(found)), max(many, 1))
    return ones, others


def components(members: Ints, inner: Edges) -> Iterator[Ints]:
    """What hangs together among members, given the edges between them; sorted, smallest first."""
    ends = np.searchsorted(members, inner.ones), np.searchsorted(members, inner.others)
    root = np.arange(len(members))
    while len(ends[0]):
        lower = np.minimum(root[ends[0]], root[ends[1]])
        joined = root.copy()
        for end in ends:
            np.minimum.at(joined, root[end], lower)
        while (joined[joined] != joined).any():
            joined = joined[joined]
        if (joined == root).all():
            break
        root = joined
    order = np.argsort(root, kind="stable")
    starts = np.flatnonzero(np.diff(root[order])) + 1
    yield from np.split(members[order], starts) if len(members) else ()
