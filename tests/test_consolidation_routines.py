"""The routine: what sessions run between the last edit and a commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loki_memory.consolidation.actions import before_commits
from loki_memory.consolidation.routines import routine
from loki_memory.consolidation.snapshot import Snapshot
from loki_memory.models import Episode, Fact, parse, tombstone_id

EDIT = "Edit src/cart.py"
CHECKED = [EDIT, "make fmt && make lint 2>&1 | tail", "make test", "git add -A && git commit -m x"]
TEXT = "Before a commit, run `make fmt`, `make lint` and `make test`."


def session(number: int, log: Sequence[str] = CHECKED, **fields: Any) -> Episode:
    actions = [
        {"action": "Edit", "target": line.partition(" ")[2]}
        if line.startswith("Edit")
        else {"action": "Bash", "target": line}
        for line in log
    ]
    given = {
        "goal": f"Work {number}",
        "timestamp": f"2026-03-{number:02}T09:00:00Z",
        "session": f"s{number}",
        "action_log": actions,
    }
    return parse(Episode, {**given, **fields})


def learned(*episodes: Episode, **snapshot: Any) -> list[str]:
    changes = routine(Snapshot(episodes, **snapshot))
    return [fact.statement for fact in changes.put if isinstance(fact, Fact)]


def test_what_several_sessions_run_before_a_commit_is_the_routine() -> None:
    assert learned(session(1), session(2)) == [TEXT]


def test_one_session_has_no_routine() -> None:
    assert learned(session(1)) == []
    assert learned(session(1), session(2, session="s1")) == []


def test_what_was_run_before_the_last_edit_does_not_count() -> None:
    assert before_commits(session(1, ["make test", EDIT, "make lint", "git commit -am x"])) == [
        ["make lint"]
    ]


def test_commands_that_only_look_are_no_part_of_it() -> None:
    looking = [EDIT, "git status", "ls -la", "grep -r cart src", "git commit -m x"]
    assert before_commits(session(1, looking)) == [[]]
    assert learned(session(1, looking), session(2, looking)) == []


def test_what_few_commits_have_in_common_is_left_out() -> None:
    odd = [EDIT, "make docs", *CHECKED[1:]]
    usual = [session(number) for number in range(3, 17)]
    assert learned(session(1, odd), session(2, odd), *usual) == [TEXT]


def test_a_rejected_routine_is_not_learned_again() -> None:
    assert learned(session(1), session(2), rejected=[tombstone_id(TEXT)]) == []


def test_a_second_run_changes_nothing() -> None:
    episodes = [session(1), session(2)]
    (fact,) = routine(Snapshot(episodes)).put
    assert routine(Snapshot([*episodes, fact])).put == ()
