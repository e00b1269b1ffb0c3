"""A snapshot with changes is the snapshot of what there is after them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loki_memory.consolidation.features import episode_features
from loki_memory.consolidation.publish import mark
from loki_memory.consolidation.snapshot import PhaseChanges, Snapshot
from loki_memory.models import Belief, Episode, Fact, Memory, Pattern, parse

NAMES = st.integers(0, 7)
KINDS = (Belief, Episode, Fact, Memory, Pattern)


def record(number: int, version: int = 0) -> Memory:
    if number < 3:
        goal = f"Task {number}.{version}"
        return parse(Episode, {"id": f"ep-{number}", "timestamp": "2026-01-05", "goal": goal})
    if number < 6:
        return parse(Fact, {"id": f"fact-{number}", "statement": f"It is {version}"})
    return parse(Pattern, {"id": f"sem-{number}", "pattern": f"Do it {version} times"})


CHANGES = st.builds(
    lambda put, gone: PhaseChanges(
        tuple(record(*one) for one in sorted(put.items())),
        tuple(record(one).id for one in sorted(gone)),
    ),
    st.dictionaries(NAMES, st.integers(1, 3)),
    st.sets(NAMES),
)


@given(st.sets(NAMES), st.sets(NAMES), st.lists(st.tuples(CHANGES, st.sampled_from(KINDS))))
def test_changes_one_after_the_other(
    live: set[int], kept: set[int], changes: list[tuple[PhaseChanges, type[Memory]]]
) -> None:
    archived = [record(one) for one in sorted(kept - live)]
    now = Snapshot(map(record, sorted(live)), "2026-02-01", archived=archived)
    for change, asked in changes:
        now.of(asked)  # which it may remember
        gone = tuple(name for name in change.archive if name not in now.archived)
        now = now.with_changes(change._replace(archive=gone))
        there = (one for name, one in now.records.items() if name not in now.archived)
        anew = Snapshot(there, "2026-02-01", archived=now.archived.values())
        assert now.records == anew.records
        assert [now.of(kind) for kind in KINDS] == [anew.of(kind) for kind in KINDS]
        assert now.episodes == anew.episodes


def _recorded(number: int, agent: str, second: int) -> Episode:
    at = f"2026-01-21T09:0{second // 60}:{second % 60:02}Z"
    fields = {"id": f"ep-2026-01-21-{number:010}", "timestamp": at, "agent": agent}
    return parse(Episode, {**fields, "goal": "Build it", "session": f"s{number}"})


def test_a_clone_counts_the_sessions_of_a_burst_like_the_machine_that_recorded_them() -> None:
    """By marks alone, and whatever else either of them has: the count follows from the evidence."""
    moments = [("a", 0), ("a", 45), ("b", 45), ("a", 230), ("a", 235), ("b", 299)]
    episodes = [_recorded(number, *moment) for number, moment in enumerate(moments)]
    marks = {episode.id: mark(episode_features(episode)) for episode in episodes}
    belief = parse(
        Pattern, {"id": "sem-x", "pattern": "x", "evidence": {"for": [*marks], "episodes": marks}}
    )
    here, there = Snapshot(episodes), Snapshot([belief])
    for count in range(len(episodes) + 1):
        names = [*marks][:count]
        assert here.sessions(names) == there.sessions(reversed(names))
    assert len({*here.sessions(marks).values()}) == 4
