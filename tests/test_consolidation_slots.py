"""Slots: what a plain statement gives a value to, and what it gives none."""

from __future__ import annotations

import pytest

from loki_memory.consolidation.reconcile import slots


def values(text: str, attribute: str) -> list[str]:
    return [value for (_, said), value in slots(text).items() if said == attribute]


def test_a_number_is_a_value_of_all_that_is_said_besides_it() -> None:
    one, two = slots("Reviews need one approval"), slots("Reviews need 2 approvals")
    assert one[("approval review", "number")] == "1"
    assert two[("approval review", "number")] == "2"


@pytest.mark.parametrize("text", ["Fix issue 12", "The CLI supports Node 18", "See step 3"])
def test_a_number_that_names_or_adds_something_is_no_value(text: str) -> None:
    assert values(text, "number") == []


def test_a_word_of_a_list_is_a_value_in_whatever_order_it_is_said() -> None:
    first, second = "Write the changelog in German", "The changelog: in English, write"
    shared = slots(first).keys() & slots(second).keys()
    assert [(slots(first)[slot], slots(second)[slot]) for slot in shared] == [("2", "1")]


def test_a_statement_and_its_denial_have_one_slot() -> None:
    assert values("Never deploy on Fridays", "is so") == ["no"]
    assert slots("Never deploy on Fridays").keys() == slots("Deploy on Fridays").keys()


def test_a_question_has_no_slot() -> None:
    assert slots("Do reviews need two approvals?") == {}
