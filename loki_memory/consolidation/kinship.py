"""Which episodes are of one kind: alike in goal, files and steps."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from loki_memory.consolidation.cluster import Alike, bands, clusters
from loki_memory.consolidation.likeness import content, jaccard, words
from loki_memory.models import Action, Episode

_GOAL, _FILES, _STEPS = 0.6, 0.2, 0.2  # consolidation's reference document, 2.1
_LEAST = 0.2  # of the words of two goals
_SHELLS = frozenset(
    ("bash", "sh", "shell", "run", "run_command", "command", "exec", "execute", "terminal")
)
_FLAG = re.compile(r"[-\d/.\"'$]")


class Traits(NamedTuple):
    """What an episode is compared by."""

    scope: str
    goal: str
    files: frozenset[str]
    steps: frozenset[str]


def kindred(
    episodes: Sequence[Episode], threshold: float, touched: frozenset[str] | None = None
) -> list[list[Episode]]:
    """Clusters of episodes of one scope, each in the order of time.

    With `touched`, only clusters of components that hold one of these episodes.
    """
    holders: dict[Traits, list[Episode]] = defaultdict(list)
    for episode in episodes:
        holders[traits(episode)].append(episode)
    distinct = sorted(holders, key=_order)
    wanted = (
        None
        if touched is None
        else frozenset(
            at for at, own in enumerate(distinct) if any(one.id in touched for one in holders[own])
        )
    )
    weights = tuple(len(holders[own]) for own in distinct)
    found = _grouped(tuple(distinct), weights, threshold, wanted)
    return sorted(
        (_in_time(one for at in group for one in holders[distinct[at]]) for group in found),
        key=lambda group: (group[0].timestamp, group[0].id),
    )


@lru_cache(maxsize=1)  # patterns and skills ask for the same clusters, one after the other
def _grouped(
    distinct: tuple[Traits, ...],
    weights: tuple[int, ...],
    threshold: float,
    wanted: frozenset[int] | None,
) -> list[list[int]]:
    return clusters(_alike(distinct), list(weights), threshold, wanted)


def _order(own: Traits) -> tuple[str, str, list[str], list[str]]:
    return (own.scope, own.goal, sorted(own.files), sorted(own.steps))


def _in_time(episodes: Iterable[Episode]) -> list[Episode]:
    return sorted(episodes, key=lambda one: (one.timestamp, one.id))


def _alike(distinct: Sequence[Traits]) -> Alike:
    keys = [[(own.scope, *band) for band in bands(_terms(own.goal))] for own in distinct]
    goals = [words(own.goal) for own in distinct]

    def pair(i: int, j: int) -> float:
        goal = jaccard(goals[i], goals[j])
        return likeness(distinct[i], distinct[j], goal) if goal >= _LEAST else 0.0

    return Alike(keys, pair)


def _terms(goal: str) -> frozenset[str]:
    """What a goal is about; a goal without content words (`do it again`) is all its words."""
    return frozenset(content(goal)) or words(goal)


def likeness(one: Traits, other: Traits, goal: float) -> float:
    """Between 0 and 1, given that of the goals. What neither tells of does not count against them.

    Goals that share too little are another kind of work, in whatever files and with whatever
    tools: in a small project these are always the same.
    """
    if one.scope != other.scope or goal < _LEAST:
        return 0.0
    share, whole = _GOAL * goal, _GOAL
    if one.files or other.files:
        share, whole = share + _FILES * jaccard(one.files, other.files), whole + _FILES
    if one.steps or other.steps:
        share, whole = share + _STEPS * jaccard(one.steps, other.steps), whole + _STEPS
    return share / whole


def traits(episode: Episode) -> Traits:
    names = (path.replace("\\", "/").rpartition("/")[2].lower() for path in episode.files())
    files = frozenset(part for name in names for part in (name, extension(name)) if part)
    steps = frozenset(head(action) for action in episode.action_log)
    return Traits(episode.scope, episode.goal, files, steps - {""})


def extension(path: str) -> str:
    """The ending of a file's name with its dot; empty if it has none."""
    name, dot, ending = path.rpartition("/")[2].rpartition(".")
    return f".{ending.lower()}" if dot and name and ending.isalnum() else ""


def head(action: Action) -> str:
    """What kind of step this is: the tool, or for a shell the program and its subcommand."""
    tool, _, rest = action.action.strip().partition(" ")
    if tool.lower() not in _SHELLS:
        return tool.lower()
    line = (rest or action.target or "").split()[:2]
    return " ".join(word for word in line if not _FLAG.match(word)).lower() or tool.lower()
