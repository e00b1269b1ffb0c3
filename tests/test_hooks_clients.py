"""Hooks of Gemini CLI, Qwen Code and Copilot CLI: events in the form in which they send them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from client_sessions import CLIENTS

from loki_memory import Workspace
from loki_memory.hooks.response import respond
from loki_memory.ingest.run import ingest

OUTPUT = (
    "> demo@1.0.0 test\n> node check.js\n\n"
    "src/logout.ts(1,17): error TS7030: Not all code paths return a value.\nFound 1 error."
)


@pytest.fixture
def learned(ws: Workspace, tmp_path: Path) -> Workspace:
    """A workspace that learned from one session how TS7030 was mended."""
    client = CLIENTS["gemini"]
    ingest(ws, [client.write(tmp_path, client.lines())])
    assert ws.sessions.learn(client.session) == 1
    return ws


def told(project: Path, event: str, **fields: Any) -> str:
    given = {
        "session_id": "another-session",
        "transcript_path": "/home/ana/none.jsonl",
        "cwd": str(project),
        "tool_name": "run_shell_command",
        "tool_input": {"command": "npm test", "description": "Run tests"},
        **fields,
    }
    response = respond(event, json.dumps(given).encode(), {})
    assert (response.err, response.code) == ("", 0)
    return response.out


@pytest.mark.usefixtures("learned")
@pytest.mark.parametrize(
    "answer",
    [
        f"<untrusted_context>\nOutput: {OUTPUT}\nExit Code: 2\n</untrusted_context>",
        [{"text": f"<untrusted_context>\nOutput: {OUTPUT}\nExit Code: 2\n</untrusted_context>"}],
    ],
)
def test_gemini_is_told_after_a_command_what_mended_its_error(project: Path, answer: Any) -> None:
    said = told(
        project,
        "PostToolUse",
        hook_event_name="AfterTool",
        tool_response={"llmContent": answer, "returnDisplay": OUTPUT},
    )
    assert "return undefined" in said


@pytest.mark.usefixtures("learned")
def test_qwen_is_told_at_an_error_what_mended_it(project: Path) -> None:
    error = f"Command: npm test\nDirectory: (root)\nOutput: {OUTPUT}\nError: (none)\nExit Code: 2"
    assert "return undefined" in told(project, "PostToolUseFailure", error=error)


@pytest.mark.usefixtures("learned")
def test_a_command_that_worked_is_told_nothing(project: Path) -> None:
    answer = {"llmContent": "Output: ok: all tests passed", "returnDisplay": "ok"}
    assert told(project, "PostToolUse", tool_response=answer) == ""


@pytest.mark.parametrize("name", ["gemini", "qwen", "copilot"])
def test_a_session_that_ended_is_recorded_from_its_transcript(
    ws: Workspace, project: Path, name: str
) -> None:
    client = CLIENTS[name]
    path = client.write(Path.home(), client.lines(str(project)), str(project))
    event = {"session_id": client.session, "transcript_path": str(path), "cwd": str(project)}
    response = respond("SessionEnd", json.dumps(event).encode(), {}, wait=True)
    assert response.err == ""
    assert [episode.title() for episode in ws.list(kind="episode")] == [
        "Fix the failing login tests"
    ]


@pytest.mark.usefixtures("learned")
def test_copilot_is_told_after_a_command_in_the_form_that_it_reads(project: Path) -> None:
    """To Copilot a command that fails is a call that worked, and context stands at the top."""
    given = {
        "hook_event_name": "PostToolUse",
        "session_id": "99974b7b-120b-4f7b-a040-715206a674fe",
        "timestamp": "2026-11-19T02:27:26.631Z",
        "cwd": str(project),
        "tool_name": "Bash",
        "tool_input": {"command": "npm test", "description": "Run tests"},
        "tool_result": {
            "result_type": "success",
            "text_result_for_llm": f"{OUTPUT}\n<shellId: 0 completed with exit code 2>",
        },
    }
    transcript = Path.home() / ".copilot/session-state" / str(given["session_id"]) / "events.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text("")
    environment = {"LOKI_CLIENT": "copilot"}
    response = respond("PostToolUse", json.dumps(given).encode(), environment)
    assert (response.err, response.code) == ("", 0)
    answer = json.loads(response.out)
    assert answer.keys() == {"additionalContext"}
    assert "return undefined" in answer["additionalContext"]


def test_the_transcript_of_copilot_is_found_by_its_session(
    ws: Workspace, project: Path, tmp_path: Path
) -> None:
    client = CLIENTS["copilot"]
    home = tmp_path / "chosen"
    transcript = home / "session-state" / client.session / "events.jsonl"
    transcript.parent.mkdir(parents=True)
    written = client.write(tmp_path, client.lines(str(project)), str(project))
    transcript.write_bytes(written.read_bytes())
    environment = {"LOKI_CLIENT": "copilot", "COPILOT_HOME": str(home)}
    given = {"session_id": client.session, "cwd": str(project), "reason": "complete"}
    respond("SessionEnd", json.dumps(given).encode(), environment, wait=True)
    assert [episode.title() for episode in ws.list(kind="episode")] == [
        "Fix the failing login tests"
    ]
