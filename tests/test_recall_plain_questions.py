"""Questions that dates, agents and files answer."""

from __future__ import annotations

import pytest

from loki_memory import Workspace
from loki_memory.recall.field_filters import translate

TODAY = "2026-11-17T10:00:00Z"  # a Tuesday


@pytest.fixture
def worked(ws: Workspace) -> Workspace:
    """Three episodes of two agents in two weeks."""

    def episode(
        day: str, agent: str, goal: str, files: list[str], **more: object
    ) -> dict[str, object]:
        context = {"goal": goal, "files_involved": files}
        return {"timestamp": f"{day}T09:00:00Z", "agent": agent, "context": context, **more}

    error = {"type": "test", "message": "AssertionError: cart is empty"}
    ws.record(
        [
            episode("2026-11-03", "ana", "Add a cart", ["src/cart.py", "tests/test_cart.py"]),
            episode("2026-11-11", "bob", "Mend the cart", ["src/cart.py"], outcome="failure"),
            episode(
                "2026-11-12",
                "ana",
                "Total of the cart",
                ["src/cart.py", "tests/test_cart.py"],
                errors_encountered=[error],
            ),
            episode("2026-11-12", "ana", "Write the manual", ["README.md"], outcome="success"),
        ]
    )
    return ws


def goals(ws: Workspace, question: str) -> set[str]:
    return {hit.title for hit in ws.recall(question, kinds=["episode"])}


@pytest.mark.parametrize(
    ("question", "fields"),
    [
        ("What went wrong yesterday?", "went:wrong since:2026-11-16 until:2026-11-16"),
        ("what failed this week in CI", "went:wrong since:2026-11-16 until:2026-11-17 in CI"),
        ("what happened last month", "kind:episode since:2026-10-01 until:2026-10-31"),
        ("what did we do on 2026-11-03?", "kind:episode since:2026-11-03 until:2026-11-03"),
        ("what broke since 2026-11-10", "went:wrong since:2026-11-10"),
        ("what changed in the last 2 weeks", "kind:episode since:2026-11-03 until:2026-11-17"),
        ("who knows about ./src/cart.py", "kind:episode touches:src/cart.py"),
        ("Which files change with `cart.py`?", "kind:episode touches:cart.py"),
    ],
)
def test_a_question_is_written_with_fields(question: str, fields: str) -> None:
    found = translate(question, TODAY)
    assert found is not None
    assert found.query == fields


@pytest.mark.parametrize(
    "question",
    ["what happened to the queue", "What did Caroline do last week?", "why does it fail", ""],
)
def test_other_questions_are_left_alone(question: str) -> None:
    assert translate(question, TODAY) is None


def test_what_went_wrong_in_a_period(worked: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOKI_NOW", TODAY)
    assert goals(worked, "what went wrong last week?") == {"Mend the cart", "Total of the cart"}
    assert goals(worked, "what happened last week") == {
        "Mend the cart",
        "Total of the cart",
        "Write the manual",
    }


def test_who_worked_on_a_file(worked: Workspace) -> None:
    found = worked.recall("who worked on cart.py?")
    assert found.counts == "ana (2 episodes, last 2026-11-12), bob (1 episode, last 2026-11-11)"
    assert {hit.title for hit in found} == {"Add a cart", "Mend the cart", "Total of the cart"}


def test_what_changes_together_with_a_file(worked: Workspace) -> None:
    found = worked.recall("what changes together with src/cart.py?")
    assert found.counts == "tests/test_cart.py (2 of 3 episodes)"


def test_a_question_without_such_memories_is_asked_as_it_stands(worked: Workspace) -> None:
    assert worked.recall("who worked on nothing.go").counts == ""
    assert worked.recall("what went wrong since 2030-01-01 with the cart")


def test_days_may_be_given_as_fields(worked: Workspace) -> None:
    assert goals(worked, "since:2026-11-12 until:2026-11-12") == {
        "Total of the cart",
        "Write the manual",
    }
