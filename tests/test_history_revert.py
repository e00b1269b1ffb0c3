"""Undoing one change of a record leaves the later ones."""

from __future__ import annotations

from typing import Any

from loki_memory.history.revert import undone
from loki_memory.models import Pattern, parse


def belief(**fields: Any) -> Pattern:
    return parse(Pattern, {"id": "sem-1", "pattern": "Handlers return void", **fields})


def test_a_record_that_the_commit_made_goes() -> None:
    assert undone(None, belief(), belief()) is None


def test_a_record_that_was_made_and_then_changed_stays() -> None:
    changed = belief(confidence=0.9)
    assert undone(None, belief(confidence=0.8), changed) == changed


def test_a_record_that_the_commit_removed_returns() -> None:
    assert undone(belief(), None, None) == belief()


def test_a_field_goes_back_to_what_it_was() -> None:
    old, new = belief(status="active"), belief(status="superseded")
    assert undone(old, new, new) == old


def test_what_was_changed_again_later_stays() -> None:
    old, new = belief(confidence=0.5), belief(confidence=0.8)
    later = belief(confidence=0.9, category="typing")
    assert undone(old, new, later) == later


def test_evidence_that_the_commit_added_goes_and_later_evidence_stays() -> None:
    old = belief(evidence={"for": ["ep-1"]})
    new = belief(evidence={"for": ["ep-1", "ep-2"]}, confidence=0.8)
    later = belief(evidence={"for": ["ep-1", "ep-2", "ep-3"]}, confidence=0.83)
    assert undone(old, new, later) == belief(evidence={"for": ["ep-1", "ep-3"]}, confidence=0.83)


def test_a_link_that_the_commit_took_away_returns() -> None:
    link = {"to": "sem-2", "relation": "elaborates"}
    old, new = belief(links=[link]), belief(links=[])
    later = belief(links=[{"to": "sem-3", "relation": "elaborates"}])
    result = undone(old, new, later)
    assert result is not None
    assert [one.to for one in result.links] == ["sem-2", "sem-3"]  # type: ignore[attr-defined]


def test_a_field_that_the_commit_brought_goes() -> None:
    later = belief(category="typing", tags=["x"])
    assert undone(belief(), belief(category="typing"), later) == belief(tags=["x"])
