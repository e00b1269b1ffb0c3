"""Clusters: average link inside components, the same in every order."""

from __future__ import annotations

import random
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from loki_memory.consolidation.average_link import Alike, average_link, clusters, each, groups, same
from loki_memory.consolidation.minhash import bands, keys_of, sketch

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
    assert groups(STATEMENTS) == [[0, 1, 2], [3, 4], [5]]


def test_the_order_of_statements_does_not_matter() -> None:
    expected = in_words(groups(STATEMENTS), STATEMENTS)
    for seed in range(5):
        shuffled = random.Random(seed).sample(STATEMENTS, len(STATEMENTS))  # noqa: S311 - repeatable
        assert in_words(groups(shuffled), shuffled) == expected


def test_a_rule_and_its_denial_are_not_one_group() -> None:
    rule = "Every test function calls t.Parallel() by convention"
    denial = "A test function that calls t.Chdir() cannot call t.Parallel()"
    assert groups([rule, denial]) == [[0], [1]]


def test_an_old_and_a_new_form_of_a_name_are_not_one_group() -> None:
    old = "Shadow branches are named with the format shadow/<commit>"
    new = "Shadow branches are named with the format shadow/<commit>-<tree>"
    assert groups([old, new, new.replace("format", "pattern")]) == [[0], [1, 2]]


def test_equal_texts_are_together_and_none_is_lost() -> None:
    assert groups(["one two three four", "five", "one two three four", ""]) == [[0, 2], [1], [3]]


def test_only_the_same_statement_is_the_same() -> None:
    texts = ["Wrap migrations in a transaction", "Wrap a migration in transactions"]
    assert groups(texts, 0.7, same) == [[0, 1]]
    assert groups([f"{text} on Postgres {n}" for n, text in enumerate(texts)], 0.7, same) == [
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


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 9), st.integers(0, 10_000))
def test_clusters_are_those_of_average_link_over_everything(size: int, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - repeatable
    likeness = {pair: chance.random() for pair in combinations(range(size), 2)}  # without ties

    def pair(i: int, j: int) -> float:
        return likeness[min(i, j), max(i, j)]

    everyone = Alike(keys_of([["all"]] * size), each(pair))
    assert clusters(everyone, [1] * size, 0.5) == naive(likeness, size, 0.5)


def test_a_weight_is_as_good_as_copies() -> None:
    likeness = {(0, 1): 0.8, (0, 2): 0.3, (1, 2): 0.65}

    def pair(i: int, j: int) -> float:
        return 1.0 if i == j else likeness[min(i, j), max(i, j)]

    assert average_link([0, 1, 2], each(pair), [1, 1, 1], 0.47) == [[0, 1, 2]]
    assert average_link([0, 1, 2], each(pair), [3, 1, 1], 0.47) == [[0, 1], [2]]


def test_a_chain_of_thousands_is_divided_where_it_is_weak() -> None:
    """Neighbours are alike, and every tenth pair a little less."""

    def pair(i: int, j: int) -> float:
        return (0.33 if max(i, j) % 10 == 0 else 0.5) if abs(i - j) == 1 else 0.0

    keys = [[at, at + 1] for at in range(1000)]
    found = clusters(Alike(keys_of(keys), each(pair)), [1] * 1000, 0.3)
    assert sorted(item for group in found for item in group) == list(range(1000))
    assert all(len({item // 10 for item in group}) == 1 for group in found)


def test_bands_of_like_sets_meet_and_of_unlike_ones_do_not() -> None:
    terms = [f"term{n}" for n in range(20)]
    keys = bands([*map(sketch, (terms[:10], terms[1:11], [], terms[10:]))])
    one, most, nothing, none = (set(keys.values[keys.owners == at].tolist()) for at in range(4))
    assert one & most
    assert not one & none
    assert not nothing


def test_of_a_crowd_that_shares_a_key_only_the_nearest_are_compared() -> None:
    asked: list[tuple[int, int]] = []

    def pair(i: int, j: int) -> float:
        asked.append((i, j))
        return 0.0

    clusters(Alike(keys_of([["all"]] * 100), each(pair)), [1] * 100, 0.5)
    assert max(j - i for i, j in asked) < 10
    assert {i for pair in asked for i in pair} == set(range(100))
