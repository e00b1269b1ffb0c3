"""The brief at the start of a session: which lines, in which words and order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from loki_memory import Workspace
from loki_memory.injection.brief import brief

LINT = {"errcheck": "Error return value is not checked", "nilerr": "error is not nil but it is"}
EXCHANGED = "Use `python3` instead of `python`. E.g. `python3 tests/run.py cart`"


def told(ws: Workspace, goal: str = "") -> str:
    return brief(ws, goal, (), "", "")


def state(ws: Workspace, *sessions: str, **statement: Any) -> None:
    """Episodes of these sessions in which somebody said something."""
    for day, session in enumerate(sessions, 1):
        ws.record(
            {
                "goal": f"Task {session}",
                "session": session,
                "timestamp": f"2026-01-{day:02}T10:00:00Z",
                "statements": [{"type": "fact", "score": 0.45, **statement}],
            }
        )
    ws.consolidate()


def mistake(project: Path, name: str, what: str, remedy: str, template: str) -> None:
    """A mistake as consolidation writes it."""
    folder = project / ".loki/memory/semantic/anti-patterns"
    folder.mkdir(parents=True, exist_ok=True)
    record = {
        "id": f"anti-{name}",
        "what_fails": what,
        "prevention": remedy,
        "status": "active",
        "origin": "agent",
        "key": {"head": "", "template": template},
    }
    (folder / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")


def test_rules_of_linters_are_one_line(ws: Workspace, project: Path) -> None:
    for rule, complaint in LINT.items():
        mistake(project, rule, f"{complaint} ({rule})", "Handle the error.", f"rule {rule}")
        named = told(ws)
    assert named == "- [memory] Linters here refused most often: `errcheck`, `nilerr`."


def test_one_rule_of_a_linter_is_told_with_its_remedy(ws: Workspace, project: Path) -> None:
    rule, complaint = next(iter(LINT.items()))
    mistake(project, rule, f"{complaint} ({rule})", "Handle the error.", f"rule {rule}")
    assert told(ws).endswith("is not checked (errcheck) -> Handle the error.")


def test_a_mistake_is_told_in_words_without_its_example(ws: Workspace, project: Path) -> None:
    mistake(project, "python", "No module named pytest", EXCHANGED, "no module")
    assert told(ws).endswith("Use `python3` instead of `python`, which met: No module named pytest")


def test_advice_that_mends_several_errors_is_told_once(ws: Workspace, project: Path) -> None:
    mistake(project, "python", "No module named pytest", EXCHANGED, "no module")
    mistake(project, "walrus", "invalid syntax in the walrus", EXCHANGED, "invalid")
    assert told(ws).count("instead of `python`") == 1


def test_the_words_of_a_user_are_told_as_a_users(ws: Workspace) -> None:
    state(ws, "s1", text="Please use US English everywhere", type="preference")
    assert 'A user asked: "Please use US English everywhere"' in told(ws)


def test_what_was_worded_as_a_rule_is_told_as_it_stands(ws: Workspace) -> None:
    ws.remember("Use US English", category="preference")
    assert told(ws).endswith("] Use US English")


def test_a_sentence_of_several_sessions_is_told_for_any_goal(ws: Workspace) -> None:
    said = "`main.py` prints errors to stderr, unless the error is a `SilentError`."
    state(ws, "s1", text=said)
    assert not told(ws)
    state(ws, "s1", "s2", text=said)
    assert said in told(ws)
    assert said in told(ws, "Draw a picture of the moon")


def test_a_convention_of_one_session_is_not_for_any_goal(ws: Workspace) -> None:
    norm = "The settings file should be committed, because every clone needs it."
    state(ws, "s1", text=norm, type="convention", score=0.7)
    assert norm not in told(ws)
    assert norm in told(ws, "Commit the settings file for every clone")
    state(ws, "s1", "s2", text=norm, type="convention", score=0.7)
    assert norm in told(ws)


def test_a_lesson_about_something_else_is_told_for_a_vague_goal_only(ws: Workspace) -> None:
    said = "A release needs the signing key because the store checks it."
    state(ws, "s1", text=said, score=0.7)
    for day in range(2, 9):
        ws.record({"goal": f"Task {day}", "session": f"s{day}", "timestamp": f"2026-01-0{day}"})
    assert said in told(ws, "Address the comments")
    goal = "Draw the picture of the moon with darker craters, a wider rim and fewer stars"
    assert said not in told(ws, goal)
