"""Statements of sessions become facts: which say the same, when one is told, what is resolved."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from loki_memory import Workspace
from loki_memory.consolidation.features import EpisodeFeatures, episode_features
from loki_memory.consolidation.snapshot import Record, Snapshot, Thresholds
from loki_memory.consolidation.statements import facts
from loki_memory.models import Episode, Fact, parse, tombstone_id

GOTCHA = "go-git doesn't read global gitignore files, so `git status` and the CLI disagree."
PLAIN = "Every order has a number until the invoice is paid, then it has two."
AGAIN = "go-git doesn't read the global gitignore files, so the CLI and `git status` disagree."


def session(number: int, *stated: str, **fields: Any) -> EpisodeFeatures:
    """An episode of a session of its own, with statements of a middling score."""
    known = {"type": "gotcha", "source": "say", "score": 0.5, **fields}
    episode = {
        "id": f"ep-2026-01-{number:02}-001",
        "timestamp": f"2026-01-{number:02}T10:00:00Z",
        "session": f"s{number}",
        "context": {"goal": "Fix the ignored files"},
        "statements": [{"text": text, **known} for text in stated],
        "origin": "agent",
    }
    return episode_features(parse(Episode, episode))


def learned(*records: Record, **fields: Any) -> list[Fact]:
    return [one for one in facts(Snapshot(records, **fields)).put if isinstance(one, Fact)]


def test_a_statement_of_one_session_is_a_candidate() -> None:
    (fact,) = learned(session(1, PLAIN, type="fact"))
    assert (fact.statement, fact.type, fact.status) == (PLAIN, "fact", "candidate")
    assert fact.evidence.for_ == ["ep-2026-01-01-001"]


def test_one_session_suffices_for_what_is_said_of_an_outside_tool() -> None:
    (gotcha,) = learned(session(1, GOTCHA))
    assert gotcha.status == "active"
    (weak,) = learned(session(1, GOTCHA, score=0.2))
    assert weak.status == "candidate"
    (surer,) = learned(session(1, PLAIN, type="fact", score=0.7))
    assert surer.status == "active"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Always write a test first, everywhere in this project", "active"),
        ("If there is an error, always exit with os.Exit(1)", "candidate"),  # of one place
    ],
)
def test_a_rule_of_one_session_is_told_unless_it_names_code(text: str, status: str) -> None:
    (fact,) = learned(session(1, text, type="preference", source="user"))
    assert fact.status == status


WRITTEN = "Pages use Tailwind instead of components, so that the bundle stays small."


def status_of(text: str, records: list[Fact]) -> str | None:
    return next(fact.status for fact in records if fact.statement == text)


def test_one_session_suffices_for_what_was_written_into_the_project_and_says_what_to_do() -> None:
    weak = {"type": "fact", "score": 0.35}
    assert status_of(WRITTEN, learned(session(1, WRITTEN, source="written", **weak))) == "active"
    assert status_of(WRITTEN, learned(session(1, WRITTEN, source="say", **weak))) == "candidate"


def test_two_sessions_make_a_fact_active_and_surer() -> None:
    (once,) = learned(session(1, GOTCHA))
    (twice,) = learned(session(1, GOTCHA), session(2, GOTCHA))
    assert twice.status == "active"
    assert (twice.confidence or 0) > (once.confidence or 0)


def test_other_words_for_the_same_join_the_evidence() -> None:
    (fact,) = learned(session(1, GOTCHA), session(2, AGAIN))
    assert len(fact.evidence.for_) == 2


@pytest.mark.parametrize(
    "other",
    [
        "go-git does read global gitignore files, so `git status` and the CLI agree.",
        "The cart keeps its items in the order in which they were added to it.",
    ],
)
def test_what_is_denied_or_something_else_is_a_fact_of_its_own(other: str) -> None:
    assert len(learned(session(1, GOTCHA), session(2, other))) == 2


def test_a_high_score_makes_one_session_enough() -> None:
    (fact,) = learned(session(1, GOTCHA, score=0.7))
    assert fact.status == "active"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Please use the British spelling in messages", "candidate"),
        ("Please use the British spelling everywhere", "active"),
    ],
)
def test_a_preference_counts_from_one_session_if_it_holds_everywhere(
    text: str, status: str
) -> None:
    (fact,) = learned(session(1, text, type="preference", source="user", score=0.9))
    assert fact.status == status


@pytest.mark.parametrize(
    "text",
    [
        "Added `branchExistsCLI()` because `repo.Reference()` returns stale data.",
        "Add `SessionPath string` to `WriteOptions`, because the strategy needs the path.",
        "Bug: consecutive commits got the same checkpoint id, because it was reused.",
        "TestTurnEnd_Failure verifies that the shadow branch is kept when condensing fails.",
    ],
)
def test_what_was_done_is_not_told_however_often(text: str) -> None:
    (fact,) = learned(session(1, text, score=0.9), session(2, text, score=0.9))
    assert fact.status == "candidate"


FAULT = "`parse_config` silently drops keys that it does not know"


@pytest.mark.parametrize(
    "said",
    [
        "Fixed: `parse_config` reports keys that it does not know",
        "`parse_config()` now reports the keys that it does not know",
        "`config.parse_config` no longer drops unknown keys that it does not know",
    ],
)
def test_a_defect_that_a_later_session_mended_is_resolved(said: str) -> None:
    first, later = session(1, FAULT, type="fact"), session(2, said, type="fact")
    status = {fact.statement: fact.status for fact in learned(first, later)}
    assert status[FAULT] == "resolved"
    assert all(status[text] != "resolved" for text in status if text != FAULT)


def test_a_defect_that_a_later_session_was_asked_to_mend_is_resolved_once_it_succeeds() -> None:
    first = session(1, FAULT, type="fact")
    goal = "Fix parse_config: it drops the keys that it does not know"
    for outcome, status in (("success", "resolved"), ("failure", "candidate")):
        (fact,) = learned(first, session(2)._replace(goal=goal, outcome=outcome))
        assert fact.status == status


def test_a_defect_of_which_a_session_tells_again_is_not_resolved() -> None:
    mended = session(2, "Fixed: `parse_config` reports keys that it does not know", type="fact")
    told = learned(session(1, FAULT, type="fact"), mended, session(3, FAULT, type="fact"))
    assert "resolved" not in {fact.status for fact in told}


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        (FAULT, "convention"),
        ("`parse_config` reads the keys that it knows from one file", "fact"),
    ],
)
def test_a_rule_or_a_description_is_not_resolved(text: str, type_: str) -> None:
    later = session(2, "Fixed: `parse_config` reports keys that it does not know", type="fact")
    told = learned(session(1, text, type=type_), later)
    assert "resolved" not in {fact.status for fact in told}


def test_a_run_that_looks_at_the_later_session_only_resolves_the_defect_too() -> None:
    first = session(1, FAULT, type="fact")
    (known,) = learned(first)
    later = session(2, "Fixed: `parse_config` reports keys that it does not know", type="fact")
    changes = facts(Snapshot([first, known, later]), frozenset([later.id]))
    found = {fact.id: fact for fact in changes.put if isinstance(fact, Fact)}
    assert found[known.id].status == "resolved"
    assert ("resolved", known.id) in {(step.what, step.id) for step in changes.steps}


def test_a_defect_that_its_session_mended_is_resolved() -> None:
    (fact,) = learned(session(1, GOTCHA, resolved=True))
    assert fact.status == "resolved"


def test_sessions_one_by_one_give_the_same_facts_as_all_at_once() -> None:
    sessions = [session(1, GOTCHA), session(2, AGAIN, score=0.8), session(3, "The cart is sorted.")]
    at_once = {one.id: one.document() for one in learned(*sessions)}
    known = Snapshot(())
    for one in sessions:
        known = Snapshot([*known.records.values(), one])
        known = known.with_changes(facts(known, frozenset({one.id})))
    assert {one.id: one.document() for one in known.of(Fact)} == at_once


def test_a_second_run_changes_nothing() -> None:
    known = Snapshot([session(1, GOTCHA), session(2, AGAIN)])
    known = known.with_changes(facts(known))
    assert not facts(known)


def test_what_a_person_rejected_is_not_learned_again() -> None:
    assert learned(session(1, GOTCHA), rejected={tombstone_id(GOTCHA)}) == []


def test_a_fact_of_the_same_words_that_somebody_wrote_stays_theirs() -> None:
    (fact,) = learned(session(1, GOTCHA))
    theirs = parse(Fact, {"id": fact.id, "statement": GOTCHA, "confidence": 0.95})
    assert learned(theirs, session(1, GOTCHA), session(2, GOTCHA)) == []


def test_consolidating_a_workspace_writes_the_facts(tmp_path: Path) -> None:
    with Workspace.init(tmp_path) as ws:
        for number in (1, 2):
            ws.record(
                {
                    "goal": f"Fix the ignored files of part {number}",
                    "session": f"s{number}",
                    "timestamp": f"2026-01-0{number}T10:00:00Z",
                    "statements": [GOTCHA],
                }
            )
        ws.consolidate()
        (fact,) = [one for one in ws.list(kind="fact") if isinstance(one, Fact)]
        assert (fact.statement, fact.status) == (GOTCHA, "active")


# -- Surprise --------------------------------------------------------------------------------------

PREFERS = {"type": "preference", "source": "user"}


def test_a_fact_keeps_how_surprising_the_statement_was_that_began_it() -> None:
    first, second = learned(
        session(1, "I prefer Python", **PREFERS), session(2, "I prefer Go", **PREFERS)
    )
    found = {one.statement: one.surprise for one in (first, second)}
    python, go = found["I prefer Python"], found["I prefer Go"]
    assert python is not None
    assert go is not None
    assert (python.novelty, python.contradiction) == (1, 0)
    assert (go.novelty, go.contradiction) == (1, 1)


def test_importance_follows_from_surprise_unless_somebody_set_it() -> None:
    (fact,) = learned(session(1, GOTCHA))
    assert fact.surprise
    assert fact.importance == fact.surprise.score
    (kept,) = learned(fact.changed(importance=0.2), session(1, GOTCHA), session(2, GOTCHA))
    assert kept.importance == 0.2


def test_a_repeat_is_evidence_and_changes_no_surprise() -> None:
    (once,) = learned(session(1, GOTCHA))
    (twice,) = learned(session(1, GOTCHA), session(2, GOTCHA), session(3, AGAIN))
    assert twice.surprise == once.surprise
    assert len(twice.evidence.for_) == 3


@pytest.mark.parametrize("text", ["Thanks for fixing the ignored files", "Why is it ignored?"])
def test_what_says_nothing_makes_no_fact(text: str) -> None:
    assert learned(session(1, text)) == []


def test_what_is_no_surprise_joins_the_fact_that_it_repeats() -> None:
    sessions = session(1, "We deploy on Fridays"), session(2, "Please always deploy on Fridays")
    (fact,) = learned(*sessions)
    assert len(fact.evidence.for_) == 2


def test_the_threshold_is_a_setting() -> None:
    sessions = session(1, GOTCHA), session(2, "The cart keeps its items in order.")
    assert len(learned(*sessions)) == 2
    assert learned(*sessions, thresholds=Thresholds(surprise=1.0)) == []


def test_the_surprise_of_a_fact_that_began_elsewhere_is_kept() -> None:
    (fact,) = learned(session(1, GOTCHA))
    assert fact.surprise
    there = fact.changed(surprise={**fact.surprise.model_dump(), "score": 0.5})
    (again,) = learned(there, session(2, GOTCHA))
    assert again.surprise == there.surprise


def test_the_first_in_time_is_the_novel_one_in_whatever_order_sessions_become_known() -> None:
    said = ["Use tabs for indentation", "Use spaces for indentation", "Use tabs in makefiles"]
    sessions = [session(day, text, **PREFERS) for day, text in enumerate(said, 1)]
    at_once = {one.id: one.document() for one in learned(*sessions)}
    for order in permutations(sessions):
        assert {one.id: one.document() for one in learned(*order)} == at_once
    known = Snapshot(())
    for one in sessions:
        known = Snapshot([*known.records.values(), one])
        known = known.with_changes(facts(known, frozenset({one.id})))
    assert {one.id: one.document() for one in known.of(Fact)} == at_once


def test_a_change_of_surprise_alone_is_not_told_as_a_strengthened_fact() -> None:
    (fact,) = learned(session(2, "I prefer Go", **PREFERS))
    known: list[Record] = [
        fact,
        session(1, "I prefer Python", **PREFERS),
        session(2, "I prefer Go", **PREFERS),
    ]
    changes = facts(Snapshot(known))
    assert {one.id for one in changes.put} > {fact.id}
    assert fact.id not in {step.id for step in changes.steps}
