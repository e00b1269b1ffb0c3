"""What is exported and imported again is what it was, whatever the format and the kind."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from loki_memory import Workspace
from loki_memory.cli.main import cli
from loki_memory.errors import BadArchive, InvalidRecord
from loki_memory.files.codec import build
from loki_memory.files.zones import exported_paths
from loki_memory.interop.export_memory import FORMATS
from loki_memory.interop.import_memory import source_of
from loki_memory.interop.sources.markdown import page_of
from loki_memory.models.kinds import KINDS, Kind

NASTY = 'She said "<!-- loki-mem:record {} -->", ünïcode, a \\ and a > sign'
DOCUMENTS: dict[Kind, dict[str, Any]] = {
    "episode": {
        "id": "ep-2026-01-06-001",
        "timestamp": "2026-01-06T10:30:00Z",
        "context": {"goal": NASTY, "files_involved": ["src/a.ts"]},
        "action_log": [{"t": 0, "action": "read", "extra": [1, {"deep": None}]}],
        "outcome": "success",
        "their_own": {"field": True},
    },
    "pattern": {
        "id": "sem-001",
        "pattern": "Handlers need explicit return types",
        "confidence": 0.95,
        "evidence": {"for": ["ep-2026-01-06-001"], "episodes": {"ep-x-1": {"day": "2026-01-05"}}},
        "links": [{"to": "sem-005", "relation": "related_to"}],
        "origin": "owner",
    },
    "anti-pattern": {
        "what_fails": "npm install",
        "why": NASTY,
        "resolutions": [{"do": "use pnpm", "for": ["ep-2026-01-06-001"]}],
        "origin": "agent",
    },
    "fact": {"statement": NASTY, "type": "decision", "tags": ["a", "b"], "origin": "owner"},
    "link": {"from": "sem-001", "relation": "elaborates", "to": "sem-005", "note": "both"},
    "skill": {
        "name": "run-tests",
        "description": "How to run them",
        "metadata": {"loki-origin": "owner"},
        "body": f"# Skill: Run tests\n\n## Steps\n1. tox\n\n{NASTY}\n",
    },
    "ledger": {"agent_id": "Eng 1", "tasks_completed": 3, "context": {"current_goal": "ship"}},
    "handoff": {"timestamp": "2026-01-06T11:00:00Z", "from_agent": "eng", "to_agent": "qa"},
    "learning": {"timestamp": "2026-01-06", "lesson": "Mind the clock", "error": "drift"},
    "tombstone": {"value": "Use npm", "why": "we do not", "at": "2026-01-06", "origin": "owner"},
}


def fill(ws: Workspace) -> None:
    with ws.store.change() as change:
        for kind, document in DOCUMENTS.items():
            change.create(build(kind, document))
        change.create(build("fact", {"statement": "Mara runs the tests", "scope": "local"}))
    ws.archive(ws.remember("An archived fact that nobody needs").id)
    ws.sync()


@pytest.fixture
def filled(ws: Workspace) -> Workspace:
    fill(ws)
    return ws


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Workspace]:
    folder = tmp_path / "other"
    folder.mkdir()
    with Workspace.init(folder) as workspace:
        yield workspace


def record_files(ws: Workspace, *, private: bool = False) -> dict[str, bytes]:
    """Record files by path; views are rendered from them."""
    zones = [ws.layout.memory, *([ws.layout.local / "memory"] if private else [])]
    views = ("patterns.json", "anti-patterns.json", "facts.json", "links.json", "index.json")
    return {
        f"{number}/{path.relative_to(zone).as_posix()}": path.read_bytes()
        for number, zone in enumerate(zones)
        for path in sorted(zone.rglob("*"))
        if path.is_file() and path.name not in views and path.parent.name != "learnings"
    }


def shared(files: dict[str, bytes]) -> dict[str, bytes]:
    return {path: data for path, data in files.items() if "/archive/" not in path}


def run(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["-C", str(folder), *words], catch_exceptions=False)


def test_the_records_have_every_kind() -> None:
    assert set(DOCUMENTS) == set(KINDS)


@pytest.mark.parametrize("name", ["memory.jsonl", "memory.md", "memory"])
def test_export_and_import_is_the_identity(
    filled: Workspace, other: Workspace, tmp_path: Path, name: str
) -> None:
    format_ = dict(zip(["memory.jsonl", "memory.md", "memory"], FORMATS, strict=True))[name]
    done = filled.interop.export_memory(tmp_path / name, format_)
    assert done.records == dict.fromkeys(sorted(KINDS), 1)
    found = other.interop.import_memory("", tmp_path / name, as_is=True)
    refused = [entry for entry in found.refused if entry.where != "index.md"]
    assert (len(found.records), found.known, refused) == (len(KINDS), 0, [])
    assert record_files(other) == shared(record_files(filled))


@pytest.mark.parametrize("format_", FORMATS)
def test_an_export_of_somebody_else_cannot_claim_to_be_trusted(
    filled: Workspace, other: Workspace, tmp_path: Path, format_: str
) -> None:
    path = tmp_path / ("memory.md" if format_ == "markdown" else "memory.jsonl")
    if format_ == "okf":
        path = tmp_path / "memory"
    filled.interop.export_memory(path, format_)
    found = other.interop.import_memory(source_of(path), path)
    origins = {getattr(record, "origin", "import") for record in found.records}
    assert origins == {"import"}
    assert "tombstone" not in {record.kind for record in found.records}
    assert any("--as-is" in entry.why for entry in found.refused)


def test_importing_an_export_where_it_came_from_changes_nothing(
    filled: Workspace, tmp_path: Path
) -> None:
    before = record_files(filled, private=True)
    filled.interop.export_memory(tmp_path / "m.jsonl")
    found = filled.interop.import_memory("", tmp_path / "m.jsonl")
    assert found.records == []
    assert record_files(filled, private=True) == before


def test_private_and_archived_memory_is_not_exported(filled: Workspace, tmp_path: Path) -> None:
    filled.interop.export_memory(tmp_path / "m.jsonl")
    text = (tmp_path / "m.jsonl").read_text(encoding="utf-8")
    assert "Mara" not in text
    assert "nobody needs" not in text


def test_every_page_of_a_bundle_has_what_okf_asks_for(filled: Workspace, tmp_path: Path) -> None:
    filled.interop.export_memory(tmp_path / "bundle", "okf")
    assert page_of(tmp_path / "bundle/index.md").about["okf_version"] == "0.2"
    pages = sorted((tmp_path / "bundle").glob("*/*.md"))
    assert len(pages) == len(KINDS)
    for page in pages:
        about = page_of(page).about
        assert about["type"]
        assert about["status"] in {"draft", "stable", "deprecated"}
        assert set(about["generated"]) == {"by", "at"}
    pattern = page_of(tmp_path / "bundle/patterns/sem-001.md").about
    assert pattern["sources"] == [{"resource": "urn:loki:ep-2026-01-06-001"}]


def test_a_file_that_is_there_is_not_overwritten(filled: Workspace, tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text("mine")
    with pytest.raises(BadArchive, match="exists already"):
        filled.interop.export_memory(tmp_path / "m.jsonl")
    assert (tmp_path / "m.jsonl").read_text() == "mine"


def test_an_unknown_format_is_refused(filled: Workspace, tmp_path: Path) -> None:
    with pytest.raises(InvalidRecord, match="not a format"):
        filled.interop.export_memory(tmp_path / "m.yaml", "yaml")


def test_a_file_that_cannot_be_read_is_named_and_left_out(
    filled: Workspace, tmp_path: Path
) -> None:
    (filled.layout.memory / "semantic/facts/broken.json").write_text("{")
    done = filled.interop.export_memory(tmp_path / "m.jsonl")
    assert [line.split(":")[0] for line in done.unread] == ["semantic/facts/broken.json"]


def test_a_path_in_an_export_cannot_lead_out_of_memory(ws: Workspace, tmp_path: Path) -> None:
    lines = [
        {"format": "loki-memory export", "version": 1},
        {"kind": "fact", "path": "../../evil.json", "record": {"statement": "One that is bad"}},
        {"kind": "fact", "path": "local/.forgotten/x.json", "record": {"statement": "Two, too"}},
        {"kind": "nonsense", "record": {}},
    ]
    file = tmp_path / "m.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = ws.interop.import_memory("", file, as_is=True)
    assert [str(ws.browse.where(r.id).parent.name) for r in found.records] == ["facts", "facts"]
    assert len(found.refused) == 1


# -- clear ---------------------------------------------------------------------------------------


def test_what_is_cleared_comes_back_from_its_backup(filled: Workspace) -> None:
    before = record_files(filled, private=True)
    done = filled.interop.clear_memory()
    assert record_files(filled, private=True) == {}
    assert filled.list(status="all") == []
    assert sum(done.removed.values()) == len(before)
    assert stat.S_IMODE(os.stat(done.backup).st_mode) == 0o600
    found = filled.interop.import_memory("", done.backup, as_is=True)
    assert (len(found.records), found.refused) == (len(before), [])
    assert record_files(filled, private=True) == before


def test_the_user_memory_stays_when_a_project_is_cleared(ws: Workspace) -> None:
    mine = ws.remember("Answer in English", scope="user")
    ws.interop.clear_memory()
    assert ws.get(mine.id).title() == "Answer in English"


def test_clear_asks_first_and_removes_nothing_where_nobody_can_answer(
    filled: Workspace, project: Path
) -> None:
    before = record_files(filled, private=True)
    assert "use --yes" in CliRunner().invoke(cli, ["-C", str(project), "clear"]).output
    assert "would remove" in run(project, "clear", "--plan").output
    assert record_files(filled, private=True) == before
    done = json.loads(run(project, "clear", "--yes", "--json").stdout)
    assert Path(done["backup"]).is_file()
    assert record_files(filled, private=True) == {}


def test_a_second_clear_has_a_backup_of_its_own(ws: Workspace, monkeypatch: Any) -> None:
    monkeypatch.setenv("LOKI_NOW", "2026-01-20T09:00:00Z")
    assert ws.interop.clear_memory().backup != ws.interop.clear_memory().backup


# -- dedupe --------------------------------------------------------------------------------------


def test_what_says_the_same_is_listed_then_merged(ws: Workspace) -> None:
    first = ws.remember("Contract tests need the database running")
    second = ws.remember("The contract tests need the database running")
    other = ws.remember("Contract tests do not need the database running")
    ws.sync()
    plan = ws.care.dedupe(plan_only=True)
    assert len(plan.merged) == 1
    assert {ws.get(m.id).status for m in (first, second, other)} == {"active"}  # type: ignore[attr-defined]
    done = ws.care.dedupe()
    assert done.merged == plan.merged
    gone = ws.get(done.merged[0].id)
    assert gone.id in {first.id, second.id}
    assert gone.document()["status"] == "superseded"
    assert ws.get(other.id).document().get("status", "active") == "active"
    assert ws.care.dedupe().merged == []


@pytest.mark.parametrize("format_", FORMATS)
def test_an_export_does_not_repeat_a_secret_that_somebody_wrote_by_hand(
    ws: Workspace, tmp_path: Path, format_: str
) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4  # the form of a token, not one
    memory = ws.layout.memory
    fact, skill = memory / "semantic/facts/fact-hand.json", memory / "skills/release.md"
    for path, text in {
        fact: f'{{"id": "fact-hand", "statement": "Deploy with {secret}"}}',
        skill: f"---\nname: release\ndescription: Release it\n---\n\nRun TOKEN={secret} make\n",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = ws.interop.export_memory(tmp_path / "out", format_)
    out = [path for path in [tmp_path / "out", *(tmp_path / "out").rglob("*")] if path.is_file()]
    text = "".join(path.read_text() for path in out)
    assert (done.records["fact"], done.records["skill"]) == (1, 1)
    assert secret not in text
    assert text.count("[REDACTED:") >= 2
    assert secret in fact.read_text()


def test_an_export_to_a_name_that_is_no_unicode_is_noted(ws: Workspace, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"out-\xff")
    ws.interop.export_memory(path)
    assert exported_paths(ws.layout) == [path]
