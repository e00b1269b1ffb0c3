"""Pausing and resuming, and what sessions were told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from claude_lines import SESSION, shop

from loki_memory import Workspace
from loki_memory.cli.main import cli
from loki_memory.errors import InvalidRecord
from loki_memory.hooks.response import respond
from loki_memory.ingest.pause import paused, why_off

NOON, LATER = "2026-03-02T12:00:00Z", "2026-03-02T14:00:00Z"
RULE = "Handlers of the router need an explicit return type"


@pytest.fixture
def say(project: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: str) -> str:
        cli.main(["-C", str(project), *arguments], prog_name="loki-mem", standalone_mode=False)
        return capsys.readouterr().out

    return run


def test_a_pause_holds_until_somebody_resumes(ws: Workspace, say: Any) -> None:
    assert why_off(ws) == ""
    assert say("pause") == "paused until `loki-mem resume`\n"
    assert why_off(ws) == "capture is paused until somebody resumes"
    assert say("resume") == "sessions are captured again\n"
    assert why_off(ws) == ""
    assert say("resume") == "nothing was paused\n"


def test_a_pause_ends_by_itself(ws: Workspace, say: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOKI_NOW", NOON)
    assert json.loads(say("pause", "--for", "2h", "--json")) == {"since": NOON, "until": LATER}
    assert paused(ws.home, "2026-03-02T13:59:59Z") is not None
    assert paused(ws.home, LATER) is None
    assert why_off(ws) == f"capture is paused until {LATER}"
    monkeypatch.setenv("LOKI_NOW", LATER)
    assert why_off(ws) == ""


@pytest.mark.parametrize(
    ("span", "until"),
    [
        ("90s", "2026-03-02T12:01:30Z"),
        ("30m", "2026-03-02T12:30:00Z"),
        (" 1D ", "2026-03-03T12:00:00Z"),
        ("9999d", "2053-07-17T12:00:00Z"),
    ],
)
def test_a_span_is_a_number_with_its_unit(
    ws: Workspace, span: str, until: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_NOW", NOON)
    assert ws.sessions.pause(span).until == until


@pytest.mark.parametrize("span", ["", "2", "h", "0h", "-1h", "2 hours", "99999d"])
def test_what_is_no_span_is_refused(ws: Workspace, span: str) -> None:
    if not span:
        assert ws.sessions.pause(span).until == ""
        return
    with pytest.raises(InvalidRecord, match="2h"):
        ws.sessions.pause(span)
    assert why_off(ws) == ""


@pytest.mark.parametrize("text", ["", "nonsense", f"{NOON} soon", f"{NOON} 2026-03-02", "\xff"])
def test_a_pause_that_cannot_be_understood_is_one(ws: Workspace, text: str) -> None:
    (ws.layout.local).mkdir(parents=True, exist_ok=True)
    (ws.layout.local / "paused").write_text(text, encoding="latin-1")
    assert why_off(ws) == "capture is paused until somebody resumes"
    assert ws.sessions.resume()


def test_nothing_is_ingested_during_a_pause(ws: Workspace, tmp_path: Path) -> None:
    path = shop().write(tmp_path / "session.jsonl")
    ws.sessions.pause()
    assert ws.ingest([path]).off == "capture is paused until somebody resumes"
    ws.sessions.resume()
    assert ws.ingest([path]).episodes == 2


def test_status_tells_that_capture_is_paused(ws: Workspace, say: Any) -> None:
    assert "sessions" not in say("status")
    ws.sessions.pause()
    assert "  sessions  capture is paused until somebody resumes\n" in say("status")
    assert json.loads(say("status", "--json"))["capture"].startswith("capture is paused")


def test_who_asks_is_answered_during_a_pause(ws: Workspace) -> None:
    ws.remember(RULE, kind="pattern")
    ws.sessions.pause()
    assert ws.recall(RULE)


# -- injections ------------------------------------------------------------------------------------


def prompt(project: Path, session: str, text: str = RULE) -> None:
    given = {"cwd": str(project), "session_id": session, "prompt": text, "transcript_path": "/x"}
    respond("UserPromptSubmit", json.dumps(given).encode(), {})


def test_injections_tell_when_which_session_was_told_what_and_why(
    ws: Workspace, project: Path, say: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_NOW", NOON)
    stored = ws.remember(RULE, kind="pattern")
    prompt(project, SESSION)
    first, why, told = say("injections").splitlines()
    assert first.startswith(f"{NOON}  hook:UserPromptSubmit  session {SESSION}")
    assert why == f"    for: {RULE}"
    assert told == f"    {stored.id}  {RULE}"


def test_injections_of_one_session(ws: Workspace, project: Path, say: Any) -> None:
    ws.remember(RULE, kind="pattern")
    for session in ("one", "two", "twofold"):
        prompt(project, session)
    told = json.loads(say("injections", "two", "--json"))["injections"]
    assert [one["session"] for one in told] == ["two", "twofold"]
    assert say("injections", "nobody") == "nothing was injected into any session\n"
    assert len(json.loads(say("injections", "-n", "1", "--json"))["injections"]) == 1


def test_what_was_told_and_is_gone_is_named_by_its_id(
    ws: Workspace, project: Path, say: Any
) -> None:
    stored = ws.remember(RULE, kind="pattern")
    prompt(project, SESSION)
    ws.forget(stored.id)
    assert f"    {stored.id}  (gone)\n" in say("injections")


def test_a_recall_that_somebody_asked_for_is_no_injection(
    ws: Workspace, project: Path, say: Any
) -> None:
    ws.remember(RULE, kind="pattern")
    ws.recall(RULE, session=SESSION)
    assert ws.browse.injections() == []


@pytest.mark.parametrize(
    "arguments",
    [("context", RULE), ("continuity", "--goal", RULE), ("continuity", "--stdout", "--goal", RULE)],
)
def test_context_and_continuity_say_for_which_session_they_are(
    ws: Workspace, say: Any, arguments: tuple[str, ...]
) -> None:
    stored = ws.remember(RULE, kind="pattern")
    say(*arguments, "--session", SESSION)
    (told,) = ws.browse.injections(SESSION)
    assert told.occasion == arguments[0]
    assert [one.id for one in told.memories] == [stored.id]


def test_lines_of_others_in_the_journal_are_passed_over(ws: Workspace, project: Path) -> None:
    ws.remember(RULE, kind="pattern")
    prompt(project, SESSION)
    journal = ws.layout.local / "journal" / "shown.jsonl"
    odd = ("[]", '{"act": "shown"}', '{"act": "shown", "surface": 1, "ids": 2}', '{"ids": ["x"]}')
    journal.write_text("\n".join([*odd, journal.read_text()]))
    assert len(ws.browse.injections()) == 1
    prompt(project, "another")
    assert len(ws.browse.injections()) == 2
