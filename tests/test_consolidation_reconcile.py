"""Reconcile: of values that cannot all hold, the last one does, and each knows when it ended."""

from __future__ import annotations

import csv
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from loki_memory import Workspace
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


# -- Choices ---------------------------------------------------------------------------------------


def said(*texts: str, **fields: Any) -> list[Fact]:
    """What somebody said on one day after the other."""
    return [
        parse(
            Fact,
            {"id": f"fact-{day}", "statement": text, "valid_from": f"2026-01-0{day}", **fields},
        )
        for day, text in enumerate(texts, 1)
    ]


CHANGED = [
    ("I prefer Python", "Actually, I prefer Go"),
    ("I prefer Python", "I prefer Go"),
    ("I prefer dark mode", "I'd prefer light mode"),
    ("Use dark mode in the docs", "Use the light theme in the docs, please"),
    ("please use the british spelling :)", "let's make sure we're using US English everywhere"),
    ("Use British spelling in all messages", "US English everywhere, please"),
    ("Use British spelling", "We change the messages - let's use US English everywhere please"),
    ("Write the docs in British English", "Write the docs in American English"),
    ("let's make the start command hidden", "let's remove the start command"),
    (
        'let\'s make the "acme start" command hidden',
        "thinking again: let's completely remove the start command",
    ),
    ("Show the banner at login", "Hide the banner at login"),
    ("Use tabs for indentation", "Use spaces for indentation"),
    ("We use tabs", "We use spaces"),
    ("Enable telemetry in CI", "Disable telemetry in CI"),
    ("Telemetry is enabled in CI", "Telemetry is disabled in CI"),
    ("Turn the cache on", "Turn the cache off"),
    ("Use npm", "Use pnpm instead of npm"),
    ("We use Jest", "We switched from Jest to Vitest"),
    ("Use Odin for the parser", "Use Bison for the parser"),
    ("Use the staging database", "Do not use the staging database"),
    ("I prefer tabs", "Never use tabs"),
    ("The reviewer is optional", "The reviewer must be required"),
]


@pytest.mark.parametrize("texts", CHANGED)
def test_a_later_choice_about_the_same_supersedes_the_earlier_one(texts: tuple[str, str]) -> None:
    found = reconciled(*said(*texts))
    assert [one.status for one in found.values()] == ["superseded", "active"]


UNRELATED = [
    ("I prefer Python", "I prefer dark mode"),
    ("I prefer Python", "Actually, I prefer dark mode"),
    ("Use Python for scripts", "Use Go for servers"),
    ("Use tabs in Go files", "Use spaces in Python files"),
    ("We use Python", "We use TypeScript"),
    ("Use pytest for tests", "Use fixtures for tests"),
    ("Add a test for the parser", "Remove the parser"),
    ("I prefer short answers", "I prefer answers in German"),
    ("Enable telemetry in CI", "Disable the cache in CI"),
    ("Hide the banner at login", "Keep the banner at login"),
    ("Use dark mode", "Use light mode when the sun shines"),
    ("Use tabs", "Use tabs, not spaces"),
    ("Prefer rebase", "Merge commits from the main branch do not count as work"),
]


@pytest.mark.parametrize("texts", UNRELATED)
def test_choices_about_different_things_stay(texts: tuple[str, str]) -> None:
    assert not reconcile(Snapshot(said(*texts)))


def test_of_one_day_the_one_that_says_that_it_changes_something_is_the_later() -> None:
    facts = said("Actually, I prefer Go", "I prefer Python")
    found = reconciled(*(one.changed(valid_from="2026-01-01") for one in facts))
    assert [found[f"fact-{one}"].status for one in (1, 2)] == ["active", "superseded"]


def test_choices_of_one_day_are_in_dispute() -> None:
    facts = said("I prefer Go", "I prefer Python")
    found = reconciled(*(one.changed(valid_from="2026-01-01") for one in facts))
    assert [one.status for one in found.values()] == ["disputed", "disputed"]


@pytest.mark.parametrize(
    "texts",
    [
        ("Use tabs in Go files", "Actually, use spaces"),
        ("Use tabs", "Actually, use spaces in Python files"),
        ("Use tabs everywhere", "Use spaces in Python files"),
    ],
)
def test_a_rule_and_a_special_case_that_may_mean_each_other_are_in_dispute(
    texts: tuple[str, str],
) -> None:
    found = reconciled(*said(*texts))
    assert [one.status for one in found.values()] == ["disputed", "disputed"]


def test_what_comes_from_outside_supersedes_nothing_of_ours() -> None:
    ours, theirs = said("Use tabs", "Use spaces")
    found = reconciled(ours, theirs.changed(origin="external"))
    assert [one.status for one in found.values()] == ["disputed", "disputed"]


def test_two_people_may_prefer_different_things() -> None:
    ana, bo = said("I prefer tabs", "I prefer spaces")
    assert not reconcile(Snapshot([ana.changed(by="ana"), bo.changed(by="bo")]))


def test_what_an_agent_tells_of_the_code_is_no_choice() -> None:
    assert not reconcile(Snapshot(said("Use tabs", "Use spaces", type="gotcha")))


def test_the_last_of_three_choices_holds_in_whatever_order_they_become_known() -> None:
    facts = said("I prefer Python", "I prefer Go", "I prefer Rust")
    for order in permutations(facts):
        known: dict[str, Fact] = {}
        for one in order:
            known = reconciled(*known.values(), one)
        assert [known[f"fact-{day}"].status for day in (1, 2, 3)] == [
            "superseded",
            "superseded",
            "active",
        ]


# -- The golden table ------------------------------------------------------------------------------

GOLDEN = Path(__file__).parent / "golden" / "changed_rules.tsv"
HELD_OUT = GOLDEN.with_name("changed_rules_held_out.tsv")  # written before anything was tried on it
STATUSES = {
    "supersedes": ["superseded", "active"],
    "disputed": ["disputed", "disputed"],
    "both": ["active", "active"],
}


class Row(NamedTuple):
    """Two statements, so many days apart, and what becomes of them."""

    days: str
    earlier: str
    later: str
    verdict: str

    def is_met(self) -> bool:
        facts = said(self.earlier, self.later)
        later = facts[1].changed(valid_from=f"2026-01-{1 + int(self.days):02}")
        found = reconciled(facts[0], later)
        return [found[fact.id].status for fact in facts] == STATUSES[self.verdict]


def rows(table: Path) -> list[Row]:
    with table.open(encoding="utf-8", newline="") as lines:
        return [Row(*row) for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)][1:]


@pytest.mark.parametrize("row", rows(GOLDEN), ids=lambda row: f"{row.earlier} / {row.later}")
def test_each_pair_is_decided_as_people_would(row: Row) -> None:
    assert row.is_met(), row.verdict


def test_most_pairs_of_other_wording_are_decided_as_people_would() -> None:
    held_out = rows(HELD_OUT)
    assert sum(row.is_met() for row in held_out) >= 0.85 * len(held_out)


def test_no_pair_of_other_wording_that_can_both_hold_is_contradicted() -> None:
    assert all(row.is_met() for row in rows(HELD_OUT) if row.verdict == "both")


# -- In a workspace --------------------------------------------------------------------------------


def test_what_was_remembered_later_is_what_is_recalled(tmp_path: Path) -> None:
    with Workspace.init(tmp_path) as ws:
        ws.remember("I prefer Python", at="2026-01-05T09:00:00Z")
        ws.remember("Actually, I prefer Go", at="2026-01-06T09:00:00Z")
        ws.consolidate()
        assert [hit.title for hit in ws.recall("What do I prefer?")] == ["Actually, I prefer Go"]
        assert ws.history.check() == []


def test_what_cannot_be_decided_is_a_fault_that_the_check_tells(tmp_path: Path) -> None:
    with Workspace.init(tmp_path) as ws:
        ws.remember("Use tabs", at="2026-01-05T09:00:00Z")
        ws.remember("Use spaces", at="2026-01-05T10:00:00Z")
        ws.consolidate()
        assert [fault.check for fault in ws.history.check()] == ["contradiction"]


def test_what_a_user_said_in_a_later_session_supersedes_what_was_said_before(
    tmp_path: Path,
) -> None:
    said_on = {
        "05": "Please use the British spelling in all messages",
        "09": "Let's make sure we're using US English everywhere",
    }
    with Workspace.init(tmp_path) as ws:
        for day, text in said_on.items():
            statement = {"text": text, "type": "preference", "source": "user", "score": 0.6}
            ws.record(
                {
                    "goal": f"Word the messages of part {day}",
                    "session": f"s{day}",
                    "timestamp": f"2026-01-{day}T10:00:00Z",
                    "statements": [statement],
                }
            )
        ws.consolidate()
        facts = {one.title(): one for one in ws.list(kind="fact", status="all")}
        assert [facts[text].document()["status"] for text in said_on.values()] == [
            "superseded",
            "active",
        ]
