"""Skills: what successful episodes of one kind did alike, and whose skills are left alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from loki_memory.consolidation.features import episode_features
from loki_memory.consolidation.habits import trigger
from loki_memory.consolidation.skills import proceduralise
from loki_memory.consolidation.snapshot import Snapshot
from loki_memory.models import AntiPattern, Episode, Memory, Skill, parse, tombstone_id

NAME = "implement-api-endpoint"
WITH_TYPES = ["read openapi.yaml", "write src/routes/{}.ts", "npm run types", "npm test"]
WITHOUT = ["write src/routes/{}.ts", "git commit"]


def action(text: str, resource: str) -> dict[str, str]:
    verb, _, rest = text.format(resource).partition(" ")
    if verb in {"read", "write"}:
        return {"action": f"{verb}_file", "target": rest}
    return {"action": "run_command", "target": f"{verb} {rest}"}


def endpoint(n: int, resource: str, steps: Sequence[str] = WITH_TYPES, **fields: Any) -> Episode:
    """The n-th day's work on one endpoint."""
    given = {
        "goal": f"Implement /api/{resource} endpoint",
        "timestamp": f"2026-01-{n:02d}T10:00:00Z",
        "outcome": "success",
        "session": f"s{n}",
        "action_log": [action(one, resource) for one in steps],
        "origin": "agent",
    }
    return parse(Episode, {**given, **fields})


def chore(n: int) -> Episode:
    """Work with another goal and other habits."""
    return parse(
        Episode,
        {
            "goal": f"Upgrade dependency number {n} of the build server",
            "timestamp": f"2026-01-{n:02d}T15:00:00Z",
            "outcome": "success",
            "action_log": [action("npm install", ""), action("git push", "")],
        },
    )


def work() -> list[Memory]:
    return [*(endpoint(n, name) for n, name in enumerate(["todos", "users", "tags"], 5))]


def learned(records: Sequence[Memory], **snapshot: Any) -> list[Skill]:
    changes = proceduralise(Snapshot(records, **snapshot))
    return [one for one in changes.put if isinstance(one, Skill)]


def test_three_successes_that_went_alike_make_a_skill_that_can_be_followed() -> None:
    (skill,) = learned(work())
    assert skill.name == NAME
    assert skill.steps == [
        "Read `openapi.yaml` (read_file)",
        "Write `src/routes/*.ts` (write_file)",
        "Run `npm run types`",
        "Run `npm test`",
    ]
    assert skill.prerequisites == ["`openapi.yaml` exists"]
    assert skill.exit_criteria == ["`npm test` passes"]
    assert "implement api endpoint" in skill.description


def test_what_all_of_them_wrote_first_need_not_be_there() -> None:
    context = {"goal": "Implement /api/todos endpoint", "files_involved": ["src/routes/todos.ts"]}
    (skill,) = learned([endpoint(n, "todos", context=context) for n in (5, 6, 7)])
    assert "Write `src/routes/todos.ts` (write_file)" in skill.steps
    assert skill.prerequisites == ["`openapi.yaml` exists"]


def test_a_skill_names_its_evidence_its_date_and_its_standing() -> None:
    records = work()
    (skill,) = learned(records)
    assert skill.metadata["loki-evidence"].split(", ") == sorted(one.id for one in records)
    assert skill.metadata["loki-date"] == "2026-01-07"
    assert skill.metadata["loki-source"] == "consolidation"
    assert skill.metadata["loki-status"] == "active"
    assert skill.metadata["loki-origin"] == "agent"


def test_one_session_is_one_observation_and_teaches_no_skill() -> None:
    records = [
        endpoint(n, name, session="s") for n, name in enumerate(["todos", "users", "tags"], 5)
    ]
    assert learned(records) == []


def test_a_success_without_an_action_log_does_not_retire_a_skill() -> None:
    first = Snapshot(work())
    taught = first.with_changes(proceduralise(first))
    logless = endpoint(9, "carts", steps=())
    changes = proceduralise(Snapshot([*taught.records.values(), logless]))
    assert changes.archive == ()


def test_two_successes_are_not_enough() -> None:
    assert learned(work()[:2]) == []


def test_a_habit_that_goes_with_failure_is_not_taught() -> None:
    bad = [endpoint(n, f"r{n}", outcome="failure") for n in range(10, 18)]
    good = [endpoint(n, f"q{n}", WITHOUT) for n in range(18, 24)]
    (skill,) = learned([*work(), *bad, *good])
    assert "Run `npm run types`" not in skill.steps
    assert skill.metadata["loki-evidence"].split(", ") == sorted(one.id for one in good)


def test_a_habit_that_every_kind_of_work_has_is_not_taught() -> None:
    others = [
        endpoint(n, "x", goal=f"{verb} the {thing} of module {n}")
        for n, verb, thing in [
            (9, "Rename", "fields"),
            (10, "Delete", "cache"),
            (11, "Print", "log"),
        ]
    ]
    assert learned([*work(), *others]) == []


def test_what_any_few_logs_share_by_chance_is_not_taught() -> None:
    dice = random.Random(1)  # noqa: S311 - noise, not a secret
    habits = ["read a.md", "write src/a.ts", "write tests/a.ts", "npm test", "git push", "make"]
    noise: list[Memory] = [
        endpoint(
            n % 28 + 1, f"{n}", dice.choices(habits, k=12), goal=f"Polish widget{n // 3} of part{n}"
        )
        for n in range(240)
    ]
    assert len(learned(noise)) <= 4, "of 80 kinds of work"
    names = [one.name for one in learned([*work(), *noise])]
    assert NAME in names, "a habit that is one is still found"


def test_fewer_errors_are_a_gain_where_everything_succeeds() -> None:
    error = [{"message": "TS2339: no such property"}]
    others = [endpoint(n, f"r{n}", WITHOUT, errors_encountered=error * 2) for n in range(10, 16)]
    names = {one.name: one for one in learned([*work(), *others])}
    assert "Run `npm run types`" in names[NAME].steps


def test_errors_of_this_kind_of_work_come_with_their_fixes() -> None:
    records = work()
    met = parse(
        AntiPattern,
        {
            "what_fails": "TS7030: Not all code paths return a value",
            "prevention": "Added `: void` to the handler",
            "evidence": {"for": [records[0].id]},
        },
    )
    gone = met.changed(id="anti-gone", what_fails="Something that was taken back", status="retired")
    private = met.changed(id="anti-mine", what_fails="Something private", scope="local")
    (skill,) = learned([*records, met, gone, private])
    assert skill.common_errors == [
        ("TS7030 - Not all code paths return a value", "Added `: void` to the handler")
    ]


def test_what_is_learned_does_not_change_when_it_is_learned_again() -> None:
    snapshot = Snapshot([*work(), *map(chore, range(5, 9))])
    changes = proceduralise(snapshot)
    assert changes
    assert not proceduralise(snapshot.with_changes(changes))


def test_the_order_of_episodes_does_not_matter() -> None:
    records = [*work(), *map(chore, range(5, 9)), endpoint(12, "late", WITHOUT)]
    expected = [one.document() for one in learned(records)]
    for seed in range(5):
        random.Random(seed).shuffle(records)  # noqa: S311 - an order, not a secret
        assert [one.document() for one in learned(records)] == expected


def test_batches_end_with_the_same_skill_as_all_at_once() -> None:
    records = [*work(), endpoint(9, "lists"), endpoint(10, "notes")]
    snapshot = Snapshot(records[:3])
    snapshot = snapshot.with_changes(proceduralise(snapshot))
    grown = Snapshot([*snapshot.records.values(), *records[3:]])
    new = frozenset(one.id for one in records[3:])
    (updated,) = proceduralise(grown, new).put
    (whole,) = learned(records)
    assert updated.document() == whole.document()


def test_a_hand_written_skill_is_never_overwritten() -> None:
    mine = Skill.from_sections(NAME, "How we do it.", steps=["Ask Mara first"])
    (proposal,) = learned([*work(), mine])
    assert proposal.name == f"{NAME}-proposal"


def test_a_learned_skill_that_someone_edited_is_theirs() -> None:
    (skill,) = learned(work())
    edited = skill.changed(body=skill.body + "\nAsk Mara first.\n")
    (proposal,) = learned([*work(), edited])
    assert proposal.name == f"{NAME}-proposal"


def test_a_rejected_skill_does_not_come_back() -> None:
    assert learned(work(), rejected=[tombstone_id(NAME)]) == []


def test_private_episodes_teach_no_shared_skill() -> None:
    private = [one.changed(scope="local") for one in work()]
    assert learned(private) == []


def test_a_skill_is_trusted_no_more_than_its_episodes() -> None:
    records = work()
    records[1] = records[1].changed(origin="external")
    (skill,) = learned(records)
    assert skill.metadata["loki-origin"] == "external"


def test_a_skill_whose_goals_came_to_share_other_words_replaces_its_former_self() -> None:
    first = [
        endpoint(n, "todos", goal=f"Implement billing invoice todos endpoint v{n}")
        for n in (5, 6, 7)
    ]
    snapshot = Snapshot(first)
    old = proceduralise(snapshot)
    snapshot = snapshot.with_changes(old)
    more = [
        endpoint(n, "x", goal=f"Implement billing invoice users endpoint v{n}") for n in (8, 9, 10)
    ]
    changes = proceduralise(Snapshot([*snapshot.records.values(), *more]))
    assert [one.id for one in changes.put] == ["skill-implement-billing-invoice-endpoint"]
    assert changes.archive == (old.put[0].id,)
    assert "superseded" in [step.what for step in changes.steps]


def test_a_name_that_any_project_could_have_is_not_taught() -> None:
    assert learned([endpoint(n, "todos", goal=f"Fix the test of t{n}") for n in (5, 6, 7)]) == []


@pytest.mark.parametrize(
    ("goals", "name"),
    [
        (["Fix the login page", "Fix the search page"], "fix-page"),
        (["fix it", "do it"], ""),
        (["Add a test", "Add the test"], "add-test"),
        (
            ["Implement POST /api/todos endpoint", "Implement GET /api/todos/{id} endpoint"],
            "implement-api-todos-endpoint",
        ),
    ],
)
def test_a_trigger_is_the_words_that_goals_share(goals: list[str], name: str) -> None:
    assert trigger([episode_features(endpoint(1, "todos", goal=goal)) for goal in goals]) == name
