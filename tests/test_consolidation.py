"""Consolidation end to end: the lesson is carried, twice is once, order does not matter."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from processes import record_files

from loki_memory import AntiPattern, Pattern, Workspace
from loki_memory.consolidation.lint import lint


def todo(n: int, day: int, verb: str, **more: Any) -> dict[str, Any]:
    """An episode as in Loki Mode's documents: a TypeScript error, and what resolved it."""
    return {
        "task_id": f"task-{n:03d}",
        "timestamp": f"2026-01-{day:02d}T10:30:00Z",
        "agent": "eng-001-backend",
        "context": {
            "phase": "development",
            "goal": f"Implement {verb} /api/todos endpoint",
            "files_involved": ["src/routes/todos.ts", "src/db/todos.ts"],
        },
        "action_log": [
            {"t": 0, "action": "read_file", "target": "openapi.yaml"},
            {"t": 5, "action": "write_file", "target": "src/routes/todos.ts"},
            {"t": 120, "action": "run_test", "result": "fail", "error": "missing return type"},
            {"t": 140, "action": "edit_file", "target": "src/routes/todos.ts"},
            {"t": 180, "action": "run_test", "result": "pass"},
        ],
        "outcome": "success",
        "errors_encountered": [
            {
                "type": "TypeScript compilation",
                "message": "Missing return type annotation",
                "resolution": "Added explicit :void to route handler",
            }
        ],
        **more,
    }


EPISODES = [todo(1, 6, "POST"), todo(2, 7, "PATCH"), todo(3, 8, "DELETE")]


def beliefs(workspace: Workspace) -> dict[str, bytes]:
    return {path: data for path, data in record_files(workspace).items() if "episodic/" not in path}


def consolidated(folder: Path, *batches: list[dict[str, Any]]) -> dict[str, bytes]:
    with Workspace.init(folder) as workspace:
        for batch in batches:
            workspace.record(batch)
            workspace.consolidate()
        return beliefs(workspace)


@pytest.fixture
def learned(ws: Workspace) -> Workspace:
    ws.record(EPISODES)
    ws.consolidate()
    return ws


def test_the_lesson_of_loki_modes_example_is_carried(learned: Workspace) -> None:
    patterns = [one for one in learned.list(kind="pattern") if isinstance(one, Pattern)]
    [pattern] = patterns
    said = f"{pattern.pattern} {pattern.correct_approach}"
    assert "return type" in said.lower()
    assert ":void" in said
    assert len(pattern.episodes_for()) == 3


def test_the_error_becomes_one_anti_pattern_with_its_resolution(learned: Workspace) -> None:
    found = [one for one in learned.list(kind="anti-pattern") if isinstance(one, AntiPattern)]
    [warning] = [one for one in found if "annotation" in one.what_fails]
    assert "Added explicit :void" in warning.resolutions[0].do
    assert len(warning.resolutions[0].for_) == 3
    assert (warning.confidence, warning.status) == (0.83, "active")


def test_a_lesson_is_there_for_the_next_task(ws: Workspace) -> None:
    ws.record(EPISODES[0])
    [hit] = [
        hit
        for hit in ws.recall("x", error="Missing return type annotation", kinds=["anti-pattern"])
        if "annotation" in hit.title
    ]
    assert (hit.status, hit.confidence) == ("candidate", 0.75)


def test_twice_is_once(learned: Workspace) -> None:
    before = record_files(learned)
    report = learned.consolidate()
    assert report.steps == []
    assert report.written == report.archived == 0
    assert record_files(learned) == before


def flights(n: int, goal: str) -> dict[str, Any]:
    """An episode that took a wrong turn, a better one, and failed all the same."""
    many = "COUNT(*) AS num_flights FROM flights GROUP BY airline ORDER BY num_flights DESC LIMIT 1"
    right = f"SELECT airline, {many}"
    wrong = right.replace("airline", "airline_name")
    error = "Unknown column 'airline_name' in 'field list'"
    log = [
        {"t": 0, "action": "run_sql", "target": wrong, "result": "fail", "error": error},
        {"t": 1, "action": "run_sql", "target": right, "result": "ok"},
    ]
    return {
        "task_id": f"task-{n:03d}",
        "timestamp": f"2026-01-{n:02d}T10:30:00Z",
        "session": f"session-{n}",
        "context": {"goal": goal, "files_involved": ["flight_2.db"]},
        "action_log": log,
        "errors_encountered": [{"type": "sql", "message": error, "resolution": right}],
        "outcome": "failure",
    }


def test_what_evidence_retired_stays_retired_with_all_that_says_the_same(ws: Workspace) -> None:
    ws.record([flights(n, "What airline serves the most flights?") for n in (1, 2)])
    ws.record([flights(n, "Which city has most number of flights?") for n in range(3, 9)])
    ws.consolidate()
    found = {one.status for one in ws.list(kind="pattern", status="all")}
    assert found == {"retired", "superseded"}
    before = beliefs(ws)
    for since in (None, "2026-01-08", "24h"):
        again = ws.consolidate(since=since)
        assert (again.steps, again.written) == ([], 0)
    assert beliefs(ws) == before


def test_a_plan_says_the_same_and_writes_nothing(ws: Workspace) -> None:
    ws.record(EPISODES)
    before = record_files(ws)
    plan = ws.consolidate(plan_only=True)
    assert record_files(ws) == before
    done = ws.consolidate()
    assert plan.steps == done.steps
    assert plan.planned
    assert not done.planned


def test_order_and_batches_do_not_matter(tmp_path: Path) -> None:
    at_once = consolidated(tmp_path / "once", EPISODES)
    dice = random.Random(7)  # noqa: S311 - the same order every time
    for n in range(3):
        shuffled = dice.sample(EPISODES, len(EPISODES))
        assert consolidated(tmp_path / f"shuffled{n}", shuffled) == at_once
    one_by_one = consolidated(tmp_path / "single", *([one] for one in EPISODES))
    assert one_by_one == at_once


def test_what_this_machine_knows_does_not_matter(tmp_path: Path) -> None:
    expected = consolidated(tmp_path / "once", EPISODES)
    with Workspace.init(tmp_path / "other") as ws:
        ws.record(EPISODES)
        ws.recall("return type")
        shutil.rmtree(ws.layout.cache)
    with Workspace.open(tmp_path / "other") as ws:
        ws.consolidate()
        assert beliefs(ws) == expected


def test_every_belief_that_is_produced_says_something(example: Path) -> None:
    with Workspace.open(example) as ws:
        known = {one.id for one in ws.list(status="all")}
        ws.consolidate()
        for one in ws.list(status="all"):
            if one.id not in known:
                assert lint(one) == [], one.id


def test_the_example_is_consolidated_once_and_nothing_asserted_is_lost(example: Path) -> None:
    with Workspace.open(example) as ws:
        before = {one.id for one in ws.list(status="all") if one.kind != "episode"}
        first = ws.consolidate()
        assert first.steps
        assert before <= {one.id for one in ws.list(status="all")}
        assert ws.consolidate().steps == []


def test_a_rejected_lesson_does_not_come_back(ws: Workspace) -> None:
    ws.record(EPISODES)
    for warning in ws.list(kind="anti-pattern"):
        ws.reject(warning.id)
    ws.consolidate()
    assert ws.list(kind="anti-pattern") == []


def test_what_somebody_says_helped_is_evidence(ws: Workspace) -> None:
    ws.record(EPISODES[:2])
    [warning] = [one for one in ws.list(kind="anti-pattern") if "annotation" in one.title()]
    before = ws.get(warning.id).confidence
    misled = {"goal": "Add a route", "timestamp": "2026-01-09T10:00:00Z", "outcome": "failure"}
    ws.record({**misled, "recalled": [{"id": warning.id, "helpful": False}]})
    ws.consolidate()
    assert ws.get(warning.id).confidence < before


def test_private_episodes_stay_private(ws: Workspace) -> None:
    ws.record([{**one, "scope": "local"} for one in EPISODES])
    ws.consolidate()
    assert beliefs(ws) == {
        path: data for path, data in beliefs(ws).items() if path.startswith("local/")
    }


def test_an_episode_is_stored_even_if_nothing_can_be_learned_from_it_now(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process holds the store from the moment on at which the episode is on disk."""
    from loki_memory.consolidation import learn_now
    from loki_memory.errors import StoreBusy

    def busy(*_: object) -> None:
        raise StoreBusy("the store", 10)

    monkeypatch.setattr(learn_now, "learn", busy)
    episode = ws.record(EPISODES[0])
    assert ws.get(episode.id).title() == "Implement POST /api/todos endpoint"
    assert "not learned from yet" in ws.notices[-1]
