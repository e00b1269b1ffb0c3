"""What is held back from agents: what nobody vouches for, where somebody must."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from test_integrity_signatures import allow, new_key, run, use

from loki_memory import Workspace
from loki_memory.history.commit import commit

GOAL = "deploy the payment service"
STATEMENT = "Deploys of the payment service happen on Fridays"


@pytest.fixture
def project(project: Path) -> Path:
    run("git", "init", "-q", "-b", "main", at=project)
    for name, value in (("name", "Ana"), ("email", "ana@example.org")):
        run("git", "config", f"user.{name}", value, at=project)
    return project


@pytest.fixture
def workspace(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A workspace in which somebody must stand for what agents are told; git has no key yet."""
    monkeypatch.setenv("LOKI_TRUST_REQUIRE_SIGNATURE", "true")
    monkeypatch.setenv("LOKI_GIT_SIGN", "true")
    with Workspace.init(project) as workspace:
        workspace.remember(STATEMENT)
        yield workspace


def signs(project: Path, folder: Path) -> Path:
    """Commits of memory are signed from now on; the key that does it."""
    key = new_key(folder, "key")
    run("git", "config", "gpg.format", "ssh", at=project)
    use(project, key)
    return key


def told(workspace: Workspace) -> str:
    """All that an agent is told unasked."""
    return workspace.context(GOAL).text("detailed") + workspace.browse.continuity_block(GOAL)


def test_an_unsigned_commit_vouches_for_nothing(workspace: Workspace) -> None:
    commit(workspace)
    assert STATEMENT not in told(workspace)
    assert any("1 memory is withheld" in one for one in workspace.notices)
    assert workspace.recall(GOAL)[0].title == STATEMENT, "who asks is told"


def test_a_commit_that_an_allowed_key_signed_vouches_for_what_it_brought(
    workspace: Workspace, project: Path, tmp_path: Path
) -> None:
    key = signs(project, tmp_path)
    commit(workspace)
    assert STATEMENT not in told(workspace), "nobody is allowed yet"
    allow(project, key)
    assert STATEMENT in told(workspace)


def test_words_that_were_changed_since_are_nobodys(
    workspace: Workspace, project: Path, tmp_path: Path
) -> None:
    allow(project, signs(project, tmp_path))
    commit(workspace)
    [path] = (project / ".loki/memory/semantic/facts").glob("*.json")
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole.replace("Fridays", "Mondays"), encoding="utf-8")
    assert "Mondays" not in told(workspace), "in the working tree"
    run("git", "commit", "-aqm", "Mondays are better", at=project)
    assert "Mondays" not in told(workspace), "in a commit without a signature"
    path.write_text(whole, encoding="utf-8")
    run("git", "commit", "-aqm", "They are not", at=project)
    assert STATEMENT in told(workspace), "somebody stood for these words once"


def test_a_reviewed_commit_vouches_for_what_it_brought(workspace: Workspace, project: Path) -> None:
    run("git", "add", "-A", at=project)
    run("git", "commit", "-qm", "memory\n\nReviewed-by: Ben <ben@example.org>", at=project)
    assert STATEMENT in told(workspace)


def test_a_merge_vouches_for_what_it_brings_in(workspace: Workspace, project: Path) -> None:
    run("git", "commit", "-qm", "begin", "--allow-empty", at=project)
    run("git", "switch", "-qc", "topic", at=project)
    commit(workspace)
    run("git", "switch", "-q", "main", at=project)
    run("git", "merge", "-q", "--no-ff", "-m", "Merge topic", "topic", at=project)
    assert STATEMENT not in told(workspace)
    run("git", "reset", "-q", "--hard", "HEAD^", at=project)
    message = "Merge topic\n\nReviewed-by: Ben <ben@example.org>"
    run("git", "merge", "-q", "--no-ff", "-m", message, "topic", at=project)
    assert STATEMENT in told(workspace)


def test_a_file_name_cannot_claim_a_review(workspace: Workspace, project: Path) -> None:
    strange = project / ".loki/memory/semantic/facts/a\x01b"
    strange.write_text("no memory", encoding="utf-8")
    run("git", "add", "-A", at=project)
    run("git", "commit", "-qm", "memory", at=project)
    assert STATEMENT not in told(workspace)


def test_handoffs_and_ledgers_are_held_back_too(workspace: Workspace) -> None:
    workspace.team.hand_off("eng-001", "qa-001", "Rewrote the parser")
    workspace.team.checkpoint({"agent_id": "eng-001", "current_task": "task-7"})
    assert "parser" not in told(workspace)
    assert "task-7" not in told(workspace)


def test_memory_of_this_machine_needs_no_signature(workspace: Workspace) -> None:
    workspace.remember("Deploys of the payment service need a token", scope="local")
    assert "need a token" in told(workspace)


def test_a_workspace_cannot_turn_off_what_its_user_turned_on(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home/.loki"
    home.mkdir(parents=True)
    (home / "config.toml").write_text("[trust]\nrequire_signature = true\n", encoding="utf-8")
    monkeypatch.setenv("LOKI_HOME", str(home))
    with Workspace.init(project) as workspace:
        workspace.remember(STATEMENT)
        config = project / ".loki/config.toml"
        config.write_text("format = 1\n[trust]\nrequire_signature = false\n", encoding="utf-8")
    with Workspace.open(project) as workspace:
        assert STATEMENT not in told(workspace)
        assert any("trust.require_signature" in one for one in workspace.config.ignored)


def test_a_warning_that_was_edited_by_hand_is_told_as_it_is_now(ws: Workspace) -> None:
    error = {"type": "make", "message": "fatal: no rule to make target", "resolution": "fix it"}
    for number in range(3):  # one alone makes a candidate
        goal = {"goal": f"Build the parser {number}", "session": f"s-{number}"}
        ws.record(
            {
                **goal,
                "agent": f"agent-{number}",
                "outcome": "success",
                "errors_encountered": [error],
            }
        )
    [path] = ws.layout.memory.glob("semantic/anti-patterns/*.json")
    assert "no rule to make target" in ws.browse.continuity_block(GOAL)
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole.replace("fix it", "add a rule"), encoding="utf-8")
    ws.history.verify()
    assert "add a rule" in ws.browse.continuity_block(GOAL)
