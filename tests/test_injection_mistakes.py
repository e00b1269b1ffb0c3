"""Which warnings come before a task, in which order, and what a line says of several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loki_memory import Workspace
from loki_memory.injection.line import family_gist
from loki_memory.injection.mistakes import (
    FamilyMember,
    announcing,
    distinct,
    families,
    mistakes,
    ordered,
)
from loki_memory.recall.result import Recollection


def member(name: str, text: str, *days: str) -> FamilyMember:
    met = {f"s-{name}-{n}": day for n, day in enumerate(days)}
    return FamilyMember(f"anti-{name}", text, 0.8, met, sorted(f"ep-{day}-{name}" for day in days))


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


def lines(ws: Workspace) -> list[str]:
    ws.consolidate()
    return [text for _, text in mistakes(ws, (), 5)]


# -- families --------------------------------------------------------------------------------------


def test_warnings_about_one_command_are_one_family() -> None:
    found = families(
        [
            member("a", "undefined: x (running go build)", "2026-03-01"),
            member("b", "unused: y (running go build)", "2026-03-02", "2026-03-03"),
            member("c", "Always wear a helmet", "2026-03-01"),
            member("d", "Never feed the cat", "2026-03-01"),
        ]
    )
    assert [[one.id for one in family.members] for family in found] == [
        ["anti-b", "anti-a"],
        ["anti-c"],
        ["anti-d"],
    ]
    assert found[0].head == "go build"


def test_a_session_counts_once_for_a_family_and_less_as_time_goes_by() -> None:
    twice = FamilyMember("anti-a", "x (running go test)", None, {"s1": "2026-03-31"}, [])
    again = FamilyMember("anti-b", "y (running go test)", None, {"s1": "2026-03-31"}, [])
    old = FamilyMember(
        "anti-c", "z (running make)", None, {"s2": "2026-03-01", "s3": "2026-03-01"}, []
    )
    first, second = families([twice, again, old])
    assert (first.head, first.weight) == ("go test", 1.0)
    assert (second.head, second.weight) == ("make", 1.0)  # two sessions, a half-life ago


def test_what_is_near_the_goal_comes_before_what_is_a_little_more_frequent() -> None:
    often = member("a", "x (running make)", *(f"2026-03-{day:02}" for day in range(1, 4)))
    near = member("b", "y (running git merge)", "2026-03-01")
    found = families([often, near])
    assert [one.head for one in ordered(found, {})] == ["make", "git merge"]
    assert [one.head for one in ordered(found, {"git merge": 1})] == ["git merge", "make"]


def test_what_is_met_all_the_time_comes_first_whatever_the_goal() -> None:
    always = member("a", "x (running make)", *(f"2026-03-{day:02}" for day in range(1, 29)))
    near = member("b", "y (running git merge)", "2026-03-28")
    assert ordered(families([always, near]), {"git merge": 1})[0].head == "make"


def test_in_a_family_what_is_near_the_goal_is_told_first() -> None:
    some = [member(name, f"{name} (running sql)", "2026-03-01") for name in "abcd"]
    (family,) = ordered(families(some), {"sql": 1, "anti-c": 1, "anti-b": 2})
    assert [one.id for one in family.members] == ["anti-c", "anti-b", "anti-a", "anti-d"]


def test_complaints_that_differ_only_in_a_name_are_told_once() -> None:
    some = [
        member("a", "Agent type 'one' not found (running Task)"),
        member("b", "Agent type 'two' not found (running Task)"),
        member("c", "Unknown field (running Task)"),
    ]
    assert [one.id for one in distinct(some)] == ["anti-a", "anti-c"]


# -- lines -----------------------------------------------------------------------------------------


def test_a_line_tells_who_complains_of_what_and_what_helped() -> None:
    helped = {"resolutions": [{"do": "Read, then Edit", "for": ["ep-1"]}]}
    told = family_gist("Edit", "", [("File has not been read yet", helped), ("Not unique", {})])
    assert told == "Edit: File has not been read yet -> Read, then Edit; Not unique"


def test_a_long_complaint_leaves_room_for_the_others() -> None:
    told = family_gist("Edit", "x" * 500, [("y" * 500, {}), ("z" * 500, {}), ("w" * 500, {})])
    assert len(told) <= 320
    assert all(letter in told for letter in "xyzw")


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (
            "Exit code 1\n[lint] $ run\n[lint] ERROR task failed\na.go:1:2: bad",
            "[lint] ERROR task failed",
        ),
        ("Exit code 1", ""),
        ("all is well", ""),
    ],
)
def test_a_failure_is_announced_by_the_first_line_that_says_so(message: str, line: str) -> None:
    assert announcing(message) == line


# -- in a workspace --------------------------------------------------------------------------------


def test_a_rule_that_is_broken_in_another_way_each_time_is_one_warning(ws: Workspace) -> None:
    for day, problem in enumerate(("unused variable", "shadowed name", "shadowed name"), 1):
        error = f"[lint] ERROR task failed\na.go:{day}:1: {problem} (linter)"
        met(ws, day, "Bash", "mise run lint", error, type="mise run lint")
    (line,) = lines(ws)
    assert line.startswith("shadowed name (linter)")


def test_what_is_near_the_goal_is_told_even_if_its_family_has_no_room_for_it(
    ws: Workspace,
) -> None:
    tables = ("cart", "order", "price", "stock", "clerk", "visit", "offer", "taxes")
    for day, table in enumerate(tables, 1):
        met(ws, day, "sql", f"select {table}", f"Unknown column {table}_id in {table} list {day}")
    ws.consolidate()
    hits = [Recollection(one.id, one.kind, one.title()) for one in ws.list(kind="anti-pattern")]
    told = [text for _, text in mistakes(ws, hits[:6], 8)]
    assert len(told) == 4  # three in the family's line, the others in lines of their own
    assert all(any(hit.title.split(" (")[0] in text for text in told) for hit in hits[:6])


def test_a_warning_that_stands_alone_reads_as_before(ws: Workspace) -> None:
    met(ws, 1, "Bash", "pytest", "KeyError: 'HOME'", resolution="Set HOME first")
    assert lines(ws) == ["KeyError: 'HOME' (running pytest) -> Set HOME first"]


def test_a_command_is_told_as_it_was_typed(ws: Workspace) -> None:
    met(ws, 1, "Bash", "npx knip --strict", "error: no entry file", type="npx knip --strict")
    assert lines(ws)[0].startswith("error: no entry file (running npx knip --strict)")


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
                met(home, day, "Bash", f"make part{day % 2}", f"KeyError: 'K{day}'")
                met(home, day, "Edit", "a.py", f"Cannot find part {'abcde'[day - 1]} of it")
        told = lines(ws)
        assert len(told) == 2
        assert lines(other) == told
