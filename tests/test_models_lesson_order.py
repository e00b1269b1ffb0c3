"""The order of lessons for somebody who has not asked."""

from __future__ import annotations

from typing import Any

from loki_memory.models import AntiPattern, Fact
from loki_memory.models.lesson_order import ranked, told_once

ROUTED = "Redis drops idle connections after an hour, so the worker must reconnect."
REPEATED = "No pool: Redis drops connections that are idle for an hour, so a worker reconnects."
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


def test_one_lesson_in_other_words_is_told_once() -> None:
    assert [*told_once([fact(ROUTED), fact(REPEATED), fact(REPORTED)])] == [
        fact(ROUTED),
        fact(REPORTED),
    ]


def test_one_remedy_of_two_errors_is_told_once() -> None:
    advice = "Use `python3` instead of `python`."
    known = [warning(1, advice, 3), warning(2, f"{advice} E.g. `python3 a.py`", 2)]
    known.append(warning(3, "Use `python3 run.py` instead of `python -m tests`.", 1))
    assert [belief.id for belief in told_once(known)] == ["anti-1", "anti-3"]
