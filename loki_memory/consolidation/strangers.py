"""Strangers: what episodes have in common that have nothing to do with each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from itertools import chain
from math import ceil, fsum, inf, log
from typing import Any
from zlib import crc32

from loki_memory.consolidation.glance import glance
from loki_memory.consolidation.sequences import Move, Shared, contains, shared
from loki_memory.consolidation.snapshot import Snapshot, Touched
from loki_memory.models import Episode

_SHARE = 0.3  # of the successes that must share a habit
_LIFT = 1.2  # how much more common the moves must be here than elsewhere
_MANY = 600  # episodes that stand for all others
_DRAWS, _FEWEST_DRAWS = 20, 5  # groups of strangers, at most half of all strangers together
_ORDINARY = 1.0  # worth of a move that all make: the final test belongs to a procedure too


class Strangers:
    """Episodes that stand for all others, and what such strangers share by chance.

    Among thousands of subsequences some are common to
    any few episodes: a habit must be worth more than the best that is found in as many strangers.
    """

    def __init__(self, episodes: Sequence[Episode], least: int) -> None:
        self.least = least  # successes that must share a habit
        chosen = _chosen(episodes)
        self._made = {one.id: glance(one).moves() for one in chosen}
        told = [(one.id, one.outcome, glance(one).made) for one in chosen]
        self.mark = blake2b(repr(told).encode(), digest_size=16).hexdigest()
        self._strangers = [one.id for one in chosen if one.outcome == "success"]
        self._failed = self._made.keys() - set(self._strangers)
        self._held = {name: frozenset(made) for name, made in self._made.items()}
        self._holders = Counter(chain.from_iterable(self._held.values()))
        self.chance: dict[int, float] = {}  # by how many strangers it is the best of
        # By the mark of a kind of goals: what its successes do alike that strangers do not, as
        # plain values.
        self.found: dict[str, Any] = {}
        self._users: dict[tuple[Move, ...], frozenset[str]] = {}

    @classmethod
    def of(cls, snapshot: Snapshot) -> Strangers:
        """Those among all episodes."""
        return snapshot.once(
            "strangers", lambda those: cls(those.episodes, those.thresholds.skill_successes)
        )

    def knowing(self, touched: Touched | None) -> Strangers:
        """The same, with what the last run found that they share, and others do not."""
        if touched and touched.strangers == self.mark:
            self.chance.update(touched.chance)
            self.found.update(touched.found)
        return self

    def worth(self, one: Shared) -> float:
        """How many episodes do it, times how rare its moves are: ordinary moves explain little."""
        rarity = fsum(_ORDINARY + self._rarity(made) for made in one.moves)
        return round(len(one.users) * rarity, 6)

    def _rarity(self, made: Move) -> float:
        return log((len(self._made) + 1) / (self._holders[made] + 0.5))

    def candidates(self, mined: Sequence[Sequence[Move]]) -> list[Shared]:
        """What enough of the sequences share, the most telling first."""
        least = max(self.least, ceil(_SHARE * len(mined)))
        return sorted(shared(mined, least), key=lambda one: (-self.worth(one), one.moves))

    def is_rarer(self, wanted: tuple[Move, ...], share: float, inside: AbstractSet[str]) -> bool:
        """Whether moves that have this share inside are much less common outside."""
        there = len(self._who_makes(wanted) - inside)
        return not there or share * len(self._made.keys() - inside) / there >= _LIFT

    def _who_makes(self, wanted: tuple[Move, ...]) -> frozenset[str]:
        """Many kinds of tasks are asked about the same moves, so who makes them is kept."""
        if wanted not in self._users:
            able = (name for name, held in self._held.items() if held.issuperset(wanted))
            makes = (name for name in able if contains(self._made[name], wanted))
            self._users[wanted] = frozenset(makes)
        return self._users[wanted]

    def by_chance(self, size: int) -> float:
        """The worth of the best habit among so many strangers, if there are enough to tell."""
        if size not in self.chance:
            count = min(_DRAWS, len(self._strangers) // (2 * size))
            starts = range(0, count * size, size) if count >= _FEWEST_DRAWS else ()
            draws = [self._strangers[start : start + size] for start in starts]
            self.chance[size] = max(map(self._best, draws), default=-inf)
        return self.chance[size]

    def _best(self, group: Sequence[str]) -> float:
        for one in self.candidates([self._made[name] for name in group]):
            if self.is_rarer(one.moves, len(one.users) / len(group), self._failed):
                return self.worth(one)
        return -inf


def _chosen(episodes: Sequence[Episode]) -> list[Episode]:
    """Those that stand for all others: by nothing but their ids, among all but the newest.

    How many are too new is at most a quarter, and grows in steps: so it is the same strangers from
    one day to the next, and what was found to be no chance stays so.
    """
    step = 1 << max(0, len(episodes).bit_length() - 3)
    settled = episodes[: len(episodes) - len(episodes) % step]
    return sorted(settled, key=lambda one: (crc32(one.id.encode()), one.id))[:_MANY]
