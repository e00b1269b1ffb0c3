"""Claude Code itself, with our hooks: what it accepts, and what its model receives."""

from __future__ import annotations

import os
import select
import shutil
from pathlib import Path
from typing import Any

import pytest
from desk import Desk, Outcome, open_desk

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(not shutil.which("claude"), reason="claude is not on PATH"),
]
HOOKS_OF_SECOND = 5  # a prompt, and before each of its four calls
CORRECTION = "No, use pnpm instead of npm in this repository"


def bash(command: str, say: str = "") -> dict[str, Any]:
    call = {"call": ["Bash", {"command": command, "description": "Run it"}]}
    return {"say": say, **call} if say else call


def returning(path: Path) -> dict[str, Any]:
    """The edit that mends a file."""
    before, after = "  }\n}", "  }\n  return undefined;\n}"
    return {"call": ["Edit", {"file_path": str(path), "old_string": before, "new_string": after}]}


@pytest.fixture
def hooked(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    desk = open_desk(request, tmp_path)
    desk.run("loki-mem", "install", "claude-code")
    return desk


def fix_login(hooked: Desk) -> Outcome:
    """The first session: it meets the error and mends it."""
    login = hooked.project / "src/login.ts"
    return hooked.claude(
        "Fix the failing login tests",
        [
            bash("npm test", "I run the tests first."),
            {"call": ["Read", {"file_path": str(login)}]},
            returning(login),
            bash("npm test"),
            {"say": "The tests pass: the function returned nothing on one path (TS7030)."},
        ],
    )


def add_logout(hooked: Desk) -> Outcome:
    """The second session: it meets the error again."""
    login, logout = hooked.project / "src/login.ts", hooked.project / "src/logout.ts"
    text = login.read_text().replace("login", "logout").replace("  return undefined;\n", "")
    return hooked.claude(
        "Add a logout function with tests like login",
        [
            {"call": ["Write", {"file_path": str(logout), "content": text}]},
            bash("npm test"),
            returning(logout),
            bash("npm test"),
            {"say": "Logout is there."},
        ],
    )


def test_the_second_session_is_told_what_mended_the_error_of_the_first(hooked: Desk) -> None:
    first = fix_login(hooked)
    assert "The tests pass" in first.out
    hooked.run("loki-mem", "ingest")
    second = add_logout(hooked)
    assert any("return undefined" in told for told in second.received("<loki-memory>"))
    for session in (first, second):
        assert "validation failed" not in session.debug
        assert "hook error" not in session.debug.lower()


def test_a_session_starts_a_daemon_that_answers_later_hooks_and_ends_by_itself(
    hooked: Desk,
) -> None:
    hooked.environment |= {"LOKI_DAEMON_AUTOSTART": "true", "LOKI_DAEMON_IDLE_MINUTES": "1"}
    fix_login(hooked)
    hooked.run("loki-mem", "ingest")
    first = hooked.memory("daemon", "status")["state"]
    assert first["idle_minutes"] == 1
    second = add_logout(hooked)
    assert any("return undefined" in told for told in second.received("<loki-memory>"))
    state = hooked.memory("daemon", "status")["state"]
    assert state["process"] == first["process"]
    assert state["answered"] >= first["answered"] + HOOKS_OF_SECOND
    wait_for_end(state["process"])
    assert hooked.memory("daemon", "status")["running"] is False


def wait_for_end(process: int) -> None:
    """Wait until a process that is no child of ours has ended."""
    ended = os.pidfd_open(process)
    try:
        select.select([ended], [], [])
    finally:
        os.close(ended)


def corrected(hooked: Desk, *options: str) -> Any:
    hooked.claude(
        "Add the package left-pad", [bash("echo npm install left-pad"), {"say": "Added."}]
    )
    lesson = 'loki-mem lesson "a package is added" --do "use pnpm, never npm"'
    replies = [
        bash("echo pnpm add left-pad"),
        {"say": "It is added with pnpm."},
        bash(lesson),
        {"say": "It is added with pnpm."},
    ]
    return hooked.claude(CORRECTION, replies, "--continue", *options)


def test_an_agent_that_was_corrected_is_asked_once_and_words_a_lesson(hooked: Desk) -> None:
    session = corrected(hooked)
    (request,) = session.received("Before you stop")
    assert f"- {CORRECTION}" in request
    assert len(session.requests) == 4
    assert session.out.strip() == "It is added with pnpm."
    (lesson,) = [each for each in hooked.memory("list")["memories"] if "never npm" in each["title"]]
    assert lesson["status"] == "active"
    assert "validation failed" not in session.debug


def test_a_run_with_a_limit_of_turns_is_not_asked(hooked: Desk) -> None:
    session = corrected(hooked, "--max-turns", "2")
    assert session.received("Before you stop") == []
    assert session.out.strip() == "It is added with pnpm."


def test_memory_of_a_worktree_outlives_the_worktree_that_the_agent_removes(hooked: Desk) -> None:
    hooked.run("loki-mem", "remember", "The cart is kept in cents")
    hooked.run("git", "add", "-A")
    hooked.run("git", "commit", "-qm", "memory")
    leaving = {"action": "remove", "discard_changes": True}
    session = hooked.claude(
        "Work on the release notes in a worktree",
        [
            {"call": ["EnterWorktree", {"name": "notes"}]},
            bash("loki-mem remember 'The release branch is cut on Thursdays'"),
            {"call": ["ExitWorktree", leaving]},
            {"say": "Done."},
        ],
        "--permission-mode",
        "bypassPermissions",
    )
    assert session.received("Exited and removed worktree")
    assert "uncommitted memory of the worktree: 1 kept here" in session.debug
    titles = [each["title"] for each in hooked.memory("list")["memories"]]
    assert "The release branch is cut on Thursdays" in titles


def test_a_session_that_is_compacted_gets_the_brief_once_and_no_error(hooked: Desk) -> None:
    hooked.run("loki-mem", "remember", "The cart is kept in cents", "--kind", "decision")
    hooked.claude("Look at the cart", [{"say": "I looked at it."}])
    session = hooked.claude("/compact", [{"say": "The cart was looked at."}] * 3, "--continue")
    assert "SessionStart:compact" in session.debug
    assert "loki-mem hook PostCompact" not in session.debug
    assert "validation failed" not in session.debug
