"""A lesson that somebody puts into words, and a belief that takes the place of another one."""

from __future__ import annotations

import pytest

from loki_memory import Workspace
from loki_memory.errors import InvalidRecord
from loki_memory.models import AntiPattern, Belief, Pattern
from loki_memory.models.worded_lesson import lesson


def remembered(ws: Workspace, *told: str) -> Belief:
    text, kind, details = lesson(*told)
    stored = ws.remember(text, kind, details=details)
    assert isinstance(stored, Belief)
    return stored


def test_a_lesson_is_a_pattern_with_its_condition(ws: Workspace) -> None:
    stored = remembered(ws, "When the API changes.", "run `make types`", "tests use them")
    assert isinstance(stored, Pattern)
    assert stored.pattern == "When the API changes: run `make types`, because tests use them"
    assert (stored.conditions, stored.correct_approach) == (["the API changes"], "run `make types`")
    assert stored.pattern in [hit.title for hit in ws.recall("the API types change")]


def test_a_lesson_about_an_error_is_told_when_it_is_met_again(ws: Workspace) -> None:
    error = "error TS7030: Not all code paths return a value"
    stored = remembered(ws, "a handler returns early", "annotate it with `: void`", "", error)
    assert isinstance(stored, AntiPattern)
    assert stored.prevention == "annotate it with `: void`"
    (hit, *_) = ws.recall("", error=error)
    assert hit.id == stored.id


@pytest.mark.parametrize("told", [("", "run it"), ("it fails", "  ")])
def test_a_lesson_without_words_is_refused(told: tuple[str, str]) -> None:
    with pytest.raises(InvalidRecord, match="is empty"):
        lesson(*told)


def test_a_superseded_belief_gives_way_to_its_successor(ws: Workspace) -> None:
    old = ws.remember("The documentation uses British spelling", category="style")
    new = ws.supersede(old.id, "The documentation uses US English everywhere")
    assert isinstance(new, Belief)
    assert new.category == "style"
    hits = [hit.id for hit in ws.recall("which spelling does the documentation use")]
    assert hits == [new.id]
    before = ws.get(old.id)
    assert isinstance(before, Belief)
    assert (before.status, before.links[0].to) == ("superseded", new.id)
    ws.consolidate()
    assert ws.get(old.id) == before


def test_a_known_belief_can_be_the_successor(ws: Workspace) -> None:
    old, new = ws.remember("Deploys are on Fridays"), ws.remember("Deploys are on Mondays")
    assert ws.supersede(old.id, new.id).id == new.id
    assert [hit.id for hit in ws.recall("when are deploys")] == [new.id]


def test_what_is_no_belief_cannot_be_superseded(ws: Workspace) -> None:
    episode = ws.record({"goal": "Work", "outcome": "success"})
    with pytest.raises(InvalidRecord, match="no belief"):
        ws.supersede(episode.id, "Other work")
    fact = ws.remember("Deploys are on Fridays")
    with pytest.raises(InvalidRecord, match="supersede itself"):
        ws.supersede(fact.id, fact.id)
