"""Mistakes in hand-written files that break nothing are said: by whoever reads the file first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loki_memory import Workspace
from loki_memory.history.check import check
from loki_memory.models import MODELS, parse
from loki_memory.models.field_slips import slips
from loki_memory.models.kinds import Kind

EPISODE = "episodic/2026-01-06/a.json"


def write(ws: Workspace, path: str, content: Any) -> Path:
    target = ws.layout.memory / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(content), encoding="utf-8")
    return target


def told(ws: Workspace) -> list[str]:
    """The notices of the first command that reads the files."""
    list(ws.list())
    return [str(notice) for notice in ws.notices]


@pytest.mark.parametrize(
    ("kind", "document", "field", "meant"),
    [
        ("episode", {"goal": "Add x", "errors": ["timeout"]}, "errors", "errors_encountered"),
        ("episode", {"goal": "Add x", "outcom": "failure"}, "outcom", "outcome"),
        ("episode", {"goal": "Add x", "files": ["a.py"]}, "files", "context.files_involved"),
        (
            "episode",
            {"goal": "Add x", "errors_encountered": [{"mesage": "timeout"}]},
            "errors_encountered.0.mesage",
            "message",
        ),
        ("fact", {"statement": "The port is 80", "catgory": "ports"}, "catgory", "category"),
        ("anti-pattern", {"what_fails": "x fails", "fix": "do y"}, "fix", "prevention"),
    ],
)
def test_a_field_near_a_known_one_is_named_with_the_right_word(
    kind: Kind, document: dict[str, Any], field: str, meant: str
) -> None:
    dated = {"timestamp": "2026-01-06T09:00:00Z", **document} if kind == "episode" else document
    found = list(slips(parse(MODELS[kind], dated)))
    assert [(slip.field, slip.advice) for slip in found] == [(field, f"Did you mean {meant!r}?")]


def test_fields_of_other_programs_are_left_alone(ws: Workspace) -> None:
    theirs = {"access_count": 3, "schema_version": "1.0.0", "owner_team": "core", "x": {"y": 1}}
    write(ws, EPISODE, {"goal": "Add x", **theirs})
    assert told(ws) == []
    assert not ws.care.problems()


def test_the_command_that_reads_the_file_first_says_it_and_later_ones_do_not(
    ws: Workspace,
) -> None:
    write(ws, EPISODE, {"goal": "Add x", "outcom": "failure"})
    assert told(ws) == [
        f"{EPISODE}: outcom: is a field that nothing reads. Did you mean 'outcome'?"
    ]
    ws.notices.clear()
    assert told(ws) == []
    assert [problem.field for problem in ws.care.problems()] == ["outcom"]


def test_a_mended_file_is_no_problem_any_more(ws: Workspace) -> None:
    write(ws, EPISODE, {"goal": "Add x", "outcom": "failure"})
    told(ws)
    write(ws, EPISODE, {"goal": "Add x", "outcome": "failure"})
    ws.sync()
    assert not ws.care.problems()


def test_many_new_problems_are_named_by_the_doctor(ws: Workspace) -> None:
    for number in range(5):
        write(ws, f"episodic/2026-01-06/{number}.json", {"goal": f"Add {number}", "outcom": "no"})
    notices = told(ws)
    assert len(notices) == 4
    assert notices[-1] == "and 2 more of them: loki-mem doctor"
    findings = ws.care.doctor(deep=False, fix=False).findings
    assert not [finding for finding in findings if finding.check == "note"]


def test_a_number_instead_of_a_goal_is_said(ws: Workspace) -> None:
    write(ws, EPISODE, {"goal": 3})
    assert told(ws) == [f"{EPISODE}: says only '3'. State it in words."]


@pytest.mark.parametrize(
    ("path", "document", "said"),
    [
        ("semantic/facts/a.json", {"statment": "x"}, "Did you mean it by 'statment'?"),
        (
            "semantic/facts/a.json",
            {"goal": "Add x"},
            "It reads like an episode; those belong in episodic/<day>/.",
        ),
        (
            "episodic/2026-01-06/a.json",
            {"what_fails": "x fails"},
            "It reads like an anti-pattern; those belong in semantic/anti-patterns/.",
        ),
    ],
)
def test_a_record_in_the_folder_of_another_kind_is_told_its_place(
    ws: Workspace, path: str, document: dict[str, Any], said: str
) -> None:
    write(ws, path, document)
    assert [notice for notice in told(ws) if notice.endswith(said)]


def test_a_file_beside_the_folders_of_records_is_a_problem(ws: Workspace) -> None:
    write(ws, "facts.json", [{"statement": "The port is 80"}])
    write(ws, "semantic/port.json", {"statement": "The port is 80"})
    write(ws, "skills/deploy.json", {"name": "deploy"})
    ws.sync()
    found = {problem.path: problem.advice for problem in ws.care.problems()}
    assert set(found) == {"facts.json", "semantic/port.json", "skills/deploy.json"}
    assert "semantic/facts/" in found["semantic/port.json"]
    assert "loki-mem skills --add .loki/memory/skills/deploy.json" in found["skills/deploy.json"]


def test_a_skill_in_json_is_added_as_markdown(ws: Workspace) -> None:
    given = {"name": "Deploy", "description": "Deploy the app.", "steps": ["Build", "Push"]}
    skill = ws.skills.add(json.dumps(given))
    assert (skill.name, skill.steps) == ("deploy", ["Build", "Push"])
    assert (ws.layout.memory / "skills" / "deploy.md").is_file()


def test_files_that_other_systems_keep_there_are_none(ws: Workspace) -> None:
    write(ws, "index.json", {"topics": []})
    write(ws, "timeline.json", {})
    write(ws, "skills/deploy/data.json", {})
    ws.sync()
    assert not ws.care.problems()


def test_two_files_of_one_skill_are_said(ws: Workspace) -> None:
    for path in ("skills/deploy.md", "skills/deploy/SKILL.md"):
        (ws.layout.memory / path).parent.mkdir(parents=True, exist_ok=True)
        (ws.layout.memory / path).write_text("# Deploy\n\n1. Push\n", encoding="utf-8")
    assert [notice for notice in told(ws) if "is the same memory as skills/deploy.md" in notice]


def test_check_finds_them_in_a_pull_request(ws: Workspace) -> None:
    write(ws, EPISODE, {"goal": "Add x", "outcom": "failure"})
    faults = [fault for fault in check(ws) if fault.check == "invalid"]
    assert [(fault.path, fault.advice) for fault in faults] == [
        (EPISODE, "Did you mean 'outcome'?")
    ]
