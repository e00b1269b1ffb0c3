"""What follows from episodes alone, worked out ahead: beliefs have no say in it.

To relate episodes, to find what new clusters teach and what new successes do alike takes as long as
to read all beliefs, so the two go on side by side (`tell`, in a process of its own). What is told
are plain values, each under a name as soon as it is there; who thinks about beliefs asks for it by
that name, and works out what was not told (`expect`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from loki_memory.consolidation.clustering import kin, kinds, mark
from loki_memory.consolidation.failures import setbacks
from loki_memory.consolidation.habits import Strangers, Stratum, strata
from loki_memory.consolidation.lessons import Lesson, Teaching, teaching
from loki_memory.consolidation.skills import practice
from loki_memory.consolidation.snapshot import Kin, Snapshot, Touched

Told = tuple[str, Any]  # a name, and nothing but what `marshal` knows
Ask = Callable[[str], Any]  # waits for what is told under a name; None if it is not


def tell(alone: Snapshot, touched: Touched) -> Iterator[Told]:
    """All that is new in a snapshot of episodes, in the order in which it is asked for."""
    known = touched.clusters or frozenset()
    yield "kin", [tuple(one) for one in kin(alone)]
    least = alone.thresholds.pattern_episodes
    marked = ((mark(one), one) for one in kinds(alone))
    new = ((name, teaching(one, least)) for name, one in marked if name not in known)
    yield "teachings", {name: (one.goal, [*map(tuple, one.lessons)]) for name, one in new}
    those = (one for one in alone.episodes if one.id in touched.ids)
    yield "setbacks", {one.id: tuple(setbacks(one)) for one in those}
    goals = alone.once("strata", strata)
    yield "strata", [(one.name, [episode.id for episode in one.episodes]) for one in goals]
    anywhere = Strangers.of(alone).knowing(touched)
    due = [one for one in goals if one.mark not in anywhere.found]
    for one in due:
        practice(one, anywhere)
    yield "found", {one.mark: anywhere.found[one.mark] for one in due}
    yield "chance", anywhere.chance


def expect(snapshot: Snapshot, ask: Ask) -> None:
    """What is told will be asked for, when a phase needs it."""
    snapshot.expect("kin", lambda: _told(ask, "kin", lambda those: [*map(Kin._make, those)]))
    snapshot.expect("teachings", lambda: _told(ask, "teachings", _teachings))
    snapshot.expect("setbacks", lambda: ask("setbacks"))
    snapshot.expect("strata", lambda: _told(ask, "strata", lambda those: _strata(snapshot, those)))
    snapshot.expect("found", lambda: ask("found"))
    snapshot.expect("chance", lambda: ask("chance"))


def _told(ask: Ask, name: str, read: Callable[[Any], Any]) -> Any:
    found = ask(name)
    return None if found is None else read(found)


def _teachings(told: dict[str, Any]) -> dict[str, Teaching]:
    return {
        name: Teaching(goal, [*map(Lesson._make, lessons)])
        for name, (goal, lessons) in told.items()
    }


def _strata(snapshot: Snapshot, told: list[tuple[str, list[str]]]) -> list[Stratum]:
    by_id = {one.id: one for one in snapshot.episodes}
    return [Stratum(name, [by_id[one] for one in ids]) for name, ids in told]
