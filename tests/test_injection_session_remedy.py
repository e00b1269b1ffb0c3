"""An error that comes again: the lesson that says what to do, also within one session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from claude_lines import SESSION, Transcript

from loki_memory import Workspace
from loki_memory.hooks.response import respond

TS7030 = "Exit code 2\nsrc/login.ts(1,17): error TS7030: Not all code paths return a value."
MENDED = "Mended before, e.g. in login.ts: added `return undefined;`"


def mended(project: Path) -> Transcript:
    """A session that met an error and mended it, and still goes on."""
    path = str(project / "src/login.ts")
    edit = {"old_string": "  }\n}", "new_string": "  }\n  return undefined;\n}"}
    transcript = Transcript(cwd=str(project)).say("Fix the login tests")
    transcript.call("Bash", TS7030, failed=True, command="npm test")
    transcript.call("Edit", "ok", file_path=path, **edit)
    patch = {"oldStart": 4, "newStart": 4, "lines": ["   }", "+  return undefined;", " }"]}
    transcript.lines[-1]["toolUseResult"] = {"filePath": path, "structuredPatch": [patch]}
    return transcript.call("Bash", "ok: all tests passed", command="npm test")


def fire(project: Path, transcript: Transcript, name: str, **fields: Any) -> str:
    path = transcript.write(project.parent / f"{SESSION}.jsonl")
    given = {
        "session_id": SESSION,
        "cwd": str(project),
        "transcript_path": str(path),
        "tool_name": "Bash",
        "tool_use_id": "toolu_now",
        "tool_input": {"command": "npm test"},
        **fields,
    }
    response = respond(name, json.dumps(given).encode(), {})
    assert response.err == ""
    return response.out


def failed(project: Path, transcript: Transcript, error: str = TS7030) -> str:
    return fire(project, transcript, "PostToolUseFailure", error=error)


def test_an_error_that_was_mended_earlier_in_the_session_is_told_its_remedy(
    ws: Workspace, project: Path
) -> None:
    told = failed(project, mended(project).say("Now the logout").reply("I run the tests."))
    assert f"Not all code paths return a value. -> {MENDED}" in told
    assert "(met and mended earlier in this session)" in told


def test_codex_is_told_after_the_command(ws: Workspace, project: Path) -> None:
    assert MENDED in fire(project, mended(project), "PostToolUse", tool_response=TS7030)


def test_an_error_that_was_never_met_is_told_nothing(ws: Workspace, project: Path) -> None:
    other = "Exit code 2\nsrc/login.ts(1,1): error TS2304: Cannot find name 'user'."
    assert failed(project, mended(project), other) == ""


def test_an_agent_that_goes_in_circles_is_told_once(ws: Workspace, project: Path) -> None:
    transcript = mended(project).call("Bash", TS7030, failed=True, command="npm test")
    assert failed(project, transcript) == ""


def test_the_failing_call_itself_is_no_earlier_error(ws: Workspace, project: Path) -> None:
    transcript = mended(project).call("Bash", TS7030, failed=True, command="npm test")
    last = transcript.lines[-1]["message"]["content"][0]["tool_use_id"]
    told = fire(project, transcript, "PostToolUseFailure", error=TS7030, tool_use_id=last)
    assert MENDED in told


def test_of_two_lessons_the_one_that_says_what_to_do_comes_first(
    ws: Workspace, project: Path
) -> None:
    """Consolidation words the place of one change; an agent worded what to do."""
    error = "Error: the schema cache is stale"
    for number in range(2):
        ws.record(
            {
                "context": {"goal": f"Run the tests {number}"},
                "session": f"s{number}",
                "errors_encountered": [
                    {"type": "npm test", "message": error, "resolution": "Change `a` to `b` (x.ts)"}
                ],
            }
        )
    ws.remember(
        error, kind="anti-pattern", details={"prevention": "Run `make schema` before the tests."}
    )
    told = failed(project, Transcript(cwd=str(project)), f"Exit code 1\n{error}")
    assert "Run `make schema` before the tests." in told
    lines = json.loads(told)["hookSpecificOutput"]["additionalContext"].splitlines()
    assert "make schema" in next(line for line in lines if line.startswith("- "))
