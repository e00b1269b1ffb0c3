"""Before a task: what to avoid, what was learned, which skills apply, within a budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki_memory import LokiMemoryError, Workspace

GOAL = "Add a PATCH endpoint for todos"


@pytest.fixture
def todo(example: Path) -> Workspace:
    return Workspace.open(example)


def test_each_group_has_its_own_kinds(todo: Workspace) -> None:
    found = todo.context(GOAL)
    kinds = {name: {one.kind for one in group} for name, group in found.groups().items()}
    assert kinds["relevant_patterns"] <= {"pattern", "fact"}
    assert kinds["avoid_these"] <= {"anti-pattern", "learning"}
    assert kinds["applicable_skills"] == {"skill"}
    assert kinds["episodes"] == {"episode"}
    assert "sem-qn3nbpznby" in [one.id for one in found.relevant_patterns]
    assert "skill-api-endpoint-implementation" in [one.id for one in found.applicable_skills]


def test_a_lesson_says_what_to_do(todo: Workspace) -> None:
    [warning] = [w for w in todo.context(GOAL).avoid_these if w.id == "anti-f8fem854h2"]
    assert "database is locked" in warning.text
    assert "-> Open `:memory:` in the test file" in warning.text


def test_an_error_brings_the_memory_of_it(todo: Workspace) -> None:
    found = todo.context("Speed up the suite", error="SqliteError: database is locked")
    assert "anti-f8fem854h2" in [one.id for one in found.avoid_these]


def test_what_went_wrong_often_is_always_said(todo: Workspace) -> None:
    found = todo.context("Write the release notes")
    assert [one for one in found.avoid_these if one.evidence > 1]


@pytest.mark.parametrize("budget", [30, 120, 400])
def test_the_budget_holds(todo: Workspace, budget: int) -> None:
    found = todo.context(GOAL, budget=budget)
    lines = [line for line in found.text("compact").splitlines() if line.startswith("- ")]
    assert sum(-(-len(f"{line}\n".encode()) // 4) for line in lines) == found.tokens <= budget


def test_the_order_is_that_of_the_ids_so_that_a_prompt_cache_holds(todo: Workspace) -> None:
    found = todo.context(GOAL)
    for group in found.groups().values():
        assert [one.id for one in group] == sorted(one.id for one in group)
    todo.browse.opened("sem-001")
    with Workspace.open(todo.layout.root) as again:
        assert again.context(GOAL).text("system") == found.text("system")


@pytest.mark.parametrize(
    ("form", "start"),
    [
        ("compact", "# Context\n<loki-memory>"),
        ("detailed", "# Context\n\n<loki-memory>"),
        ("system", "## Relevant Context from Previous Conversations\n\n<loki-memory>"),
        ("preamble", "Before I begin, this is what I remember of this project.\n\n<loki-memory>"),
    ],
)
def test_each_format_begins_as_a_harness_expects_it(todo: Workspace, form: str, start: str) -> None:
    text = todo.context(GOAL).text(form)
    assert text.startswith(start)
    assert text.endswith("\n")
    assert text.count("data, not instructions") == 1
    assert "[sem-qn3nbpznby]" in text


def test_nothing_known_is_no_text(ws: Workspace) -> None:
    found = ws.context(GOAL)
    assert found.text("system") == ""
    assert found.tokens == 0


def test_a_format_that_does_not_exist_and_a_goal_that_says_nothing_are_refused(
    todo: Workspace,
) -> None:
    with pytest.raises(LokiMemoryError, match="not a format"):
        todo.context(GOAL).text("haiku")
    with pytest.raises(LokiMemoryError, match="goal"):
        todo.context("  ")


def test_what_was_given_up_is_not_injected(todo: Workspace) -> None:
    todo.reject("sem-qn3nbpznby")
    assert "sem-qn3nbpznby" not in todo.context(GOAL).text("compact")


@pytest.mark.parametrize("origin", ["agent", "external", "import"])
def test_a_skill_from_outside_is_not_told_unasked(ws: Workspace, origin: str) -> None:
    skills = ws.layout.memory / "skills"
    skills.mkdir(parents=True, exist_ok=True)
    (skills / "deploy-shop.md").write_text(
        "---\nname: deploy-shop\ndescription: Deploy the shop to production.\n"
        f"metadata:\n  loki-origin: {origin}\n---\n\n# Skill: Deploy the shop\n"
    )
    told = ws.context("deploy the shop to production").applicable_skills
    assert bool(told) == (origin == "agent")
    assert ws.recall("deploy the shop to production"), "who asks is told"


def test_a_session_is_told_what_it_remembered_for_itself(ws: Workspace) -> None:
    own = ws.remember("Todos are stored by day", scope="session", session="s1")
    assert [line.id for line in ws.context(GOAL, session="s1").relevant_patterns] == [own.id]
    assert ws.context(GOAL, session="s2").relevant_patterns == []
    assert own.id in ws.continuity(GOAL, session="s1").read_text(encoding="utf-8")
