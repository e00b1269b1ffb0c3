"""Which warnings come before a task, in which order, and what their lines say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loki_memory import Workspace
from loki_memory.injection.context import Mistake, distinct, in_order, warnings
from loki_memory.injection.gate import Gate
from loki_memory.recall.result import Recollection


def mistake(name: str, text: str, *days: str) -> Mistake:
    met = {f"s-{name}-{n}": day for n, day in enumerate(days)}
    return Mistake(Recollection(f"anti-{name}", "anti-pattern", text, confidence=0.8), met)


def met(ws: Workspace, day: int, tool: str, target: str, error: str, **more: Any) -> None:
    """A session of one day that met one error."""
    ws.record(
        {
            "goal": f"work with {tool} on day {day}",
            "timestamp": f"2026-03-{day:02}T09:00:00Z",
            "session": f"s{day}-{tool}",
            "outcome": "success",
            "action_log": [
                {"action": tool, "target": target, "error": error.splitlines()[-1]},
                {"action": "Edit", "target": "a.py"},
                {"action": tool, "target": target},
            ],
            "errors_encountered": [{"message": error, **more}],
        }
    )


def lines(ws: Workspace, hits: list[Recollection] | None = None) -> list[str]:
    ws.consolidate()
    return [line.text for _, line in warnings(ws, hits or [], Gate(ws))]


def order(found: list[Mistake], near: list[str] | None = None) -> list[str]:
    return [mistake.hit.id for mistake in in_order(found, near or [])]


# -- the order -------------------------------------------------------------------------------------


def test_a_session_counts_less_as_time_goes_by() -> None:
    old = mistake("old", "unused: y (running go build)", "2026-01-01", "2026-01-02")
    new = mistake("new", "undefined: x (running make)", "2026-06-01")
    assert order([old, new]) == ["anti-new", "anti-old"]


def test_what_is_near_the_goal_comes_before_what_is_a_little_more_frequent() -> None:
    twice = mistake("twice", "a", "2026-03-01", "2026-03-01")
    once = mistake("once", "b", "2026-03-01")
    assert order([twice, once]) == ["anti-twice", "anti-once"]
    assert order([twice, once], ["anti-once"]) == ["anti-once", "anti-twice"]


def test_what_is_met_all_the_time_comes_first_whatever_the_goal() -> None:
    always = mistake("always", "a", *["2026-03-01"] * 9)
    once = mistake("once", "b", "2026-03-01")
    assert order([always, once], ["anti-once"]) == ["anti-always", "anti-once"]


def test_complaints_that_differ_only_in_a_name_are_told_once() -> None:
    some = [
        mistake("a", "Agent type 'one' not found (running Task)"),
        mistake("b", "Agent type 'two' not found (running Task)"),
        mistake("c", "Unknown field (running Task)"),
    ]
    assert [one.hit.id for one in distinct(some)] == ["anti-a", "anti-c"]


def test_a_command_has_at_most_two_lines() -> None:
    words = ("undefined", "unused", "shadowed", "deprecated")
    some = [mistake(word, f"{word} (running golangci-lint)") for word in words]
    told = [one.hit.id for one in distinct([*some, mistake("other", "no such file")])]
    assert told == ["anti-undefined", "anti-unused", "anti-other"]


# -- in a workspace --------------------------------------------------------------------------------


def test_a_rule_that_is_broken_in_another_way_each_time_is_one_warning(ws: Workspace) -> None:
    for day, problem in enumerate(("unused variable", "shadowed name", "shadowed name"), 1):
        error = f"[lint] ERROR task failed\na.go:{day}:1: {problem} (linter)"
        met(ws, day, "Bash", "mise run lint", error, type="mise run lint")
    (line,) = lines(ws)
    assert line.startswith("shadowed name (linter)")


def test_what_is_near_the_goal_is_told_even_if_others_are_more_frequent(ws: Workspace) -> None:
    for day in range(1, 7):
        for word in ("alpha", "bravo", "delta", "gamma", "kappa", "omega"):
            met(ws, day, word, f"{word} run", f"KeyError: '{word}'")
    met(ws, 1, "sql", "select cart", "Unknown column cart_id")
    ws.consolidate()
    (near,) = (one for one in ws.list(kind="anti-pattern") if "column" in one.title())
    told = lines(ws, [Recollection(near.id, near.kind, near.title())])
    assert any("Unknown column" in line for line in told)


def test_a_warning_that_stands_alone_reads_as_before(ws: Workspace) -> None:
    met(ws, 1, "Bash", "pytest", "KeyError: 'HOME'", resolution="Set HOME first")
    assert lines(ws) == ["KeyError: 'HOME' (running pytest) -> Set HOME first"]


def test_what_somebody_said_counts_before_what_was_met_long_ago(ws: Workspace) -> None:
    met(ws, 1, "Bash", "pytest", "KeyError: 'HOME'")
    met(ws, 31, "Bash", "make", "ValueError: bad")
    met(ws, 30, "Bash", "make", "ValueError: bad")
    ws.remember("Never push on Fridays", kind="anti-pattern")
    assert [line.partition(" (")[0] for line in lines(ws)] == [
        "ValueError: bad",
        "Never push on Fridays",
        "KeyError: 'HOME'",
    ]


def test_warnings_of_the_user_are_told_when_they_are_near(ws: Workspace) -> None:
    with Workspace.user() as user:
        user.remember("Never rebase a release branch", kind="anti-pattern", scope="user")
    for day in range(1, 10):
        met(ws, day, "Bash", f"tool{day}", "KeyError: 'HOME'")
    ws.consolidate()
    text = ws.continuity(goal="rebase the release branch").read_text()
    assert "Never rebase a release branch" in text.partition("## Mistakes")[2]


def test_the_order_in_which_sessions_were_recorded_does_not_matter(
    ws: Workspace, tmp_path: Path
) -> None:
    with Workspace.init(tmp_path / "other") as other:
        for home, days in ((ws, range(1, 6)), (other, range(5, 0, -1))):
            for day in days:
                command, error = (("make api", "KeyError"), ("make web", "OSError"))[day % 2]
                met(home, day, "Bash", command, f"{error}: 'K{day}'")
        told = lines(ws)
        assert len(told) == 2
        assert lines(other) == told
