"""Merge: one statement is one belief, and nothing is lost."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from loki_memory.consolidation.clustering import clusters, same
from loki_memory.consolidation.merge import _groups, merge
from loki_memory.consolidation.snapshot import Snapshot, Touched
from loki_memory.models import Belief, Fact, Memory, Pattern, parse

ONE = "Wrap every migration in a transaction"
TWIN = "Wrap all migrations in transactions"


def pattern(name: str, text: str, **fields: Any) -> Pattern:
    given = {"id": f"sem-{name}", "pattern": text, "source_episodes": [f"ep-{name}"]}
    return parse(Pattern, {**given, **fields})


def replaced_by(other: str) -> dict[str, str]:
    return {"to": other, "relation": "superseded_by", "why": "says the same"}


def superseded(*records: Belief, touched: Touched | None = None) -> dict[str, list[str]]:
    changes = merge(Snapshot(records), touched)
    beliefs = [one for one in changes.put if isinstance(one, Belief)]
    assert all(one.status == "superseded" for one in beliefs)
    return {one.id: [link.to for link in one.links] for one in beliefs}


def test_of_two_that_say_the_same_the_better_confirmed_stays() -> None:
    one, twin = pattern("a", ONE, confidence=0.8), pattern("b", TWIN, confidence=0.9)
    assert superseded(one, twin) == {"sem-a": ["sem-b"]}


def test_the_one_with_more_evidence_stays_then_the_smaller_id() -> None:
    more = pattern("b", TWIN, source_episodes=["ep-1", "ep-2"])
    assert superseded(pattern("a", ONE), more) == {"sem-a": ["sem-b"]}
    assert superseded(pattern("a", ONE), pattern("b", TWIN)) == {"sem-b": ["sem-a"]}


TEXTS = [
    "Handlers need an explicit return type",
    "Handlers need an explicit return type.",
    "Handlers need explicit return types",
    "Handlers never need an explicit return type",
    "Route handlers need an explicit return type annotation",
    "Use port 8080 for the proxy",
    "Use port 8081 for the proxy",
    "Use the proxy",
    "the",
    "",
]


@pytest.mark.parametrize(("one", "other"), [*product(TEXTS, TEXTS)])
def test_two_are_told_apart_as_many_are(one: str, other: str) -> None:
    """For two there is a shorter way; a third that is like neither changes nothing."""
    far = "Zebras graze beyond distant mountains"
    three = clusters([one, other, far], 0.5, same)
    assert [*_groups([one, other], 0.5), [2]] == three


def test_nothing_is_lost_and_a_second_run_changes_nothing() -> None:
    twin = pattern("b", TWIN, note="kept", links=[{"to": "ep-9", "relation": "example_of"}])
    snapshot = Snapshot([pattern("a", ONE), twin])
    changes = merge(snapshot)
    (gone,) = changes.put
    document = gone.document()
    links = document.pop("links")
    assert replaced_by("sem-a") in links
    assert {"to": "ep-9", "relation": "example_of"} in links
    assert document.pop("status") == "superseded"
    assert document == {name: told for name, told in twin.document().items() if name != "links"}
    assert not merge(snapshot.with_changes(changes))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Build the image with Node 18 in CI", "Build the image with Node 20 in CI"),
        ("Close the connection after a query", "Never close the connection after a query"),
        ("Set POOL_SIZE in the settings file", "Set POOL_TIME in the settings file"),
        ("Wrap every migration in a transaction", "Keep every migration below one minute"),
        ("Restart the worker after a failed deploy", "Restart the cache after a failed deploy"),
        ("Report the failures of the build", "Report the number of failures of the build"),
    ],
)
def test_statements_that_differ_in_what_matters_stay_two(one: str, other: str) -> None:
    assert superseded(pattern("a", one), pattern("b", other)) == {}


@pytest.mark.parametrize("field", [{"category": "sql"}, {"scope": "local"}])
def test_other_categories_and_scopes_stay_apart(field: dict[str, str]) -> None:
    assert superseded(pattern("a", ONE), pattern("b", TWIN, **field)) == {}


def test_a_fact_and_a_pattern_are_two() -> None:
    fact = parse(Fact, {"id": "fact-a", "statement": TWIN})
    assert superseded(pattern("a", ONE), fact) == {}
    assert superseded(fact, parse(Fact, {"id": "fact-b", "statement": ONE})) == {
        "fact-b": ["fact-a"]
    }


def test_facts_of_two_moments_stay_two() -> None:
    said = [
        parse(Fact, {"statement": ONE, "at": f"2026-01-0{day}T10:00:00Z", "session": "s"})
        for day in (1, 2)
    ]
    assert superseded(*said) == {}


def test_a_persons_own_belief_is_not_replaced_by_an_agents() -> None:
    owned = pattern("b", TWIN, origin="owner", confidence=0.5)
    agents = pattern("a", ONE, origin="agent", confidence=0.9)
    assert superseded(agents, owned) == {"sem-a": ["sem-b"]}


def test_a_pinned_belief_is_never_superseded() -> None:
    assert superseded(pattern("a", ONE, pinned=True), pattern("b", TWIN, pinned=True)) == {}


def test_only_what_was_touched_is_looked_at() -> None:
    pair = (pattern("a", ONE), pattern("b", TWIN))
    assert superseded(*pair, touched=frozenset({"ep-else"})) == {}
    assert superseded(*pair, touched=frozenset({"ep-a"})) == {"sem-b": ["sem-a"]}


def merged(*records: Memory) -> Snapshot:
    snapshot = Snapshot(records)
    after = snapshot.with_changes(merge(snapshot))
    assert not merge(after)
    return after


def test_two_branches_that_chose_differently_keep_one() -> None:
    """One branch superseded a by b, the other b by a; merged, both are superseded."""
    records: list[Memory] = [
        pattern(name, text, status="superseded", links=[replaced_by(to)])
        for name, text, to in (("a", ONE, "sem-b"), ("b", TWIN, "sem-a"))
    ]
    back = merged(*records).records["sem-a"]
    assert isinstance(back, Pattern)
    assert (back.status, back.links) == ("active", [])


def test_evidence_that_comes_later_can_make_another_one_stay() -> None:
    """On one branch a was better confirmed; with what the other branch saw, b is."""
    before = merged(pattern("a", ONE), pattern("b", TWIN))
    more = before.records["sem-b"].changed(source_episodes=["ep-1", "ep-2", "ep-3"])
    after = merged(before.records["sem-a"], more)
    together = merged(pattern("a", ONE), pattern("b", TWIN, source_episodes=more.source_episodes))
    assert [one.links for one in after.of(Pattern)] == [one.links for one in together.of(Pattern)]
    assert [one.status for one in after.of(Pattern)] == ["superseded", "active"]


def test_a_twin_whose_other_is_gone_speaks_again() -> None:
    fact = parse(Fact, {"id": "fact-b", "statement": ONE})
    merged_one = fact.changed(status="superseded", links=[replaced_by("fact-a")])
    assert merged(merged_one).records["fact-b"] == fact


def test_what_somebody_else_superseded_stays_superseded() -> None:
    """A person said which of the two holds, and gave no reason that merging gives."""
    theirs = {"to": "sem-b", "relation": "superseded_by"}
    closed = pattern("a", ONE, status="superseded", confidence=0.9, links=[theirs])
    assert merged(closed, pattern("b", TWIN)).records["sem-a"] == closed
