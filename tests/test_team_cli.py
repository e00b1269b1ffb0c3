"""`ledger` and `handoff` as commands: what is shown, what waits, and what is asked for."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_schemas import valid

from loki_memory import Workspace
from loki_memory.cli.main import cli
from loki_memory.errors import InvalidRecord, NoLedger
from loki_memory.team.ledgers import note_checkpoint

OPEN = "handoff-pntnsg6v73"


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOKI_NOW", "2026-01-20T09:00:00Z")


class Run:
    """The program in the example workspace."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys

    def __call__(self, *arguments: str) -> str:
        given = ["-C", str(self.folder), *arguments]
        cli.main(given, prog_name="loki-mem", standalone_mode=False)
        return self._capsys.readouterr().out

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))


@pytest.fixture
def run(example: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(example, capsys)


def test_a_checkpoint_that_waits_is_shown_and_still_waits(run: Run) -> None:
    ws = Workspace.open(run.folder)
    note_checkpoint(ws, "qa-001-testing", {"current_task": "task-99"})
    note_checkpoint(ws, "data-001", {"current_task": "task-1"})
    shown = {one["id"]: one for one in run.json("ledger")["ledgers"]}
    assert shown["ledger-qa-001-testing"]["record"]["current_task"] == "task-99"
    assert shown["ledger-data-001"]["waiting"]
    assert not shown["ledger-eng-001-backend"]["waiting"]
    told = run("ledger", "qa-001-testing")
    assert told.endswith(
        "a checkpoint that waits to be written:\n"
        "  - agent_id: qa-001-testing\n"
        "  - last_checkpoint: 2026-01-20T09:00:00Z\n"
        "  - current_task: task-99\n"
        "  - origin: agent\n"
    )
    assert run("ledger", "data-001").startswith("ledger-data-001\na checkpoint")
    assert "task-99" not in Path(ws.browse.where("ledger-qa-001-testing")).read_text(
        encoding="utf-8"
    )


def test_a_ledger_is_found_by_the_short_name_too(run: Run) -> None:
    [shown] = run.json("ledger", "qa-001")["ledgers"]
    assert shown["record"]["agent_id"] == "qa-001-testing"
    with pytest.raises(NoLedger):
        run("ledger", "qa")


def test_a_checkpoint_may_be_followed_by_the_brief(run: Run) -> None:
    told = run("ledger", "ops-001-devops", "--goal", "Deploy 1.0.1", "--resume")
    assert "- current goal: Deploy 1.0.1" in told
    both = run.json("ledger", "ops-001-devops", "--task", "task-71", "--resume")
    assert both["stored"][0]["record"]["current_task"] == "task-71"
    assert "- current task: task-71" in both["brief"]["text"]
    brief = run.json("ledger", "ops-001-devops", "--resume", "--budget", "120")["brief"]
    assert brief["tokens"] <= 120
    assert brief["left_out"] > 0
    assert brief["text"].startswith("# Resume: ops-001-devops\n")


def test_a_plan_shows_the_handoff_and_writes_nothing(run: Run) -> None:
    before = run.json("handoff", "list", "--all")
    planned = run.json("handoff", "create", "eng-002-frontend", "qa", "--plan")["planned"]
    context = planned["record"]["context"]
    assert "Show due dates and mark overdue todos" in context["what_was_done"]
    assert "Add drag and drop to the todo list (failure)" in context["known_issues"]
    assert "# handoff-" in run("handoff", "create", "eng-002-frontend", "qa", "--plan")
    assert run.json("handoff", "list", "--all") == before


def test_what_is_not_known_is_asked_for_by_its_name(run: Run) -> None:
    with pytest.raises(InvalidRecord, match="WHAT"):
        run("handoff", "create", "data-001", "qa")


def test_on_a_terminal_it_is_asked_for(example: Path) -> None:
    keyboard, terminal = pty.openpty()
    command = [sys.executable, "-m", "loki_memory", "handoff", "create", "data-001", "qa"]
    os.write(keyboard, b"Loaded the data\n")
    done = subprocess.run(
        command, cwd=example, stdin=terminal, capture_output=True, text=True, check=True
    )
    os.close(terminal)
    os.close(keyboard)
    assert "What was done: " in done.stderr
    assert done.stdout.endswith("data-001 -> qa: Loaded the data\n")


def test_handoffs_to_a_role_are_listed_for_its_agents(run: Run) -> None:
    made = run.json("handoff", "create", "data-001", "qa", "Loaded the data")["stored"][0]["id"]
    listed = run.json("handoff", "list", "--to", "qa-001-testing")["handoffs"]
    assert [one["id"] for one in listed] == [made]
    assert run.json("handoff", "list", "--to", "eng-002-frontend")["handoffs"] == []


def test_accepting_prints_the_brief_within_its_budget(run: Run) -> None:
    said = run.json("handoff", "accept", OPEN, "--by", "eng-001-backend", "--budget", "100")
    assert said["stored"][0]["record"]["accepted_by"] == "eng-001-backend"
    assert said["brief"]["tokens"] <= 100
    assert said["brief"]["left_out"] > 0
    headings = [one["heading"] for one in said["brief"]["sections"]]
    assert headings[0] == "What was done"
    assert said["brief"]["text"].endswith(f"more: `loki-mem show {OPEN}`._\n")


@pytest.mark.parametrize(
    "call",
    [
        "ledger",
        "ledger qa-001",
        "ledger qa-001-testing --task task-71",
        "ledger qa-001-testing --task task-71 --resume",
        "ledger qa-001-testing --resume",
        "handoff list",
        "handoff create eng-002-frontend qa --plan",
        "handoff create eng-002-frontend qa",
        f"handoff accept {OPEN}",
    ],
)
def test_what_is_printed_obeys_its_schema(run: Run, call: str) -> None:
    words = call.split()
    valid(f"output-{words[0]}", run.json(*words))
