"""Habits: the moves that successes of one kind of goal share, and whether they help.

Goals of one cluster are the stratum. Within it, episodes that made certain moves are compared with
those that did not: across strata, easy goals would make any habit look good. Moves that episodes
with other goals make as often say nothing about this one.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from math import ceil, fsum, inf, log
from typing import NamedTuple
from zlib import crc32

from loki_memory.consolidation.actions import Move
from loki_memory.consolidation.clustering import clusters_of_goals
from loki_memory.consolidation.features import EpisodeFeatures
from loki_memory.consolidation.similarity import FUNCTION_WORDS
from loki_memory.consolidation.snapshot import Snapshot, cached_by_episodes, in_time
from loki_memory.consolidation.weigh import Feedback
from loki_memory.models.confidence import confidence as weighed
from loki_memory.models.ids import slug

PRIVATE = frozenset({"local", "session"})  # scopes whose episodes no tracked skill may quote
PROPOSAL = "-proposal"  # behind the name of what we would write where a person wrote
_LONGEST_NAME = 64 - len(PROPOSAL)
_GAIN = 0.1  # of the chance to succeed
_ERROR_RATIO = 0.6  # … or errors per task, where success is not rarer
_MINED = 60  # successes of one stratum that are searched; the count goes over all
_COMMON = 0.8  # of the goals: words that are called common
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]+")
_NAME_WORDS = 6
SHORTEST, LONGEST = 2, 6  # moves of a subsequence: one move is no procedure, ten are a story
GAP = 3  # other moves that may stand between two of a subsequence
# Subsequences of one length that are grown further, the best supported first. Identical long logs
# have thousands of subsequences with equal support; which of them is grown matters little.
_BEAM = 24


class SharedSequence(NamedTuple):
    """Moves that several sequences have in this order, and which sequences those are."""

    moves: tuple[Move, ...]
    users: tuple[int, ...]


class Stratum(NamedTuple):
    """Episodes with one kind of goal, in the order of time, under the words that they share."""

    name: str
    episodes: list[EpisodeFeatures]

    @property
    def successes(self) -> list[EpisodeFeatures]:
        return [episode for episode in self.episodes if episode.outcome == "success"]


class Habit(NamedTuple):
    """Moves that some episodes of a stratum made, and those that did not."""

    moves: tuple[Move, ...]
    users: list[EpisodeFeatures]
    others: list[EpisodeFeatures]

    @property
    def evidence(self) -> list[EpisodeFeatures]:
        return [user for user in self.users if user.outcome == "success"]

    def gain(self) -> float:
        """Return how much likelier success is with it; few episodes are held back by the priors."""
        with_it = (2 + _successes(self.users)) / (3 + _judged(self.users))
        without = (1 + _successes(self.others)) / (2 + _judged(self.others))
        return with_it - without

    def error_ratio(self) -> float:
        """Errors per episode with it, to those without; 1 where there is nothing to compare."""
        without = _errors(self.others)
        return _errors(self.users) / without if without else 1.0

    def advantage(self) -> int:
        """Check whether success is more (1) or less (-1) frequent with it; more if all have it."""
        here, there = _judged(self.users), _judged(self.others)
        if not there:
            return 1
        ahead = _successes(self.users) * there - _successes(self.others) * here
        return (ahead > 0) - (ahead < 0)

    def helps(self, least: int) -> bool:
        """The priors alone are no gain: success must really be more frequent."""
        succeeds = self.gain() >= _GAIN and self.advantage() > 0
        spares_errors = self.error_ratio() <= _ERROR_RATIO and self.advantage() >= 0
        return len(self.evidence) >= least and (succeeds or spares_errors)

    def confidence(self, told: Feedback, snapshot: Snapshot) -> float:
        """Beta(2,1) over sessions: of those that did it, and of those that it was shown to."""
        good = {episode.session or episode.id for episode in self.evidence} | _sessions(
            snapshot, told.helped
        )
        bad = {user.session or user.id for user in self.users if user.outcome == "failure"}
        bad |= _sessions(snapshot, told.misled)
        return weighed(len(good), len(bad))


def _sessions(snapshot: Snapshot, episodes: Iterable[str]) -> set[str]:
    return {
        episode.session or episode.id for episode in filter(None, map(snapshot.episode, episodes))
    }


@cached_by_episodes
def strata(snapshot: Snapshot) -> list[Stratum]:
    """Goals of one kind. Clusters whose goals share the same words are one kind."""
    found: dict[str, list[EpisodeFeatures]] = defaultdict(list)
    for cluster in clusters_of_goals(snapshot):
        is_public = cluster[0].scope not in PRIVATE
        if is_public and _successes(cluster) >= snapshot.thresholds.skill_successes:
            found[trigger(cluster)] += cluster
    return [Stratum(name, in_time(found[name])) for name in sorted(found) if name]


def trigger(seen: Sequence[EpisodeFeatures]) -> str:
    """The words that goals share, as a name; empty if they share too few to mean something.

    `implement-api-todos-endpoint`: of `Implement POST /api/todos endpoint` and others.
    """
    count = Counter(chain.from_iterable(episode.words for episode in seen))
    common = {word for word, n in count.items() if n >= _COMMON * len(seen)} - FUNCTION_WORDS
    shortest = min((episode.goal for episode in seen), key=lambda goal: (len(goal), goal))
    spoken = dict.fromkeys(word.lower() for word in _WORD.findall(shortest))
    named = [word for word in spoken if word in common][:_NAME_WORDS]
    return slug("-".join(named), _LONGEST_NAME) if len(named) > 1 else ""


def best_habit(stratum: Stratum, anywhere: Baseline) -> Habit | None:
    """The habit that explains most moves of most successes, among those that help.

    An episode without an action log is left out: nobody knows what it did.
    """
    logged = [episode for episode in stratum.episodes if episode.made]
    mined = [episode for episode in stratum.successes if episode.made][-_MINED:]
    found = anywhere.candidates([success.moves() for success in mined])
    if not found:
        return None
    chance = anywhere.by_chance(len(mined))
    inside = {other_episode.id for other_episode in stratum.episodes}
    seen = [(other_episode, other_episode.moves()) for other_episode in logged]
    candidates = [entry for entry in found if anywhere.worth(entry) > chance]
    for candidate in candidates:
        users = [entry for entry, made in seen if contains(made, candidate.moves)]
        used = {user.id for user in users}
        others = [other_episode for other_episode in logged if other_episode.id not in used]
        habit = Habit(candidate.moves, users, others)
        share = len(users) / len(seen)
        if habit.helps(anywhere.least) and anywhere.is_rarer(habit.moves, share, inside):
            return habit
    return None


def _judged(episodes: Iterable[EpisodeFeatures]) -> int:
    return sum(episode.outcome in {"success", "failure"} for episode in episodes)


def _successes(episodes: Iterable[EpisodeFeatures]) -> int:
    return sum(episode.outcome == "success" for episode in episodes)


def _errors(episodes: Sequence[EpisodeFeatures]) -> float:
    return sum(episode.errors for episode in episodes) / max(1, len(episodes))


# -- Strangers: what episodes have in common that have nothing to do with each other --------------


_SHARE = 0.3  # of the successes that must share a habit
_LIFT = 1.2  # how much more common the moves must be here than elsewhere
_MANY = 600  # episodes that stand for all others
_DRAWS, _FEWEST_DRAWS = 20, 5  # groups of strangers, at most half of all strangers together
_ORDINARY = 1.0  # worth of a move that all make: the final test belongs to a procedure too


class Baseline:
    """Episodes that stand for all others, and what such strangers share by chance.

    Among thousands of subsequences some are common to
    any few episodes: a habit must be worth more than the best that is found in as many strangers.
    """

    def __init__(self, episodes: Sequence[EpisodeFeatures], least: int) -> None:
        self.least = least  # successes that must share a habit
        chosen = _chosen(episodes)
        self._made = {episode.id: episode.moves() for episode in chosen}
        self._strangers = [episode.id for episode in chosen if episode.outcome == "success"]
        self._failed = self._made.keys() - set(self._strangers)
        self._held = {name: frozenset(made) for name, made in self._made.items()}
        self._holders = Counter(chain.from_iterable(self._held.values()))
        self._chance: dict[int, float] = {}  # by how many strangers it is the best of
        self._users: dict[tuple[Move, ...], frozenset[str]] = {}

    def worth(self, shared_sequence: SharedSequence) -> float:
        """Episodes that do it, times the rarity of its moves: ordinary moves explain little."""
        rarity = fsum(_ORDINARY + self._rarity(made) for made in shared_sequence.moves)
        return round(len(shared_sequence.users) * rarity, 6)

    def _rarity(self, made: Move) -> float:
        return log((len(self._made) + 1) / (self._holders[made] + 0.5))

    def candidates(self, mined: Sequence[Sequence[Move]]) -> list[SharedSequence]:
        """Return what enough of the sequences share, the most telling first."""
        least = max(self.least, ceil(_SHARE * len(mined)))
        return sorted(shared(mined, least), key=lambda move: (-self.worth(move), move.moves))

    def is_rarer(self, wanted: tuple[Move, ...], share: float, inside: AbstractSet[str]) -> bool:
        """Check whether moves that have this share inside are much less common outside."""
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
        if size not in self._chance:
            count = min(_DRAWS, len(self._strangers) // (2 * size))
            starts = range(0, count * size, size) if count >= _FEWEST_DRAWS else ()
            draws = [self._strangers[start : start + size] for start in starts]
            self._chance[size] = max(map(self._best, draws), default=-inf)
        return self._chance[size]

    def _best(self, group: Sequence[str]) -> float:
        for candidate in self.candidates([self._made[name] for name in group]):
            if self.is_rarer(candidate.moves, len(candidate.users) / len(group), self._failed):
                return self.worth(candidate)
        return -inf


@cached_by_episodes
def strangers(snapshot: Snapshot) -> Baseline:
    """Return those among all episodes."""
    return Baseline(snapshot.episodes, snapshot.thresholds.skill_successes)


def _chosen(episodes: Sequence[EpisodeFeatures]) -> list[EpisodeFeatures]:
    """Return those that stand for all others: by nothing but their ids, among all but the newest.

    How many are too new is at most a quarter, and grows in steps: so it is the same strangers from
    one day to the next, and what was found to be no chance stays so.
    """
    step = 1 << max(0, len(episodes).bit_length() - 3)
    settled = episodes[: len(episodes) - len(episodes) % step]
    return sorted(settled, key=lambda episode: (crc32(episode.id.encode()), episode.id))[:_MANY]


# -- Subsequences that many logs share, grown one move at a time as PrefixSpan does it --


def contains(sequence: Sequence[Move], wanted: Sequence[Move]) -> bool:
    """Check whether a sequence has the wanted moves in order, never more than the gap apart."""
    ends = range(-1, len(sequence) - 1)  # the first move may stand anywhere
    reach = 1
    for entry in wanted:
        ends_now = {
            at
            for end in ends
            for at in range(end + 1, min(end + 1 + reach, len(sequence)))
            if sequence[at] == entry
        }
        if not ends_now:
            return False
        ends, reach = sorted(ends_now), GAP + 1  # type: ignore[assignment]
    return True


def shared(sequences: Sequence[Sequence[Move]], least: int) -> list[SharedSequence]:
    """The closed subsequences that at least so many sequences have: no longer one says the same.

    Ordered by their moves.
    """
    level = _singles(sequences, least)
    found: list[SharedSequence] = []
    for length in range(2, LONGEST + 1):
        level = _grown(level, sequences, least)
        if length >= SHORTEST:
            found += [
                SharedSequence(single, tuple(sorted(places))) for single, places in level.items()
            ]
    return sorted(_closed(found))


# A pattern -> each sequence that has it -> where in the sequence it may end.
_Level = dict[tuple[Move, ...], dict[int, list[int]]]


def _singles(sequences: Sequence[Sequence[Move]], least: int) -> _Level:
    found: dict[tuple[Move, ...], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, sequence in enumerate(sequences):
        for at, entry in enumerate(sequence):
            found[entry,][number].append(at)
    return {entry: places for entry, places in found.items() if len(places) >= least}


def _grown(level: _Level, sequences: Sequence[Sequence[Move]], least: int) -> _Level:
    """Every pattern with one more move behind it, if enough sequences have that."""
    found: dict[tuple[Move, ...], dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for pattern, places in level.items():
        for number, ends in places.items():
            sequence = sequences[number]
            for end in ends:
                for at in range(end + 1, min(end + 2 + GAP, len(sequence))):
                    found[*pattern, sequence[at]][number].add(at)
    kept = [(entry, places) for entry, places in found.items() if len(places) >= least]
    kept.sort(key=lambda pair: (-len(pair[1]), pair[0]))
    return {
        entry: {number: sorted(ends) for number, ends in places.items()}
        for entry, places in kept[:_BEAM]
    }


def _closed(found: list[SharedSequence]) -> Iterator[SharedSequence]:
    """Without those that are part of a longer one with the same users."""
    alike: dict[tuple[int, ...], list[tuple[Move, ...]]] = defaultdict(list)
    for shared_sequence in found:
        alike[shared_sequence.users].append(shared_sequence.moves)
    for shared_sequence in found:
        longer = (
            other
            for other in alike[shared_sequence.users]
            if len(other) > len(shared_sequence.moves)
        )
        if not any(_is_part(shared_sequence.moves, other) for other in longer):
            yield shared_sequence


def _is_part(short: Sequence[Move], long: Sequence[Move]) -> bool:
    rest = iter(long)
    return all(entry in rest for entry in short)
