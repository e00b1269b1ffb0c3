"""The gist of a memory: a line that somebody can act on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_models import ANTI_PATTERN, EPISODE, HANDOFF, PATTERN, SMALLEST

from loki_memory.injection.line import gist
from loki_memory.models.kinds import KINDS

LINES = {
    "pattern": (
        PATTERN,
        (
            "Express route handlers require explicit return types in strict mode"
            " -> Add `: void` to handler signature: `(req, res): void =>`"
        ),
    ),
    "episode": (
        EPISODE,
        (
            "Implement POST /api/todos endpoint (success); met: Missing return type annotation"
            " -> Added explicit :void to route handler"
        ),
    ),
    "learning": ({"lesson": "Run it twice", "resolution": "set -e"}, "Run it twice -> set -e"),
    "skill": ({"name": "x", "description": "How to run it"}, "How to run it"),
    "fact": ({"statement": "A"}, "title"),
}


@pytest.mark.parametrize("kind", LINES)
def test_each_kind_says_what_to_do(kind: str) -> None:
    record, line = LINES[kind]
    assert gist(kind, "title", record) == line


def test_an_anti_pattern_says_why_and_what_instead() -> None:
    line = gist("anti-pattern", "title", ANTI_PATTERN)
    assert line.startswith(f"{ANTI_PATTERN['what_fails']}: {ANTI_PATTERN['why']} -> ")
    assert line.endswith(ANTI_PATTERN["prevention"])


def test_the_resolution_that_helped_most_is_told() -> None:
    record = {
        "what_fails": "The build",
        "prevention": "Do not build",
        "resolutions": [
            {"do": "Clean it", "for": ["ep-1"], "against": ["ep-2"]},
            {"do": "Pin the compiler", "for": ["ep-3", "ep-4"]},
        ],
    }
    assert gist("anti-pattern", "title", record) == "The build -> Pin the compiler"


def test_a_resolution_that_only_ever_failed_is_not_advised() -> None:
    record = {
        "what_fails": "The build",
        "prevention": "Pin the compiler",
        "resolutions": [{"do": "Clean it", "for": [], "against": ["ep-1", "ep-2"]}],
    }
    assert gist("anti-pattern", "title", record) == "The build -> Pin the compiler"


def test_a_handoff_says_who_what_and_what_is_left() -> None:
    context = HANDOFF["context"]
    line = gist("handoff", "title", HANDOFF)
    assert line.startswith(f"{HANDOFF['from_agent']} -> {HANDOFF['to_agent']}: ")
    assert context["what_was_done"] in line
    assert all(item in line for item in context.get("needs_testing", []))


def test_a_handoff_that_says_nothing_has_its_title() -> None:
    assert gist("handoff", "see the notes", {"context": {}}) == "see the notes"


def test_an_outcome_that_nobody_knows_is_not_told() -> None:
    assert gist("episode", "t", {"context": {"goal": "Go"}, "outcome": "unknown"}) == "Go"


def test_two_errors_of_many_are_told() -> None:
    errors = [{"message": f"Error {n}"} for n in range(9)]
    line = gist("episode", "t", {"context": {"goal": "Go"}, "errors_encountered": errors})
    assert line == "Go; met: Error 0; Error 1"


@pytest.mark.parametrize("kind", SMALLEST)
def test_the_smallest_record_of_a_kind_has_a_gist(kind: str) -> None:
    assert gist(kind, "title", SMALLEST[kind])


def test_a_line_is_one_line() -> None:
    record = {"pattern": "one\n# two\r\n", "correct_approach": "three\u2028four\tfive"}
    assert gist("pattern", "t", record) == "one # two -> three four five"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["goal", "message", "do", "for", "against"]), inner)
    ),
    max_leaves=6,
)
FIELDS = [
    *("pattern", "correct_approach", "what_fails", "why", "prevention", "resolutions", "lesson"),
    *("resolution", "context", "outcome", "errors_encountered", "description", "from_agent"),
]


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=5))
@settings(max_examples=80, deadline=None)
def test_whatever_a_record_holds_it_has_one_line(kind: str, record: dict[str, Any]) -> None:
    line = gist(kind, "title", record)
    assert line
    assert line.splitlines() == [line]
