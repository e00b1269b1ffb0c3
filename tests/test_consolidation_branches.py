"""Two branches, merged and consolidated again, believe what one clone believes that saw it all.

Each branch has some of the episodes and facts, and both may have the same ones. Each consolidates
by itself. Then files are united as git does it: a file that only one branch has is taken, one that
both have is merged field by field, as the merge driver does it. What is compared is what memory
then says: a record that is superseded or retired is only a trace of what was believed on the way.
Where an old episode lies is not compared either: archived or not, it is evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from loki_memory.consolidation.phases import Plan, all_phases, consolidate
from loki_memory.consolidation.provenance import is_live
from loki_memory.consolidation.snapshot import Snapshot
from loki_memory.history.merge import merge
from loki_memory.models import Episode, Fact, Memory, parse

Documents = dict[str, dict[str, Any]]

GOALS = (
    "Implement {} /api/todos endpoint",
    "Fix the flaky {} test of the cart",
    "Add {} column to the todos table",
)
THINGS = ("POST", "PATCH", "owner", "checkout")
ERRORS = (
    ("error TS7030: Not all code paths return a value.", "Added `: void` to the handler"),
    ("error TS7030: Not all code paths return a value.", "Declared the return type `: void`"),
    ("SqliteError: database is locked", "Gave each worker its own database file"),
    ("Table 'singers' doesn't exist", "Listed the tables with SHOW TABLES"),
    ("Table 'owners' doesn't exist", "Listed the tables with SHOW TABLES"),
    ("Table 'users' doesn't exist", "Listed the tables with SHOW TABLES"),
    ("Table 'carts' doesn't exist", "carts -> cart, e.g. SELECT a FROM cart"),
    ("Table 'carts' doesn't exist", "carts -> cart, item, e.g. SELECT a FROM cart JOIN item"),
    ("Table 'carts' doesn't exist", "carts -> basket, e.g. SELECT a FROM basket"),
    ("Table 'carts' doesn't exist", "carts -> stall, e.g. SELECT a FROM stall"),
    ("Table 'carts' doesn't exist", "carts -> till, e.g. SELECT a FROM till"),
    ("npm error code EUSAGE", ""),
)
STEPS = (
    {"action": "read_file", "target": "openapi.yaml"},
    {"action": "edit_file", "target": "src/a.ts", "payload": "x" * 99},
    {"action": "bash", "target": "npm run generate:types"},
    {"action": "bash", "target": "npm test", "error": "SqliteError: database is locked"},
    {"action": "bash", "target": "npm test", "result": "ok"},
)
SAYINGS = (
    {"statement": "The API listens on port 3000", "valid_from": "2026-01-02"},
    {"statement": "The API listens on port 8080", "valid_from": "2026-01-02"},
    {"statement": "The API listens on port 9000", "valid_from": "2026-01-05"},
    {"statement": "The API listens on port 9090"},
    {"statement": "CI runs on Node 18", "subject": "ci", "attribute": "node", "at": "2026-01-01"},
    {"statement": "CI runs on Node 20", "subject": "ci", "attribute": "node", "at": "2026-01-04"},
    {"statement": "CI runs on Node 22", "subject": "ci", "attribute": "node", "at": "2026-01-09"},
    {"statement": "Wrap every migration in a transaction", "status": "active"},
    {"statement": "Wrap all migrations in transactions", "origin": "owner"},
    {"statement": "Wrap each migration in a transaction"},
    {"statement": "Tests run in parallel", "category": "convention"},
    {"statement": "Tests do not run in parallel", "category": "convention"},
    {"statement": "Release notes use British spelling", "category": "convention"},
    {"statement": "Commit messages name the area first", "category": "convention"},
    {"statement": "Error codes are documented in openapi.yaml", "category": "convention"},
    {"statement": "Dates are written as ISO 8601 in UTC", "category": "convention"},
)


def episode(
    number: int, day: int, goal: str, thing: str, outcome: str, errors: list[int], steps: list[int]
) -> Episode:
    met = [{"message": ERRORS[at][0], "resolution": ERRORS[at][1]} for at in errors]
    given = {
        "task_id": f"task-{number}",
        "timestamp": f"2026-{1 + day // 28:02d}-{1 + day % 28:02d}T10:00:00Z",
        "goal": goal.format(thing),
        "outcome": outcome,
        "errors_encountered": met,
        "action_log": [STEPS[at] for at in steps],
        "session": f"session-{number % 5}",
    }
    return parse(Episode, given)


EPISODES = st.lists(
    st.builds(
        episode,
        number=st.integers(0, 99),
        day=st.integers(0, 100) | st.integers(0, 20),
        goal=st.sampled_from(GOALS),
        thing=st.sampled_from(THINGS),
        outcome=st.sampled_from(["success", "success", "failure", "partial"]),
        errors=st.lists(st.integers(0, len(ERRORS) - 1), max_size=2),
        steps=st.lists(st.integers(0, len(STEPS) - 1), min_size=2, max_size=5),
    ),
    min_size=10,
    max_size=28,
)
FACTS = st.lists(st.sampled_from(SAYINGS), max_size=8, unique_by=lambda one: one["statement"]).map(
    lambda said: [parse(Fact, one) for one in said]
)
SIDES = st.lists(st.sampled_from(["ours", "theirs", "both"]), min_size=36, max_size=36)


class Clone(NamedTuple):
    """The files of a memory: records, and what was archived."""

    records: Mapping[str, Memory]
    archive: Mapping[str, Memory]

    def plan(self) -> Plan:
        # Files are read one by one: two that are equal are still two.
        archived = [one.model_copy() for one in self.archive.values()]
        return consolidate(Snapshot(self.records.values(), archived=archived), all_phases())

    def consolidated(self) -> Clone:
        plan = self.plan()
        assert plan.lost == ()
        records = {**self.records, **by_id(plan.put)}
        gone = {name: records.pop(name) for name in plan.archive}
        return Clone(records, {**self.archive, **gone})

    def with_(self, more: Iterable[Memory]) -> Clone:
        known = {**self.records, **self.archive}
        return self._replace(
            records={**self.records, **by_id(one for one in more if one.id not in known)}
        )

    def says(self) -> Documents:
        """What memory says: the documents of all that speaks."""
        speaking = (one for one in self.records.values() if is_live(one))
        return {one.id: one.document() for one in speaking if not isinstance(one, Episode)}


def by_id(records: Iterable[Memory]) -> dict[str, Memory]:
    return {one.id: one for one in records}


def clone(records: Iterable[Memory]) -> Clone:
    return Clone(by_id(records), {})


def united(ours: Clone, theirs: Clone) -> Clone:
    """Both branches' files in one tree."""
    return Clone(
        _joined_files(ours.records, theirs.records), _joined_files(ours.archive, theirs.archive)
    )


def _joined_files(ours: Mapping[str, Memory], theirs: Mapping[str, Memory]) -> dict[str, Memory]:
    shared = ours.keys() & theirs.keys()
    return {**ours, **theirs, **{name: merge(None, ours[name], theirs[name]) for name in shared}}


def split(records: list[Memory], sides: list[str]) -> tuple[list[Memory], list[Memory]]:
    paired = list(zip(records, sides, strict=False))
    ours = [one for one, side in paired if side != "theirs"]
    theirs = [one for one, side in paired if side != "ours"]
    return ours, theirs


@settings(max_examples=60, deadline=None)
@given(EPISODES, FACTS, SIDES)
def test_two_branches_that_merge_believe_what_one_clone_believes(
    episodes: list[Episode], facts: list[Fact], sides: list[str]
) -> None:
    records = [*by_id([*episodes, *facts]).values()]
    ours, theirs = (clone(part).consolidated() for part in split(records, sides))
    merged = united(ours, theirs).consolidated()
    assert merged.says() == clone(records).consolidated().says()
    assert united(theirs, ours).consolidated().says() == merged.says()


@settings(max_examples=40, deadline=None)
@given(EPISODES, FACTS, SIDES)
def test_what_comes_in_two_batches_is_believed_as_if_it_came_at_once(
    episodes: list[Episode], facts: list[Fact], sides: list[str]
) -> None:
    records = [*by_id([*episodes, *facts]).values()]
    first, _ = split(records, sides)
    in_turn = clone(first).consolidated().with_(records).consolidated()
    assert in_turn.says() == clone(records).consolidated().says()


@settings(max_examples=40, deadline=None)
@given(EPISODES, FACTS, st.randoms(use_true_random=False))
def test_order_does_not_matter_and_a_second_run_has_nothing_to_tell(
    episodes: list[Episode], facts: list[Fact], dice: Any
) -> None:
    records = [*by_id([*episodes, *facts]).values()]
    once = clone(records).consolidated()
    again = once.plan()
    assert (again.put, again.archive, again.steps) == ((), (), ())
    dice.shuffle(records)
    assert clone(records).consolidated() == once
