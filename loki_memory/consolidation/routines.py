"""The routine of a project: the commands that sessions run between the last edit and a commit.

Nobody says "here one formats, lints and tests before each commit", and every session does it. What
enough commits of several sessions have in common becomes one fact, in the order in which the
commands are run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from loki_memory.consolidation.features import EpisodeFeatures
from loki_memory.consolidation.provenance import differs, least_trusted, newest
from loki_memory.consolidation.snapshot import BeliefChange, PhaseChanges, Snapshot, Touched
from loki_memory.models import Fact, parse, tombstone_id
from loki_memory.models.base import Evidence
from loki_memory.models.confidence import confidence
from loki_memory.models.ids import digest

_SHARE = 0.15  # of the commits: a command of fewer is no routine
_SESSIONS = 2
_MOST = 4  # commands that are named


def routine(snapshot: Snapshot, touched: Touched | None = None) -> PhaseChanges:
    """One fact for each scope whose commits have a routine."""
    by_scope: dict[str, list[EpisodeFeatures]] = defaultdict(list)
    for episode in snapshot.episodes:
        if episode.before_commits:
            by_scope[episode.scope].append(episode)
    found = (_fact(snapshot, scope, episodes) for scope, episodes in sorted(by_scope.items()))
    put = [fact for fact in found if fact and differs(fact, snapshot.records)]
    del touched  # a share is of all commits
    return PhaseChanges(tuple(put), steps=tuple(_step(fact, snapshot) for fact in put))


def _fact(snapshot: Snapshot, scope: str, episodes: Sequence[EpisodeFeatures]) -> Fact | None:
    commands = _commonest(snapshot, episodes)
    if not commands:
        return None
    text = f"Before a commit, run {_listed(commands)}."
    id_ = f"fact-{digest('routine', scope, 'commit')}"
    old = snapshot.records.get(id_)
    known = old if isinstance(old, Fact) else None
    if tombstone_id(text) in snapshot.rejected or (known and known.origin == "owner"):
        return None
    ran = [episode for episode in episodes if not set(commands).isdisjoint(_ran(episode))]
    sessions = {snapshot.session_of(episode.id) for episode in ran}
    fields: dict[str, Any] = {
        **(known.document() if known else {"id": id_, "scope": scope, "status": "active"}),
        "statement": text,
        "type": "convention",
        "confidence": confidence(len(sessions), 0),
        "key": {"routine": "commit"},
        "evidence": (known.evidence if known else Evidence()).with_lists(
            newest(episode.id for episode in ran), []
        ),
        "valid_from": ran[0].date,
        "at": ran[-1].timestamp,
        "origin": least_trusted(ran),
    }
    return parse(Fact, fields)


def _commonest(snapshot: Snapshot, episodes: Sequence[EpisodeFeatures]) -> list[str]:
    """The commands of enough commits and sessions, in the order in which they are run."""
    commits = [run for episode in episodes for run in episode.before_commits]
    sessions: dict[str, set[str]] = defaultdict(set)
    places: dict[str, list[float]] = defaultdict(list)
    for episode in episodes:
        for run in episode.before_commits:
            for place, command in enumerate(run):
                sessions[command].add(snapshot.session_of(episode.id))
                places[command].append(place / len(run))
    often = [
        command
        for command, seen in places.items()
        if len(seen) >= _SHARE * len(commits) and len(sessions[command]) >= _SESSIONS
    ]
    chosen = sorted(often, key=lambda entry: (-len(places[entry]), entry))[:_MOST]
    return sorted(
        chosen, key=lambda entry: (round(sum(places[entry]) / len(places[entry]), 6), entry)
    )


def _ran(episode: EpisodeFeatures) -> set[str]:
    return {command for run in episode.before_commits for command in run}


def _listed(commands: Iterable[str]) -> str:
    *first, last = [f"`{command}`" for command in commands]
    return f"{', '.join(first)} and {last}" if first else last


def _step(fact: Fact, snapshot: Snapshot) -> BeliefChange:
    what = "strengthened" if fact.id in snapshot.records else "learned"
    return BeliefChange(what, fact.id, fact.statement, tuple(fact.evidence.for_))
