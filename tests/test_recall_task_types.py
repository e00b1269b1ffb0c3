"""Task types: told by whole words, by the phase, by an error; and what each of them needs."""

from __future__ import annotations

import pytest

from loki_memory.models.kinds import KINDS
from loki_memory.recall.rerank import FAMILIES, TASKS, detect, weight

QUESTIONS = {
    "exploration": [
        "Explore the billing code",
        "how does the router pick a handler?",
        "What is the cache for?",
        "look into the scheduler",
        "Investigating slow queries",
    ],
    "implementation": [
        "Implement POST /api/todos",
        "Add a PATCH endpoint",
        "Build the importer",
        "create a login page",
        "Set up CI",
    ],
    "debugging": [
        "Fix the login",
        "the server is broken",
        "tests fail on Windows",
        "Traceback in the worker",
        "root cause of the leak",
        "search doesn't work",
    ],
    "review": [
        "Review the changes",
        "audit the permissions",
        "approve this pull request",
        "Inspecting the release",
    ],
    "refactoring": [
        "Refactor the store",
        "clean up the imports",
        "Rename the module",
        "Simplify the parser",
        "deduplicate these functions",
    ],
}


@pytest.mark.parametrize(
    ("task", "text"), [(task, text) for task, texts in QUESTIONS.items() for text in texts]
)
def test_each_type_is_told_by_its_words(task: str, text: str) -> None:
    assert detect(text) == task
    assert detect(text.upper()) == task


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the prefix of a route",  # no fix
        "the address of the server",  # adds nothing
        "suffixes and affixes",
        "the rebuilders' guild",  # builds nothing
        "terror in a mirror",
        "preview of the interface",  # no review
        "a padded ladder",
        "failsafe defaults",
        "bugle calls",
        "hanging gardens",
        "the errorless path",
        "todo list colours",
        "エラー",
    ],
)
def test_a_part_of_a_word_tells_nothing(text: str) -> None:
    assert detect(text) == ""


@pytest.mark.parametrize("text", ["(fix)", "fix!", '"fix"', "please, fix.", "fix\nit", "Fix: it"])
def test_punctuation_around_a_word_does_not_hide_it(text: str) -> None:
    assert detect(text) == "debugging"


def test_a_debugger_is_one_cue_for_debugging_and_not_two() -> None:
    assert detect("explore and survey the debugger") == "exploration"


def test_the_type_with_more_cues_wins() -> None:
    assert detect("review and audit the fix") == "review"


def test_a_tie_tells_nothing() -> None:
    assert detect("fix the review") == ""
    assert detect("refactor and implement") == ""


def test_an_error_speaks_for_debugging() -> None:
    assert detect("the todo list", error=True) == "debugging"
    assert detect("implement the todo list", error=True) == "debugging"
    assert detect("implement and build and add it", error=True) == "implementation"


@pytest.mark.parametrize(
    ("phase", "task"),
    [
        ("development", "implementation"),
        ("Discovery", "exploration"),
        (" QA ", "debugging"),
        ("verification", "review"),
        ("cleanup", "refactoring"),
        ("lunch", ""),
        ("", ""),
    ],
)
def test_the_phase_tells_where_the_text_does_not(phase: str, task: str) -> None:
    assert detect("the todo list", phase=phase) == task


def test_the_phase_outweighs_one_word() -> None:
    assert detect("fix the todo list", phase="development") == "implementation"


PHASES = {
    "exploration": "research",
    "implementation": "coding",
    "debugging": "debugging",
    "review": "review",
    "refactoring": "refactoring",
}
TWO_CUES = {
    "exploration": "explore and survey",
    "implementation": "implement and build",
    "debugging": "debug and fix",
    "review": "review and audit",
    "refactoring": "refactor and rename",
}


@pytest.mark.parametrize("told", TASKS)
@pytest.mark.parametrize("phase", TASKS)
def test_the_phase_breaks_a_tie(phase: str, told: str) -> None:
    assert detect(TWO_CUES[told], phase=PHASES[phase]) == phase


def test_a_pasted_log_is_looked_at_up_to_a_limit() -> None:
    assert detect("fix " + "x" * 2_000_000) == "debugging"
    assert detect("word " * 400_000 + "fix") == ""


# -- weights -------------------------------------------------------------------------------------


def test_the_weights_are_those_of_loki_mode() -> None:
    assert TASKS["exploration"][:3] == (0.6, 0.3, 0.1)
    assert TASKS["implementation"][:3] == (0.15, 0.5, 0.35)
    assert (TASKS["debugging"].episodic, TASKS["debugging"].warnings) == (0.4, 0.4)
    assert TASKS["review"][:2] == (0.3, 0.5)
    assert TASKS["refactoring"][:3] == (0.25, 0.45, 0.3)


@pytest.mark.parametrize("task", ["", "unheard of", *TASKS])
def test_no_kind_is_ever_weighted_nothing(task: str) -> None:
    weights = [weight(kind, task) for kind in KINDS]
    assert max(weights) == 1
    assert min(weights) > 0


def test_where_the_task_is_unknown_no_kind_is_pushed_back() -> None:
    assert {weight(kind, "") for kind in KINDS} == {1}


def test_every_kind_that_can_be_recalled_belongs_to_a_family() -> None:
    assert set(FAMILIES) == set(KINDS) - {"link", "tombstone"}
