"""Choosing among candidates: relevance decides, all else only tilts."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loki_memory.models.kinds import STATUSES
from loki_memory.models.text import tokens
from loki_memory.recall.rerank import (
    FAMILIES,
    TASKS,
    Candidate,
    DatedPassage,
    choose,
    excerpt,
    judged,
    newer_first,
    within,
)

SHOWN = ["candidate", "active", "disputed"]  # what is recalled without being asked for
RANGES: dict[str, list[Any]] = {
    "kind": list(FAMILIES),
    "status": list(STATUSES),
    "scope": ["project", "local", "user", "session"],
    "outcome": ["", "success", "failure", "partial"],
    "confidence": [None, 0.0, 0.5, 1.0],
    "importance": [None, 0.0, 0.5, 1.0],
    "strength": [0.0, 1.0, 1e9],
    "age_days": [None, -5, 0, 180, 100_000],
}


def one(number: int = 0, relevance: float = 1.0, kind: str = "fact", **fields: Any) -> Candidate:
    return Candidate(number, relevance, kind, **fields)


def chosen(candidates: list[Candidate], k: int, task: str = "") -> list[int]:
    return [candidate.number for candidate, _ in choose(candidates, k, task)]


# -- factors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["", *TASKS])
@pytest.mark.parametrize("field", RANGES)
def test_no_factor_turns_twice_the_relevance_around(field: str, task: str) -> None:
    for kind in ("fact", "episode"):
        scores = [judged(one(**{"kind": kind, field: value}), task) for value in RANGES[field]]
        assert max(scores) < 2 * min(scores), (kind, scores)


def extremes(task: str) -> tuple[float, float]:
    """The least and the most that all factors together make of a relevance of 1."""
    fields = {**RANGES, "status": SHOWN}
    scores = [
        judged(one(**dict(zip(fields, values, strict=True))), task)
        for values in product(*fields.values())
    ]
    return min(scores), max(scores)


@pytest.mark.parametrize("task", ["", "review"])
def test_all_factors_together_never_turn_three_times_the_relevance_around(task: str) -> None:
    """A memory that is old, disputed, doubted, unimportant, the user's, never used and of the kind
    that the task needs least, against one that is the opposite of all that.
    """
    least, most = extremes(task)
    assert most < 3 * least


def test_the_same_kind_twice_as_relevant_comes_first_whatever_else_is_known() -> None:
    good = one(0, 2.0, confidence=0.0, importance=0.0, age_days=9999, scope="user")
    bad = one(1, 1.0, confidence=1.0, importance=1.0, age_days=0, strength=1e9)
    assert chosen([bad, good], 2) == [0, 1]


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"confidence": 0.9}, {"confidence": 0.3}),
        ({"importance": 0.9}, {"importance": 0.1}),
        ({"strength": 3.0}, {"strength": 0.0}),
        ({"age_days": 1}, {"age_days": 400}),
        ({"status": "active"}, {"status": "disputed"}),
        ({"status": "active"}, {"status": "candidate"}),
        ({"status": "disputed"}, {"status": "superseded"}),
        ({"kind": "episode", "outcome": "success"}, {"kind": "episode", "outcome": "failure"}),
    ],
)
def test_what_else_is_known_decides_between_equals(
    better: dict[str, Any], worse: dict[str, Any]
) -> None:
    assert chosen([one(0, **worse), one(1, **better)], 2) == [1, 0]


def test_who_debugs_wants_failures_as_much_as_successes() -> None:
    success, failure = (
        one(kind="episode", outcome="success"),
        one(kind="episode", outcome="failure"),
    )
    assert judged(success, "debugging") == judged(failure, "debugging")
    assert judged(success, "") > judged(failure, "")


@pytest.mark.parametrize(
    ("task", "kind", "other"),
    [
        ("exploration", "episode", "pattern"),
        ("implementation", "pattern", "episode"),
        ("implementation", "skill", "episode"),
        ("debugging", "anti-pattern", "pattern"),
        ("debugging", "episode", "skill"),
        ("review", "pattern", "episode"),
    ],
)
def test_the_task_tilts_towards_what_it_needs(task: str, kind: str, other: str) -> None:
    assert judged(one(kind=kind), task) > judged(one(kind=other), task)


KIND = st.sampled_from(sorted(FAMILIES))
POOL = st.lists(st.tuples(st.floats(0, 2), KIND), max_size=20).map(
    lambda pairs: [one(n, relevance, kind) for n, (relevance, kind) in enumerate(pairs)]
)


@given(POOL, st.integers(1, 12), st.sampled_from(["", *TASKS]))
@settings(max_examples=80, deadline=None)
def test_k_means_k(candidates: list[Candidate], k: int, task: str) -> None:
    found = choose(candidates, k, task)
    assert len(found) == min(k, len(candidates))
    assert len({candidate.number for candidate, _ in found}) == len(found)
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    if candidates:
        best = max(judged(candidate, task) for candidate in candidates)
        assert scores[0] == best


def test_nothing_to_choose_from_is_nothing() -> None:
    assert chosen([], 5) == []


# -- budget --------------------------------------------------------------------------------------


def test_tokens_are_a_quarter_of_the_bytes_rounded_up() -> None:
    assert [tokens(text) for text in ("", "a", "abcd", "abcde", "日本")] == [0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("budget", "fit"), [(-1, 0), (0, 0), (1, 1), (2, 1), (3, 2), (4, 3), (1000, 3)]
)
def test_lines_fit_a_budget_in_their_order(budget: int, fit: int) -> None:
    assert within(["abcd", "abcdefgh", "ab"], budget) == fit


# -- statements that changed ----------------------------------------------------------------------

RARITY = {"function": 2.0, "names": 2.0}


def ordered(*texts: str) -> list[int]:
    """Numbers of statements, best first; each is a day newer than the one before it."""
    candidates = [one(number, 1.0 - number / 10) for number in range(len(texts))]
    statements = [
        DatedPassage(number, f"2026-01-{10 + number}", text) for number, text in enumerate(texts)
    ]
    found = newer_first(candidates, statements, RARITY)
    return [c.number for c in sorted(found, key=lambda c: -c.relevance)]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Start function names with 'a_'.", "Function names start with 'b_'."),
        ("Function names have at most 20 letters.", "Function names may have 30 letters."),
        ("Always shorten function names.", "Function names must not be shortened."),
    ],
)
def test_the_newer_statement_of_a_value_or_norm_comes_first(older: str, newer: str) -> None:
    assert ordered(older, newer) == [1, 0]


@pytest.mark.parametrize(
    "newer",
    [
        "We talked about function names over lunch.",  # states nothing
        "Meet at 4 PM. We talk about function names then.",  # a value in another sentence
        "Class comments have at most 20 letters.",  # about another thing
    ],
)
def test_what_states_no_value_of_the_same_thing_keeps_its_place(newer: str) -> None:
    assert ordered("Start function names with 'a_'.", newer) == [0, 1]


def test_statements_exchange_scores_and_no_other_candidate_moves() -> None:
    candidates = [one(0, 0.9), one(1, 0.8, "episode"), one(2, 0.7)]
    statements = [
        DatedPassage(0, "2026-01-01", "function names: 'a'"),
        DatedPassage(2, "2026-01-02", "function names: 'b'"),
    ]
    found = newer_first(candidates, statements, RARITY)
    assert [c.relevance for c in found] == [0.7, 0.8, 0.9]


def test_without_a_word_that_is_asked_for_the_order_stays() -> None:
    candidates = [one(0, 0.9), one(1, 0.8)]
    statements = [DatedPassage(0, "2026-01-01", "'a'"), DatedPassage(1, "2026-01-02", "'b'")]
    assert newer_first(candidates, statements, {}) == candidates


def test_an_excerpt_is_the_sentence_that_answers_and_reads_as_one() -> None:
    summary = (
        "Fix login\nHere is what the lock does:\n- **The lock** was stale.\n"
        "| lock | owner | gone |\nIt is removed when the owner of the lock is gone;"
    )
    asked = {"lock": 2.0, "owner": 3.0}
    assert excerpt([summary], "Fix login", asked) == (
        "It is removed when the owner of the lock is gone"
    )
    assert excerpt([summary], "Fix login", {"lock": 2.0}) == "The lock was stale."
    assert excerpt(["Fix login"], "Fix login", asked) == ""
