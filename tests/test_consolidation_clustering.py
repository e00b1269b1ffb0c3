"""Clusters: average link inside components, the same in every order."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loki_memory.consolidation import clustering
from loki_memory.consolidation.clustering import Measure, clusters, same

STATEMENTS = [
    "Stale editor diagnostics show errors that the compiler does not see",
    "Editor diagnostics can be stale: trust the compiler, not the errors shown",
    "Diagnostics of the editor were stale after the merge; the compiler saw no errors",
    "Integration tests need the build tag integration",
    "Integration tests are skipped unless the build tag integration is given",
    "Release notes are written in British English",
]


def in_words(found: list[list[int]], texts: list[str]) -> set[frozenset[str]]:
    return {frozenset(texts[at] for at in group) for group in found}


def test_statements_about_one_thing_are_one_group() -> None:
    assert clusters(STATEMENTS) == [[0, 1, 2], [3, 4], [5]]


def test_the_order_of_statements_does_not_matter() -> None:
    expected = in_words(clusters(STATEMENTS), STATEMENTS)
    for seed in range(5):
        shuffled = random.Random(seed).sample(STATEMENTS, len(STATEMENTS))  # noqa: S311 - repeatable
        assert in_words(clusters(shuffled), shuffled) == expected


def test_a_rule_and_its_denial_are_not_one_group() -> None:
    rule = "Every test function calls t.Parallel() by convention"
    denial = "A test function that calls t.Chdir() cannot call t.Parallel()"
    assert clusters([rule, denial]) == [[0], [1]]


def test_an_old_and_a_new_form_of_a_name_are_not_one_group() -> None:
    old = "Shadow branches are named with the format shadow/<commit>"
    new = "Shadow branches are named with the format shadow/<commit>-<tree>"
    assert clusters([old, new, new.replace("format", "pattern")]) == [[0], [1, 2]]


def test_equal_texts_are_together_and_none_is_lost() -> None:
    assert clusters(["one two three four", "five", "one two three four", ""]) == [[0, 2], [1], [3]]


def test_only_the_same_statement_is_the_same() -> None:
    texts = ["Wrap migrations in a transaction", "Wrap a migration in transactions"]
    assert clusters(texts, 0.7, same) == [[0, 1]]
    assert clusters([f"{text} on Postgres {n}" for n, text in enumerate(texts)], 0.7, same) == [
        [0],
        [1],
    ]


def naive(likeness: dict[tuple[int, int], float], size: int, threshold: float) -> list[list[int]]:
    """Average link as it is defined: the closest two of all, again and again."""
    found = [[item] for item in range(size)]

    def average(one: list[int], other: list[int]) -> float:
        return sum(likeness[min(i, j), max(i, j)] for i in one for j in other) / (
            len(one) * len(other)
        )

    while len(found) > 1:
        one, other = max(combinations(found, 2), key=lambda pair: average(*pair))
        if average(one, other) < threshold:
            break
        found = [group for group in found if group not in (one, other)] + [sorted(one + other)]
    return sorted(found)


def measure(likeness: dict[tuple[int, int], float], size: int, *apart: tuple[int, int]) -> Measure:
    """A measure that is given as a table; what is not in it has nothing in common."""
    table = np.eye(size)
    for (one, other), alike in likeness.items():
        table[one, other] = table[other, one] = alike
    return Measure(lambda rows, columns: table[np.ix_(rows, columns)], lambda _: [*apart])


def numbered(size: int) -> list[str]:
    """Texts whose order is that of their places."""
    return [f"{at:05d}" for at in range(size)]


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 9), st.integers(0, 10_000))
def test_clusters_are_those_of_average_link_over_everything(size: int, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - repeatable
    likeness = {pair: chance.random() for pair in combinations(range(size), 2)}  # without ties
    found = clusters(numbered(size), 0.5, lambda _: measure(likeness, size))
    assert found == naive(likeness, size, 0.5)


def test_two_that_are_exactly_as_similar_as_the_threshold_are_joined() -> None:
    assert clusters(numbered(2), 0.3, lambda _: measure({(0, 1): 0.3}, 2)) == [[0, 1]]


def test_what_must_stay_apart_is_never_joined_by_what_it_is_alike_to() -> None:
    likeness = dict.fromkeys(combinations(range(6), 2), 0.99)
    found = clusters(numbered(6), 0.3, lambda _: measure(likeness, 6, (0, 5)))
    assert not any({0, 5} <= {*cluster} for cluster in found)


def test_how_often_a_text_is_said_does_not_move_the_others() -> None:
    often = [*STATEMENTS, *[STATEMENTS[0]] * 5]
    assert in_words(clusters(often), often) == in_words(clusters(STATEMENTS), STATEMENTS)


def test_a_chain_that_is_too_long_is_divided_where_it_is_weak(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neighbours are alike, and every tenth pair a little less."""
    monkeypatch.setattr(clustering, "_LARGEST", 40)
    likeness = {(at - 1, at): 0.33 if at % 10 == 0 else 0.5 for at in range(1, 300)}
    found = clusters(numbered(300), 0.3, lambda _: measure(likeness, 300))
    assert sorted(item for cluster in found for item in cluster) == [*range(300)]
    assert all(len({item // 10 for item in cluster}) == 1 for cluster in found)


def test_texts_beyond_one_block_of_rows_are_compared_with_all_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = clusters(STATEMENTS)
    monkeypatch.setattr(clustering, "_ROWS", 2)
    assert clusters(STATEMENTS) == expected


def test_texts_without_any_word_are_compared_by_what_they_are() -> None:
    assert clusters(["!", "?", "do it again", "do it, again", ""]) == [[0], [1], [2, 3], [4]]


def test_one_text_takes_no_library() -> None:
    code = (
        "import sys; from loki_memory.consolidation.clustering import clusters; "
        "assert clusters(['a', 'a']) == [[0, 1]]; assert clusters([]) == []; "
        "assert not {'numpy', 'scipy', 'sklearn'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
