"""What a session is told before it runs a command, or reads or changes a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_hooks import fire

from loki_memory import Workspace


def refused(session: str, day: int, command: str, error: str, fixed: str) -> dict[str, Any]:
    """An episode in which a command failed and worked in another form."""
    return {
        "timestamp": f"2026-01-{day:02}T10:00:00Z",
        "goal": f"Look at the change {day}",
        "session": session,
        "outcome": "success",
        "action_log": [
            {"t": 0, "action": "Bash", "target": command, "error": error},
            {"t": 1, "action": "Bash", "target": fixed, "result": "ok"},
        ],
    }


@pytest.fixture
def met(ws: Workspace) -> Workspace:
    """A store in which two sessions met a flag that does not exist."""
    error = "unknown flag: --stat"
    fixed = "gh pr diff 7 --name-only"
    ws.record([refused(f"s{n}", n, "gh pr diff 7 --stat", error, fixed) for n in (1, 2)])
    ws.consolidate()
    return ws


def before(project: Path, tool: str, session: str = "s", **given: Any) -> str:
    return fire(project, "PreToolUse", tool_name=tool, tool_input=given, session_id=session)


def test_a_command_with_an_option_that_was_refused_is_told_so(
    met: Workspace, project: Path
) -> None:
    told = before(project, "Bash", command="cd /x && gh pr diff 9 --stat")
    assert "unknown flag: --stat" in told
    assert "gh pr diff 7 --name-only" in told


def test_a_command_is_told_once_in_a_session(met: Workspace, project: Path) -> None:
    assert before(project, "Bash", command="gh pr diff 9 --stat")
    assert before(project, "Bash", command="gh pr diff 9 --stat") == ""
    assert before(project, "Bash", "another", command="gh pr diff 9 --stat")


def test_other_commands_are_told_nothing(met: Workspace, project: Path) -> None:
    assert before(project, "Bash", command="ls --stat") == ""
    assert before(project, "Bash", command="gh issue list") == ""
    assert before(project, "Bash") == ""


def test_an_error_of_one_session_is_told_only_where_the_option_is_repeated(
    ws: Workspace, project: Path
) -> None:
    error = "unknown flag: --stat"
    ws.record(refused("s1", 1, "gh pr diff 7 --stat", error, "gh pr diff 7 --name-only"))
    ws.consolidate()
    assert before(project, "Bash", command="gh pr view 9") == ""
    assert "--stat" in before(project, "Bash", command="gh pr diff 9 --stat")


def test_a_file_is_told_the_lessons_that_name_it(ws: Workspace, project: Path) -> None:
    ws.remember("`checkout.py` rounds half cents up", kind="fact")
    told = before(project, "Edit", file_path=str(project / "src/checkout.py"))
    assert "rounds half cents up" in told
    assert before(project, "Read", file_path=str(project / "src/other_file.py")) == ""


def test_a_name_that_many_folders_have_is_no_name(ws: Workspace, project: Path) -> None:
    ws.remember("`index.ts` of the client exports nothing", kind="fact")
    assert before(project, "Read", file_path=str(project / "server/index.ts")) == ""


def test_a_patch_of_codex_names_its_files(ws: Workspace, project: Path) -> None:
    ws.remember("`checkout.py` rounds half cents up", kind="fact")
    patch = "*** Begin Patch\n*** Update File: src/checkout.py\n@@\n-a\n+b\n*** End Patch"
    assert "half cents" in before(project, "apply_patch", input=patch)
    assert "half cents" in before(project, "shell", "b", command=["apply_patch", patch])


def test_a_session_that_is_paused_is_told_nothing(met: Workspace, project: Path) -> None:
    met.sessions.pause()
    assert before(project, "Bash", command="gh pr diff 9 --stat") == ""


def test_an_error_of_codex_is_answered_after_the_call(met: Workspace, project: Path) -> None:
    given = {"tool_name": "Bash", "tool_input": {"command": "gh pr diff 9 --stat"}}
    told = fire(project, "PostToolUse", **given, tool_response="unknown flag: --stat\n")
    assert "--name-only" in told
    assert fire(project, "PostToolUse", **given, tool_response="a.py\nb.py\n") == ""


def test_a_linters_output_gets_the_lesson_of_its_rule(ws: Workspace, project: Path) -> None:
    for day in (1, 2):
        line = f"cmd/a.go:{day}2:5: Error return value of `f{day}` is not checked (errcheck)"
        mended = {"type": "make lint", "message": line, "resolution": "Check the error and wrap it"}
        ws.record(
            {
                "timestamp": f"2026-01-0{day}T10:00:00Z",
                "goal": f"Lint {day}",
                "session": f"s{day}",
                "outcome": "success",
                "errors_encountered": [mended],
            }
        )
    ws.consolidate()
    output = "Exit code 1\ncmd/z.go:9:1: Error return value of `g` is not checked (errcheck)\n"
    given = {"tool_name": "Bash", "tool_input": {"command": "make lint"}}
    assert "Check the error and wrap it" in fire(
        project, "PostToolUseFailure", **given, error=output
    )
