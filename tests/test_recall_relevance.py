"""The chance that a memory is relevant."""

from __future__ import annotations

import pytest

from loki_memory import Workspace
from loki_memory.recall.result import (
    Nearness,
    Recollection,
    Recollections,
    certainty,
    chance,
    chances,
)


def test_a_chance_grows_with_nearness_and_falls_with_the_place() -> None:
    near, far = Nearness(0.9, 0.6, 900, 8), Nearness(0.3, 0.1, 900, 8)
    assert chance(near, 0) > chance(far, 0)
    assert chance(near, 0) > chance(near, 5)
    assert chance(far._replace(is_exact=True), 7) > 0.9


def test_no_hit_has_a_higher_chance_than_the_one_before_it() -> None:
    found = chances([Nearness(0.4, 0.2, 900, 8), Nearness(0.9, 0.6, 900, 8), None])
    assert found[0] == found[1] == found[2]


def test_what_was_found_by_its_name_is_certain() -> None:
    assert chances([None]) == [1.0]


def test_a_weak_match_is_enough_in_a_small_store_and_not_in_a_large_one() -> None:
    match = Nearness(alike=0.35, cosine=0.25, stored=600, asked=6)
    assert certainty(match) > 0.2 > certainty(match._replace(stored=100_000))
    assert certainty(match._replace(alike=0.1, cosine=0.1)) < 0.2


def test_a_store_about_something_else_says_nothing_of_kubernetes(ws: Workspace) -> None:
    for port in range(20):
        ws.remember(f"Service number {port} of the shop listens on port 80{port:02d}")
    hits = ws.recall("how do I deploy to kubernetes?")
    assert (hits, hits.filtered) == ([], 20)


@pytest.fixture
def few(ws: Workspace) -> Workspace:
    for text in (
        "Contract tests need the database running",
        "Use pnpm for installing packages",
        "The API listens on port 8080",
        "Deploy only on Mondays",
    ):
        ws.remember(text)
    return ws


def test_scores_are_chances(few: Workspace) -> None:
    hits = few.recall("run the contract tests")
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(0 <= hit.score <= 1 for hit in hits)
    assert hits[0].score > 0.5
    assert hits[1].score < 0.1


def test_a_memory_of_the_user_is_on_the_scale_of_the_project(few: Workspace) -> None:
    few.remember("I like tabs over spaces in all projects", scope="user")
    few.remember("My favourite editor theme is dark", scope="user")
    hits = few.recall("which port does the API use")
    assert hits[0].title == "The API listens on port 8080"


def test_hits_that_are_only_the_nearest_are_marked_as_doubtful() -> None:
    weak, strong = Recollection("a", "fact", "A", score=0.1), Recollection("b", "fact", "B", 0.9)
    assert Recollections([weak], certainty=0.15).doubt
    assert not Recollections([weak], certainty=0.5).doubt
    assert not Recollections([strong], certainty=0.15).doubt  # it was named
    assert not Recollections([weak], certainty=0.15, in_few=True).doubt
    assert not Recollections(certainty=0.15).doubt


def test_an_episode_is_recalled_with_the_sentence_that_answers(ws: Workspace) -> None:
    ended = "All tests pass. The parser ignored the summary of each session."
    ws.record({"goal": "/dev-story", "summary": ended, "outcome": "success"})
    (hit,) = ws.recall("why was the summary ignored")
    assert (hit.title, hit.excerpt) == (
        "/dev-story",
        "The parser ignored the summary of each session.",
    )
