"""Activity: sessions by day, and errors that stopped repeating after a lesson was told."""

from __future__ import annotations

from typing import Any

import pytest

from loki_memory import Workspace
from loki_memory.browse.activity import (
    DayOfTokens,
    MetError,
    SessionTrace,
    forewarnings,
    prevention,
    tokens_by_day,
)
from loki_memory.journal.tally import Total

MISSING = "ModuleNotFoundError: No module named 'httpx'"


def trace(day: int, *, runs: str = "npm test", met: str = "", told: str = "") -> SessionTrace:
    return SessionTrace(
        session=f"s{day}",
        at=f"2026-01-{day:02}T09:00:00Z",
        commands=frozenset({runs}) if runs else frozenset(),
        met={met: MetError("it is locked", "npm test")} if met else {},
        told=frozenset({told}) if told else frozenset(),
    )


def test_an_error_that_stopped_after_it_was_told_is_listed_as_stopped() -> None:
    traces = [
        trace(1, met="anti-a"),
        trace(2, met="anti-a"),
        trace(3, met="anti-a", told="anti-a"),
        trace(4),
        trace(5),
    ]
    found = prevention(traces, {"anti-a": frozenset({"anti-a"})})
    [stopped] = found.stopped
    assert (stopped.told, stopped.lesson) == ("2026-01-03T09:00:00Z", "anti-a")
    assert (stopped.opportunities, stopped.repeats) == (1, 1)
    assert (stopped.runs_after, stopped.met_after) == (2, 0)
    assert (found.runs_told, found.met_told) == (2, 0)


def test_a_lesson_helped_if_the_command_ran_without_its_error() -> None:
    told = {"forewarned": frozenset({"anti-a"})}
    traces = [
        trace(1, met="anti-a"),
        trace(2)._replace(**told),
        trace(3, met="anti-a")._replace(**told),
        trace(4, runs="ls")._replace(**told),
        trace(5, met="anti-a", told="anti-a"),  # told at the error: it could prevent nothing
    ]
    found = forewarnings(traces, {"anti-a": frozenset({"anti-a"})})
    met = {session: [warning.is_met for warning in each] for session, each in found.items()}
    assert met == {"s2": [False], "s3": [True]}


def test_two_silent_sessions_prove_nothing_and_many_do() -> None:
    few = [trace(1, met="anti-a"), trace(2, told="anti-a"), trace(3), trace(4)]
    [stopped] = prevention(few, {}).stopped
    assert stopped.chance == 0.25
    [stopped] = prevention([*few, trace(5), trace(6), trace(7)], {}).stopped
    assert stopped.chance < 0.05


def test_sessions_that_did_not_run_the_command_are_no_proof() -> None:
    traces = [trace(1, met="anti-a"), trace(2, told="anti-a"), trace(3, runs="git push")]
    found = prevention(traces, {})
    assert not found.stopped
    assert found.untried[0].verdict == "not tried again"


def test_an_error_that_came_again_after_it_was_told_is_listed_as_repeating() -> None:
    traces = [trace(1, met="anti-a"), trace(2, told="anti-a"), trace(3, met="anti-a")]
    [repeating] = prevention(traces, {}).repeating
    assert (repeating.met_after, repeating.chance) == (1, 1.0)


def test_errors_that_nobody_was_told_of_stand_beside_for_comparison() -> None:
    traces = [trace(1, met="anti-b"), trace(2, met="anti-b"), trace(3)]
    found = prevention(traces, {})
    assert [untold.id for untold in found.untold] == ["anti-b"]
    assert (found.runs_untold, found.met_untold) == (2, 1)


def test_a_lesson_in_other_words_about_the_same_error_counts_as_told() -> None:
    traces = [trace(1, met="anti-a"), trace(2, told="sem-x"), trace(3)]
    found = prevention(traces, {"anti-a": frozenset({"anti-a", "sem-x"})})
    assert found.stopped[0].lesson == "sem-x"


def test_tokens_are_summed_by_day_over_all_surfaces() -> None:
    totals = [Total("2026-01-02", "recall", 1, 40, 400), Total("2026-01-01", "context", 2, 10, 80)]
    totals.append(Total("2026-01-02", "context", 1, 5, 400))
    assert tokens_by_day(totals) == [
        DayOfTokens("2026-01-01", 2, 10),
        DayOfTokens("2026-01-02", 2, 45),
    ]


def episode(day: int, *, error: bool = False, recalled: str = "", **more: Any) -> dict[str, Any]:
    action = {"action": "shell", "target": "pytest tests/api", "result": "ok"}
    if error:
        action |= {"error": MISSING, "result": "failed"}
    shown = [{"id": recalled}] if recalled else []
    return {
        "goal": f"Work of day {day}",
        "timestamp": f"2026-01-{day:02}T09:00:00Z",
        "agent": "eng-1",
        "session": f"session-{day}",
        "outcome": "success",
        "action_log": [action],
        "recalled": shown,
        **more,
    }


@pytest.fixture
def worked(ws: Workspace) -> Workspace:
    """Two sessions meet an error, a third is told of it, and two more do not meet it."""
    ws.record([episode(1, error=True), episode(2, error=True)])
    lesson = next(
        found.id for found in ws.browse.activity().prevention.untold if "httpx" in found.line
    )
    ws.record([episode(3, recalled=lesson), episode(4), episode(5)])
    return ws


def test_real_episodes_show_the_error_that_stopped(worked: Workspace) -> None:
    found = worked.browse.activity()
    [stopped] = found.prevention.stopped
    assert (stopped.sessions, stopped.runs_after, stopped.command) == (2, 2, "pytest")
    assert [day.day for day in found.days] == [f"2026-01-0{day}" for day in (5, 4, 3, 2, 1)]
    assert found.days[-1].sessions[0].errors == [stopped.line]


def test_episodes_of_one_session_are_one_line_of_the_day(ws: Workspace) -> None:
    ws.record([episode(1), episode(1, goal="More work", timestamp="2026-01-01T10:00:00Z")])
    [day] = ws.browse.activity().days
    [session] = day.sessions
    assert session.goals == ["Work of day 1", "More work"]


def test_memory_without_sessions_has_no_activity(ws: Workspace) -> None:
    found = ws.browse.activity()
    assert (found.days, found.prevention.stopped, found.tokens) == ([], [], [])
