"""Hooks around other agents and worktrees: checkpoints that wait, memory that is kept."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import git
from test_hooks import fire, logged, raw, run

from loki_memory import Workspace
from loki_memory.hooks.response import Response
from loki_memory.team.ledgers import waiting_checkpoints

# -- agents ----------------------------------------------------------------------------------------


def test_an_agent_with_a_part_begins_with_what_waits_for_it(ws: Workspace, project: Path) -> None:
    ws.team.hand_off("eng-001", "qa-001", "Added search", needs_testing=["paging"])
    told = fire(project, "SubagentStart", agent_type="qa-001")
    assert "Added search" in told
    assert "paging" in told


def test_a_helper_that_comes_and_goes_is_told_nothing_and_leaves_nothing(
    ws: Workspace, project: Path
) -> None:
    ws.remember("Two migrations at once lock the table", kind="anti-pattern")
    assert fire(project, "SubagentStart", agent_type="Explore") == ""
    fire(project, "SubagentStop", agent_type="Explore", last_assistant_message="Found it")
    assert waiting_checkpoints(ws.home) == {}


def test_where_an_agent_stands_waits_until_somebody_writes_it(ws: Workspace, project: Path) -> None:
    ws.team.checkpoint({"agent_id": "scribe", "current_task": "task-7"})
    ledger = ws.browse.where("ledger-scribe").read_bytes()
    said = "\n\nThe docs are done.\nDetails follow."
    fire(project, "SubagentStop", agent_type="scribe", last_assistant_message=said)
    waiting = waiting_checkpoints(ws.home)["scribe"].document()
    assert waiting["last_report"] == "The docs are done."
    assert ws.browse.where("ledger-scribe").read_bytes() == ledger
    assert "a checkpoint of scribe waits" in logged(ws)


def test_tasks_that_a_member_of_a_team_has_done_are_counted(ws: Workspace, project: Path) -> None:
    ws.team.checkpoint({"agent_id": "ana", "tasks_completed": 4})
    for task in ("Write the page", "Check the links"):
        fire(project, "TaskCompleted", teammate_name="ana", task_subject=task)
    waiting = waiting_checkpoints(ws.home)["ana"].document()
    assert waiting["tasks_completed"] == 6
    assert waiting["last_task"] == "Check the links"


def test_a_named_agent_that_is_compacted_leaves_a_checkpoint(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_AGENT", "eng-001")
    bare = {"transcript_path": None}
    fire(project, "UserPromptSubmit", prompt="Move the cart\nto the new tables", **bare)
    fire(project, "PreCompact", trigger="auto", **bare)
    waiting = waiting_checkpoints(ws.home)["eng-001"]
    assert waiting.context.current_goal == "Move the cart to the new tables"


# -- worktrees -------------------------------------------------------------------------------------


@pytest.fixture
def worktree(ws: Workspace, project: Path) -> Path:
    """A worktree of a repository whose memory holds two facts."""
    git(project, "init", "-q", "-b", "main")
    ws.remember("A is known")
    ws.remember("B is known")
    Workspace.init(project).history.commit()
    git(project, "worktree", "add", "-q", "../wt", "-b", "agent")
    return project.parent / "wt"


def facts(root: Path) -> set[str]:
    return {one.title() for one in Workspace.open(root).list(kind="fact")}


def left(worktree: Path, **given: Any) -> Response:
    """An agent is about to leave a worktree."""
    given = given or {"action": "remove", "discard_changes": True}
    return raw(worktree, "PreToolUse", {}, tool_name="ExitWorktree", tool_input=given)


def shown(response: Response) -> str:
    """What the client shows to its user."""
    assert response.err == ""
    said: str = json.loads(response.out)["systemMessage"] if response.out else ""
    return said


def test_what_a_worktree_remembers_and_did_not_commit_is_kept(
    worktree: Path, project: Path
) -> None:
    Workspace.open(worktree).remember("C is new")
    assert shown(left(worktree)) == "loki-mem: uncommitted memory of the worktree: 1 kept here"
    assert facts(project) == {"A is known", "B is known", "C is new"}
    assert shown(left(worktree)) == ""


def test_what_is_taken_here_is_laid_aside_and_nothing_is_overwritten(
    worktree: Path, project: Path
) -> None:
    there, here = Workspace.open(worktree), Workspace.open(project)
    (known,) = [one for one in there.list(kind="fact") if one.title() == "A is known"]
    there.correct(known.id, confidence=0.3)
    path = there.browse.where(known.id)
    before = here.browse.where(known.id).read_bytes()
    said = shown(left(worktree))
    assert said.startswith("loki-mem: uncommitted memory of the worktree: 1 laid aside in ")
    assert here.browse.where(known.id).read_bytes() == before
    (aside,) = here.layout.local.glob("salvaged/wt-*/semantic/facts/*.json")
    assert aside.read_bytes() == path.read_bytes()


def test_what_a_worktree_committed_needs_no_salvage(worktree: Path, project: Path) -> None:
    with Workspace.open(worktree) as there:
        there.remember("C is new")
        there.history.commit()
    assert shown(left(worktree)) == ""
    assert facts(project) == {"A is known", "B is known"}


def test_only_worktrees_of_this_repository_are_salvaged(
    worktree: Path, project: Path, tmp_path: Path
) -> None:
    with Workspace.init(tmp_path / "other") as other:
        other.remember("Somebody else's")
    git(tmp_path / "other", "init", "-q")
    for path in (tmp_path / "other", project, tmp_path / "nowhere"):
        assert left(path) == Response()
    assert facts(project) == {"A is known", "B is known"}


def test_links_in_a_worktree_are_not_followed(worktree: Path, project: Path) -> None:
    secret = project.parent / "secret.json"
    secret.write_text(json.dumps({"statement": "The password"}))
    os.symlink(secret, worktree / ".loki/memory/semantic/facts/fact-x.json")
    assert shown(left(worktree)) == ""
    assert facts(project) == {"A is known", "B is known"}


def test_memory_is_kept_also_while_nothing_is_captured(worktree: Path, project: Path) -> None:
    Workspace.open(worktree).remember("C is new")
    Workspace.open(project).sessions.pause()
    left(worktree)
    assert "C is new" in facts(project)


@pytest.mark.parametrize("name", ["SessionEnd", "SubagentStop"])
def test_memory_of_a_worktree_that_is_gone_is_back_when_a_session_begins(
    worktree: Path, project: Path, name: str
) -> None:
    Workspace.open(worktree).remember("C is new")
    raw(worktree, name, {}, session_id="", agent_type="Explore")
    assert facts(project) == {"A is known", "B is known"}
    assert raw(project, "SessionStart", {}).err == ""
    assert facts(project) == {"A is known", "B is known"}
    shutil.rmtree(worktree)
    assert "1 kept here" in shown(raw(project, "SessionStart", {}))
    assert facts(project) == {"A is known", "B is known", "C is new"}
    assert "kept here" not in raw(project, "SessionStart", {}).out


def test_what_a_worktree_committed_after_a_session_is_not_brought_back(
    worktree: Path, project: Path
) -> None:
    with Workspace.open(worktree) as there:
        there.remember("C is new")
        raw(worktree, "SessionEnd", {}, session_id="")
        there.history.commit()
    shutil.rmtree(worktree)
    raw(project, "SessionStart", {})
    assert facts(project) == {"A is known", "B is known"}


def test_a_worktree_that_stays_needs_no_salvage(worktree: Path, project: Path) -> None:
    Workspace.open(worktree).remember("C is new")
    assert left(worktree, action="keep") == Response()
    assert facts(project) == {"A is known", "B is known"}


def test_other_tools_are_no_reason_to_salvage(worktree: Path, project: Path) -> None:
    Workspace.open(worktree).remember("C is new")
    assert raw(worktree, "PreToolUse", {}, tool_name="Bash", tool_input={}) == Response()
    assert facts(project) == {"A is known", "B is known"}


def test_settings_of_an_older_version_do_not_claim_that_the_worktree_is_gone(
    worktree: Path, project: Path, tmp_path: Path
) -> None:
    """To Claude Code success means that the worktree is gone, and failure that it stays."""
    response = raw(project, "WorktreeRemove", {}, worktree_path=str(worktree))
    assert (response.out, response.code) == ("", 1)
    assert "removes no worktree" in response.err
    assert "`loki-mem install claude-code` takes it out" in response.err
    given = json.dumps({"cwd": str(tmp_path), "worktree_path": str(tmp_path / "wt")}).encode()
    code, out, err = run("WorktreeRemove", given, tmp_path)
    assert (code, out) == (1, "")
    assert err.startswith("loki-mem: this hook removes no worktree")
