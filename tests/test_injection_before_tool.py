"""What a session is told before it runs a command, or reads or changes a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_hooks import fire

from loki_memory import Workspace
from loki_memory.injection.at_error import lesson


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


def test_a_program_in_whose_place_another_one_works_is_named_from_the_first_session_on(
    ws: Workspace, project: Path
) -> None:
    ws.record(exchanged("s1", 1))
    ws.consolidate()
    assert before(project, "Bash", command="python3 b.py") == ""
    told = before(project, "Bash", command="cd x && python b.py")
    assert "Use `python3` instead of `python`" in told


def exchanged(session: str, day: int) -> dict[str, Any]:
    """An episode in which another program worked."""
    error = "ImportError: No module named pathlib"
    episode = refused(session, day, "python a.py", error, "python3 a.py")
    resolution = "Use `python3` instead of `python`. E.g. `python3 a.py`"
    return {
        **episode,
        "errors_encountered": [{"type": "Bash", "message": error, "resolution": resolution}],
    }


def test_another_error_of_that_program_is_told_the_same_once_two_sessions_needed_it(
    ws: Workspace,
) -> None:
    ws.record([exchanged(f"s{n}", n) for n in (1, 2)])
    ws.consolidate()
    error = "ImportError: No module named django"
    assert "python3" in lesson(ws, error, "Bash", "python manage.py", "s", "test")
    assert lesson(ws, error, "Bash", "python3 manage.py", "s", "test") == ""


def linted(session: str, day: int, rule: str) -> dict[str, Any]:
    """An episode in which a linter refused something, and what was done."""
    message = f"a.go:{day}:2: the value of the {rule} call is not right here ({rule})"
    episode = refused(session, day, "make lint", message, "make lint")
    resolution = f"Wrap the {rule} call in a helper."
    return {
        **episode,
        "errors_encountered": [{"type": "make lint", "message": message, "resolution": resolution}],
    }


def test_a_linter_is_told_the_two_rules_that_were_broken_most_often(
    ws: Workspace, project: Path
) -> None:
    rules = ("aa", "aa", "aa", "bb", "bb", "cc", "cc", "dd")
    ws.record([linted(f"s{n}", n, f"{rule}check") for n, rule in enumerate(rules, 1)])
    ws.consolidate()
    told = before(project, "Bash", command="make lint")
    assert [rule for rule in ("aa", "bb", "cc", "dd") if f"({rule}check)" in told] == ["aa", "bb"]
    assert before(project, "Bash", command="make lint") == ""


def test_a_file_is_told_the_lessons_that_name_it(ws: Workspace, project: Path) -> None:
    ws.remember("`checkout.py` rounds half cents up", kind="fact")
    told = before(project, "Edit", file_path=str(project / "src/checkout.py"))
    assert "rounds half cents up" in told
    assert before(project, "Read", file_path=str(project / "src/other_file.py")) == ""


def test_a_file_is_not_told_of_its_namesake_in_another_folder(ws: Workspace, project: Path) -> None:
    ws.remember("`.client/settings.json` is written by the client, so never edit it", kind="fact")
    assert before(project, "Edit", file_path=str(project / ".shop/settings.json")) == ""
    assert "never edit" in before(project, "Edit", file_path=str(project / ".client/settings.json"))


def test_a_name_that_several_folders_have_is_no_name(ws: Workspace, project: Path) -> None:
    ws.remember("`exports.ts` of the client exports nothing", kind="fact")
    server = project / "server/exports.ts"
    assert "nothing" in before(project, "Read", file_path=str(server))
    ws.record({"goal": "Look", "context": {"files_involved": ["client/exports.ts"]}})
    assert before(project, "Read", "later", file_path=str(server)) == ""


def said_once(**scores: float) -> dict[str, Any]:
    """A session that said something of the code, more or less likely to matter."""
    said = [
        {"text": f"`{name}` reads the worktree, which rewrites it.", "type": "fact", "score": score}
        for name, score in scores.items()
    ]
    return {"goal": "Look at it", "session": "s1", "captured": True, "statements": said}


def test_an_edit_is_told_what_one_session_said_of_the_code_that_it_changes(
    ws: Workspace, project: Path
) -> None:
    sure = "`staged_files` reads the worktree"
    ws.record(said_once(staged_files=0.7, other_files=0.3))
    ws.consolidate()
    path = str(project / "src/hooks.py")
    assert sure in before(project, "Edit", file_path=path, old_string="x = staged_files(repo)")
    edits = [{"old_string": "y = staged_files(repo)", "new_string": ""}]
    assert sure in before(project, "MultiEdit", "s2", file_path=path, edits=edits)
    patch = "*** Update File: src/hooks.py\n@@\n-x = staged_files(repo)\n+x = 1\n"
    assert sure in before(project, "apply_patch", "s3", input=patch)
    added = patch.replace("-x", "+x")
    assert before(project, "apply_patch", "s4", input=added) == ""
    assert before(project, "Edit", "s5", file_path=path, old_string="other_files(repo)") == ""


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
