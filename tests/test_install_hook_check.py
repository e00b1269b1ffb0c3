"""`doctor` proves that hooks arrive, and says which clients were seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from claude_lines import SESSION, Transcript

from loki_memory import Workspace
from loki_memory.hooks.response import EVENTS, respond
from loki_memory.ingest.hook_notes import SeenClient, clients_seen
from loki_memory.install.hook_check import PROBE, check_hooks

PROGRAM = [sys.executable, "-c", "from loki_memory.cli import program; program()"]


@pytest.fixture(autouse=True)
def _on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def loki(project: Path, *words: str) -> str:
    done = subprocess.run([*PROGRAM, *words], cwd=project, capture_output=True, check=False)
    return done.stdout.decode()


def test_the_doctor_runs_each_hook_as_its_client_would(ws: Workspace, project: Path) -> None:
    loki(project, "install", "claude-code")
    said = loki(project, "doctor")
    assert "hooks     Claude Code: all 10 in .claude/settings.json answer" in said
    assert not (ws.layout.local / "hooks.log").exists()


def test_hooks_that_find_no_program_are_said(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loki(project, "install", "claude-code")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (checked,) = check_hooks(ws)
    assert checked.answered == 0
    assert "SessionStart is silent: loki-mem is not on PATH" in checked.sentence()


def test_a_program_that_a_clone_names_is_not_run(ws: Workspace, project: Path) -> None:
    evil = project / "loki-mem"
    evil.write_text("#!/bin/sh\ntouch ran\n")
    evil.chmod(0o755)
    command = {"type": "command", "command": f"{evil} hook Stop"}
    (project / ".claude").mkdir()
    (project / ".claude/settings.json").write_text(
        json.dumps({"hooks": {"Stop": [{"hooks": [command]}]}})
    )
    (checked,) = check_hooks(ws)
    assert checked.failures == ["Stop names a program of its own, which is not run"]
    assert not (project / "ran").exists()


@pytest.mark.parametrize("name", EVENTS)
def test_a_probe_is_answered_and_nothing_is_noted(ws: Workspace, project: Path, name: str) -> None:
    given = {PROBE: True, "cwd": str(project), "session_id": "s", "prompt": "Fix the tests"}
    before = sorted(ws.layout.loki.rglob("*"))
    response = respond(name, json.dumps(given).encode(), {})
    assert "loki-mem" in json.loads(response.out)
    assert sorted(ws.layout.loki.rglob("*")) == before


@pytest.mark.parametrize(
    ("agent", "version", "expected"),
    [
        ("claude-code_2-1-325_harness", "", ("claude-code", "2.1.325")),
        ("", "2.1.197", ("claude-code", "2.1.197")),
    ],
)
def test_the_client_that_was_seen_last_is_known(
    ws: Workspace,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    agent: str,
    version: str,
    expected: tuple[str, str],
) -> None:
    monkeypatch.setenv("AI_AGENT", agent)
    monkeypatch.setenv("LOKI_NOW", "2026-03-02T10:00:00Z")
    transcript = Transcript(cwd=str(project)).say("Fix the tests", version=version)
    path = str(transcript.write(project.parent / f"{SESSION}.jsonl"))
    given = {"session_id": SESSION, "cwd": str(project), "transcript_path": path}
    respond("Stop", json.dumps(given).encode(), {})
    assert clients_seen(ws) == [SeenClient(*expected, "2026-03-02T10:00:00Z")]
    assert f"seen last: {' '.join(expected)} on 2026-03-02" in loki(project, "doctor")
