"""Habits: the moves that successes of one kind of goal share, and whether they help.

Goals of one cluster are the stratum. Within it, episodes that made certain moves are compared with
those that did not: across strata, easy goals would make any habit look good. Moves that episodes
with other goals make as often say nothing about this one.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from loki_memory.consolidation.glance import Glance, glance
from loki_memory.consolidation.kinship import kinds
from loki_memory.consolidation.likeness import FUNCTION_WORDS
from loki_memory.consolidation.sequences import Move, contains
from loki_memory.consolidation.snapshot import Snapshot, in_time
from loki_memory.consolidation.strangers import Strangers
from loki_memory.consolidation.weigh import Feedback
from loki_memory.models import Episode
from loki_memory.models.confidence import confidence as weighed
from loki_memory.models.ids import digest, slug

PRIVATE = frozenset({"local", "session"})  # scopes whose episodes no tracked skill may quote
PROPOSAL = "-proposal"  # behind the name of what we would write where a person wrote
_LONGEST_NAME = 64 - len(PROPOSAL)
_GAIN = 0.1  # of the chance to succeed
_ERROR_RATIO = 0.6  # … or errors per task, where success is not rarer
_MINED = 60  # successes of one stratum that are searched; the count goes over all
_COMMON = 0.8  # of the goals: words that are called common
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]+")
_NAME_WORDS = 6


class Stratum(NamedTuple):
    """Episodes with one kind of goal, in the order of time, under the words that they share."""

    name: str
    episodes: list[Episode]

    @property
    def successes(self) -> list[Episode]:
        return [one for one in self.episodes if one.outcome == "success"]

    @property
    def mark(self) -> str:
        """What tells it from any other."""
        return digest("stratum", self.name, *(one.id for one in self.episodes))


class Habit(NamedTuple):
    """Moves that some episodes of a stratum made, and those that did not."""

    moves: tuple[Move, ...]
    users: list[Episode]
    others: list[Episode]

    @property
    def evidence(self) -> list[Episode]:
        return [one for one in self.users if one.outcome == "success"]

    def gain(self) -> float:
        """How much likelier success is with it; few episodes are held back by the priors."""
        with_it = (2 + _successes(self.users)) / (3 + _judged(self.users))
        without = (1 + _successes(self.others)) / (2 + _judged(self.others))
        return with_it - without

    def error_ratio(self) -> float:
        """Errors per episode with it, to those without; 1 where there is nothing to compare."""
        without = _errors(self.others)
        return _errors(self.users) / without if without else 1.0

    def advantage(self) -> int:
        """Whether success is more (1) or less (-1) frequent with it; more if all have it."""
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
        good = {one.session or one.id for one in self.evidence} | _sessions(snapshot, told.helped)
        bad = {one.session or one.id for one in self.users if one.outcome == "failure"}
        bad |= _sessions(snapshot, told.misled)
        return weighed(len(good), len(bad))


def _sessions(snapshot: Snapshot, episodes: Iterable[str]) -> set[str]:
    known = (snapshot.records.get(one) for one in episodes)
    return {one.session or one.id for one in known if isinstance(one, Episode)}


def strata(snapshot: Snapshot) -> list[Stratum]:
    """Goals of one kind. Clusters whose goals share the same words are one kind."""
    found: dict[str, list[Episode]] = defaultdict(list)
    for cluster in kinds(snapshot):
        is_public = cluster[0].scope not in PRIVATE
        if is_public and _successes(cluster) >= snapshot.thresholds.skill_successes:
            found[trigger(list(map(glance, cluster)))] += cluster
    return [Stratum(name, in_time(found[name])) for name in sorted(found) if name]


def trigger(seen: Sequence[Glance]) -> str:
    """The words that goals share, as a name; empty if they share too few to mean something.

    `implement-api-todos-endpoint`: of `Implement POST /api/todos endpoint` and others.
    """
    count = Counter(chain.from_iterable(one.words for one in seen))
    common = {word for word, n in count.items() if n >= _COMMON * len(seen)} - FUNCTION_WORDS
    shortest = min((one.goal for one in seen), key=lambda goal: (len(goal), goal))
    spoken = dict.fromkeys(word.lower() for word in _WORD.findall(shortest))
    named = [word for word in spoken if word in common][:_NAME_WORDS]
    return slug("-".join(named), _LONGEST_NAME) if len(named) > 1 else ""


def best_habit(stratum: Stratum, anywhere: Strangers) -> Habit | None:
    """The habit that explains most moves of most successes, among those that help."""
    mined = stratum.successes[-_MINED:]
    found = anywhere.candidates([glance(one).moves() for one in mined])
    if not found:
        return None
    chance = anywhere.by_chance(len(mined))
    inside = {one.id for one in stratum.episodes}
    seen = [(one, glance(one).moves()) for one in stratum.episodes]
    candidates = [one for one in found if anywhere.worth(one) > chance]
    for candidate in candidates:
        users = [one for one, made in seen if contains(made, candidate.moves)]
        used = {one.id for one in users}
        others = [one for one in stratum.episodes if one.id not in used]
        habit = Habit(candidate.moves, users, others)
        share = len(users) / len(seen)
        if habit.helps(anywhere.least) and anywhere.is_rarer(habit.moves, share, inside):
            return habit
    return None


def _judged(episodes: Iterable[Episode]) -> int:
    return sum(one.outcome in {"success", "failure"} for one in episodes)


def _successes(episodes: Iterable[Episode]) -> int:
    return sum(one.outcome == "success" for one in episodes)


def _errors(episodes: Sequence[Episode]) -> float:
    return sum(glance(one).errors for one in episodes) / max(1, len(episodes))
