"""Ledgers and handoffs: who is addressed, checkpoints that wait, states, and who took what on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import git

from loki_memory import Workspace
from loki_memory.errors import InvalidRecord, StoreFailed
from loki_memory.models import Handoff, Ledger, parse
from loki_memory.models.team import is_addressed, is_role
from loki_memory.team.handoffs import check_in
from loki_memory.team.ledgers import (
    handoffs_to,
    joined,
    ledger_of,
    ledgers,
    note_checkpoint,
    take_over_checkpoints,
    waiting_checkpoints,
)

NOTER = Path(__file__).parent / "processes" / "noter.py"


def at(monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    monkeypatch.setenv("LOKI_NOW", f"2026-01-20T{moment}:00Z")


def file_of(ws: Workspace, memory_id: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(ws.browse.where(memory_id).read_text(encoding="utf-8"))
    return document


def ledger(**fields: Any) -> Ledger:
    return parse(Ledger, {"agent_id": "qa-1", **fields})


# -- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("to_agent", "agent"),
    [
        ("qa", "qa-001-testing"),
        ("qa-", "qa-001-testing"),
        ("qa", "qa"),
        ("qa-001", "qa-001-testing"),
        ("qa-001-testing", "qa-001-testing"),
        ("qa-001-testing", "qa-001"),
    ],
)
def test_work_is_addressed_to_an_agent_its_short_name_or_its_role(
    to_agent: str, agent: str
) -> None:
    assert is_addressed(to_agent, agent)


@pytest.mark.parametrize(
    ("to_agent", "agent"),
    [
        ("qa", "qab-001"),
        ("qa-001", "qa-0012"),
        ("qa-001-testing", "qa-002-testing"),
        ("qa-001-testing", "qa-001-load"),
        ("qa-001-testing", "qa"),  # the role is nobody in particular
        ("eng-001", "qa-001"),
        ("", "qa-001"),
        ("-", "qa-001"),
        ("qa", ""),
    ],
)
def test_work_for_one_agent_is_not_for_another(to_agent: str, agent: str) -> None:
    assert not is_addressed(to_agent, agent)


def test_a_role_is_a_name_without_a_number() -> None:
    assert [name for name in ("qa", "qa-", "qa-001", "qa-001-testing") if is_role(name)] == [
        "qa",
        "qa-",
    ]


# -- ledgers -------------------------------------------------------------------------------------


def test_checking_in_keeps_what_is_not_told(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, "09:00")
    check_in(ws, "qa-1", {"current_task": "task-1", "state": {"last_git_commit": "abc1234"}})
    at(monkeypatch, "10:00")
    new = check_in(ws, "qa-1", {"state": {"files_modified": ["a.py"]}})
    assert (new.current_task, new.state.last_git_commit) == ("task-1", "abc1234")
    assert new.state.files_modified == ["a.py"]
    assert new.last_checkpoint == "2026-01-20T10:00:00Z"
    assert file_of(ws, new.id) == new.document()


def test_of_two_checkpoints_the_later_has_the_word_and_what_was_learned_is_joined() -> None:
    early = ledger(
        last_checkpoint="2026-01-20T09:00:00Z",
        current_task="task-1",
        tasks_completed=3,
        context={"patterns_learned": ["sem-1"], "handoffs": ["handoff-1"]},
    )
    late = ledger(
        last_checkpoint="2026-01-20T10:00:00Z",
        current_task="task-2",
        context={"patterns_learned": ["sem-2"], "current_goal": "G"},
    )
    for both in (joined(early, late), joined(late, early)):
        assert (both.current_task, both.tasks_completed) == ("task-2", 3)
        assert both.context.patterns_learned == ["sem-1", "sem-2"]
        assert (both.context.handoffs, both.context.current_goal) == (["handoff-1"], "G")
        assert joined(both, early) == both


def test_a_checkpoint_that_waits_changes_no_tracked_file(ws: Workspace, project: Path) -> None:
    git(project, "init", "-q")
    ws = Workspace.init(project)
    ws.team.checkpoint({"agent_id": "qa-1", "current_task": "task-1"})
    git(project, "add", "-A")
    git(project, "commit", "-qm", "memory")
    note_checkpoint(ws, "qa-1", {"current_task": "task-2"})
    assert git(project, "status", "--porcelain") == ""
    shown = ledger_of(ws, "qa-1")
    assert shown is not None
    assert shown.current_task == "task-2"


def test_what_waits_is_seen_of_an_agent_that_has_no_ledger_yet(ws: Workspace) -> None:
    note_checkpoint(ws, "qa-1", {"current_task": "task-2"})
    assert [one.agent_id for one in ledgers(ws)] == ["qa-1"]
    assert ws.list(kind="ledger") == []


@pytest.mark.parametrize(
    "write",
    [
        lambda ws: check_in(ws, "eng-1", {"current_task": "task-9"}),
        lambda ws: ws.team.checkpoint({"agent_id": "eng-1"}),
        lambda ws: ws.team.hand_off("eng-1", "qa", "Added search"),
        lambda ws: ws.team.accept(ws.list(kind="handoff")[0].id),
        lambda ws: ws.team.close_handoff(ws.list(kind="handoff")[0].id),
        take_over_checkpoints,
    ],
    ids=["check in", "checkpoint", "hand off", "accept", "close", "take over"],
)
def test_whoever_writes_takes_over_what_waits(ws: Workspace, write: Any) -> None:
    ws.team.hand_off("eng-1", "qa", "An earlier one")
    note_checkpoint(ws, "ops-1", {"current_task": "task-1"})
    note_checkpoint(ws, "ops-1", {"tasks_completed": 4})
    write(ws)
    written = file_of(ws, "ledger-ops-1")
    assert (written["current_task"], written["tasks_completed"]) == ("task-1", 4)
    assert waiting_checkpoints(ws.home) == {}
    assert take_over_checkpoints(ws) == []


def test_an_old_checkpoint_does_not_undo_a_newer_one(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, "09:00")
    note_checkpoint(ws, "qa-1", {"current_task": "task-1", "tasks_completed": 2})
    at(monkeypatch, "10:00")
    ws.store.write(ledger(last_checkpoint=ws.now(), current_task="task-2"))  # pulled meanwhile
    take_over_checkpoints(ws)
    written = file_of(ws, "ledger-qa-1")
    assert (written["current_task"], written["tasks_completed"]) == ("task-2", 2)
    assert written["last_checkpoint"] == "2026-01-20T10:00:00Z"


def test_half_a_line_of_a_killed_writer_is_passed_over(ws: Workspace) -> None:
    note_checkpoint(ws, "qa-1", {"current_task": "task-1"})
    file = ws.layout.local / "checkpoints" / "waiting.jsonl"
    with file.open("ab") as torn:
        torn.write(b'{"agent_id": "qa-2", "curr')
    note_checkpoint(ws, "qa-3", {"current_task": "task-3"})
    assert list(waiting_checkpoints(ws.home)) == ["qa-1", "qa-3"]


def test_taking_over_again_after_a_crash_changes_nothing(ws: Workspace) -> None:
    note_checkpoint(ws, "qa-1", {"current_task": "task-1", "context": {"handoffs": ["handoff-1"]}})
    file = ws.layout.local / "checkpoints" / "waiting.jsonl"
    before = file.read_bytes()
    [first] = take_over_checkpoints(ws)
    file.write_bytes(before)  # it was killed before it could take the lines away
    assert take_over_checkpoints(ws) == [first]


def test_many_processes_note_checkpoints_and_none_is_lost(ws: Workspace, project: Path) -> None:
    command = [sys.executable, str(NOTER), str(project)]
    running = [subprocess.Popen([*command, f"eng-{n}", "20"]) for n in range(4)]
    taken: dict[str, Ledger] = {}
    while any(process.poll() is None for process in running):
        taken |= {one.agent_id: one for one in take_over_checkpoints(ws)}
    assert [process.returncode for process in running] == [0, 0, 0, 0]
    taken |= {one.agent_id: one for one in take_over_checkpoints(ws)}
    for n in range(4):
        learned = file_of(ws, f"ledger-eng-{n}")["context"]["patterns_learned"]
        assert learned == sorted(f"sem-{number}" for number in range(20))


def test_a_ledger_that_cannot_be_read_keeps_its_checkpoint_waiting(ws: Workspace) -> None:
    (ws.layout.memory / "ledgers" / "qa-1.json").write_text("{", encoding="utf-8")
    note_checkpoint(ws, "qa-1", {"current_task": "task-1"})
    note_checkpoint(ws, "qa-2", {"current_task": "task-2"})
    assert [one.agent_id for one in take_over_checkpoints(ws)] == ["qa-2"]
    assert list(waiting_checkpoints(ws.home)) == ["qa-1"]
    assert any("qa-1" in notice for notice in ws.notices)


def test_a_checkpoint_that_is_none_is_refused_and_secrets_do_not_wait(ws: Workspace) -> None:
    with pytest.raises(InvalidRecord, match="tasks_completed"):
        note_checkpoint(ws, "qa-1", {"tasks_completed": "many"})
    with pytest.raises(InvalidRecord, match="agent_id"):
        note_checkpoint(ws, "", {})
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    note_checkpoint(ws, "qa-1", {"context": {"current_goal": f"Rotate {secret}"}})
    waiting = (ws.layout.local / "checkpoints" / "waiting.jsonl").read_text(encoding="utf-8")
    assert secret not in waiting


def test_a_link_in_place_of_the_folder_is_not_followed(ws: Workspace, tmp_path: Path) -> None:
    ws.layout.local.mkdir(parents=True, exist_ok=True)
    (ws.layout.local / "checkpoints").symlink_to(tmp_path)
    with pytest.raises(StoreFailed, match="symbolic link"):
        note_checkpoint(ws, "qa-1", {"current_task": "task-1"})


@pytest.mark.parametrize(
    "run",
    [lambda ws: ws.consolidate(), lambda ws: ws.history.commit()],
    ids=["consolidate", "commit"],
)
def test_consolidation_and_commits_take_over_what_waits(ws: Workspace, run: Any) -> None:
    note_checkpoint(ws, "ops-1", {"current_task": "task-1"})
    run(ws)
    assert file_of(ws, "ledger-ops-1")["current_task"] == "task-1"


@pytest.mark.parametrize(
    "run",
    [lambda ws: ws.consolidate(plan_only=True), lambda ws: ws.history.commit(dry_run=True)],
    ids=["consolidate", "commit"],
)
def test_a_plan_leaves_what_waits(ws: Workspace, run: Any) -> None:
    note_checkpoint(ws, "ops-1", {"current_task": "task-1"})
    run(ws)
    assert list(waiting_checkpoints(ws.home)) == ["ops-1"]


# -- handoffs ------------------------------------------------------------------------------------


def test_who_takes_on_a_handoff_has_it_in_the_ledger(ws: Workspace) -> None:
    ws.team.checkpoint({"agent_id": "qa-001-testing", "current_task": "task-1"})
    handoff = ws.team.hand_off("eng-1", "qa", "Added search")
    ws.team.accept(handoff.id, by="qa-001-testing")
    written = file_of(ws, "ledger-qa-001-testing")
    assert written["context"]["handoffs"] == [handoff.id]
    assert written["current_task"] == "task-1"
    assert ("refers_to", "ledger-qa-001-testing") in ws.browse.edges(handoff.id)[1]


def test_the_agent_that_is_named_need_not_say_who_it_is(ws: Workspace) -> None:
    handoff = ws.team.hand_off("eng-1", "qa-001-testing", "Added search")
    ws.team.accept(handoff.id)
    assert file_of(ws, "ledger-qa-001-testing")["context"]["handoffs"] == [handoff.id]


def test_a_role_has_no_ledger(ws: Workspace) -> None:
    ws.team.accept(ws.team.hand_off("eng-1", "qa", "Added search").id)
    assert ws.list(kind="ledger") == []


def test_a_handoff_that_is_refused_leaves_no_trace_in_a_ledger(ws: Workspace) -> None:
    handoff = ws.team.hand_off("eng-1", "qa-1", "Added search")
    ws.team.close_handoff(handoff.id, status="expired")
    with pytest.raises(InvalidRecord, match="expired"):
        ws.team.accept(handoff.id, by="qa-1")
    assert ws.list(kind="ledger") == []


def test_handoffs_reach_the_agent_the_role_and_nobody_else(ws: Workspace) -> None:
    one = ws.team.hand_off("eng-1", "qa", "One")
    two = ws.team.hand_off("eng-1", "qa-001-testing", "Two")
    three = ws.team.hand_off("eng-1", "ops-1", "Three")
    ws.sync()
    for agent, expected in {
        "qa-001-testing": {one.id, two.id},
        "qa-002": {one.id},
        "ops-1": {three.id},
        "": {one.id, two.id, three.id},
    }.items():
        assert {handoff.id for handoff in handoffs_to(ws, agent)} == expected


def test_what_an_agent_took_on_stays_with_it_until_it_is_closed(ws: Workspace) -> None:
    handoff = ws.team.hand_off("eng-1", "qa", "One")
    ws.team.accept(handoff.id, by="qa-002")
    ws.sync()
    assert [one.id for one in handoffs_to(ws, "qa-002")] == [handoff.id]
    assert handoffs_to(ws, "qa-001") == []
    ws.team.close_handoff(handoff.id)
    ws.sync()
    assert handoffs_to(ws, "qa-002") == []


def test_a_handoff_from_outside_waits_until_it_is_asked_for(ws: Workspace) -> None:
    foreign = parse(Handoff, {"to_agent": "qa-1", "timestamp": "2026-01-06", "origin": "external"})
    ws.store.write(foreign)
    ws.sync()
    assert handoffs_to(ws, "qa-1") == []


def test_a_handoff_to_a_role_shows_up_in_the_continuity_of_its_agents(ws: Workspace) -> None:
    handoff = ws.team.hand_off("eng-1", "qa", "Added search")
    for agent, told in {"qa-001": True, "qa": True, "": True, "ops-1": False}.items():
        assert (f"[{handoff.id}]" in ws.browse.continuity_block(agent=agent)) is told


def test_many_handoffs_to_others_do_not_hide_ones_own(ws: Workspace) -> None:
    own = ws.team.hand_off("eng-1", "qa-1", "Own")
    for number in range(12):
        ws.team.hand_off("eng-1", "ops-1", f"Theirs {number}")
    assert f"[{own.id}]" in ws.browse.continuity_block(agent="qa-1")


def test_continuity_tells_a_checkpoint_that_waits(ws: Workspace) -> None:
    note_checkpoint(ws, "qa-001-testing", {"current_task": "task-7"})
    assert "qa-001-testing: current task: task-7" in ws.browse.continuity_block(agent="qa-001")


def test_two_branches_that_took_on_work_merge_to_both() -> None:
    from loki_memory.history.merge import merge

    base = ledger(last_checkpoint="2026-01-20T09:00:00Z")
    ours, theirs = (
        ledger(
            last_checkpoint=f"2026-01-20T1{n}:00:00Z",
            context={"handoffs": [f"handoff-{n}"], "patterns_learned": [f"sem-{n}"]},
        )
        for n in (1, 2)
    )
    both = merge(base, ours, theirs)
    assert both.context.handoffs == ["handoff-1", "handoff-2"]
    assert both.context.patterns_learned == ["sem-1", "sem-2"]
    assert both.last_checkpoint == "2026-01-20T12:00:00Z"
