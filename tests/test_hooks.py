"""Hooks: what a session is told, what is noted of it, and that a hook never fails it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from claude_lines import SESSION, Transcript, shop

from loki_memory import Workspace
from loki_memory.daemon.client import MOST_BYTES
from loki_memory.home.folder import append_line
from loki_memory.hooks.response import EVENTS, LIMIT, Response, fenced, respond
from loki_memory.ingest.run import ingest
from loki_memory.models.worded_lesson import lesson

BEGIN, END = "<loki-memory>\n", "\n</loki-memory>"
PROGRAM = [sys.executable, "-c", "from loki_memory.cli import program; program()", "hook"]
RULE = "Handlers of the router need an explicit return type"
TRANSCRIPT = "/transcripts/of/another/folder.jsonl"  # the harness keeps one
FIELDS = (
    "session_id",
    "transcript_path",
    "prompt",
    "source",
    "tool_name",
    "tool_input",
    "tool_response",
    "tool_use_id",
    "error",
    "agent_type",
    "teammate_name",
    "task_subject",
    "last_assistant_message",
    "worktree_path",
)
ERROR = "Exit code 2\nKeyError: 'SHOP_ENV'"


def fire(root: Path, name: str, environment: dict[str, str] | None = None, **fields: Any) -> str:
    """What the session is told, without the marks around it."""
    response = raw(root, name, environment or {}, **fields)
    assert response.err == ""
    if not response.out:
        return ""
    told = json.loads(response.out)["hookSpecificOutput"]
    assert told["hookEventName"] == name
    text: str = told["additionalContext"]
    assert text.startswith(BEGIN)
    assert text.endswith(END)
    assert len(text) <= LIMIT
    return text


def raw(
    root: Path, name: str, environment: dict[str, str], *, wait: bool = False, **fields: Any
) -> Response:
    given = {"session_id": SESSION, "cwd": str(root), "transcript_path": TRANSCRIPT, **fields}
    return respond(name, json.dumps(given).encode(), environment, wait=wait)


def run(name: str, data: bytes, folder: Path, **environment: str) -> tuple[int, str, str]:
    """A hook as a harness runs it."""
    done = subprocess.run(
        [*PROGRAM, name],
        input=data,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def logged(ws: Workspace) -> str:
    path = ws.layout.local / "hooks.log"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def episodes(project: Path) -> list[str]:
    return [one.context.goal for one in Workspace.open(project).list(kind="episode")]  # type: ignore[attr-defined]


# -- a session begins ------------------------------------------------------------------------------


def test_a_session_begins_with_what_matters_now(ws: Workspace, project: Path) -> None:
    ws.remember("Two migrations at once lock the table", kind="anti-pattern")
    told = fire(project, "SessionStart", source="startup")
    assert "Two migrations at once lock the table" in told
    assert "#" not in told
    assert "_None shown._" not in told
    assert "<!--" not in told


def test_a_lesson_says_what_to_do_once(ws: Workspace, project: Path) -> None:
    worded = lesson("the schema changes", "run make types")
    ws.remember(worded.text, worded.kind, details=worded.details)
    told = fire(project, "SessionStart", source="startup")
    assert told.count("run make types") == 1


def test_a_brief_has_ten_short_lines_at_most(ws: Workspace, project: Path) -> None:
    for number in range(30):
        ws.remember(f"Service {number} listens on port 80{number:02}", kind="fact")
    ws.remember("Always squash before a merge", kind="fact")
    told = fire(project, "SessionStart", source="startup").splitlines()[2:-1]
    assert 3 <= len(told) <= 10
    assert sum(map(len, told)) <= 4 * 400


@pytest.mark.parametrize("order", [1, -1])
def test_a_routine_and_the_rule_that_says_the_same_are_one_line(
    ws: Workspace, project: Path, order: int
) -> None:
    said = [
        "Before a commit, run `make lint` and `make test`.",
        "Always `make lint` before you commit",
    ]
    for text in said[::order]:
        ws.remember(text, kind="rule")
    ws.remember("Never commit without `make docs`", kind="rule")
    told = fire(project, "SessionStart", source="startup")
    assert said[0] in told
    assert said[1] not in told
    assert "make docs" in told


def test_a_brief_says_which_gate_failed_last(ws: Workspace, project: Path) -> None:
    began = (
        '<testsuite name="pytest" timestamp="2026-01-0{}T10:00:00"><testcase name="test_paging">'
    )
    broken = '<failure message="page 2 is empty"/>'
    ws.sessions.record_verdict(f"{began.format(1)}{broken}</testcase></testsuite>".encode())
    assert "pytest failed last: page 2 is empty" in fire(project, "SessionStart")
    ws.sessions.record_verdict(f"{began.format(2)}</testcase></testsuite>".encode())
    assert "pytest failed" not in fire(project, "SessionStart")


def test_what_a_brief_told_is_not_told_again_by_the_first_prompt(
    ws: Workspace, project: Path
) -> None:
    ws.remember(RULE, kind="pattern")
    assert RULE in fire(project, "SessionStart", source="startup")
    assert fire(project, "UserPromptSubmit", prompt=RULE) == ""


@pytest.mark.parametrize(
    "prompt",
    ["yes", "ok, go on", "commit and push", "/recall types", "A.", "please do", "1"],
)
def test_a_prompt_without_work_in_it_gets_no_hint(
    ws: Workspace, project: Path, prompt: str
) -> None:
    ws.remember("Yes is an answer: go on, commit, push, recall types", kind="pattern")
    assert fire(project, "UserPromptSubmit", prompt=prompt) == ""


def test_tokens_of_an_injection_are_those_of_the_whole_line(ws: Workspace, project: Path) -> None:
    ws.remember(RULE, kind="pattern")
    told = fire(project, "UserPromptSubmit", prompt=RULE).splitlines()[2]
    (injection,) = ws.browse.injections()
    assert injection.tokens == (len(told.encode()) + 3) // 4


def test_what_others_wrote_by_hand_is_taken_in_first(ws: Workspace, project: Path) -> None:
    ws.remember("Anything")
    view = ws.layout.memory / "semantic" / "anti-patterns.json"
    view.write_text('{"anti_patterns": [{"what_fails": "Deploying on Fridays"}]}')
    assert "Deploying on Fridays" in fire(project, "SessionStart", source="startup")
    assert "anti_patterns" in view.read_text()


def test_an_edit_by_hand_is_told_and_raises_no_alarm(ws: Workspace, project: Path) -> None:
    fact = ws.remember("Deploys of the payment service happen on Fridays")
    ws.continuity(goal="deploy the payment service")
    assert fact.id in fire(project, "SessionStart")
    path = ws.layout.memory / "semantic/facts" / f"{fact.id}.json"
    path.write_text(path.read_text().replace("Fridays", "Mondays"))
    told = raw(project, "SessionStart", {})
    assert "happen on Mondays" in told.out
    assert told.err == ""


def test_a_memory_that_knows_nothing_says_nothing(ws: Workspace, project: Path) -> None:
    assert fire(project, "SessionStart", source="startup") == ""
    assert fire(project, "UserPromptSubmit", prompt="Add an endpoint") == ""


def test_a_brief_leaves_continuity_and_all_of_memory_as_they_are(
    ws: Workspace, project: Path
) -> None:
    ws.remember(RULE, kind="pattern")
    ws.continuity(goal="Something else")
    ws.sync()
    before = content(ws.layout.loki)
    fire(project, "SessionStart", source="startup")
    fire(project, "UserPromptSubmit", prompt=f"{RULE}?")
    fire(project, "SessionStart", source="compact")
    assert content(ws.layout.loki) == before


def content(folder: Path) -> dict[str, bytes]:
    """The files of a workspace but for what is derived or this machine's own."""
    ours = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in ours
        if not {"cache", "local"} & set(path.relative_to(folder).parts)
    }


# -- a prompt --------------------------------------------------------------------------------------


def test_a_prompt_is_told_what_bears_on_it_in_a_few_lines(ws: Workspace, project: Path) -> None:
    for number in range(6):
        ws.remember(f"{RULE}, says linter {number}", kind="pattern")
    lines = fire(project, "UserPromptSubmit", prompt=RULE).splitlines()[2:-1]
    assert len(lines) == 3
    assert all(line.startswith("- [sem-") and RULE in line for line in lines)


def test_a_prompt_is_told_what_its_own_session_remembered_for_itself(
    ws: Workspace, project: Path
) -> None:
    own = ws.remember(RULE, kind="pattern", scope="session", session=SESSION)
    ws.remember(f"{RULE}, says another", kind="pattern", scope="session", session="another")
    (line,) = fire(project, "UserPromptSubmit", prompt=RULE).splitlines()[2:-1]
    assert line.startswith(f"- [{own.id}]")


def test_a_prompt_that_names_code_is_told_what_is_known_of_it(ws: Workspace, project: Path) -> None:
    said = "`load_cart` reads `cart_items`, `cart_prices`, `cart_taxes` and `cart_rebates` at once."
    statement = {"text": said, "type": "fact", "score": 0.9}
    for day in ("2026-03-01", "2026-03-02"):
        ws.record({"goal": f"Read on {day}", "timestamp": day, "statements": [statement]})
    fill(ws)
    ws.consolidate()
    told = fire(project, "UserPromptSubmit", prompt="Could you make load_cart faster, please?")
    assert "`load_cart` reads" in told
    assert fire(project, "UserPromptSubmit", prompt="Make it faster") == ""


def fill(ws: Workspace) -> None:
    """Remember as many other things as make a chance mean something."""
    for number in range(60):
        ws.remember(f"Order {number} of the shop was shipped to warehouse {number}", scope="local")


def test_a_prompt_that_quotes_an_error_is_told_what_mended_it(ws: Workspace, project: Path) -> None:
    learn(ws)
    fill(ws)
    prompt = "CI is red since this morning, see for yourself:\n\nKeyError: 'SHOP_ENV'"
    assert "Set SHOP_ENV=test" in fire(project, "UserPromptSubmit", prompt=prompt)
    assert fire(project, "UserPromptSubmit", prompt="CI is red since this morning") == ""


def test_a_prompt_that_names_the_code_of_an_error_is_told_its_lesson(
    ws: Workspace, project: Path
) -> None:
    met = {
        "message": "src/login.ts(1,17): error TS7030: Not all code paths return a value.",
        "resolution": "Return a value, or undefined, at the end of every function",
    }
    ws.record({"goal": "Fix the login", "errors_encountered": [met]})
    fill(ws)
    told = fire(project, "UserPromptSubmit", prompt="TS7030 came again in logout, fix it")
    assert "at the end of every function" in told
    assert fire(project, "UserPromptSubmit", prompt="TS7031 came again in logout, fix it") == ""


def test_among_few_memories_a_prompt_is_told_those_that_share_a_word_with_it(
    ws: Workspace, project: Path
) -> None:
    ws.remember("Sessions are kept in cookies, not in localStorage", category="decision")
    ws.remember("Run npm test before every commit", category="rule")
    told = fire(project, "UserPromptSubmit", prompt="Where do we keep login sessions?")
    assert "cookies" in told
    assert "npm test" not in told


def test_a_prompt_of_few_words_is_told_what_somebody_worded_about_it(
    ws: Workspace, project: Path
) -> None:
    ws.remember("The tests of the shop run only if the database is up")
    fill(ws)
    assert "is up" in fire(project, "UserPromptSubmit", prompt="run the tests")
    assert fire(project, "UserPromptSubmit", prompt="paint the fence green") == ""


def test_few_memories_of_the_user_do_not_make_those_of_the_project_likely(
    ws: Workspace, project: Path
) -> None:
    fill(ws)
    ws.remember("Clerks of a warehouse like tea", scope="user")
    ws.remember("Coffee for the office is ordered from a shop in Lisbon")
    prompt = "Clerks say coffee of the office from Lisbon was not ordered, is that so?"
    assert "shipped" not in fire(project, "UserPromptSubmit", prompt=prompt)


def test_a_prompt_that_nothing_bears_on_is_told_nothing(ws: Workspace, project: Path) -> None:
    ws.remember(RULE, kind="pattern")
    assert fire(project, "UserPromptSubmit", prompt="What is the weather in Lisbon?") == ""
    assert fire(project, "UserPromptSubmit", prompt="") == ""


def test_a_prompt_is_told_what_was_written_by_hand_a_moment_ago(
    ws: Workspace, project: Path
) -> None:
    fact = ws.remember(RULE)
    fire(project, "UserPromptSubmit", prompt="anything at all")
    path = ws.layout.memory / "semantic/facts" / f"{fact.id}.json"
    path.write_text(path.read_text().replace("explicit return type", "explicit type of return"))
    (path.parent / "new.json").write_text('{"statement": "Handlers of the router are pure"}')
    told = fire(project, "UserPromptSubmit", prompt="how should a handler of the router look?")
    assert "explicit type of return" in told
    assert "Handlers of the router are pure" in told


def test_a_session_is_told_a_thing_once_until_it_loses_its_context(
    ws: Workspace, project: Path
) -> None:
    ws.remember(RULE, kind="pattern")
    assert RULE in fire(project, "UserPromptSubmit", prompt=RULE)
    assert fire(project, "UserPromptSubmit", prompt=RULE) == ""
    assert RULE in fire(project, "UserPromptSubmit", prompt=RULE, session_id="another")
    assert RULE in fire(project, "SessionStart", source="compact")
    assert fire(project, "UserPromptSubmit", prompt=RULE) == ""


def test_what_is_private_in_a_prompt_is_not_looked_for_nor_journaled(
    ws: Workspace, project: Path
) -> None:
    ws.remember(RULE, kind="pattern")
    prompt = f"{RULE} <private>for the merger with Globex</private>"
    assert RULE in fire(project, "UserPromptSubmit", prompt=prompt)
    journal = (ws.layout.local / "journal" / "shown.jsonl").read_text()
    assert RULE in journal
    assert "Globex" not in journal


def test_what_third_parties_said_is_never_told_unasked(ws: Workspace, project: Path) -> None:
    with Workspace.open(project, origin="external") as outside:
        outside.remember(RULE, kind="pattern")
        learn(outside)
    assert ws.recall(RULE)
    assert ws.recall(ERROR, kinds=["anti-pattern"])
    assert fire(project, "SessionStart", source="startup") == ""
    assert fire(project, "UserPromptSubmit", prompt=RULE) == ""
    assert fail(project) == ""


def test_the_journal_knows_which_session_was_told_what(ws: Workspace, project: Path) -> None:
    stored = ws.remember(RULE, kind="pattern")
    fire(project, "UserPromptSubmit", prompt=RULE)
    told = ws.browse.injections(SESSION[:8])
    assert [(one.occasion, one.session, one.why) for one in told] == [
        ("hook:UserPromptSubmit", SESSION, RULE)
    ]
    assert [one.id for one in told[0].memories] == [stored.id]


# -- a tool ----------------------------------------------------------------------------------------


def learn(ws: Workspace) -> None:
    """Two sessions met the error and found out what helps."""
    for session in ("one", "two"):
        met = {"type": "pytest tests", "message": ERROR, "resolution": "Set SHOP_ENV=test"}
        ws.record(
            {
                "goal": f"Fix the cart, {session}",
                "outcome": "success",
                "session": session,
                "errors_encountered": [met],
            }
        )


def fail(project: Path, **fields: Any) -> str:
    given = {"tool_name": "Bash", "tool_input": {"command": "pytest tests"}, "error": ERROR}
    return fire(project, "PostToolUseFailure", **{**given, **fields})


def test_an_error_that_was_met_before_brings_what_helped(ws: Workspace, project: Path) -> None:
    learn(ws)
    told = fail(project)
    assert "SHOP_ENV" in told
    assert "Set SHOP_ENV=test" in told
    assert ws.browse.injections()[-1].occasion == "hook:PostToolUseFailure"


def test_of_two_commands_that_met_an_error_the_one_at_hand_is_told_of(
    ws: Workspace, project: Path
) -> None:
    for command, helped in (("pytest tests", "Set SHOP_ENV=test"), ("make run", "Source .env")):
        for session in ("one", "two"):
            met = {"type": command, "message": ERROR, "resolution": helped}
            done = {"t": 0, "action": "Bash", "target": command, "error": "KeyError: 'SHOP_ENV'"}
            task = {"goal": f"{command} {session}", "outcome": "success", "session": session}
            ws.record({**task, "action_log": [done], "errors_encountered": [met]})
    told = fail(project, tool_input={"command": "make run"})
    assert "Source .env" in told
    assert "SHOP_ENV=test" not in told


def test_an_error_that_nobody_knows_brings_nothing(ws: Workspace, project: Path) -> None:
    learn(ws)
    assert fail(project, error="TypeError: 'NoneType' object is not callable") == ""
    assert fail(project, error="") == ""


def test_a_call_that_a_person_stopped_brings_nothing(ws: Workspace, project: Path) -> None:
    learn(ws)
    assert fail(project, is_interrupt=True) == ""


def test_a_warning_without_a_remedy_is_no_lesson(ws: Workspace, project: Path) -> None:
    ws.remember("KeyError: 'SHOP_ENV'", kind="anti-pattern")
    assert fail(project) == ""


def test_what_the_transcript_tells_is_not_noted(ws: Workspace, project: Path) -> None:
    fire(project, "UserPromptSubmit", prompt="Fix the cart")
    fire(project, "PostToolUse", tool_name="Bash", tool_input={"command": "ls"})
    fail(project)
    assert ws.sessions.staged() == []


# -- a session without a transcript ----------------------------------------------------------------


def work_without_transcript(project: Path) -> None:
    bare = {"transcript_path": None}
    fire(project, "UserPromptSubmit", prompt="Fix the total of the cart", **bare)
    fail(project, tool_use_id="call-1", **bare)
    fire(
        project,
        "PostToolUse",
        tool_name="Bash",
        tool_input={"command": "SHOP_ENV=test pytest tests"},
        tool_response={"stdout": "5 passed", "stderr": ""},
        tool_use_id="call-2",
        **bare,
    )
    raw(project, "SessionEnd", {}, wait=True, **bare)


def test_a_session_without_a_transcript_is_told_from_what_hooks_noted(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_NOW", "2026-03-02T09:00:00Z")
    work_without_transcript(project)
    assert episodes(project) == []
    assert ws.ingest().episodes == 1
    (episode,) = ws.list(kind="episode")
    assert episode.title() == "Fix the total of the cart"
    document = episode.document()
    assert [one["action"] for one in document["action_log"]] == ["Bash", "Bash"]
    assert [one["message"] for one in document["errors_encountered"]] == [ERROR]
    assert document["session"] == SESSION
    assert ws.ingest().episodes == 0


def test_where_a_transcript_turns_up_it_is_told_and_the_notes_are_not(
    ws: Workspace, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_NOW", "2026-03-02T09:00:00Z")
    work_without_transcript(project)
    path = shop().write(tmp_path / "session.jsonl")
    ws.ingest([path])
    told = [one.document() for one in ws.list(kind="episode")]
    with Workspace.init(tmp_path / "alone") as alone:
        alone.ingest([path])
        expected = [one.document() for one in alone.list(kind="episode")]
    assert told == expected


# -- a session rests and ends ----------------------------------------------------------------------


@pytest.fixture
def transcript(project: Path, tmp_path: Path) -> Path:
    told = shop()
    for line in told.lines:
        line["cwd"] = str(project)
    return told.write(tmp_path / "session.jsonl")


def test_when_the_agent_rests_what_it_did_is_read_and_not_told_yet(
    ws: Workspace, project: Path, transcript: Path
) -> None:
    fire(project, "Stop", transcript_path=str(transcript))
    assert [one.what for one in ws.sessions.staged()] == [SESSION]
    assert episodes(project) == []
    transcript.unlink()
    assert ws.ingest().episodes == 2  # months later: it rests


def test_a_session_that_ended_is_told_by_a_process_of_its_own(
    ws: Workspace, project: Path, transcript: Path
) -> None:
    given = {"session_id": SESSION, "cwd": str(project), "transcript_path": str(transcript)}
    assert run("SessionEnd", json.dumps(given).encode(), project) == (0, "", "")
    wait_for(lambda: "recorded as 2 new episodes" in logged(ws))
    assert sorted(episodes(project)) == [
        "Fix the total of the cart",
        "Thanks! Now document the cart in README.md",
    ]


def wait_for(condition: Callable[[], bool], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def test_a_session_that_began_elsewhere_is_not_taken(
    ws: Workspace, project: Path, tmp_path: Path
) -> None:
    path = shop().write(tmp_path / "session.jsonl")  # in /home/ana/shop
    fire(project, "Stop", transcript_path=str(path))
    raw(project, "SessionEnd", {}, wait=True, transcript_path=str(path))
    assert ws.sessions.staged() == []
    assert episodes(project) == []
    assert "it did not begin in this repository" in logged(ws)


def test_what_was_told_of_a_session_that_goes_on_is_left_to_somebody_who_asks(
    ws: Workspace, project: Path, tmp_path: Path
) -> None:
    """Work in the background changes no file that git may track."""
    ws.home.set_config("capture.scope", "project")
    told = Transcript(cwd=str(project)).say("Fix the cart").call("Bash", "ok", command="make")
    path = told.write(tmp_path / "session.jsonl")
    raw(project, "SessionEnd", {}, wait=True, transcript_path=str(path))
    before = content(ws.layout.memory / "episodic")
    told.call("Bash", "ok", command="make install").write(path)
    raw(project, "SessionEnd", {}, wait=True, transcript_path=str(path))
    assert content(ws.layout.memory / "episodic") == before
    assert ingest(ws, [path]).changed == 1


def test_a_session_that_is_resumed_or_compacted_is_told_of_what_it_was_asked(
    ws: Workspace, project: Path, transcript: Path
) -> None:
    ws.remember("The cart is documented in README.md", kind="pattern")
    fire(project, "PreCompact", transcript_path=str(transcript), trigger="auto")
    for source in ("resume", "compact"):
        told = fire(project, "SessionStart", transcript_path=str(transcript), source=source)
        assert "The cart is documented in README.md" in told


def test_a_session_that_goes_on_is_told_only_what_is_new(ws: Workspace, project: Path) -> None:
    """A client that resumes a session still has what it was told; a compaction loses it."""
    ws.remember("The cart is documented in README.md", kind="pattern")
    assert "cart" in fire(project, "SessionStart", source="startup")
    ws.remember("Orders are kept for ten years", kind="pattern")
    told = fire(project, "SessionStart", source="resume")
    assert "Orders" in told
    assert "cart" not in told
    assert fire(project, "SessionStart", source="resume") == ""
    assert "cart" in fire(project, "SessionStart", source="compact")


def test_what_did_not_help_is_not_told_again_on_this_machine(ws: Workspace, project: Path) -> None:
    known = ws.remember("Two migrations at once lock the table", kind="anti-pattern")
    assert known.id in fire(project, "SessionStart", source="startup")
    ws.feedback(known.id, helpful=False)
    assert fire(project, "SessionStart", source="startup") == ""
    assert [hit.id for hit in ws.recall("why is the table locked by migrations")] == [known.id]
    ws.feedback(known.id, helpful=True)
    assert known.id in fire(project, "SessionStart", source="startup")


def test_a_session_that_was_compacted_is_told_of_the_files_it_works_on(
    ws: Workspace, project: Path, tmp_path: Path
) -> None:
    said = "`load_cart` reads `cart_items`, `cart_prices`, `cart_taxes` and `cart_rebates` at once."
    statement = {"text": said, "type": "fact", "score": 0.9}
    work = {"files_modified": ["shop/cart.py"], "statements": [statement]}
    for day in ("2026-03-01", "2026-03-02"):
        ws.record({"goal": f"Read on {day}", "timestamp": day, **work})
    ws.consolidate()
    file = str(project / "shop/cart.py")
    told = Transcript(cwd=str(project)).say("Go on").call("Read", "text", file_path=file)
    path = str(told.write(tmp_path / "session.jsonl"))
    assert "load_cart" not in fire(project, "SessionStart", transcript_path=path, source="compact")
    fire(project, "PreCompact", transcript_path=path, trigger="auto")
    assert "load_cart" in fire(project, "SessionStart", transcript_path=path, source="compact")


def test_a_session_that_ended_without_a_word_is_recorded_by_the_next(
    ws: Workspace, project: Path, tmp_path: Path
) -> None:
    told = Transcript(cwd=str(project)).say("Fix the cart").call("Bash", "ok", command="make")
    told.write(tmp_path / f"{SESSION}.jsonl")
    now = {"transcript_path": str(tmp_path / "now.jsonl"), "session_id": "now"}
    raw(project, "SessionStart", {}, wait=True, **now)
    assert episodes(project) == ["Fix the cart"]
    assert "1 new episode of earlier sessions" in logged(ws)
    before = logged(ws)
    raw(project, "SessionStart", {}, wait=True, **now)
    assert logged(ws) == before


def test_errors_of_subagents_are_recorded_with_the_session(
    ws: Workspace, project: Path, tmp_path: Path
) -> None:
    told = Transcript(cwd=str(project)).say("Have the tests made green").reply("All done.")
    path = told.write(tmp_path / "s1.jsonl")
    work = Transcript(cwd=str(project)).say("Make the tests green")
    work.call("Bash", "KeyError: 'SHOP_ENV'", failed=True, command="pytest -q")
    for number, line in enumerate(work.lines):
        line |= {"isSidechain": True, "uuid": f"sub-{number}"}
    (tmp_path / "s1" / "subagents").mkdir(parents=True)
    work.write(tmp_path / "s1" / "subagents" / "agent-a1.jsonl")
    raw(project, "SessionEnd", {}, wait=True, transcript_path=str(path))
    (episode,) = ws.list(kind="episode")
    assert "SHOP_ENV" in episode.model_dump_json()


# -- never in the way ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVENTS)
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nonsense",
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        b'{"cwd": 7, "session_id": [], "prompt": {}, "tool_input": 1, "error": null}',
        b'{"cwd": "/no/such/folder", "prompt": "x"}',
        b'{"cwd": "a\\u0000b", "prompt": "x"}',
        b'{"cwd": "\\ud800", "prompt": "x"}',
        b"[" * 100_000,
    ],
    ids=range(10),
)
def test_what_is_no_event_of_a_workspace_is_passed_over(
    name: str, data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert respond(name, data, {}) == Response()


@pytest.mark.parametrize("name", EVENTS)
def test_fields_that_are_not_what_they_should_be_count_as_absent(
    name: str, ws: Workspace, project: Path
) -> None:
    ws.remember(RULE)
    for value in ([], {}, 7, True, ["x"], {"a": {"b": 1}}):
        assert raw(project, name, {}, **dict.fromkeys(FIELDS, value)).err == ""


def test_a_process_ends_well_whatever_it_is_given(ws: Workspace, project: Path) -> None:
    ws.remember(RULE, kind="pattern")
    assert run("UserPromptSubmit", b"\x00{", project) == (0, "", "")
    huge = json.dumps({"cwd": str(project), "prompt": RULE + "x" * MOST_BYTES}).encode()
    assert run("UserPromptSubmit", huge, project) == (0, "", "")
    code, out, err = run("UserPromptSubmit", json.dumps({"prompt": RULE}).encode(), project)
    assert (code, err) == (0, "")
    assert RULE in out
    told = "loki-mem: 'Nonsense' is no event that memory answers\n"
    assert run("Nonsense", b"{}", project) == (0, "", told)


def test_settings_of_an_older_version_get_no_answer_after_a_compaction(
    ws: Workspace, project: Path
) -> None:
    """Clients show an answer as an error of fifty lines."""
    ws.remember(RULE, kind="pattern")
    given = {"cwd": str(project), "session_id": SESSION, "trigger": "auto"}
    assert run("PostCompact", json.dumps(given).encode(), project) == (0, "", "")


def test_a_prompt_of_many_pages_is_answered(ws: Workspace, project: Path) -> None:
    ws.remember(RULE, kind="pattern")
    assert RULE in fire(project, "UserPromptSubmit", prompt=f"{RULE}\n" + "pasted " * 100_000)


@pytest.mark.parametrize("name", EVENTS)
@pytest.mark.parametrize("off", ["setting", "malformed", "pause"])
def test_where_memory_is_off_nothing_is_said_or_noted(
    name: str, off: str, ws: Workspace, project: Path, transcript: Path
) -> None:
    learn(ws)
    if off == "pause":
        ws.sessions.pause()
    else:
        value = "false" if off == "setting" else "perhaps"
        config = ws.layout.loki / "config.toml"
        config.write_text(f'format = 1\n[memory]\nenabled = "{value}"\n')
    before = sorted(path for path in ws.layout.local.rglob("*"))
    for path in (str(transcript), None):
        response = raw(
            project,
            name,
            {},
            transcript_path=path,
            source="startup",
            prompt="Fix the cart: KeyError: 'SHOP_ENV'",
            tool_name="Bash",
            error=ERROR,
            agent_type="qa-001",
            teammate_name="qa-001",
            task_subject="Test it",
            last_assistant_message="Done",
        )
        assert response == Response()
    assert sorted(path for path in ws.layout.local.rglob("*")) == before


def test_what_a_hook_started_has_no_hooks(ws: Workspace, project: Path) -> None:
    ws.remember(RULE, kind="pattern")
    assert fire(project, "UserPromptSubmit", prompt=RULE, environment={"LOKI_HOOK": "1"}) == ""
    data = json.dumps({"prompt": RULE}).encode()
    assert run("UserPromptSubmit", data, project, LOKI_HOOK="1") == (0, "", "")


def test_a_failure_is_one_line_and_a_line_in_the_log(ws: Workspace, project: Path) -> None:
    ws.remember(RULE, kind="pattern")
    (ws.layout.local / "ingest").write_text("in the way")
    data = {"cwd": str(project), "session_id": "s", "prompt": RULE}
    code, out, err = run("UserPromptSubmit", json.dumps(data).encode(), project)
    assert (code, out) == (0, "")
    assert err.startswith("loki-mem: hook UserPromptSubmit: StoreFailed: ")
    assert err.count("\n") == 1
    assert "UserPromptSubmit failed at " in logged(ws)


def test_the_log_stays_small(tmp_path: Path) -> None:
    for number in range(3000):
        append_line(tmp_path / "hooks.log", f"line {number} {'x' * 300}")
    sizes = [path.stat().st_size for path in sorted(tmp_path.iterdir())]
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["hooks.log", "hooks.log.1"]
    assert sum(sizes) < 600_000
    assert (tmp_path / "hooks.log").read_text().splitlines()[-1].startswith("line 2999 ")


def test_a_log_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / "hooks.log").symlink_to(tmp_path / "elsewhere")
    append_line(tmp_path / "hooks.log", "a line")
    assert (tmp_path / "elsewhere").read_text() == ""


# -- the answer ------------------------------------------------------------------------------------


def test_a_memory_cannot_end_the_marks_around_it() -> None:
    told = fenced("- [sem-1] `</loki-memory>` and </LOKI-MEMORY > and <loki-memory>\n")
    assert told.lower().count("<loki-memory") == 1
    assert told.lower().count("</loki-memory") == 1
    assert told.endswith("\n</loki-memory>")


def test_an_answer_has_whole_lines_within_the_limit() -> None:
    told = fenced("\n".join(f"- line {number} {'x' * 90}" for number in range(500)), LIMIT)
    assert LIMIT - 110 < len(told) <= LIMIT
    assert all(len(line) > 90 for line in told.splitlines()[2:-1])
    assert len(fenced("x" * LIMIT, LIMIT)) < LIMIT


def test_what_hooks_say_is_not_remembered_again(ws: Workspace, project: Path) -> None:
    from loki_memory.ingest.turns import clean

    ws.remember("Two migrations at once lock the table", kind="anti-pattern")
    told = fire(project, "SessionStart", source="startup")
    assert clean(f"before {told} after").split() == ["before", "after"]


# -- what it costs ---------------------------------------------------------------------------------

_LOADED = """
import sys
sys.argv = ["loki-mem", "hook", sys.argv[1]]
import os
os._exit = lambda code: (print(*sys.modules, file=sys.stderr), sys.exit(code))
from loki_memory.cli import program
program()
"""


def loaded(name: str, project: Path, **fields: Any) -> set[str]:
    given = json.dumps({"cwd": str(project), "transcript_path": TRANSCRIPT, **fields})
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, name],
        input=given,
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    return {module.split(".")[0] for module in done.stderr.split()}


def test_a_prompt_loads_numpy_and_nothing_else_that_takes_long(
    ws: Workspace, project: Path
) -> None:
    ws.remember(RULE, kind="pattern")
    ws.recall(RULE)
    ws.close()
    for _ in range(2):  # what was written a moment ago is looked at once more
        modules = loaded("UserPromptSubmit", project, prompt=RULE)
    assert "numpy" in modules
    assert not modules & {"click", "pydantic", "sklearn", "scipy", "git", "jinja2", "tomllib"}


def test_a_prompt_that_shares_few_words_with_every_lesson_loads_no_numpy(
    ws: Workspace, project: Path
) -> None:
    for number in range(10):  # among fewer, one word is enough
        ws.remember(f"{RULE} ({number})", kind="pattern")
    ws.recall(RULE)
    ws.close()
    for _ in range(2):
        modules = loaded("UserPromptSubmit", project, prompt="Repair the broken timezone picker")
    assert not modules & {"numpy", "click", "pydantic", "orjson", "git", "jinja2", "tomllib"}


def test_a_session_that_begins_loads_neither_models_nor_numpy(ws: Workspace, project: Path) -> None:
    ws.remember(RULE, kind="pattern")
    ws.close()
    for _ in range(3):  # views that were rendered a moment ago are read once more
        modules = loaded("SessionStart", project, source="startup", transcript_path="/none/s.jsonl")
    assert not modules & {"numpy", "click", "pydantic", "sklearn", "git", "jinja2", "tomllib"}


def test_a_tool_that_worked_loads_next_to_nothing(ws: Workspace, project: Path) -> None:
    modules = loaded("PostToolUse", project, tool_name="Bash", session_id="s")
    assert not modules & {"numpy", "click", "pydantic", "orjson", "git", "jinja2"}
