"""Confidence: what evidence makes of a belief, and that use makes nothing of it."""

from __future__ import annotations

from typing import Any

import pytest

from loki_memory.consolidation.snapshot import Snapshot, Thresholds
from loki_memory.consolidation.weigh import status, weigh
from loki_memory.models import AntiPattern, Belief, Episode, Memory, Pattern, parse
from loki_memory.models.confidence import confidence, lower_bound


def episode(n: int, outcome: str = "success", **fields: Any) -> Episode:
    given = {"id": f"ep-{n}", "timestamp": f"2026-01-{n:02d}T10:00:00Z", "goal": f"Task {n}"}
    return parse(Episode, {**given, "outcome": outcome, **fields})


def produced(episodes: int, **fields: Any) -> Pattern:
    """A pattern as consolidation makes one: with its key, without a confidence."""
    evidence = {"for": [f"ep-{n}" for n in range(1, episodes + 1)]}
    given = {"id": "sem-p", "pattern": "Run the migrations", "key": {"episode": "ep-1"}}
    return parse(Pattern, {**given, "status": "candidate", "evidence": evidence, **fields})


def weighed(belief: Belief, *others: Memory, **settings: Any) -> Belief:
    snapshot = Snapshot([belief, *others], **settings)
    after = snapshot.with_changes(weigh(snapshot))
    assert not weigh(after)
    found = after.records[belief.id]
    assert isinstance(found, Belief)
    return found


@pytest.mark.parametrize(
    ("support", "against", "expected"),
    [
        (1, 0, 0.75),
        (2, 0, 0.80),
        (3, 0, 0.83),
        (5, 0, 0.88),
        (8, 0, 0.91),
        (17, 0, 0.95),
        (2, 1, 0.67),
        (4, 1, 0.75),
        (6, 1, 0.80),
        (9, 2, 0.79),
    ],
)
def test_confidence_follows_the_published_table(
    support: float, against: float, expected: float
) -> None:
    assert confidence(support, against) == expected


@pytest.mark.parametrize(
    ("support", "against", "expected"),
    [
        (0.5, 0, "candidate"),
        (1, 0, "candidate"),
        (2, 0, "active"),
        (6, 1, "active"),
        (2, 1, "candidate"),
        (1, 1, "candidate"),
        (1, 2, "disputed"),
        (0, 9, "retired"),
    ],
)
def test_status_follows_the_evidence(support: float, against: float, expected: str) -> None:
    assert status(support, against, confidence(support, against)) == expected


def test_luck_sinks_below_many_trials() -> None:
    assert lower_bound(1, 0) < lower_bound(8, 1)


def test_two_successes_make_a_belief_active() -> None:
    found = weighed(produced(2), episode(1), episode(2))
    assert (found.confidence, found.status) == (0.80, "active")


def test_a_status_that_was_only_taken_for_granted_is_written() -> None:
    given = produced(2).document()
    silent = parse(Pattern, {name: given[name] for name in given if name != "status"})
    assert weighed(silent, episode(1), episode(2)).document()["status"] == "active"


def test_one_session_is_one_observation() -> None:
    found = weighed(produced(3), *(episode(n, session="s1") for n in (1, 2, 3)))
    assert (found.confidence, found.status) == (0.75, "candidate")


def test_an_unclear_outcome_is_half_an_observation() -> None:
    found = weighed(produced(2), episode(1, "unknown"), episode(2, "partial"))
    assert (found.confidence, found.status) == (0.75, "candidate")


def test_a_remedy_that_helped_is_a_whole_observation_whatever_the_outcome() -> None:
    resolutions = [{"do": "Use cart", "for": ["ep-1", "ep-2"]}]
    evidence = {"for": ["ep-1", "ep-2"]}
    given = {"id": "anti-a", "what_fails": "No table carts", "key": {"head": "sql"}}
    belief = parse(AntiPattern, {**given, "evidence": evidence, "resolutions": resolutions})
    assert weighed(belief, episode(1, "unknown"), episode(2, "unknown")).confidence == 0.80


def test_a_remedy_that_failed_speaks_against_the_remedy_not_the_anti_pattern() -> None:
    resolutions = [{"do": "Use cart", "for": [], "against": ["ep-1"]}]
    given = {"id": "anti-a", "what_fails": "No table carts", "key": {"head": "sql"}}
    belief = parse(
        AntiPattern, {**given, "evidence": {"for": ["ep-1"]}, "resolutions": resolutions}
    )
    assert weighed(belief, episode(1, "failure")).evidence.against == []


def test_archived_episodes_still_count() -> None:
    assert weighed(produced(3)).confidence == weighed(produced(3), episode(1)).confidence == 0.83


# -- feedback ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("helpful", "expected"), [(True, 0.83), (False, 0.67), (None, 0.80)])
def test_an_episode_that_says_so_is_evidence(helpful: bool | None, expected: float) -> None:
    told = episode(9, recalled=[{"id": "sem-p", "helpful": helpful}])
    found = weighed(produced(2), episode(1), episode(2), told)
    assert found.confidence == expected
    assert ("ep-9" in found.evidence.for_) == (helpful is True)
    assert ("ep-9" in found.evidence.against) == (helpful is False)


def test_use_is_no_evidence() -> None:
    used = produced(2, usage_count=500, last_used="2026-01-09")
    assert weighed(used, episode(1), episode(2)).confidence == 0.80


def test_what_is_new_alone_gives_the_same_as_everything() -> None:
    told = episode(9, recalled=[{"id": "sem-p", "helpful": False}])
    before = Snapshot([produced(2), episode(1), episode(2)])
    before = before.with_changes(weigh(before))
    grown = Snapshot([*before.records.values(), told])
    assert weigh(grown, frozenset({"ep-9"})).put == weigh(grown).put != ()


def test_beliefs_that_nothing_new_speaks_of_are_left_alone() -> None:
    assert not weigh(Snapshot([produced(2), episode(1), episode(3)]), frozenset({"ep-3"}))


# -- what somebody asserted ----------------------------------------------------------------------


def asserted(**fields: Any) -> Pattern:
    given = {"id": "sem-h", "pattern": "Run the migrations", "confidence": 0.9}
    return parse(Pattern, {**given, **fields})


def test_a_stated_confidence_stays_without_evidence() -> None:
    assert weighed(asserted()) == asserted()


def test_evidence_moves_a_stated_confidence_from_where_it_was() -> None:
    found = weighed(asserted(), episode(1, recalled=[{"id": "sem-h", "helpful": False}]))
    assert found.confidence == 0.60
    assert found.status == "active"
    assert found.document()["asserted"] == 0.9


def test_what_somebody_asserted_is_disputed_by_evidence_and_never_made_a_candidate() -> None:
    misled = [episode(n, recalled=[{"id": "sem-h", "helpful": False}]) for n in (1, 2, 3)]
    assert weighed(asserted(), *misled).status == "disputed"
    helped = [episode(n, recalled=[{"id": "sem-h", "helpful": True}]) for n in range(4, 12)]
    assert weighed(asserted(status="disputed"), *misled, *helped).status == "active"


def test_a_pattern_that_came_without_confidence_gets_one_and_keeps_it() -> None:
    hand_written = asserted(confidence=None, source_episodes=["ep-1"])
    assert weighed(hand_written, episode(1)).confidence == 0.75


@pytest.mark.parametrize("settled", ["superseded", "rejected", "retired"])
def test_a_settled_status_stays(settled: str) -> None:
    assert weighed(produced(5, status=settled)).status == settled


def test_the_threshold_is_a_setting() -> None:
    strict = Thresholds(confident=0.95)
    assert weighed(produced(5), thresholds=strict).status == "candidate"


def error(*remedies: tuple[str, list[int]], met: int) -> AntiPattern:
    """An anti-pattern that the first `met` episodes met, with what helped in which of them."""
    return parse(
        AntiPattern,
        {
            "id": "anti-x",
            "what_fails": "Table 'cars' doesn't exist",
            "key": {"head": "sql", "template": "Table <*> doesn't exist", "param": "cars"},
            "status": "candidate",
            "evidence": {"for": [f"ep-{n}" for n in range(1, met + 1)]},
            "resolutions": [
                {"do": do, "for": [f"ep-{n}" for n in helped]} for do, helped in remedies
            ],
        },
    )


def test_what_helped_otherwise_makes_advice_less_sure_and_the_error_no_less_true() -> None:
    episodes = [episode(n) for n in range(1, 13)]
    agreed = weighed(error(("cars -> car", [1, 2, 3]), met=3), *episodes)
    assert (agreed.confidence, agreed.status) == (0.83, "active")
    split = weighed(error(("cars -> car", [1, 2]), ("cars -> auto", [3, 4]), met=4), *episodes)
    assert (split.confidence, split.status) == (0.57, "candidate")
    many = error(("cars -> car", [1]), ("x -> y", [2, 3, 4, 5, 6]), ("y -> z", [7, 8, 9]), met=9)
    assert weighed(many, *episodes).status == "candidate"


def test_what_helped_otherwise_counts_though_its_remedy_is_not_kept() -> None:
    episodes = [episode(n) for n in range(1, 6)]
    belief = error(("cars -> car", [1, 2, 3]), met=5).changed(otherwise=["ep-4", "ep-5"])
    found = weighed(belief, *episodes)
    assert (found.confidence, found.status) == (0.62, "candidate")
    assert found.evidence.against == []


def test_who_did_as_advised_is_not_counted_again_as_who_did_otherwise() -> None:
    both = error(("cars -> car", [1, 2]), ("cars -> car, item", [1, 2]), met=2)
    assert weighed(both, episode(1), episode(2)).confidence == 0.80


def test_meeting_an_error_says_nothing_about_what_to_do() -> None:
    episodes = [episode(n, "failure") for n in range(2, 9)]
    belief = weighed(error(("cars -> car", [1]), met=8), episode(1), *episodes)
    assert (belief.confidence, belief.status) == (0.75, "candidate")


def test_an_error_without_a_remedy_is_as_sure_as_it_was_met() -> None:
    assert weighed(error(met=2), episode(1), episode(2)).status == "active"


def test_an_episode_that_says_it_helped_counts_for_the_advice() -> None:
    told = episode(3, recalled=[{"id": "anti-x", "helpful": True}])
    belief = weighed(error(("cars -> car", [1]), met=1), episode(1), told)
    assert belief.confidence == 0.80
