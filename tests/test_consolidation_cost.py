"""What consolidation need not do: read what only counts, and run where nothing has changed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import record_files

from loki_memory import Episode, Workspace
from loki_memory.consolidation import pipeline
from loki_memory.consolidation.failures import mishaps
from loki_memory.consolidation.features import LazyEpisode
from loki_memory.consolidation.first_phases import EARLY
from loki_memory.consolidation.pipeline import Plan, consolidate
from loki_memory.consolidation.snapshot import Snapshot, Touched
from loki_memory.models import parse

MANY = 60  # episodes that met one error: of so many only the newest are read for their words


def episode(n: int, **more: Any) -> dict[str, Any]:
    """Two errors; each day has three such episodes, each session two."""
    return {
        "task_id": f"task-{n:03d}",
        "timestamp": f"2026-01-{n // 3 + 1:02d}T{10 + n % 3}:30:00Z",
        "session": f"session-{n // 2}",
        "agent": "sql-001",
        "context": {"goal": f"List the singers of concert {n}", "files_involved": ["concert.sql"]},
        "action_log": [
            {"action": "run_sql", "target": "SELECT name FROM singers", "error": ERRORS[0]},
            {"action": "run_sql", "target": "SELECT name FROM singer", "result": "ok"},
            {"action": "run_sql", "target": "SELECT age FROM singer", "error": ERRORS[1]},
        ],
        "outcome": "success" if n % 4 else "failure",
        **more,
    }


ERRORS = ("Table 'concert.singers' doesn't exist", "Unknown column 'age' in 'field list'")
EPISODES = [episode(n) for n in range(MANY)]


def beliefs(workspace: Workspace) -> dict[str, bytes]:
    return {path: data for path, data in record_files(workspace).items() if "episodic/" not in path}


# -- one more episode ------------------------------------------------------------------------------


class Shelf:
    """Episodes of which only the outline is known, and the ids of those that were read."""

    def __init__(self, episodes: list[Episode]) -> None:
        self._episodes = {one.id: one for one in episodes}
        self.read: list[str] = []

    def outlines(self) -> list[LazyEpisode]:
        return [
            LazyEpisode.of(
                self._reading(one.id),
                id=one.id,
                timestamp=one.timestamp,
                session=one.session,
                outcome=one.outcome,
                recalled=[],
            )
            for one in self._episodes.values()
        ]

    def _reading(self, name: str) -> Callable[[], Episode]:
        def read() -> Episode:
            self.read.append(name)
            return self._episodes[name]

        return read


def learned(new: Episode, *known: Any) -> Plan:
    """The first phases for one new episode, when beliefs and older episodes are known."""
    return consolidate(Snapshot([new, *known]), EARLY, Touched(frozenset({new.id})))


def test_outlines_teach_what_whole_episodes_teach_and_few_are_read() -> None:
    *old, new = [parse(Episode, one) for one in EPISODES]
    first = consolidate(Snapshot(old), EARLY)
    shelf = Shelf(old)
    from_outlines = learned(new, *first.put, *shelf.outlines())
    assert from_outlines == learned(new, *first.put, *old)
    assert from_outlines.put
    assert len(shelf.read) == len(set(shelf.read)) < MANY / 2


def test_an_outline_is_the_episode_once_more_is_asked_for() -> None:
    whole = parse(Episode, episode(1, mood="calm"))
    shelf = Shelf([whole])
    [outline] = shelf.outlines()
    assert (outline.session, outline.date) == ("session-0", "2026-01-01")
    assert not shelf.read
    assert outline.goal == "List the singers of concert 1"
    assert outline.model_extra == {"mood": "calm"}
    assert shelf.read == [whole.id]
    assert outline.document() == whole.document()


def test_an_outline_writes_all_of_the_episode_also_if_nobody_asked_before() -> None:
    whole = parse(Episode, episode(1, mood="calm"))
    [outline], [other] = Shelf([whole]).outlines(), Shelf([whole]).outlines()
    assert outline.changed(pinned=True) == whole.changed(pinned=True)
    assert other == whole
    assert other != parse(Episode, episode(2))


def test_an_outline_has_no_fields_that_an_episode_has_not() -> None:
    [outline] = Shelf([parse(Episode, episode(1))]).outlines()
    with pytest.raises(AttributeError):
        _ = outline.colour


@pytest.mark.parametrize("is_indexed", [True, False])
def test_episode_by_episode_is_learned_what_all_of_them_teach_at_once(
    tmp_path: Path, is_indexed: bool
) -> None:
    with Workspace.init(tmp_path / "singly") as ws:
        for one in EPISODES:
            ws.record(one)
            if is_indexed:
                ws.sync()
        singly = beliefs(ws)
    with Workspace.init(tmp_path / "at-once") as ws:
        ws.record(EPISODES)
        assert beliefs(ws) == singly


def test_the_errors_of_one_kind_are_those_among_all() -> None:
    for one in (parse(Episode, given) for given in EPISODES[:4]):
        everything = mishaps(one)
        kinds = {mishap.id for mishap in everything}
        assert len(kinds) == 2
        for kind in kinds:
            assert mishaps(one, kind) == [mishap for mishap in everything if mishap.id == kind]


# -- nothing new -----------------------------------------------------------------------------------


@pytest.fixture
def settled(ws: Workspace) -> Workspace:
    """Memory that one run has changed, and the next one has not."""
    ws.record(EPISODES[:6])
    assert ws.consolidate().written
    assert ws.consolidate().steps == []
    return ws


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A line for each time that the phases are run."""
    seen: list[str] = []
    run = consolidate

    def counted(*given: Any, **more: Any) -> Plan:
        seen.append("run")
        return run(*given, **more)

    monkeypatch.setattr(pipeline, "consolidate", counted)
    return seen


def test_settled_memory_is_not_looked_at_again(settled: Workspace, runs: list[str]) -> None:
    before = settled.consolidate(plan_only=True)
    with Workspace.open(settled.layout.root) as later:
        report = later.consolidate()
    assert runs == []
    assert (report.day, report.episodes) == (before.day, 6) == ("2026-01-02", 6)
    assert report.steps == []


def edit_belief(ws: Workspace) -> None:
    path = min(ws.layout.memory.glob("semantic/anti-patterns/*.json"))
    path.write_text(path.read_text().replace("singer", "artist"))


def remove_belief(ws: Workspace) -> None:
    min(ws.layout.memory.glob("semantic/anti-patterns/*.json")).unlink()


def lose_the_cache(ws: Workspace) -> None:
    ws.close()
    shutil.rmtree(ws.layout.cache)


@pytest.mark.parametrize(
    "change",
    [
        edit_belief,
        remove_belief,
        lose_the_cache,
        lambda ws: ws.record(EPISODES[7]),
        lambda ws: ws.reject(ws.list(kind="anti-pattern")[0].id),
        lambda ws: ws.archive(ws.list(kind="episode")[0].id),
    ],
)
def test_whatever_changes_memory_is_looked_at(
    settled: Workspace, runs: list[str], change: Callable[[Workspace], object]
) -> None:
    change(settled)
    runs.clear()
    settled.consolidate()
    assert runs == ["run"]


def test_another_day_is_looked_at(settled: Workspace, runs: list[str]) -> None:
    settled.consolidate(day="2026-03-01", plan_only=True)
    assert runs == ["run"]


def test_without_the_cache_the_same_comes_out(settled: Workspace) -> None:
    before = record_files(settled)
    lose_the_cache(settled)
    assert settled.consolidate().written == 0
    assert record_files(settled) == before


def test_what_is_removed_is_made_again_as_it_was(settled: Workspace) -> None:
    before = record_files(settled)
    remove_belief(settled)
    settled.consolidate()
    assert record_files(settled) == before
