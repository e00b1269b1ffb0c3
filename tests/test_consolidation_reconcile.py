"""Reconcile: of values that cannot all hold, the last one does, and each knows when it ended."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from loki_memory.consolidation.reconcile import reconcile
from loki_memory.consolidation.snapshot import Snapshot
from loki_memory.models import Fact, parse

LATER, UNDECIDED = "a later value", "no later value decides"


def node(version: int, day: int | None = None, **fields: Any) -> Fact:
    given = {"id": f"fact-{version}", "statement": f"CI runs on Node {version}"}
    dated = {"valid_from": f"2026-01-{day:02}"} if day else {}
    return parse(Fact, {**given, "subject": "ci", "attribute": "node", **dated, **fields})


def reconciled(*facts: Fact) -> dict[str, Fact]:
    snapshot = Snapshot(facts)
    after = snapshot.with_changes(reconcile(snapshot))
    assert not reconcile(after), "a second run changes nothing"
    return {one.id: one for one in after.of(Fact)}


def told(fact: Fact) -> tuple[str, str | None, set[tuple[str, str]]]:
    return fact.status, fact.invalid_at, {(link.relation, link.to) for link in fact.links}


def test_a_later_value_supersedes_the_earlier_one_and_says_when() -> None:
    found = reconciled(node(20, 5), node(22, 13))
    assert told(found["fact-20"]) == ("superseded", "2026-01-13", {("superseded_by", "fact-22")})
    assert told(found["fact-22"]) == ("active", None, {("supersedes", "fact-20")})


def test_each_of_three_values_ends_when_the_next_begins() -> None:
    found = reconciled(node(18, 1), node(20, 5), node(22, 9))
    assert [found[f"fact-{one}"].invalid_at for one in (18, 20, 22)] == [
        "2026-01-05",
        "2026-01-09",
        None,
    ]


def test_a_value_that_becomes_known_late_takes_its_place_between_the_others() -> None:
    facts = (node(18, 1), node(20, 5), node(22, 9), node(24, 9), node(16))
    at_once = reconciled(*facts)
    for order in permutations(facts):
        known: dict[str, Fact] = {}
        for one in order:
            known = reconciled(*known.values(), one)
        assert {one.id: one.document() for one in known.values()} == {
            one.id: one.document() for one in at_once.values()
        }


def test_two_values_of_one_day_are_in_dispute() -> None:
    found = reconciled(node(20, 5), node(22, 5))
    assert told(found["fact-20"]) == ("disputed", None, {("contradicts", "fact-22")})
    assert told(found["fact-22"]) == ("disputed", None, {("contradicts", "fact-20")})


def test_a_dispute_ends_with_the_value_that_comes_after_it() -> None:
    found = reconciled(*reconciled(node(20, 5), node(22, 5)).values(), node(24, 6))
    assert [found[f"fact-{one}"].status for one in (20, 22, 24)] == [
        "superseded",
        "superseded",
        "active",
    ]


def test_a_pinned_value_is_not_superseded() -> None:
    found = reconciled(node(20, 5, pinned=True), node(22, 9))
    assert [one.status for one in found.values()] == ["disputed", "disputed"]


@pytest.mark.parametrize(
    "other",
    [
        node(22, 9, session="talk-1"),
        node(22, 9, scope="local"),
        node(22, 9, statement="CI runs on Node 22 only on Windows"),
        node(22, 9, attribute="node in production"),
        node(22, 9, status="rejected"),
        node(22, 9, invalid_at="2026-01-10"),
    ],
    ids=["a talk", "another scope", "a condition", "another slot", "rejected", "over"],
)
def test_what_does_not_contradict_is_left_alone(other: Fact) -> None:
    assert not reconcile(Snapshot([node(20, 5), other]))


def test_plain_forms_of_speech_name_a_slot() -> None:
    pairs = [
        ("The API listens on port 3000", "The API listens on port 8080"),
        ("The timeout of the client is 5 s", "The timeout of the client is 9 s"),
        ("Tests run in parallel", "Tests do not run in parallel"),
    ]
    for texts in pairs:
        facts = [
            parse(Fact, {"id": f"fact-{day}", "statement": text, "valid_from": f"2026-01-0{day}"})
            for day, text in enumerate(texts, 1)
        ]
        assert [one.status for one in reconciled(*facts).values()] == ["superseded", "active"]


def test_what_somebody_else_closed_stays_as_they_left_it() -> None:
    theirs = {"to": "fact-99", "relation": "superseded_by"}
    closed = node(20, 5, status="superseded", invalid_at="2026-01-07", links=[theirs])
    assert not reconcile(Snapshot([closed, node(22, 9)]))


def test_links_and_fields_of_others_are_kept() -> None:
    theirs = {"to": "ep-1", "relation": "example_of"}
    old = reconciled(node(20, 5, links=[theirs], note="kept"), node(22, 9))["fact-20"]
    assert [link.to for link in old.links] == ["ep-1", "fact-22"]
    assert old.document()["note"] == "kept"


def test_a_fact_that_nothing_contradicts_any_more_is_as_it_was() -> None:
    for before in (node(20, 5), node(20, 5, status="candidate"), node(20, 5, status="active")):
        after = reconciled(before, node(22, 9))
        assert reconciled(after["fact-20"])["fact-20"].document() == before.document()


def test_the_links_say_why() -> None:
    facts = reconciled(node(20, 5), node(22, 9), node(24, 9)).values()
    reasons = {link.relation: link.model_extra for one in facts for link in one.links}
    assert reasons["contradicts"] == {"why": UNDECIDED}
    assert reasons["superseded_by"] == {"why": LATER}
