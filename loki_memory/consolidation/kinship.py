"""Which episodes are of one kind: alike in goal, files and steps."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from loki_memory.consolidation.glance import glance
from loki_memory.consolidation.snapshot import Kin, Snapshot, Thresholds
from loki_memory.models import Episode


class Traits(NamedTuple):
    """What an episode is compared by; its order is the one in which episodes are compared."""

    scope: str
    goal: str
    files: tuple[str, ...]
    steps: tuple[str, ...]


def kinds(snapshot: Snapshot) -> list[list[Episode]]:
    """The clusters of all episodes, each of one scope and in the order of time."""
    return snapshot.once("kinds", _kinds)


def kin(snapshot: Snapshot) -> list[Kin]:
    """The same, those together that were clustered for themselves."""
    return snapshot.once("kin", _kin)


def _kin(snapshot: Snapshot) -> list[Kin]:
    from loki_memory.consolidation.relating import related  # numpy takes as long as all else

    return related(snapshot.episodes, snapshot.thresholds.cluster, snapshot.kin)


def kindred(episodes: Iterable[Episode], threshold: float) -> list[list[Episode]]:
    """The clusters of these episodes."""
    return kinds(Snapshot(episodes, thresholds=Thresholds(cluster=threshold)))


def mark(cluster: Iterable[Episode]) -> str:
    """What tells a cluster from any other: a hash of who is in it."""
    return blake2b(" ".join(one.id for one in cluster).encode(), digest_size=16).hexdigest()


def traits(episode: Episode) -> Traits:
    seen = glance(episode)
    return Traits(seen.scope, seen.goal, seen.files, seen.steps)


def _kinds(snapshot: Snapshot) -> list[list[Episode]]:
    by_id = {one.id: one for one in snapshot.episodes}
    found = ([by_id[name] for name in ids] for those in kin(snapshot) for ids in those.clusters)
    return sorted(found, key=lambda cluster: (cluster[0].timestamp, cluster[0].id))
