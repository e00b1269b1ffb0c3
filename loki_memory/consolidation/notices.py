"""What is noticed and not written: it is true of a fortnight, not of the project."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile

from loki_memory.consolidation.glance import glance
from loki_memory.consolidation.snapshot import Snapshot, Step
from loki_memory.consolidation.sources import at_least, days_between, extra, is_live
from loki_memory.models import AntiPattern, Episode

_WEEK, _FORTNIGHT = 7, 14
_GATHERED, _CHANCE = 0.5, 0.01  # a file in half of a week's errors, and not by chance
_ENOUGH = 4  # errors of a week, below which nothing gathers


def gathering(snapshot: Snapshot) -> Iterator[Step]:
    """Files that are in at least half of the week's errors, far more often than in all work."""
    recent = {one.id: one for one in _recent(snapshot, 0, _WEEK)}
    met = (one for one in snapshot.of(AntiPattern) if is_live(one) and extra(one, "key"))
    told = (one.evidence.for_ for one in met)
    touching = [_files(recent, those) for those in told if not recent.keys().isdisjoint(those)]
    touching = [files for files in touching if files]
    if len(touching) < _ENOUGH:
        return
    counts = Counter(path for files in touching for path in files)
    often = {path: n for path, n in sorted(counts.items()) if n >= _GATHERED * len(touching)}
    worked = [glance(one).paths for one in snapshot.episodes] if often else []
    for path, count in often.items():
        usual = sum(path in files for files in worked) / len(worked)
        if at_least(count, len(touching), usual) < _CHANCE:
            why = f"in {count} of {len(touching)} kinds of errors of the last {_WEEK} days"
            yield Step("noticed", f"file:{path}", f"errors gather around {path}", (), why)


def _files(recent: Mapping[str, Episode], episodes: Iterable[str]) -> set[str]:
    return {path for one in episodes if one in recent for path in glance(recent[one]).paths}


def _recent(snapshot: Snapshot, first: int, last: int) -> list[Episode]:
    """Episodes that are at least `first` and fewer than `last` days old."""
    ages = ((days_between(one.date, snapshot.day), one) for one in reversed(snapshot.episodes))
    young = takewhile(lambda aged: aged[0] < last, ages)  # all that come then are older
    return [one for age, one in young if age >= first]


def trends(snapshot: Snapshot) -> Iterator[Step]:
    """Errors that came much more or much less often in a fortnight than in the one before."""
    now = {one.id for one in _recent(snapshot, 0, _FORTNIGHT)}
    before = {one.id for one in _recent(snapshot, _FORTNIGHT, 2 * _FORTNIGHT)}
    if not before:
        return
    both = now | before
    for one in snapshot.of(AntiPattern):
        episodes = one.evidence.for_
        if both.isdisjoint(episodes) or not is_live(one) or not extra(one, "key"):
            continue
        new, old = len(now.intersection(episodes)), len(before.intersection(episodes))
        if at_least(max(new, old), new + old, 0.5) < _CHANCE:
            how = "more" if new > old else "less"
            why = f"{new} times in {_FORTNIGHT} days, {old} times in those before"
            yield Step("noticed", one.id, f"{how} often: {one.title()}", (), why)
