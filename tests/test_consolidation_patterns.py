"""Patterns: episodes of one kind teach what resolved their trouble."""

from __future__ import annotations

import random
from typing import Any

import pytest

from loki_memory.consolidation.clustering import clusters_of_goals
from loki_memory.consolidation.lint import lint
from loki_memory.consolidation.patterns import pattern_id, patterns
from loki_memory.consolidation.snapshot import Snapshot
from loki_memory.models import Episode, Memory, Pattern, parse, tombstone_id

VOID = "Added explicit `: void` to the route handler"


def episode(day: int, goal: str, resolution: str = VOID, **fields: Any) -> Episode:
    """A day's work on a route, which met the compiler's complaint and resolved it."""
    error = {"type": "TypeScript", "message": "Missing return type annotation"}
    whole = {
        "id": f"ep-2026-01-{day:02}-001",
        "timestamp": f"2026-01-{day:02}T10:00:00Z",
        "session": f"session-{day}",
        "context": {
            "phase": "development",
            "goal": goal,
            "files_involved": ["src/routes/todos.ts"],
        },
        "action_log": [
            {"action": "write_file", "target": "src/routes/todos.ts"},
            {"action": "run_test", "result": "fail", "error": "missing return type"},
            {"action": "edit_file", "target": "src/routes/todos.ts"},
            {"action": "run_test", "result": "pass"},
        ],
        "outcome": "success",
        "errors_encountered": [{**error, "resolution": resolution}] if resolution else [],
    }
    return parse(Episode, {**whole, **fields})


TODO = [
    episode(5, "Implement GET /api/todos endpoint"),
    episode(6, "Implement POST /api/todos endpoint"),
    episode(7, "Implement DELETE /api/todos/:id endpoint", "Annotated the handler with `: void`"),
]
OTHER = episode(8, "Upgrade the build image to Debian 13", resolution="", action_log=[])


def learned(records: list[Memory] | list[Episode], **given: Any) -> list[Pattern]:
    put = patterns(Snapshot(records, **given)).put
    return [one for one in put if isinstance(one, Pattern)]


def test_three_episodes_with_one_error_teach_one_pattern() -> None:
    (pattern,) = learned([*TODO, OTHER])
    assert pattern.pattern == (f"Implement … endpoint: Missing return type annotation - {VOID}")
    assert pattern.category == "typescript"
    assert pattern.correct_approach == VOID
    assert pattern.incorrect_approach == "Missing return type annotation"
    assert pattern.source_episodes == [one.id for one in TODO]
    assert pattern.evidence.for_ == [one.id for one in TODO]
    assert (pattern.valid_from, pattern.at) == ("2026-01-05", "2026-01-07T10:00:00Z")
    assert (pattern.status, pattern.origin) == ("candidate", "agent")
    assert pattern.id == pattern_id(TODO[0].id, "typescript")
    assert lint(pattern) == []


def test_a_second_run_changes_nothing() -> None:
    snapshot = Snapshot([*TODO, OTHER])
    changes = patterns(snapshot)
    assert [step.what for step in changes.steps] == ["learned"]
    assert not patterns(snapshot.with_changes(changes))


def test_the_order_of_episodes_does_not_matter() -> None:
    expected = learned([*TODO, OTHER])
    for seed in range(4):
        assert learned(random.Random(seed).sample([*TODO, OTHER], 4)) == expected  # noqa: S311 - repeatable


def test_batches_give_what_one_run_gives() -> None:
    whole = Snapshot([OTHER, *TODO])
    whole = whole.with_changes(patterns(whole))
    growing = Snapshot([])
    for one in [TODO[2], OTHER, TODO[0], TODO[1]]:
        growing = Snapshot([*growing.records.values(), one])
        growing = growing.with_changes(patterns(growing, frozenset({one.id})))

    def valid(snapshot: Snapshot) -> list[dict[str, Any]]:
        return [one.document() for one in snapshot.of(Pattern) if one.status != "superseded"]

    assert valid(growing) == valid(whole)


def test_an_earlier_episode_supersedes_the_pattern_that_began_later() -> None:
    late = Snapshot(TODO[1:])
    late = late.with_changes(patterns(late))
    (old,) = late.of(Pattern)
    changes = patterns(Snapshot([*late.records.values(), TODO[0]]), frozenset({TODO[0].id}))
    by_id = {one.id: one for one in changes.put if isinstance(one, Pattern)}
    heir = pattern_id(TODO[0].id, "typescript")
    assert by_id.keys() == {old.id, heir}
    assert by_id[old.id].status == "superseded"
    assert [(link.relation, link.to) for link in by_id[old.id].links] == [("superseded_by", heir)]
    assert by_id[old.id].evidence == old.evidence


def test_one_remedy_of_two_errors_is_one_lesson() -> None:
    error = {"message": "TS7030: Not all code paths return a value", "resolution": VOID}
    other = episode(9, "Implement PATCH /api/todos endpoint", errors_encountered=[error])
    (pattern,) = learned([TODO[0], other])
    assert "Missing return type annotation" in pattern.pattern
    assert "Not all code paths return a value" in pattern.pattern


def test_failures_are_evidence_against() -> None:
    failed = episode(9, "Implement PATCH /api/todos endpoint", outcome="failure")
    (pattern,) = learned([*TODO, failed])
    assert pattern.evidence.against == [failed.id]
    assert failed.id in pattern.source_episodes


def test_steps_that_tell_success_from_failure_are_a_lesson() -> None:
    def release(day: int, outcome: str, *commands: str) -> Episode:
        log = [{"action": "run_command", "target": command} for command in commands]
        goal = f"Release version 1.{day} to the package index"
        return episode(day, goal, resolution="", action_log=log, outcome=outcome)

    good = [release(day, "success", "git tag v1", "twine check dist") for day in (1, 2, 3)]
    bad = [release(day, "failure", "git tag v1") for day in (4, 5)]
    (pattern,) = learned([*good, *bad])
    assert pattern.correct_approach == "`twine check`"
    assert pattern.incorrect_approach == "leaving out `twine check`"


@pytest.mark.parametrize(
    "episodes",
    [
        pytest.param(TODO[:1], id="once is an anecdote"),
        pytest.param(
            [episode(day, "Implement the endpoint again", resolution="") for day in (1, 2, 3)],
            id="nothing went wrong and nothing was learned",
        ),
        pytest.param(
            [
                episode(1, "Fix the parser of dates", "Escaped the percent sign in strftime"),
                episode(2, "Fix the parser of dates", "Moved imports below the shebang"),
            ],
            id="remedies that have nothing in common",
        ),
        pytest.param(
            [
                episode(
                    day,
                    "Do the task",
                    "Fixed it",
                    errors_encountered=[{"message": "Error", "resolution": "Fixed it"}],
                )
                for day in (1, 2)
            ],
            id="a platitude",
        ),
    ],
)
def test_what_teaches_nothing_gives_no_pattern(episodes: list[Episode]) -> None:
    assert learned(episodes) == []


def test_a_rejected_value_is_not_produced_again() -> None:
    (pattern,) = learned(TODO)
    changes = patterns(Snapshot(TODO, rejected=[tombstone_id(pattern.value())]))
    assert not changes
    assert [step.what for step in changes.steps] == ["refused"]


def test_conditions_hold_here_and_not_elsewhere() -> None:
    others = [
        episode(
            day,
            f"{goal} for the quarterly report",
            resolution="",
            context={"goal": goal, "phase": "development", "files_involved": ["report.py"]},
            action_log=[{"action": "edit_file"}],
        )
        for day, goal in enumerate(["Draw charts", "Collect figures", "Mail summaries"], start=10)
    ]
    (pattern,) = learned([*TODO, *others])
    assert pattern.conditions == [".ts files"]


def test_a_pattern_is_trusted_no_more_than_its_sources() -> None:
    foreign = episode(9, "Implement PATCH /api/todos endpoint", origin="external")
    owned = episode(10, "Implement PUT /api/todos endpoint", origin="owner")
    assert learned([*TODO, owned])[0].origin == "agent"
    assert learned([*TODO, foreign])[0].origin == "external"


def test_what_a_person_wrote_stays_and_evidence_grows() -> None:
    (pattern,) = learned(TODO[:2])
    owned = pattern.changed(pattern="Handlers return void here", origin="owner", note="mine")
    (now,) = learned([*TODO, owned])
    assert (now.pattern, now.document()["note"]) == ("Handlers return void here", "mine")
    assert now.source_episodes == [one.id for one in TODO]


def test_the_verdict_of_an_episode_that_recalled_a_pattern_is_kept() -> None:
    (pattern,) = learned([*TODO, OTHER])
    judge = parse(Episode, {**OTHER.document(), "recalled": [{"id": pattern.id, "helpful": True}]})
    told = pattern.changed(evidence={"for": [*pattern.evidence.for_, judge.id], "against": []})
    assert learned([*TODO, judge, told]) == []


def test_of_two_lessons_that_are_long_the_first_is_told() -> None:
    errors = [
        {
            "type": "SQL",
            "message": f"{word} column is gone " * 6,
            "resolution": f"{word} it " * 30,
        }
        for word in ("Alpha", "Beta")
    ]
    goal = "List the names of all countries in which that language is spoken by most people " * 2
    episodes = [episode(day, goal, errors_encountered=errors) for day in (5, 6, 7)]
    (pattern,) = learned(episodes)
    assert ("Alpha" in pattern.pattern, "Beta" in pattern.pattern) == (True, False)
    assert lint(pattern) == []


def test_a_private_episode_is_not_mixed_with_the_project() -> None:
    private = episode(9, "Implement POST /api/todos endpoint", scope="local")
    found = clusters_of_goals(Snapshot([*TODO, private]))
    assert [private.id] in [[one.id for one in cluster] for cluster in found]
    assert len(found) == 2


def test_a_pattern_comes_back_when_what_replaced_it_is_gone() -> None:
    """Its cluster lost its beginning to another, and then got it back."""
    snapshot = Snapshot(TODO)
    snapshot = snapshot.with_changes(patterns(snapshot))
    (pattern,) = snapshot.of(Pattern)
    heir = {"to": "sem-gone", "relation": "superseded_by"}
    lost = pattern.changed(status="superseded", links=[heir])
    (back,) = learned([*TODO, lost])
    assert (back.status, back.links) == ("candidate", [])


def test_a_pattern_comes_back_when_the_clusters_part_again() -> None:
    (pattern,) = learned(TODO)
    heir = pattern.changed(id="sem-heir", source_episodes=["ep-else"])
    joined = {"to": heir.id, "relation": "superseded_by", "why": "clusters joined"}
    lost = pattern.changed(status="superseded", links=[joined])
    assert learned([*TODO, heir, lost]) == [pattern]


@pytest.mark.parametrize("status", ["candidate", "retired"])
def test_a_pattern_whose_cluster_joined_another_is_superseded(status: str) -> None:
    (late,) = learned(TODO[1:])
    now = {one.id: one for one in learned([*TODO, late.changed(status=status)])}
    (heir,) = learned(TODO)
    assert now[late.id].status == "superseded"
    assert now[late.id].links[0].to == heir.id


def test_a_pattern_whose_cluster_parted_stays_superseded_when_nothing_is_new() -> None:
    """It was learned of two episodes, of which one is now with others."""
    alone, *rest = TODO
    elsewhere = alone.changed(context={"phase": "development", "goal": "Print the release notes"})
    snapshot = Snapshot([elsewhere, *rest, *learned(TODO[:2])])
    after = snapshot.with_changes(patterns(snapshot))
    assert sorted(one.status for one in after.of(Pattern)) == ["candidate", "superseded"]
    assert not patterns(after)


def test_a_pattern_that_was_merged_into_another_stays_merged() -> None:
    (pattern,) = learned(TODO)
    twin = pattern.changed(id="sem-twin", source_episodes=["ep-else"])
    merged = {"to": twin.id, "relation": "superseded_by"}
    assert learned([*TODO, twin, pattern.changed(status="superseded", links=[merged])]) == []


def test_a_pattern_that_nothing_teaches_any_more_is_retired() -> None:
    (pattern,) = learned(TODO[:2])
    forgotten = [one.changed(errors_encountered=[]) for one in TODO[:2]]
    (now,) = learned([*forgotten, pattern])
    assert (now.id, now.status) == (pattern.id, "retired")


def test_a_condition_that_becomes_common_is_no_condition_any_more() -> None:
    other = OTHER.changed(context={"goal": OTHER.goal})
    snapshot = Snapshot([*TODO, other])
    snapshot = snapshot.with_changes(patterns(snapshot))
    (before,) = snapshot.of(Pattern)
    more = [
        episode(day, goal, resolution="")
        for day, goal in enumerate(["Draw charts", "Collect figures", "Mail it", "Rest"], start=10)
    ]
    grown = Snapshot([*snapshot.records.values(), *more])
    changes = patterns(grown, frozenset(one.id for one in more))
    (after,) = changes.put
    assert isinstance(after, Pattern)
    assert (after.id, after.conditions) == (before.id, [])
    assert before.conditions != []
