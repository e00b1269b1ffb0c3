"""Lint: what is not worth remembering."""

from __future__ import annotations

from typing import Any

import pytest

from loki_memory.consolidation.lint import is_platitude, lint
from loki_memory.models import AntiPattern, Fact, Pattern, parse


@pytest.mark.parametrize(
    "text",
    [
        "Pattern for implement tasks (3 instances)",
        "Common approach for fix tasks",
        "Avoid: IterationError",
        "Always write good code",
        "Test carefully before you commit",
        "Follow best practices to ensure quality",
        "<*> the <*>",
        "<*>",
        "",
    ],
)
def test_a_platitude_is_called_one(text: str) -> None:
    assert is_platitude(text)


@pytest.mark.parametrize(
    "text",
    [
        "Give every vitest worker its own SQLite database",
        "Run `npm ci` before the tests",
        "Implement <*> endpoint: Missing return type - annotate the handler with `: void`",
        "British spelling is the convention",
        "pip install: externally-managed-environment",
        "Table 'singers' doesn't exist - the table is called singer",
    ],
)
def test_a_lesson_is_not(text: str) -> None:
    assert is_platitude(text) == ""


def pattern(**fields: Any) -> Pattern:
    good = {
        "pattern": "Give every vitest worker its own SQLite database",
        "correct_approach": "Name the file after VITEST_POOL_ID",
        "source_episodes": ["ep-1"],
    }
    return parse(Pattern, {**good, **fields})


def test_a_good_pattern_has_nothing_wrong() -> None:
    assert lint(pattern()) == []


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"pattern": "Write good code"}, "could be said of any project"),
        ({"source_episodes": []}, "names no episode that it was learned from"),
        ({"correct_approach": None}, "says neither what to do nor what to avoid"),
        ({"incorrect_approach": "Name the file after VITEST_POOL_ID"}, "advises what it warns of"),
        ({"conditions": list("abcd")}, "has more than 3 conditions"),
        ({"pattern": "vitest sqlite " * 50}, "is longer than 600 characters"),
    ],
)
def test_what_is_wrong_is_said(fields: dict[str, Any], why: str) -> None:
    assert lint(pattern(**fields)) == [why]


def test_other_beliefs_need_evidence_too() -> None:
    fact = parse(Fact, {"statement": "The API listens on port 3000"})
    assert lint(fact) == ["names no episode that it was learned from"]
    anti = {"what_fails": "npm install left-pad", "source": "ep-1", "resolutions": [{"do": " "}]}
    assert lint(parse(AntiPattern, anti)) == ["has an empty resolution"]
