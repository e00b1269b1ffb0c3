"""Likeness of texts, and the marks that keep statements apart."""

from __future__ import annotations

import pytest

from loki_memory.consolidation.similarity import adds, grams, jaccard, marks, opposed, words
from loki_memory.models.text import stem


def test_names_of_code_count_with_their_parts() -> None:
    assert words("call getUserName in user_store") == {
        *("call", "in", "get", "user", "name", "store", "getusername"),
    }


@pytest.mark.parametrize(
    ("forms", "same"),
    [
        (("merges", "merged", "merging", "merge"), True),
        (("tests", "testing", "tested", "test"), True),
        (("queries", "query"), True),
        (("running", "runs", "run"), True),
        (("class", "clash"), False),
    ],
)
def test_a_stem_joins_the_forms_of_one_word(forms: tuple[str, ...], same: bool) -> None:
    assert (len({stem(form) for form in forms}) == 1) is same


def test_nothing_is_like_nothing() -> None:
    assert jaccard(frozenset(), frozenset()) == 0.0


def test_a_statement_in_other_endings_stays_alike() -> None:
    one = grams("Wrap the migrations in a transaction")
    assert jaccard(one, grams("Migration wrapped in transactions")) > 0.7
    assert jaccard(one, grams("Pin the version of eslint")) < 0.1


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ("Use Node 18 in CI", "Use Node 20 in CI", "different values"),
        ("Pin react to v18.2.0", "Pin react to v18.3.0", "different values"),
        ("Call close() at the end", "Never call close() at the end", "one of them is negated"),
        ("Tests should use mocks", "Tests shouldn't use mocks", "one of them is negated"),
        ("Set MAX_SIZE in the config", "Set MIN_SIZE in the config", "different names"),
        ("Set `a.b` in the config", "Set `a.c` in the config", "different names"),
        ("Set the mode to 'fast'", "Set the mode to 'safe'", "different values"),
        ("Run lint before the tests", "Run lint after the tests", "different directions"),
        ("Show the errors", "Show the number of errors", "different bounds"),
        ("Retry the upload", "Only retry the upload", "different bounds"),
        ("Log both streams", "Log either of the streams", "different bounds"),
        ("Count the workers", "Count the workers in each region", "different bounds"),
        ("Wrap every migration", "Wrap all migrations", ""),
        ("How many workers are there", "Give the number of workers", ""),
        ("Use Node 18 in CI", "In CI use Node 18", ""),
    ],
)
def test_marks_tell_statements_apart(one: str, other: str, why: str) -> None:
    assert marks(one).differ(marks(other)) == why
    assert marks(other).differ(marks(one)) == why


@pytest.mark.parametrize(
    ("one", "other", "is_more"),
    [
        ("Restart the worker after a deploy", "Restart the worker after a deploy to Berlin", True),
        ("Rotate the tokens of the registry", "Rotate the tokens of the gateway", True),
        ("Show the tokens of the registry", "List all the tokens of the registry", False),
        ("Please rotate the production tokens", "Rotate tokens for production", False),
        ("Rotate tokens when they are produced", "Rotate tokens on production", False),
    ],
)
def test_a_statement_that_speaks_of_more_is_another(one: str, other: str, is_more: bool) -> None:
    assert adds(one, other) is is_more
    assert adds(other, one) is is_more


def test_a_long_statement_may_have_a_word_of_its_own() -> None:
    said = "Drain the queue, stop all workers, then apply the pending schema migrations"
    assert not adds(said, f"{said} manually")
    assert adds(said, f"{said} on Fridays")  # a name, however long the rest


def test_a_denial_about_the_same_name_is_opposed() -> None:
    required = "All tests call setUp() first"
    assert opposed(required, "Tests with a fixture cannot call setUp()")
    assert not opposed(required, "Tests with a fixture cannot be skipped")
    assert not opposed(required, "Every suite calls setUp() once")


def test_two_forms_of_one_name_are_opposed() -> None:
    old, new = "Branches are called <commit>", "Branches are called <commit>-<tree>"
    assert opposed(old, new)
    assert not opposed(new, "A branch is named <commit[:7]>-<tree[:6]>")
