"""Trends that are noticed and not written: they are true of a fortnight, not of the project."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile

from loki_memory.consolidation.features import EpisodeFeatures
from loki_memory.consolidation.provenance import (
    at_least,
    days_between,
    extra,
    is_live,
)
from loki_memory.consolidation.snapshot import (
    BeliefChange,
    Snapshot,
)
from loki_memory.models import (
    AntiPattern,
)

_WEEK, _FORTNIGHT = 7, 14
_GATHERED, _CHANCE = 0.5, 0.01  # a file in half of a week's errors, and not by chance
_ENOUGH = 4  # errors of a week, below which nothing gathers


def gathering(snapshot: Snapshot) -> Iterator[BeliefChange]:
    """Files that are in at least half of the week's errors, far more often than in all work."""
    recent = {episode.id: episode for episode in _recent(snapshot, 0, _WEEK)}
    met = (
        antipattern
        for antipattern in snapshot.of(AntiPattern)
        if is_live(antipattern) and extra(antipattern, "key")
    )
    told = (antipattern.evidence.for_ for antipattern in met)
    touching = [
        _files(recent, told_files)
        for told_files in told
        if not recent.keys().isdisjoint(told_files)
    ]
    touching = [files for files in touching if files]
    if len(touching) < _ENOUGH:
        return
    counts = Counter(path for files in touching for path in files)
    often = {path: n for path, n in sorted(counts.items()) if n >= _GATHERED * len(touching)}
    worked = [episode.paths for episode in snapshot.episodes] if often else []
    for path, count in often.items():
        usual = sum(path in files for files in worked) / len(worked)
        if at_least(count, len(touching), usual) < _CHANCE:
            why = f"in {count} of {len(touching)} kinds of errors of the last {_WEEK} days"
            yield BeliefChange("noticed", f"file:{path}", f"errors gather around {path}", (), why)


def _files(recent: Mapping[str, EpisodeFeatures], episodes: Iterable[str]) -> set[str]:
    return {path for episode in episodes if episode in recent for path in recent[episode].paths}


def _recent(snapshot: Snapshot, first: int, last: int) -> list[EpisodeFeatures]:
    """Episodes that are at least `first` and fewer than `last` days old."""
    ages = (
        (days_between(episode.date, snapshot.day), episode)
        for episode in reversed(snapshot.episodes)
    )
    young = takewhile(lambda aged: aged[0] < last, ages)  # all that come then are older
    return [entry for age, entry in young if age >= first]


def trends(snapshot: Snapshot) -> Iterator[BeliefChange]:
    """Errors that came much more or much less often in a fortnight than in the one before."""
    now = {episode.id for episode in _recent(snapshot, 0, _FORTNIGHT)}
    before = {episode.id for episode in _recent(snapshot, _FORTNIGHT, 2 * _FORTNIGHT)}
    if not before:
        return
    both = now | before
    for antipattern in snapshot.of(AntiPattern):
        episodes = antipattern.evidence.for_
        if both.isdisjoint(episodes) or not is_live(antipattern) or not extra(antipattern, "key"):
            continue
        new, old = len(now.intersection(episodes)), len(before.intersection(episodes))
        if at_least(max(new, old), new + old, 0.5) < _CHANCE:
            how = "more" if new > old else "less"
            why = f"{new} times in {_FORTNIGHT} days, {old} times in those before"
            yield BeliefChange(
                "noticed", antipattern.id, f"{how} often: {antipattern.title()}", (), why
            )
