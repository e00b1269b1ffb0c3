"""The example workspace, consolidated a month later: every kind of product, byte for byte.

`tests/golden/example/` holds every file that consolidation wrote, as it wrote it; the others are
the example's own, and stay as they are. `UPDATE_GOLDEN=1 pytest tests/test_example.py` writes the
folder anew: read the diff as you would read a change of beliefs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from loki_memory import AntiPattern, Fact, Pattern, Skill, Workspace
from loki_memory.files.layout import ARCHIVE, view_kind
from loki_memory.models import Belief, Episode, Link

GOLDEN = Path(__file__).parent / "golden" / "example"
DAY = "2026-02-20"
UPDATE = os.environ.get("UPDATE_GOLDEN") == "1"


def tree(memory: Path) -> dict[str, bytes]:
    """The files of a memory by their path, without views and what a machine keeps for itself."""
    found = {path.relative_to(memory).as_posix(): path for path in memory.rglob("*")}
    return {
        name: path.read_bytes()
        for name, path in sorted(found.items())
        if path.is_file() and not name.startswith(".") and not view_kind(name)
    }


@pytest.fixture
def learned(example: Path) -> Iterator[Workspace]:
    with Workspace.open(example) as ws:
        ws.consolidate(DAY)
        yield ws


def test_consolidation_writes_the_golden_files(example: Path) -> None:
    memory = example / ".loki" / "memory"
    before = tree(memory)
    with Workspace.open(example) as ws:
        ws.consolidate(DAY)
        ws.care.gc(day=DAY)
    after = tree(memory)
    written = {path: data for path, data in after.items() if before.get(path) != data}
    if UPDATE:
        rewrite(written)
    assert written == tree(GOLDEN)
    gone = before.keys() - after.keys()
    assert {ARCHIVE + path: before[path] for path in gone}.items() <= after.items()


def rewrite(written: dict[str, bytes]) -> None:
    shutil.rmtree(GOLDEN, ignore_errors=True)
    for path, data in written.items():
        target = GOLDEN / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def test_a_second_run_changes_nothing_and_tells_nothing(learned: Workspace) -> None:
    before = tree(learned.layout.memory)
    report = learned.consolidate(DAY)
    assert (report.steps, report.written, report.archived) == ([], 0, 0)
    assert tree(learned.layout.memory) == before


def test_there_is_a_pattern_that_was_learned(learned: Workspace) -> None:
    found = [one for one in learned.list(kind="pattern") if "key" in (one.model_extra or {})]
    [pattern] = [one for one in found if isinstance(one, Pattern)]
    assert "return type" in pattern.pattern
    assert pattern.correct_approach == "Annotated the handler with `: void`"
    assert (pattern.status, len(pattern.episodes_for())) == ("active", 7)


def test_there_is_an_anti_pattern_with_three_resolutions(learned: Workspace) -> None:
    errors = [one for one in learned.list(kind="anti-pattern") if isinstance(one, AntiPattern)]
    [locked] = [one for one in errors if one.what_fails.startswith("SqliteError: database is lock")]
    assert len(locked.resolutions) == 3
    assert all(one.for_ for one in locked.resolutions)


def test_no_advice_is_given_that_never_helped(learned: Workspace) -> None:
    errors = [one for one in learned.list(kind="anti-pattern") if isinstance(one, AntiPattern)]
    helped = {one.do for error in errors for one in error.resolutions if one.for_}
    ours = [one for one in errors if "key" in (one.model_extra or {}) and one.depth is None]
    assert {one.prevention for one in ours if one.prevention} <= helped


def test_each_day_has_its_learnings(learned: Workspace) -> None:
    days = {one.at[:10] for one in learned.browse.learnings()}
    assert len(days) == 9


def test_there_is_a_skill_that_was_learned(learned: Workspace) -> None:
    skill = learned.get("skill-implement-api-todos-endpoint")
    assert isinstance(skill, Skill)
    assert skill.metadata["loki-status"] == "active"


def by_statement(workspace: Workspace, statement: str) -> Fact:
    facts = [one for one in workspace.list(kind="fact", status="all") if isinstance(one, Fact)]
    [found] = [one for one in facts if one.statement == statement]
    return found


def test_a_fact_was_superseded_by_a_later_value(learned: Workspace) -> None:
    old = by_statement(learned, "The web client uses React 18")
    new = by_statement(learned, "The web client uses React 19")
    assert (old.status, old.invalid_at) == ("superseded", new.valid_from)
    assert [(link.relation, link.to) for link in old.links] == [("superseded_by", new.id)]


def test_a_contradiction_is_in_dispute_until_somebody_decides(learned: Workspace) -> None:
    one = by_statement(learned, "The API listens on port 3000")
    other = by_statement(learned, "The API listens on port 8080")
    assert {one.status, other.status} == {"disputed"}
    assert [(link.relation, link.to) for link in one.links] == [("contradicts", other.id)]


def test_two_facts_that_said_the_same_are_one(learned: Workspace) -> None:
    kept = by_statement(learned, "Write one contract test for every endpoint")
    twin = by_statement(learned, "Write one contract test for each endpoint")
    assert (kept.status, twin.status) == ("active", "superseded")
    assert twin.links[0].to == kept.id


def test_a_topic_stands_above_its_members(learned: Workspace) -> None:
    known = [one for one in learned.list(status="all") if isinstance(one, Belief)]
    topic = next(one for one in known if one.depth == 0 and one.category == "deployment")
    assert len([one for one in known if one.parent == topic.id]) == 6


def test_links_of_several_relations_were_written(example: Path) -> None:
    with Workspace.open(example) as ws:
        before = relations(ws)
        ws.consolidate(DAY)
        new = relations(ws) - before
    assert {relation for _, relation, _ in new} == {
        "related_to",
        "contradicts",
        "supersedes",
        "superseded_by",
    }


def relations(workspace: Workspace) -> set[tuple[str, str, str]]:
    """Every link that is stated, in a record or in a file of its own."""
    known = workspace.list(status="all")
    inside = {(b.id, a.relation, a.to) for b in known if isinstance(b, Belief) for a in b.links}
    return inside | {(a.from_, a.relation, a.to) for a in known if isinstance(a, Link)}


def test_old_episodes_are_summarised_and_archived_and_none_is_lost(example: Path) -> None:
    memory = example / ".loki" / "memory"
    before = {data for path, data in tree(memory).items() if path.startswith("episodic/")}
    with Workspace.open(example) as ws:
        ws.consolidate(DAY)
        done = ws.care.gc(day=DAY)
        episodes = [one for one in ws.list(kind="episode") if isinstance(one, Episode)]
    assert done.summarised
    assert done.archived
    assert any((one.model_extra or {}).get("detail") == "summary" for one in episodes)
    assert before <= set(tree(memory).values())
