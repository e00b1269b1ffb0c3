"""The gate: one test for each rule about what an agent is told unasked.

`tests/test_index_gate.py` tries the rules that stand in SQL on every kind of record.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_hooks import fire
from test_injection_before_tool import refused

from loki_memory import Workspace
from loki_memory.injection.gate import Gate, is_about_rule
from loki_memory.integrity.citations import blob_id
from loki_memory.recall.result import Recollection

TOPIC = "the payment service"
PROMPT = f"Please deploy {TOPIC} to staging and watch the log"
RULE = f"Deploys of {TOPIC} need the staging token in `STAGING_TOKEN`"
GOTCHA = f"The staging deploy of {TOPIC} must run `make migrate` before `make deploy`."
FAILED = "Exit code 2\nunknown flag: --stat"
COMMAND = "gh pr diff 7 --stat"


def prompted(project: Path, prompt: str = PROMPT, session: str = "s") -> str:
    return fire(project, "UserPromptSubmit", prompt=prompt, session_id=session)


def started(project: Path) -> str:
    return fire(project, "SessionStart", session_id="start")


def everywhere(project: Path) -> str:
    """What is told by the start of a session, a prompt, a file that is about to be edited, each in
    a session of its own, and by CONTINUITY.md, with a goal and without.
    """
    given = {"tool_name": "Edit", "tool_input": {"file_path": str(project / "payment_service.py")}}
    return (
        started(project)
        + prompted(project, session="a")
        + fire(project, "PreToolUse", session_id="b", **given)
        + Workspace.open(project).browse.continuity_block(PROMPT)
        + Workspace.open(project).browse.continuity_block("")
    )


def write(project: Path, folder: str, **fields: Any) -> None:
    """A file as an agent without an API writes it."""
    path = project / ".loki/memory" / folder / "by-hand.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"origin": "agent", **fields}), encoding="utf-8")


def state(ws: Workspace, *sessions: str, text: str = GOTCHA, **fields: Any) -> None:
    """Episodes of these sessions in which the agent said something."""
    statement = {"text": text, "type": "fact", "score": 0.45, **fields}
    for day, session in enumerate(sessions, 1):
        ws.record(
            {
                "goal": f"Task {day}",
                "session": session,
                "timestamp": f"2026-01-{day:02}T10:00:00Z",
                "outcome": "success",
                "statements": [statement],
            }
        )
    ws.consolidate()


def test_what_was_worded_on_purpose_is_told(ws: Workspace, project: Path) -> None:
    ws.remember(RULE)
    assert RULE in started(project)
    assert RULE in prompted(project)


def test_what_two_sessions_taught_is_told_if_it_has_an_actionable_remedy(
    ws: Workspace, project: Path
) -> None:
    fixed = "gh pr diff 7 --name-only"
    ws.record([refused("s1", 1, COMMAND, FAILED, fixed)])
    ws.consolidate()
    assert "--stat" not in started(project), "one session"
    ws.record([refused("s2", 2, COMMAND, FAILED, fixed)])
    ws.consolidate()
    assert fixed in started(project)


def test_what_nobody_knows_a_remedy_for_is_not_told(ws: Workspace, project: Path) -> None:
    for number in (1, 2, 3):
        log = [{"t": 0, "action": "Bash", "target": COMMAND, "error": FAILED}]
        episode = {"goal": f"Task {number}", "session": f"s{number}", "action_log": log}
        ws.record({**episode, "timestamp": f"2026-01-0{number}T10:00:00Z", "outcome": "failure"})
    ws.consolidate()
    assert "--stat" not in started(project)


@pytest.mark.parametrize("status", ["candidate", "superseded", "rejected", "retired", "resolved"])
def test_only_active_beliefs_are_told(ws: Workspace, project: Path, status: str) -> None:
    key = {"statement": RULE}
    write(project, "semantic/facts", statement=RULE, status=status, key=key)
    assert "STAGING_TOKEN" not in everywhere(project)


@pytest.mark.parametrize("origin", ["import", "external"])
def test_only_trusted_origins_are_told(ws: Workspace, project: Path, origin: str) -> None:
    write(project, "semantic/facts", statement=RULE, origin=origin)
    assert "STAGING_TOKEN" not in everywhere(project)


def test_what_did_not_help_here_is_not_told_again(ws: Workspace, project: Path) -> None:
    rule = ws.remember(RULE)
    ws.feedback(rule.id, helpful=False)
    assert "STAGING_TOKEN" not in everywhere(project)


def test_what_a_person_stands_for_cannot_be_silenced(ws: Workspace, project: Path) -> None:
    rule = Workspace.open(project, origin="owner").remember(RULE)
    ws.feedback(rule.id, helpful=False)
    assert "STAGING_TOKEN" in started(project)


def test_only_a_trusted_workspace_is_told(ws: Workspace, project: Path) -> None:
    ws.remember(RULE)
    ws.home.note_trust(is_trusted=False)
    assert "STAGING_TOKEN" not in everywhere(project)


def test_an_untrusted_workspace_is_silent_and_says_why(ws: Workspace, project: Path) -> None:
    """Not even what the user's own memory says, which nobody has to trust."""
    ws.remember(RULE, scope="user")
    assert "STAGING_TOKEN" in everywhere(project)
    ws.home.note_trust(is_trusted=False)
    assert "STAGING_TOKEN" not in everywhere(project)
    ws.context(PROMPT)
    assert [notice for notice in ws.notices if "is not trusted" in notice]


def test_a_session_changes_no_file_of_a_clone_that_nobody_trusts(
    ws: Workspace, project: Path
) -> None:
    view = project / ".loki/memory/semantic/patterns.json"
    view.parent.mkdir(parents=True, exist_ok=True)
    view.write_text('{"patterns": [{"id": "sem-1", "pattern": "Tests run in the sandbox"}]}\n')
    ws.home.note_trust(is_trusted=False)
    came = {path: path.read_bytes() for path in view.parent.rglob("*") if path.is_file()}
    started(project)
    assert came == {path: path.read_bytes() for path in view.parent.rglob("*") if path.is_file()}


def test_nothing_is_told_where_memory_is_turned_off(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws.remember(RULE)
    monkeypatch.setenv("LOKI_MEMORY_ENABLED", "false")
    assert "STAGING_TOKEN" not in everywhere(project)
    assert prompted(project) + started(project) == ""


def test_nothing_is_told_about_the_clients_own_tools(ws: Workspace, project: Path) -> None:
    fails = f"String to replace not found in {TOPIC} (running Edit)"
    write(project, "semantic/anti-patterns", what_fails=fails, prevention="Read the file first")
    assert "String to replace" not in everywhere(project)


def test_nothing_is_told_twice_in_a_session(ws: Workspace, project: Path) -> None:
    ws.remember(RULE)
    assert RULE in prompted(project)
    assert prompted(project) == ""
    assert RULE in prompted(project, session="another")


def test_the_first_prompt_does_not_repeat_what_the_start_told(ws: Workspace, project: Path) -> None:
    ws.remember(RULE)
    assert RULE in started(project)
    assert prompted(project, session="start") == ""


def test_only_what_is_near_enough_is_told(ws: Workspace) -> None:
    said = ws.remember(RULE)
    ws.sync()
    hits = [Recollection(said.id, "fact", RULE, score=score) for score in (0.1, 0.2)]
    assert [hit.score for hit, _ in Gate(ws, least=0.15).passed(hits)] == [0.2]


def test_an_extracted_sentence_is_told_from_two_sessions_on(ws: Workspace, project: Path) -> None:
    state(ws, "s1")
    assert "make migrate" not in everywhere(project)
    state(ws, "s1", "s2")
    assert "make migrate" in prompted(project)


def test_an_extracted_sentence_of_a_high_score_is_told_from_one(
    ws: Workspace, project: Path
) -> None:
    state(ws, "s1", score=0.6)
    assert "make migrate" in prompted(project)


def test_a_preference_is_told_from_two_sessions_on(ws: Workspace, project: Path) -> None:
    wish = f"Please use the staging token for {TOPIC}"
    state(ws, "s1", text=wish, type="preference", score=0.9)
    assert "staging token" not in everywhere(project)
    state(ws, "s1", "s2", text=wish, type="preference", score=0.9)
    assert "staging token" in prompted(project)


def test_a_preference_that_holds_everywhere_is_told_from_one(ws: Workspace, project: Path) -> None:
    wish = f"Always use the staging token for {TOPIC}"
    state(ws, "s1", text=wish, type="preference", score=0.9)
    assert "staging token" in prompted(project)


def test_an_extracted_sentence_must_read_as_a_lesson(ws: Workspace, project: Path) -> None:
    report = f"Added a call of `migrate()` to {TOPIC} before the deploy."
    write(project, "semantic/facts", statement=report, status="active", key={"statement": report})
    assert "migrate()" not in everywhere(project)


def test_at_an_error_of_the_same_class_one_session_suffices(ws: Workspace, project: Path) -> None:
    fixed = "gh pr diff 7 --name-only"
    ws.record([refused("s1", 1, COMMAND, FAILED, fixed)])
    ws.consolidate()
    given = {"tool_name": "Bash", "tool_input": {"command": COMMAND}}
    assert "--stat" not in started(project)
    assert fixed in fire(project, "PostToolUseFailure", error=FAILED, **given)


def test_a_belief_that_cites_changed_code_is_withheld(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = project / "payment_service.py"
    code.write_text("def deploy(): ...\n", encoding="utf-8")
    cited = {"path": code.name, "blob": blob_id(code.read_bytes())}
    write(project, "semantic/facts", statement=RULE, citations=[cited])
    assert RULE in everywhere(project)
    code.write_text("def ship(): ...\n", encoding="utf-8")
    assert RULE not in everywhere(project)
    monkeypatch.setenv("LOKI_MEMORY_STALE", "true")
    assert RULE in everywhere(project)


def test_a_statement_of_how_things_stand_expires(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending = f"The migration of {TOPIC} is waiting for a review by the database team"
    write(project, "semantic/facts", statement=pending, valid_from="2026-01-01")
    monkeypatch.setenv("LOKI_NOW", "2026-01-03T10:00:00Z")
    assert "waiting for" in prompted(project, session="soon")
    monkeypatch.setenv("LOKI_NOW", "2026-02-03T10:00:00Z")
    assert "waiting for" not in everywhere(project)


def test_a_raw_prompt_is_never_told(ws: Workspace, project: Path) -> None:
    error = {"type": "make deploy", "message": "no token", "resolution": "set it"}
    said = {"goal": f"AHHH yes deploy {TOPIC}", "captured": True, "errors_encountered": [error]}
    ws.record({**said, "outcome": "success"})
    assert "AHHH" not in everywhere(project)


def test_an_episode_without_a_finding_is_never_told(ws: Workspace, project: Path) -> None:
    ws.record({"goal": f"Deploy {TOPIC} to staging", "outcome": "success"})
    assert "[ep-" not in everywhere(project)


def test_what_somebody_worded_needs_one_word_of_a_prompt_and_a_likely_one(
    ws: Workspace, project: Path
) -> None:
    rules = (
        "Emails are sent by the worker queue, not inside the request",
        "Integration tests need docker compose up before they run",
        "Prices are stored in cents as integers",
        "Feature flags live in config/flags.yaml and are read at start",
    )
    for number in range(12):
        ws.remember(f"Shelf {number} of the warehouse holds parcels for route {number}")
    for rule in rules:
        ws.remember(rule)
    told = prompted(project, "Send a welcome email when somebody signs up", "a")
    assert told.splitlines()[2:-1] == [f"- [{ws.remember(rules[0]).id}] {rules[0]}"]
    assert prompted(project, "Rename the invoices page", "b") == ""


def test_a_sentence_of_sessions_waits_for_a_prompt_that_names_its_code(
    ws: Workspace, project: Path
) -> None:
    for number in range(60):
        ws.remember(f"Shelf {number} of the warehouse holds parcels for route {number}")
    said = "`refund_numbers` are taken from the ledger of invoices, never from the shop."
    state(ws, "s1", "s2", text=said, type="fact", score=0.9)
    assert "ledger" not in prompted(project, "Show the invoices of the ledger in the shop", "few")
    assert "ledger" in prompted(project, "Make refund_numbers shorter", "named")


def test_a_lesson_about_the_rule_of_a_linter_waits_for_the_linter() -> None:
    assert is_about_rule({"key": {"head": "", "template": "rule goconst"}})
    assert not is_about_rule({"key": {"head": "git stash", "template": "fatal: is used"}})
    assert not is_about_rule({"statement": RULE})


def test_a_prompt_that_names_code_with_its_package_is_told_the_lesson(
    ws: Workspace, project: Path
) -> None:
    for number in range(60):
        ws.remember(f"Shelf {number} of the warehouse holds parcels for route {number}")
    ws.remember("A RetryBudget is refilled once a minute, never by a request")
    assert "refilled" in prompted(project, "Why does payments.RetryBudget run dry in staging?")


@pytest.mark.parametrize(
    "prompt",
    ["yes", "ok, go on", "commit and push", "yes, then commit, push", "/loki-memory:recall x"],
)
def test_a_prompt_without_work_in_it_is_told_nothing(
    ws: Workspace, project: Path, prompt: str
) -> None:
    ws.remember("Yes and ok are fine: commit and push go on with the recall")
    assert prompted(project, prompt) == ""
