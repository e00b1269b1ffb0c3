"""Seeded facts: candidates until somebody accepts them, and never twice."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import git

from loki_memory import Workspace
from loki_memory.history.review import accept as review_accept
from loki_memory.injection.brief import brief

FILES = {
    "Makefile": "test:\n\tpytest\nlint:\n\truff check\n",
    "AGENTS.md": "- Never log a card number.\n",
}
TESTS, LINT, RULE = (
    "Tests run with `make test`.",
    "The code is linted with `make lint`.",
    "Never log a card number.",
)
WHY = "Readers must not see half a file, so that a crash loses nothing."
FIX = f"Fix torn writes: {WHY}"


@pytest.fixture
def shop(project: Path) -> Path:
    """A repository with a Makefile, an AGENTS.md and a commit that says why."""
    for name, text in FILES.items():
        (project / name).write_text(text)
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "Fix torn writes", "-m", WHY)
    return project


def program(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "loki_memory", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def lines(folder: Path, *arguments: str) -> dict[str, str]:
    """How each proposed text stands after a run of `seed`."""
    said = program(folder, "seed", "--json", *arguments)
    assert said.returncode == 0, said.stderr
    return {line["text"]: line["standing"] for line in json.loads(said.stdout)["lines"]}


def records(folder: Path) -> dict[str, dict[str, Any]]:
    """The published facts, by their statement."""
    found = [json.loads(path.read_text()) for path in folder.glob(".loki/memory/semantic/facts/*")]
    return {record["statement"]: record for record in found}


def told(folder: Path) -> str:
    with Workspace.open(folder) as ws:
        return brief(ws, "", (), "a session", "hook:SessionStart")


def test_proposals_are_candidates_on_this_machine(shop: Path) -> None:
    Workspace.init(shop)
    assert lines(shop) == dict.fromkeys((TESTS, LINT, FIX, RULE), "new")
    assert records(shop) == {}
    with Workspace.open(shop) as ws:
        found = {memory.title(): memory for memory in ws.list()}
        assert {memory.status for memory in found.values()} == {"candidate"}  # type: ignore[attr-defined]
        assert TESTS in [hit.title for hit in ws.recall("how do tests run")]
    assert told(shop) == ""


def test_a_second_run_adds_nothing(shop: Path) -> None:
    Workspace.init(shop)
    lines(shop)
    assert set(lines(shop).values()) == {"candidate"}
    assert len(Workspace.open(shop).list()) == 4


def test_a_plan_writes_nothing(shop: Path) -> None:
    Workspace.init(shop)
    assert set(lines(shop, "--plan").values()) == {"new"}
    assert Workspace.open(shop).list() == []


def test_a_plan_needs_no_memory(shop: Path) -> None:
    said = program(shop, "seed", "--plan")
    assert f"  {TESTS.removesuffix('.')} (Makefile).\n" in said.stdout
    assert "loki-mem init --seed" in said.stderr
    assert not (shop / ".loki").exists()
    assert program(shop, "seed").returncode == 3


def test_consolidation_neither_publishes_nor_drops_a_candidate(shop: Path) -> None:
    with Workspace.init(shop) as ws:
        ws.interop.seed()
        ws.consolidate()
        ws.consolidate(commit=True)
    assert records(shop) == {}
    assert set(lines(shop).values()) == {"candidate"}


def test_yes_accepts_and_an_agents_word_counts_for_our_own_sentences_only(shop: Path) -> None:
    Workspace.init(shop)
    assert set(lines(shop, "--yes").values()) == {"accepted"}
    found = records(shop)
    assert {text: record["origin"] for text, record in found.items()} == {
        TESTS: "agent",
        LINT: "agent",
        RULE: "import",
        FIX: "external",
    }
    assert {record.get("status", "active") for record in found.values()} == {"active"}
    assert TESTS in told(shop)
    assert LINT in told(shop)
    assert WHY not in told(shop)
    assert set(lines(shop, "--yes").values()) == {"accepted"}


def test_a_published_file_is_left_alone_by_the_next_run(shop: Path) -> None:
    Workspace.init(shop)
    lines(shop, "--yes")
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "-m", "memory")
    with Workspace.open(shop) as ws:
        ws.consolidate()
    lines(shop, "--yes")
    assert git(shop, "status", "--short") == ""


def test_review_accepts_a_candidate_which_is_a_fact_then(shop: Path) -> None:
    with Workspace.init(shop, origin="owner") as ws:
        ids = {line.text: line.id for line in ws.interop.seed().lines}
        review_accept(ws, ids[TESTS])
        review_accept(ws, ids[FIX])
        ws.consolidate(learn=False, commit=False)
    found = records(shop)
    assert set(found) == {TESTS, FIX}
    assert found[FIX]["origin"] == "owner"
    assert found[FIX]["status"] == "active"
    assert TESTS in told(shop)
    assert lines(shop)[TESTS] == "accepted"


def test_a_rule_that_the_client_loads_itself_is_recalled_and_not_told(shop: Path) -> None:
    with Workspace.init(shop, origin="owner") as ws:
        found = ws.interop.seed()
        ws.interop.accept_seed([line.id for line in found.lines])
        assert records(shop)[RULE]["origin"] == "owner"
        assert RULE in [hit.title for hit in ws.recall("card number")]
    assert TESTS in told(shop)
    assert RULE not in told(shop)


def test_a_rejected_proposal_does_not_come_back(shop: Path) -> None:
    with Workspace.init(shop, origin="owner") as ws:
        found = ws.interop.seed()
        ws.reject(next(line.id for line in found.lines if line.text == TESTS))
    assert lines(shop, "--yes")[TESTS] == "declined"
    assert TESTS not in records(shop)


def test_a_statement_that_is_known_is_not_doubled(shop: Path) -> None:
    with Workspace.init(shop) as ws:
        ws.remember(TESTS)
    assert lines(shop, "--yes")[TESTS] in {"known", "accepted"}
    assert len([memory for memory in Workspace.open(shop).list() if memory.title() == TESTS]) == 1


def test_old_sessions_are_counted_and_read_only_when_asked(
    shop: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    projects = tmp_path / "claude" / "projects" / "shop"
    projects.mkdir(parents=True)
    turn = {"type": "user", "cwd": str(shop), "sessionId": "s", "uuid": "u", "version": "1"}
    turn |= {"timestamp": "2026-01-05T10:00:00Z", "message": {"role": "user", "content": "Hello"}}
    (projects / "s.jsonl").write_text(json.dumps(turn) + "\n")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    said = program(shop, "init", "--seed")
    assert (
        "1 session of agents in this project can be read: `loki-mem seed --sessions`" in said.stdout
    )
    assert not (shop / ".git/loki-memory/root/ingest/marks").exists()
    said = program(shop, "seed", "--sessions")
    assert "from old sessions of agents" in said.stdout


def test_init_prints_the_plan_and_as_json_the_same(shop: Path) -> None:
    said = program(shop, "init", "--seed")
    assert "4 candidates on this machine" in said.stdout
    found = json.loads(program(shop, "init", "--seed", "--yes", "--json").stdout)
    assert {line["standing"] for line in found["seed"]["lines"]} == {"accepted"}


def test_an_empty_folder_is_told_so(project: Path) -> None:
    said = program(project, "init", "--seed")
    assert said.returncode == 0
    assert "nothing to propose" in said.stdout


def on_a_terminal(folder: Path, typed: str) -> str:
    """What `seed` shows to somebody who types this."""
    ours, theirs = pty.openpty()
    os.write(ours, typed.encode())
    command = [sys.executable, "-m", "loki_memory", "seed"]
    with subprocess.Popen(
        command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b"".join(iter(lambda: _read(ours), b""))
        process.wait()
    os.close(ours)
    return shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # nobody is at the other end any more
        return b""


def test_a_person_accepts_all_at_once(shop: Path) -> None:
    Workspace.init(shop)
    assert "accepted 4 facts" in on_a_terminal(shop, "a\n")
    assert {record["origin"] for record in records(shop).values()} == {"owner"}


def test_a_person_decides_one_by_one(shop: Path) -> None:
    Workspace.init(shop)
    shown = on_a_terminal(shop, "o\na\nr\ns\nq\n")
    assert "accepted 1 fact" in shown
    assert set(records(shop)) == {TESTS}
    assert lines(shop) == {TESTS: "accepted", LINT: "declined", FIX: "candidate", RULE: "candidate"}


def test_a_person_who_decides_later_keeps_candidates(shop: Path) -> None:
    Workspace.init(shop)
    assert "4 candidates on this machine" in on_a_terminal(shop, "l\n")
    assert records(shop) == {}
