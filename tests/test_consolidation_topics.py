"""Themes: facts without a category are filed under the words that they share."""

from __future__ import annotations

from itertools import permutations

from loki_memory import Workspace
from loki_memory.consolidation.topics import themes

SEARCH = [
    "The search index is rebuilt every night",
    "Synonyms of the search index live in synonyms.yaml",
    "A deleted product stays in the search index until the rebuild",
    "The search index keeps prices in cents",
]
DEPLOY = [
    "A deploy needs a green staging run",
    "The deploy migrates the database before it restarts workers",
    "Rollbacks of a deploy never undo migrations",
    "Deploys are frozen on Fridays",
]
ALONE = ["Password hashes use argon2id"]


def filed(*texts: str, least: int = 4) -> dict[str, str]:
    return themes(dict(zip(texts, texts, strict=True)), least)


def test_a_theme_has_the_name_that_its_facts_use() -> None:
    found = filed(*SEARCH, *DEPLOY, *ALONE)
    assert {found[text] for text in SEARCH} == {"search index"}
    assert {found[text] for text in DEPLOY} == {"deploy"}


def test_what_shares_no_word_with_a_theme_is_filed_under_none() -> None:
    assert ALONE[0] not in filed(*SEARCH, *DEPLOY, *ALONE)


def test_what_lacks_the_word_joins_the_theme_that_is_near() -> None:
    text = "Staging is green before workers restart the run"
    assert filed(*SEARCH, *DEPLOY, text)[text] == "deploy"


def test_too_few_facts_are_no_theme() -> None:
    assert filed(*SEARCH, *DEPLOY, least=5) == {}


def test_a_word_that_most_facts_have_tells_none_apart() -> None:
    many = [f"The loki {letter * 3} {letter * 4}" for letter in "abcdefghi"]
    assert filed(*many, least=3) == {}


def test_the_order_of_facts_does_not_matter() -> None:
    texts = [*SEARCH[:2], *DEPLOY[:2], *ALONE]
    assert (
        len({tuple(sorted(filed(*order, least=2).items())) for order in permutations(texts)}) == 1
    )


def test_remembered_facts_are_found_by_their_theme(ws: Workspace) -> None:
    for text in (*SEARCH, "Search results of the index are cached", *DEPLOY, *ALONE):
        ws.remember(text)
    ws.consolidate()
    below = [child.title for child in ws.browse.explore("search index").children]
    assert sorted(below) == sorted([*SEARCH, "Search results of the index are cached"])
    assert not ws.consolidate().steps
