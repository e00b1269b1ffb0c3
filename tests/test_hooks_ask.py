"""The request for lessons when an agent stops: when it is made, and when it is not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_lines import SESSION, Transcript
from conftest import git

from loki_memory import Workspace
from loki_memory.hooks.response import respond
from loki_memory.ingest.run import ingest
from loki_memory.ingest.session_events import is_correction

CORRECTION = "No, use pnpm instead of npm in this repository"
TS7030 = "Exit code 2\nsrc/login.ts(1,17): error TS7030: Not all code paths return a value."


@pytest.fixture(autouse=True)
def _attended(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A client that somebody sits at."""
    with _client() as client:
        monkeypatch.setenv("HOOK_PARENT", str(client.pid))
        monkeypatch.setenv("AI_AGENT", "claude-code_2-1-325_harness")
        monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "cli")
        yield
        client.kill()


def _client(*options: str) -> subprocess.Popen[bytes]:
    """A process with the command line of a client."""
    waiting = [sys.executable, "-c", "print(end='', flush=True); input()", *options]
    return subprocess.Popen(waiting, stdin=subprocess.PIPE)


def corrected(project: Path) -> Transcript:
    """A session in which the user corrects the agent."""
    transcript = Transcript(cwd=str(project))
    transcript.say("Add the package left-pad").call("Bash", command="npm install left-pad")
    transcript.reply("Added.").say(CORRECTION).call("Bash", command="pnpm add left-pad")
    return transcript.reply("It is added with pnpm now.")


def stopped(project: Path, transcript: Transcript, **fields: Any) -> dict[str, Any]:
    """What a client is told when its agent stops."""
    path = transcript.write(project.parent / "transcripts" / f"{SESSION}.jsonl")
    given = {"session_id": SESSION, "cwd": str(project), "transcript_path": str(path), **fields}
    response = respond("Stop", json.dumps(given).encode(), {"AI_AGENT": "claude-code_2-1-325"})
    assert response.err == ""
    answer: dict[str, Any] = json.loads(response.out) if response.out else {}
    return answer


def asked(answer: dict[str, Any]) -> str:
    text: str = answer["hookSpecificOutput"]["additionalContext"] if answer else ""
    return text


def test_an_agent_that_was_corrected_is_asked_for_lessons_once(
    ws: Workspace, project: Path
) -> None:
    transcript = corrected(project)
    said = asked(stopped(project, transcript))
    assert "Before you stop (you were corrected)" in said
    assert f"- {CORRECTION}" in said
    assert f"--session {SESSION}`" in said
    assert "repeat your final answer" not in said
    assert stopped(project, transcript) == {}


def test_the_request_is_not_learned_as_what_the_user_said(ws: Workspace, project: Path) -> None:
    transcript = corrected(project)
    said = asked(stopped(project, transcript))
    transcript.say(f"Stop hook feedback:\n{said}").reply("Nothing to keep.")
    ingest(ws, [transcript.write(project.parent / "t" / f"{SESSION}.jsonl")])
    for episode in ws.list(kind="episode"):
        assert "WHEN IT APPLIES" not in json.dumps(episode.document())


def test_an_error_that_took_several_attempts_is_a_reason(ws: Workspace, project: Path) -> None:
    transcript = Transcript(cwd=str(project)).say("Fix the login tests")
    for _ in range(2):
        transcript.call("Bash", TS7030, failed=True, command="npm test")
        transcript.call("Read", file_path=str(project / "src/login.ts"))
    transcript.call(
        "Edit",
        file_path=str(project / "src/login.ts"),
        old_string="  }\n}",
        new_string="  }\n  return undefined;\n}",
    )
    transcript.call("Bash", "ok", command="npm test").reply("The tests pass.")
    said = asked(stopped(project, transcript))
    assert "an error took several attempts" in said
    assert "error TS7030: Not all code paths return a value." in said


def test_a_decision_is_a_reason(ws: Workspace, project: Path) -> None:
    transcript = Transcript(cwd=str(project)).say("How do we store sessions of users?")
    transcript.call("Read", file_path=str(project / "store.py"))
    transcript.reply(
        "Sessions are deliberately kept in Redis, not in the database, because `SessionStore` must "
        "survive a restart."
    )
    assert "something was decided" in asked(stopped(project, transcript))


def quiet(project: Path) -> Transcript:
    """A session in which nothing went wrong."""
    transcript = Transcript(cwd=str(project)).say("Rename the function login")
    transcript.call("Bash", "ok", command="sed -i s/login/signin/ app.py")
    return transcript.reply("Renamed.")


def test_an_uneventful_session_ends_without_a_request(ws: Workspace, project: Path) -> None:
    assert stopped(project, quiet(project)) == {}


def test_every_session_is_asked_if_its_user_wants_that(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_CAPTURE_ASK", "always")
    assert "Before you stop:" in asked(stopped(project, quiet(project)))


def test_a_clone_cannot_have_every_session_asked(ws: Workspace, project: Path) -> None:
    config = ws.layout.loki / "config.toml"
    config.write_text(config.read_text() + '[capture]\nask = "always"\n')
    assert stopped(project, quiet(project)) == {}


@pytest.mark.parametrize(
    "command",
    [
        "loki-mem lesson 'a package is added' --do 'use pnpm'",
        "cd src && loki-mem remember 'we use pnpm'",
    ],
)
def test_an_agent_that_recorded_something_itself_is_not_asked(
    ws: Workspace, project: Path, command: str
) -> None:
    assert stopped(project, corrected(project).call("Bash", command=command)) == {}


def test_an_agent_that_used_a_tool_of_memory_is_not_asked(ws: Workspace, project: Path) -> None:
    transcript = corrected(project).call("mcp__loki__memory_lesson", when="x", do="y")
    assert stopped(project, transcript) == {}


def test_an_agent_that_only_read_about_lessons_is_asked(ws: Workspace, project: Path) -> None:
    transcript = corrected(project).reply("There is `loki-mem lesson` for that.")
    assert asked(stopped(project, transcript))


def test_a_stop_that_a_hook_continued_is_left_alone(ws: Workspace, project: Path) -> None:
    assert stopped(project, corrected(project), stop_hook_active=True) == {}


def test_nobody_is_asked_where_that_is_off(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws.sessions.pause(None)
    assert stopped(project, corrected(project)) == {}
    ws.sessions.resume()
    monkeypatch.setenv("LOKI_CAPTURE_ASK", "never")
    assert stopped(project, corrected(project)) == {}


@pytest.mark.skipif(sys.platform != "linux", reason="command lines are read from /proc")
def test_a_run_with_a_limit_of_turns_is_not_asked(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _client("-p", "--max-turns", "3") as client:
        monkeypatch.setenv("HOOK_PARENT", str(client.pid))
        assert stopped(project, corrected(project)) == {}
        client.kill()


def test_a_run_that_nobody_watches_is_not_asked_if_its_limits_are_unknown(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_PARENT", str(2**22 + 1))  # no such process
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
    assert stopped(project, corrected(project)) == {}


def test_a_run_that_nobody_watches_ends_with_its_answer(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
    assert "repeat your final answer" in asked(stopped(project, corrected(project)))


def test_codex_is_given_a_reason_to_go_on(ws: Workspace, project: Path) -> None:
    path = corrected(project).write(project.parent / "transcripts" / f"{SESSION}.jsonl")
    given = {"session_id": SESSION, "cwd": str(project), "transcript_path": str(path)}
    answer = json.loads(respond("Stop", json.dumps(given).encode(), {}).out)
    assert answer["decision"] == "block"
    assert CORRECTION in answer["reason"]


def test_of_two_hooks_for_one_stop_one_asks(ws: Workspace, project: Path) -> None:
    """The plugin and `install` together run every hook twice."""
    git(project, "init", "-q")
    path = corrected(project).write(project.parent / "transcripts" / f"{SESSION}.jsonl")
    given = {"session_id": SESSION, "cwd": str(project), "transcript_path": str(path)}
    program = [sys.executable, "-c", "from loki_memory.cli import program; program()"]
    hooks = [
        subprocess.Popen(
            [*program, "hook", "Stop"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=project
        )
        for _ in range(2)
    ]
    said = [hook.communicate(json.dumps(given).encode())[0] for hook in hooks]
    assert sum(b"Before you stop" in answer for answer in said) == 1


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (CORRECTION, True),
        ("don't touch the lock file", True),
        ("That's not what I asked for, revert it", True),
        ("I said the tests must run first", True),
        ("Please use tabs in Makefiles", True),
        ("no", False),
        ("no problem, go ahead", False),
        ("yes", False),
        ("Now add a logout function", False),
        ("commit and push", False),
    ],
)
def test_a_correction_is_told_from_an_order(prompt: str, expected: bool) -> None:
    assert is_correction(prompt) is expected
