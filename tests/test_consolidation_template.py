"""Templates: what texts have in common."""

from __future__ import annotations

from itertools import permutations

import pytest

from loki_memory.consolidation.similarity import common, medoid, template

GOALS = [
    "Add a column for due dates to the todo table",
    "Add a column for owners to the todo table",
    "Add an index for owners to the todo table",
]


def test_what_differs_becomes_a_gap() -> None:
    assert template(GOALS[:2]) == "Add a column for <*> to the todo table"
    assert template(GOALS) == "Add <*> for <*> to the todo table"


def test_the_order_of_texts_does_not_matter() -> None:
    assert len({template(order) for order in permutations(GOALS)}) == 1


def test_one_text_is_its_own_template() -> None:
    assert common(["Fix the build"] * 3) == "Fix the build"


def test_two_telling_words_around_a_gap_are_a_template() -> None:
    goals = ["Implement GET /api/todos endpoint", "Implement DELETE /api/todos/:id endpoint"]
    assert common(goals) == "Implement … endpoint"


def test_where_the_template_says_too_little_the_most_typical_text_stands() -> None:
    texts = ["Speed up the report", "The report is slow", "Make the slow report fast"]
    assert common(texts) in texts
    assert medoid(["a b c", "a b d", "x y z", "a b"]) == "a b"


def test_what_was_said_more_often_is_more_typical() -> None:
    assert medoid(["a b", "a b c", "x y"]) == "a b"
    assert medoid(["a b", "a b c", "x y", "x y", "x y"]) == "x y"


@pytest.mark.parametrize("texts", [[], [""]])
def test_no_text_has_an_empty_template(texts: list[str]) -> None:
    assert common(texts) == ""
