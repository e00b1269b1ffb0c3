"""An audit names what is not worth its place, and leaves alone what is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from loki_memory import Workspace
from loki_memory.browse.audit import Audit, AuditClass
from loki_memory.cli.maintain import audit_of
from loki_memory.consolidation.merge import repeated_statements
from loki_memory.consolidation.positions import position
from loki_memory.models import Fact


def found(audit: Audit, name: str) -> AuditClass:
    return next(entry for entry in audit.classes if entry.name == name)


def ids(audit: Audit, name: str) -> list[str]:
    return [finding.id for finding in found(audit, name).findings]


def write(ws: Workspace, kind: str, name: str, **fields: Any) -> str:
    path = ws.layout.memory / "semantic" / kind / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"id": name, **fields}))
    return name


def test_a_store_of_specific_statements_has_no_junk(ws: Workspace) -> None:
    ws.remember("Deploys go through staging, never straight to production")
    ws.remember("Prices are kept in cents everywhere, in events too")
    audit = ws.care.audit()
    assert (audit.memories, audit.junk, audit.rate) == (2, 0, 0.0)


def test_what_could_be_said_of_any_project_is_vacuous(ws: Workspace) -> None:
    name = ws.remember("Always write clean code").id
    assert ids(ws.care.audit(), "vacuous") == [name]


def test_a_question_and_an_order_are_vacuous(ws: Workspace) -> None:
    asked = ws.remember("Which port does the billing service of staging listen on?").id
    ordered = ws.remember("Let's add unit tests for the cents of the cart, too").id
    assert set(ids(ws.care.audit(), "vacuous")) == {asked, ordered}


def test_the_shorter_of_two_that_say_the_same_is_a_duplicate(ws: Workspace) -> None:
    long = ws.remember("Contract tests need the database running, locally too", at="2026-01-02")
    short = ws.remember("Contract tests need the database running", at="2026-01-09")
    flagged = found(ws.care.audit(), "duplicate").findings
    assert [finding.id for finding in flagged] == [short.id]
    assert long.id in flagged[0].why


@pytest.mark.parametrize(
    "other",
    [
        "Contract tests do not need the database running",
        "The cluster has pg-replica-02 as its failed node",
    ],
)
def test_statements_that_differ_in_what_they_say_are_no_duplicates(other: str) -> None:
    facts = [
        Fact(statement="Contract tests need the database running"),
        Fact(statement="The cluster has pg-replica-02 as its primary node"),
        Fact(statement=other),
    ]
    assert list(repeated_statements(facts, 0.5)) == []


def test_a_statement_that_a_document_has_is_an_echo(ws: Workspace) -> None:
    text = "Run make up before the contract tests, because they need the database running"
    (ws.layout.root / "README.md").write_text(f"# Shop\n\n{text}.\n")
    echo = ws.remember(text).id
    ws.remember("Run make up before the contract tests of the cart and never after them, please")
    audit = ws.care.audit()
    assert ids(audit, "echo") == [echo]
    assert audit.unchecked == []


def test_a_prompt_and_a_line_of_memory_are_echoes(ws: Workspace) -> None:
    ws.record({"goal": "Look at the failing cart tests of the shop again", "outcome": "success"})
    prompt = ws.remember("Look at the failing cart tests of the shop again").id
    printed = ws.remember("- [sem-001] Handlers declare their return type in the todo API").id
    assert set(ids(ws.care.audit(), "echo")) == {prompt, printed}


def test_a_rule_is_no_echo_of_the_prompt_that_states_it(ws: Workspace) -> None:
    rule = "Never deploy the billing service on a Friday afternoon"
    ws.record({"goal": rule, "outcome": "success"})
    write(ws, "facts", "fact-rule", statement=rule, type="rule")
    assert ids(ws.care.audit(), "echo") == []


def test_a_citation_is_stale_when_its_file_or_symbol_is_gone(ws: Workspace) -> None:
    (ws.layout.root / "app.py").write_text("def charge(cents):\n    return cents\n")
    for name, cited in {
        "fact-there": {"path": "app.py", "symbol": "charge"},
        "fact-moved": {"path": "app.py", "symbol": "refund"},
        "fact-gone": {"path": "old.py"},
    }.items():
        write(ws, "facts", name, statement=f"{name} keeps prices in cents", citations=[cited])
    stale = found(ws.care.audit(), "stale").findings
    assert {finding.id: finding.why for finding in stale} == {
        "fact-moved": "cites refund, which is gone from app.py",
        "fact-gone": "cites old.py, which is gone",
    }


def test_a_belief_is_an_orphan_when_none_of_its_episodes_is_left(ws: Workspace) -> None:
    kept = ws.record({"goal": "Add the cart endpoint", "outcome": "success"}).id
    said = "Handlers of the cart declare their return type"
    write(ws, "patterns", "sem-1", pattern=said, correct_approach="x", source_episodes=[kept])
    lost = {"pattern": f"{said} in {said}", "correct_approach": "y", "source_episodes": ["ep-1"]}
    write(ws, "patterns", "sem-2", **lost)
    mark = {"for": ["ep-2"], "episodes": {"ep-2": {"day": "2026-01-05", "outcome": "success"}}}
    write(ws, "patterns", "sem-3", pattern="Carts expire at night", evidence=mark)
    assert ids(ws.care.audit(), "orphan") == ["sem-2"]


def test_an_extracted_sentence_about_the_work_of_a_session_is_a_report(ws: Workspace) -> None:
    said = "Added a call of `EnsureGitignore()` to `setup.go`"
    write(ws, "facts", "fact-extracted", statement=said, score=0.7)
    write(ws, "facts", "fact-worded", statement=f"{said} in January")
    assert ids(ws.care.audit(), "report") == ["fact-extracted"]


def test_contradictions_need_a_person_and_are_no_junk(ws: Workspace) -> None:
    ws.remember("The port of the API is 3000")
    ws.remember("The port of the API is 8080")
    audit = ws.care.audit()
    assert found(audit, "contradiction").memories == 2
    assert audit.junk == 0


def test_entries_of_a_list_choose_nothing() -> None:
    assert position("Ruby - Solargraph") is None
    assert position("Python: both tools work") is None
    chosen = position("Tabs over spaces")
    assert chosen is not None
    assert chosen.value == "tabs"


def test_what_was_superseded_is_not_audited(ws: Workspace) -> None:
    write(ws, "facts", "fact-old", statement="Always write clean code", status="superseded")
    assert ws.care.audit().memories == 0


def test_an_audit_of_another_system_writes_nothing(tmp_path: Path) -> None:
    notes = tmp_path / "other" / ".serena" / "memories"
    notes.mkdir(parents=True)
    text = "- Fix bugs properly\n- Deploys go through staging, never straight to production\n"
    (notes / "notes.md").write_text(text)
    before = sorted(tmp_path.rglob("*"))
    audit = audit_of(tmp_path / "other", "")
    assert (audit.memories, audit.junk) == (2, 1)
    assert len(audit.unchecked) == 2
    assert sorted(tmp_path.rglob("*")) == before


def test_copies_in_another_system_count_as_duplicates(tmp_path: Path) -> None:
    entry = {"type": "entity", "name": "Shop", "entityType": "project", "observations": []}
    said = "Prices are kept in cents, in events too"
    lines = [json.dumps({**entry, "observations": [said, said]}), ""]
    (tmp_path / "memory.jsonl").write_text("\n".join(lines))
    audit = audit_of(tmp_path / "memory.jsonl", "mcp-memory")
    assert found(audit, "duplicate").memories == 1


def test_the_same_store_gives_the_same_audit(ws: Workspace) -> None:
    for text in ("Always write clean code", "Fix bugs properly", "Test everything well"):
        ws.remember(text)
    assert ws.care.audit() == ws.care.audit()


def test_the_command_prints_json(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    ws.remember("Always write clean code")
    monkeypatch.chdir(ws.layout.root)
    from loki_memory.cli.main import cli

    printed = CliRunner().invoke(cli, ["audit", "--json"])
    assert json.loads(printed.stdout)["rate"] == 1.0
