"""Reflection: what beliefs say together, and what is only reported."""

from __future__ import annotations

import random
from typing import Any

from loki_memory.consolidation.anti_patterns import antipatterns
from loki_memory.consolidation.reflect import reflect
from loki_memory.consolidation.snapshot import Snapshot
from loki_memory.consolidation.topics import summary
from loki_memory.consolidation.weigh import weigh
from loki_memory.models import (
    AntiPattern,
    Belief,
    Episode,
    Fact,
    Memory,
    parse,
    tombstone_id,
)

TABLES = ("singers", "conductors", "stadiums")


def query(n: int, table: str, resolution: str, outcome: str = "success", **fields: Any) -> Episode:
    """A query for a table that is not there, and what was done about it."""
    error = {"message": f"Table '{table}' doesn't exist", "resolution": resolution}
    given = {
        "id": f"ep-{n}",
        "goal": f"How many {table} are there?",
        "timestamp": f"2026-01-{n:02d}T10:00:00Z",
        "errors_encountered": [error],
        "outcome": outcome,
        "origin": "agent",
    }
    return parse(Episode, {**given, **fields})


def solved() -> list[Memory]:
    return [query(n, table, "Look at SHOW TABLES first") for n, table in enumerate(TABLES, 1)]


def consolidated(records: list[Memory]) -> Snapshot:
    snapshot = Snapshot(records)
    snapshot = snapshot.with_changes(antipatterns(snapshot))
    return snapshot.with_changes(weigh(snapshot))


def parents(snapshot: Snapshot) -> list[AntiPattern]:
    put = reflect(snapshot).put
    return [one for one in put if isinstance(one, AntiPattern) and one.depth == 1]


def test_one_error_with_three_names_has_a_parent_with_what_always_helps() -> None:
    snapshot = consolidated(solved())
    (parent,) = parents(snapshot)
    assert "table <*> doesn't exist" in parent.what_fails
    assert all(table in parent.what_fails for table in TABLES)
    assert parent.prevention == "Look at SHOW TABLES first"
    assert parent.evidence.for_ == ["ep-1", "ep-2", "ep-3"]
    assert parent.confidence == 0.83
    assert parent.status == "active"
    assert (parent.valid_from, parent.origin) == ("2026-01-01", "agent")


def test_the_examples_name_their_parent_and_keep_what_they_said() -> None:
    snapshot = consolidated(solved())
    (parent,) = parents(snapshot)
    children = [
        one for one in reflect(snapshot).put if isinstance(one, Belief) and one is not parent
    ]
    examples = [one for one in children if one.parent == parent.id]
    assert len(examples) == 3
    for one in examples:
        before = snapshot.records[one.id].document()
        added = {"parent", "links"}
        assert {k: v for k, v in one.document().items() if k not in added} == {
            k: v for k, v in before.items() if k not in added
        }
        assert [(link.relation, link.to) for link in one.links] == [("example_of", parent.id)]


def test_two_names_are_no_general_error() -> None:
    assert parents(consolidated(solved()[:2])) == []


def test_names_that_each_need_their_own_remedy_have_no_parent() -> None:
    records: list[Memory] = [query(n, name, f"Create {name}") for n, name in enumerate(TABLES, 1)]
    assert parents(consolidated(records)) == []


def test_reflecting_and_weighing_again_changes_nothing() -> None:
    snapshot = consolidated(solved())
    snapshot = snapshot.with_changes(reflect(snapshot))
    assert not antipatterns(snapshot)
    assert not weigh(snapshot)
    assert not reflect(snapshot)


def test_a_parent_is_as_sure_as_what_episodes_say_of_it_makes_it() -> None:
    (parent,) = parents(consolidated(solved()))
    verdict = {"id": parent.id, "helpful": False}
    judge = query(9, "albums", "", errors_encountered=[], recalled=[verdict])
    snapshot = consolidated([*solved(), judge])
    (doubted,) = parents(snapshot)
    assert doubted.evidence.against == [judge.id]
    assert (doubted.confidence or 1) < (parent.confidence or 0)
    assert not weigh(snapshot.with_changes(reflect(snapshot)))


def test_a_parent_that_no_longer_follows_is_retired_and_its_examples_are_free() -> None:
    """On a branch that saw the other names too, there never was one."""
    snapshot = consolidated(solved())
    snapshot = snapshot.with_changes(reflect(snapshot))
    others = [query(n, f"t{n}", f"Create table t{n}") for n in range(5, 9)]
    grown = consolidated([*snapshot.records.values(), *others])
    grown = grown.with_changes(reflect(grown))
    known = [one for one in grown.of(AntiPattern) if one.depth == 1]
    assert [one.status for one in known] == ["retired"]
    there = {one.id: one.document() for one in grown.of(AntiPattern) if one.depth is None}
    alone = consolidated([*solved(), *others])
    assert there == {one.id: one.document() for one in alone.of(AntiPattern)}
    assert not reflect(grown)


def test_errors_that_no_episode_touched_are_left_alone() -> None:
    snapshot = consolidated(solved())
    assert not reflect(snapshot, frozenset(["ep-other"]))
    assert reflect(snapshot, frozenset(["ep-1"]))


def test_a_rejected_parent_does_not_come_back() -> None:
    snapshot = consolidated(solved())
    (parent,) = parents(snapshot)
    rejected = Snapshot(snapshot.records.values(), rejected=[tombstone_id(parent.value())])
    assert not reflect(rejected)


def fact(n: int, category: str = "Testing", **fields: Any) -> Fact:
    statement = f"Rule {n}: the suite number {n} needs database {n} to itself"
    given = {"id": f"fact-{n}", "statement": statement, "category": category}
    return parse(Fact, {**given, "source_episodes": [f"ep-{n}"], **fields})


def topics(*records: Memory) -> list[Fact]:
    put = reflect(Snapshot(records)).put
    return [one for one in put if isinstance(one, Fact) and one.depth == 0]


def test_a_category_with_five_beliefs_is_a_topic_above_them() -> None:
    members = [fact(n) for n in range(5)]
    (topic,) = topics(*members)
    assert topic.statement.startswith("Testing: Rule 0: the suite number 0")
    put = reflect(Snapshot(members)).put
    assert [one.document()["parent"] for one in put if one.id != topic.id] == [topic.id] * 5


def test_facts_that_somebody_remembered_make_a_topic_without_any_episode() -> None:
    stated = [
        parse(Fact, {"statement": f"Queue consumer {n} acks after commit {n}", "category": "queue"})
        for n in range(5)
    ]
    (topic,) = topics(*stated)
    assert topic.statement.startswith("Queue: Queue consumer")


def test_four_beliefs_are_no_topic_and_scopes_do_not_mix() -> None:
    assert topics(*map(fact, range(4))) == []
    assert topics(*map(fact, range(4)), fact(5, scope="local")) == []


def test_a_belief_that_has_a_parent_keeps_it() -> None:
    members = [fact(n) for n in range(5)]
    placed = fact(9, parent="fact-0")
    put = reflect(Snapshot([*members, placed])).put
    assert placed.id not in [one.id for one in put]


def test_a_topic_is_written_again_only_when_its_members_change() -> None:
    snapshot = Snapshot([fact(n) for n in range(5)])
    snapshot = snapshot.with_changes(reflect(snapshot))
    assert not reflect(snapshot)
    grown = Snapshot([*snapshot.records.values(), fact(7)])
    (topic,) = topics(*grown.records.values())
    assert topic.statement.endswith("and 1 more")


def test_a_topic_whose_members_went_is_retired() -> None:
    members = [fact(n) for n in range(5)]
    snapshot = Snapshot(members)
    snapshot = snapshot.with_changes(reflect(snapshot))
    first, *rest = snapshot.of(Fact)
    fewer = Snapshot([*rest, first.changed(status="rejected")])
    after = fewer.with_changes(reflect(fewer))
    assert {one.status for one in after.of(Fact) if one.depth == 0} == {"retired"}
    assert [one.parent for one in after.of(Fact) if one.depth != 0] == [None] * 5


def test_what_did_not_stand_under_a_withdrawn_topic_stays_as_it_was_written() -> None:
    snapshot = Snapshot([fact(n) for n in range(5)])
    snapshot = snapshot.with_changes(reflect(snapshot))
    first, *rest = snapshot.of(Fact)
    other = fact(9, "Style", links=[])
    put = reflect(Snapshot([*rest, first.changed(status="rejected"), other])).put
    assert {one.id for one in put} == {one.id for one in snapshot.of(Fact)}


def test_a_topic_does_not_quote_what_is_in_dispute() -> None:
    said = summary([fact(1), fact(2, status="disputed")])
    assert fact(1).statement in said
    assert fact(2).statement not in said
    assert said.endswith("and 1 more")


def test_a_summary_fits_and_quotes_its_members() -> None:
    members = [fact(n, statement=f"{'long ' * 30}statement {n}") for n in range(40)]
    text = summary(members)
    assert len(text) <= 600
    assert text.endswith(f"and {40 - text.count('statement')} more")


def test_a_file_around_which_errors_gather_is_reported_and_not_written() -> None:
    bad = [
        query(20 + n % 5, f"t{n}", "", id=f"ep-b{n}", files_modified=["src/db.ts"])
        for n in range(6)
    ]
    good = [query(n, "x", "", id=f"ep-g{n}", errors_encountered=[]) for n in range(1, 20)]
    changes = reflect(consolidated([*bad, *good]))
    noticed = [step for step in changes.steps if step.what == "noticed"]
    assert [step.id for step in noticed] == ["file:src/db.ts"]
    assert "6 of 6" in noticed[0].why


def test_an_error_that_comes_more_often_is_reported() -> None:
    many = [query(20 + n % 5, "singers", "", id=f"ep-m{n}") for n in range(10)]
    one = query(1, "singers", "", id="ep-old")
    (step,) = [s for s in reflect(consolidated([*many, one])).steps if s.title.startswith("more")]
    assert step.why == "10 times in 14 days, 1 times in those before"


def test_the_order_of_records_does_not_matter() -> None:
    records: list[Memory] = [*consolidated(solved()).records.values(), *map(fact, range(6))]
    expected = reflect(Snapshot(records))
    for seed in range(3):
        random.Random(seed).shuffle(records)  # noqa: S311 - an order, not a secret
        assert reflect(Snapshot(records)) == expected
