"""Reasons that commits give: in their own words, without names, trailers and numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import git

from loki_memory.seed.git_history import HistoryCommit, facts, parse_commits, reason
from loki_memory.seed.seeding import proposals


def said(subject: str, body: str, email: str = "bo@example.org") -> list[str]:
    commit = HistoryCommit("a" * 40, email, subject, body)
    return [proposal.text for proposal in facts([commit], "ana@example.org")]


def test_a_revert_is_told_with_its_reason() -> None:
    body = (
        "This reverts commit 1234567890abcdef1234567890abcdef12345678.\n\n"
        "The cache served pages of other tenants. We need a key per tenant first.\n\n"
        "Signed-off-by: Bo Example <bo@example.org>\n"
    )
    assert said('Revert "Cache rendered pages (#41)"', body) == [
        '"Cache rendered pages" was reverted: The cache served pages of other tenants.'
    ]


def test_a_revert_without_a_reason_is_not_told() -> None:
    assert said('Revert "Cache pages"', "This reverts commit 1234567890abcdef.") == []


def test_a_fix_is_told_with_the_sentence_that_says_why() -> None:
    body = (
        "Closes #12.\n\nRewrites the reader. The lock must not be held while the child\n"
        "starts, because the child waits for it.\n\nCo-authored-by: Bo <bo@example.org>"
    )
    why = "The lock must not be held while the child starts, because the child waits for it."
    assert said("fix(lock): deadlock at start (#12)", body) == [f"Deadlock at start: {why}"]


@pytest.mark.parametrize(
    ("subject", "body"),
    [
        ("Fix typo", "It was wrong because nobody looked at it closely."),
        ("Fix the parser", "Reported by Bo Example because it crashed."),
        ("Fix the parser", "See https://example.org/1 because it explains the failure."),
        ("Fix the parser", "Signed-off-by: Bo Example <bo@example.org>"),
        ("Fix the parser", "Write to bo@example.org because it fails."),
        ("Fix the parser", "It regressed in 1234567890ab because of the new reader."),
        ("Fix the parser", "This makes the parser nicer to read for everybody."),
        ("Add a parser", "It is needed because the old one does not read dates."),
    ],
)
def test_a_commit_without_a_reason_of_its_own_is_not_told(subject: str, body: str) -> None:
    assert said(subject, body) == []


def test_a_word_that_only_looks_like_a_person_is_kept() -> None:
    why = "The reader must not block, because I/O of the child waits for it."
    assert reason(why) == why
    assert reason("I think that it fails because of the reader.") == ""


def test_a_reason_is_whole_or_not_there() -> None:
    assert reason("The reader fails because " + "of many words " * 40) == ""


def test_the_history_of_a_repository_is_read(project: Path) -> None:
    git(project, "init", "-q", "-b", "main")
    (project / "a").write_text("1")
    git(project, "add", "a")
    body = "Readers must not see half a file, so that a crash loses nothing."
    git(project, "commit", "-q", "-m", "Fix torn writes", "-m", body)
    git(project, "commit", "-q", "--allow-empty", "-m", "Second")
    git(project, "revert", "--no-edit", "HEAD~1")
    found, _ = proposals(project)
    assert [(line.text, line.type, line.is_foreign) for line in found] == [
        (f"Fix torn writes: {body}", "gotcha", True)
    ]
    assert found[0].commit == git(project, "rev-parse", "HEAD~2")


def test_the_users_own_commits_are_not_foreign(project: Path) -> None:
    git(project, "init", "-q", "-b", "main")
    git(project, "config", "user.email", "ana@example.org")
    body = "Readers must not see half a file, so that a crash loses nothing."
    git(project, "commit", "-q", "--allow-empty", "-m", "Fix torn writes", "-m", body)
    assert [line.is_foreign for line in proposals(project)[0]] == [False]


def test_an_empty_repository_and_a_plain_folder_have_no_history(project: Path) -> None:
    assert proposals(project) == ([], [])
    git(project, "init", "-q")
    assert proposals(project) == ([], [])


def test_only_commits_below_the_memory_are_read(project: Path) -> None:
    git(project, "init", "-q", "-b", "main")
    body = "Readers must not see half a file, so that a crash loses nothing."
    for name in ("shop", "bank"):
        (project / name).mkdir()
        (project / name / "a").write_text("1")
        git(project, "add", "-A")
        git(project, "commit", "-q", "-m", f"Fix the {name}", "-m", body)
    found, _ = proposals(project / "shop")
    assert [line.text for line in found] == [f"Fix the shop: {body}"]


def test_a_huge_message_is_not_read(project: Path) -> None:
    git(project, "init", "-q", "-b", "main")
    (project / "message").write_text("Fix it\n\nIt fails because of this. " + "x " * 100_000)
    git(project, "commit", "-q", "--allow-empty", "-F", "message")
    assert proposals(project)[0] == []


def test_output_of_git_that_is_cut_or_odd_is_no_error() -> None:
    assert parse_commits(b"") == []
    assert parse_commits(b"abc missing\n") == []
    name = b"a" * 40
    assert parse_commits(name + b" commit 90\ntree") == [HistoryCommit("a" * 40, "", "", "")]
    odd = "x" * 50_000 + "-" * 50_000
    assert said("Fix " + odd, odd) == []
