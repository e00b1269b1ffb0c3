"""The order of lessons for somebody who has not asked."""

from __future__ import annotations

from typing import Any

from loki_memory.models import AntiPattern, Fact
from loki_memory.models.lesson_order import ranked

ROUTED = "Redis drops idle connections after an hour, so the worker must reconnect."
REPORTED = "Added a helper for the date."


def fact(statement: str, **fields: Any) -> Fact:
    return Fact.model_validate({"id": f"fact-{len(statement)}", "statement": statement, **fields})


def warning(number: int, prevention: str | None, episodes: int) -> AntiPattern:
    evidence = {"for": [f"ep-{at}" for at in range(episodes)], "against": []}
    fields = {"id": f"anti-{number}", "what_fails": f"error {number}", "evidence": evidence}
    return AntiPattern.model_validate({**fields, "prevention": prevention})


def test_a_report_and_an_error_without_a_remedy_come_last() -> None:
    known = [fact(REPORTED, score=0.9), warning(1, None, 8), fact(ROUTED, score=0.2)]
    assert ranked(known)[0].title() == ROUTED


def test_what_more_sessions_met_comes_first() -> None:
    known = [warning(1, "Use `a`.", 1), warning(2, "Use `b`.", 6), warning(3, "Use `c`.", 3)]
    assert [belief.id for belief in ranked(known)] == ["anti-2", "anti-3", "anti-1"]
