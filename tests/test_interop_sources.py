"""Every source of an import keeps one contract, whatever its format.

The files are built from what each system documents, or from the shape of real ones; no file of a
real project is part of the tests.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from loki_memory import Workspace
from loki_memory.errors import InvalidRecord
from loki_memory.interop.import_memory import Imported, ImportOptions, import_memory, source_of
from loki_memory.interop.sources import SOURCES, detected
from loki_memory.models import Episode, Fact, Memory, Skill

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
SAID = f"The deploy key is {SECRET} for now"


class Sample(NamedTuple):
    """A file or folder of a system, and what it holds."""

    path: Path
    new: dict[str, int]  # records by kind
    refused: int  # entries


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def lines(path: Path, *values: Any) -> Path:
    return write(path, "".join(json.dumps(value) + "\n" for value in values))


def database(path: Path, script: str, *inserts: tuple[str, tuple[Any, ...]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = wal")  # as all of these programs have it
        connection.executescript(script)
        for statement, values in inserts:
            connection.execute(statement, values)
        connection.commit()
    return path


def rules(top: Path) -> Sample:
    text = f"# Shop\n\n## Testing\n\n- Run the contract tests first\n- {SAID}\n\n"
    write(top / "AGENTS.md", text + "```sh\nmake test\n```\n\n```python\nimport shop\n```\n")
    rule = (
        "---\ndescription: TypeScript\nglobs: *.ts\nalwaysApply: false\n---\nUse explicit types.\n"
    )
    write(top / ".cursor/rules/types.mdc", rule)
    write(top / ".github/copilot-instructions.md", "Prices are kept in cents everywhere.\n")
    return Sample(top, {"fact": 5}, 1)


def claude_memory(top: Path) -> Sample:
    write(top / "MEMORY.md", f"- Contract tests need the database\n- {SAID}\n")
    return Sample(top, {"fact": 2}, 0)


def serena(top: Path) -> Sample:
    write(top / ".serena/memories/tests.md", f"# Tests\n\n- Run them with tox\n- {SAID}\n")
    write(top / ".serena/memories/deep/style.md", "# Style\n\nNames are the words of the trade.\n")
    return Sample(top, {"fact": 3}, 0)


def beads(top: Path) -> Sample:
    closed = {
        "id": "s-1",
        "title": "Mend the cart",
        "status": "closed",
        "priority": 1,
        "issue_type": "bug",
        "closed_at": "2026-01-08T20:46:38+02:00",
        "close_reason": SAID,
        "dependencies": [{"depends_on_id": "s-2"}],
    }
    waiting = {
        "id": "s-2",
        "title": "Sell in two currencies",
        "status": "open",
        "priority": 2,
        "issue_type": "feature",
        "created_at": "2026-01-08T10:00:00Z",
    }
    gone = {"id": "s-3", "title": "Twice", "status": "tombstone"}
    lines(top / ".beads/issues.jsonl", closed, waiting, gone)
    lines(top / ".beads/interactions.jsonl", {"id": "i-1"}, {"id": "i-2"})
    return Sample(top, {"episode": 1, "fact": 1}, 3)


def mcp_memory(top: Path) -> Sample:
    entity = {
        "type": "entity",
        "name": "Shop",
        "entityType": "service",
        "observations": ["listens on 8080", SAID],
    }
    bare = {"name": "Cart", "entityType": "module", "observations": []}
    relation = {"from": "Shop", "to": "Cart", "relationType": "depends_on"}
    lines(top / "memory.jsonl", entity, bare, relation, {"name": "neither"})
    return Sample(top / "memory.jsonl", {"fact": 4}, 1)


def mcp_memory_as_one_object(top: Path) -> Sample:
    entity = {"name": "Shop", "entityType": "service", "observations": [{"content": SAID}]}
    relation = {"from": "Shop", "to": "Cart", "relationType": "has"}
    write(top / "memory.json", json.dumps({"entities": [entity], "relations": [relation]}))
    return Sample(top / "memory.json", {"fact": 2}, 0)


def basic_memory(top: Path) -> Sample:
    text = (
        "---\ntitle: Sign in\ntype: note\ntags: [auth]\npermalink: sign-in\n---\n# Sign in\n\n"
        "Tokens are checked at the gateway.\n\n## Observations\n"
        f"- [decision] Tokens expire after an hour #jwt\n- [fact] {SAID}\n\n"
        "## Relations\n- depends_on [[User table]]\n"
    )
    write(top / "notes/sign-in.md", text)
    return Sample(top, {"fact": 4}, 0)


def mem0(top: Path) -> Sample:
    memories = [
        {
            "id": "m1",
            "memory": "Ana prefers pnpm",
            "categories": ["tools"],
            "user_id": "ana",
            "metadata": {"type": "preference"},
            "created_at": "2026-01-08T10:00:00Z",
        },
        {"id": "m2", "memory": SAID},
        {"id": "m3", "memory": ""},
    ]
    write(top / "mem0.json", json.dumps({"results": memories}))
    return Sample(top / "mem0.json", {"fact": 2}, 1)


CLAUDE_MEM = """
    CREATE TABLE observations (id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT,
        text TEXT, type TEXT, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT,
        files_read TEXT, files_modified TEXT, created_at TEXT, created_at_epoch INTEGER);
    CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT,
        request TEXT, investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT,
        files_read TEXT, files_edited TEXT, notes TEXT, created_at TEXT, created_at_epoch INTEGER);
"""


def claude_mem(top: Path) -> Sample:
    observed = (
        "INSERT INTO observations (project, type, title, narrative, concepts, facts, "
        "created_at_epoch) VALUES (?, ?, ?, ?, ?, '[\"it holds a lock\"]', ?)"
    )
    summed = (
        "INSERT INTO session_summaries (project, request, learned, created_at_epoch) "
        "VALUES (?, ?, ?, ?)"
    )
    at = 1_767_866_400_000
    file = database(
        top / "claude-mem.db",
        CLAUDE_MEM,
        (observed, ("project", "bugfix", "The cart lost items", SAID, '["cart"]', at)),
        (observed, ("elsewhere", "bugfix", "Not ours", "of another project", "[]", at)),
        (summed, ("project", "Mend the cart", "The lock was missing", at)),
    )
    return Sample(file, {"episode": 1, "fact": 1}, 1)


LORE = """
    CREATE TABLE fragments (id TEXT PRIMARY KEY, content TEXT NOT NULL, summary TEXT NOT NULL,
        depth INTEGER NOT NULL, embedding BLOB, created_at INTEGER NOT NULL,
        last_accessed INTEGER NOT NULL, access_count INTEGER DEFAULT 0, source_session TEXT,
        superseded_by TEXT, metadata TEXT, importance REAL DEFAULT 0.5,
        relevance_score REAL DEFAULT 1.0, decay_rate REAL DEFAULT 0.035,
        last_reinforced INTEGER DEFAULT 0);
    CREATE TABLE edges (id TEXT PRIMARY KEY, source TEXT NOT NULL, target TEXT NOT NULL,
        kind TEXT NOT NULL, weight REAL DEFAULT 1.0, created_at INTEGER NOT NULL);
"""


def lore(top: Path) -> Sample:
    fragment = (
        "INSERT INTO fragments (id, content, summary, depth, created_at, last_accessed, "
        "importance, superseded_by) VALUES (?, ?, '', ?, 1767866400, 0, 0.9, ?)"
    )
    edge = "INSERT INTO edges VALUES (?, ?, ?, ?, 1.0, 0)"
    file = database(
        top / "memory.db",
        LORE,
        (fragment, ("a", "Error handling in Rust", 0, None)),
        (fragment, ("b", "anyhow is for applications", 1, None)),
        (fragment, ("c", SAID, 1, "b")),
        (fragment, ("d", "", 1, None)),
        (edge, ("1", "a", "b", "hierarchical")),
        (edge, ("2", "b", "c", "associative")),
        (edge, ("3", "b", "c", "temporal")),
    )
    return Sample(file, {"fact": 3}, 1)


def lynkr(top: Path) -> Sample:
    script = """
        CREATE TABLE memories (id INTEGER PRIMARY KEY, session_id TEXT, memory_type TEXT,
            content TEXT NOT NULL, context TEXT, importance REAL, created_at INTEGER,
            last_accessed INTEGER, access_count INTEGER);
    """
    insert = (
        "INSERT INTO memories (session_id, memory_type, content, importance, created_at) "
        "VALUES (?, ?, ?, ?, 1767866400)"
    )
    file = database(
        top / "memories.db",
        script,
        (insert, (None, "preference", "I prefer Python for scripts", 0.85)),
        (insert, ("s1", "fact", SAID, 0.5)),
        (insert, (None, "fact", " ", 0.5)),
    )
    return Sample(file, {"fact": 2}, 1)


def claude_flow(top: Path) -> Sample:
    script = """
        CREATE TABLE memory_entries (id TEXT PRIMARY KEY, key TEXT NOT NULL, content TEXT NOT NULL,
            type TEXT NOT NULL, namespace TEXT NOT NULL, tags TEXT NOT NULL, metadata TEXT NOT NULL,
            owner_id TEXT, access_level TEXT NOT NULL, created_at INTEGER NOT NULL,
            updated_at INTEGER NOT NULL, expires_at INTEGER, version INTEGER NOT NULL,
            "references" TEXT NOT NULL, access_count INTEGER NOT NULL,
            last_accessed_at INTEGER NOT NULL);
    """
    insert = (
        "INSERT INTO memory_entries VALUES (?, ?, ?, 'semantic', 'build', ?, '{}', NULL, "
        "'project', 1767866400000, 1767866400000, NULL, 1, '[]', 0, 0)"
    )
    file = database(
        top / ".swarm/hybrid-memory.db",
        script,
        (insert, ("1", "package_manager", "pnpm", '["tools"]')),
        (insert, ("2", "key", SAID, "[]")),
    )
    return Sample(file.parent, {"fact": 2}, 0)


def claude_flow_json(top: Path) -> Sample:
    entries = [{"key": "port", "content": "8080"}, {"content": SAID}, {"note": 1}]
    write(top / ".claude/memory/project.json", json.dumps({"entries": entries}))
    return Sample(top / ".claude/memory", {"fact": 2}, 1)


def loki(top: Path) -> Sample:
    memory = top / ".loki/memory"
    pattern = {
        "id": "sem-001",
        "pattern": "Handlers need explicit return types",
        "confidence": 0.95,
        "source_episodes": ["ep-2026-01-06-001"],
    }
    write(memory / "semantic/patterns.json", json.dumps({"patterns": [pattern, {"id": "sem-2"}]}))
    episode = {
        "id": "ep-2026-01-06-001",
        "timestamp": "2026-01-06T10:30:00Z",
        "outcome": "success",
        "context": {"goal": SAID},
    }
    write(memory / "episodic/2026-01-06/task-001.json", json.dumps(episode))
    write(memory / "episodic/index.json", "{}")
    skill = {
        "id": "k",
        "name": "Run tests",
        "description": "How to run them",
        "steps": ["tox"],
        "common_errors": [{"error": "no tox", "fix": "install it"}],
    }
    write(memory / "skills/run.json", json.dumps(skill))
    write(memory / "ledgers/eng-001.json", json.dumps({"agent_id": "eng-001"}))
    handoff = {"id": "handoff-001", "timestamp": "2026-01-06T11:00:00Z", "to_agent": "qa"}
    write(memory / "handoffs/handoff-001.json", json.dumps(handoff))
    write(memory / "timeline.json", "{}")
    notes = "# Continuity\n\n## Mistakes & Learnings\n\n- The clock must be UTC in tests\n"
    write(top / ".loki/CONTINUITY.md", notes)
    kinds = ("pattern", "episode", "skill", "ledger", "handoff", "learning")
    return Sample(top, dict.fromkeys(kinds, 1), 3)


def okf(top: Path) -> Sample:
    write(top / "index.md", '---\nokf_version: "0.2"\n---\n# Shop\n')
    page = (
        "---\ntype: decision\ntitle: Prices\ndescription: Prices are kept in cents\n"
        f"tags: [money]\nstatus: draft\nsources:\n  - resource: x\n---\n# Prices\n\n- {SAID}\n"
    )
    write(top / "decisions/prices.md", page)
    write(top / "decisions/no-type.md", "Nothing above.\n")
    return Sample(top, {"fact": 2}, 2)


BUILDERS: dict[str, tuple[str, Callable[[Path], Sample]]] = {
    builder.__name__: (name, builder)
    for name, builder in [
        ("rules", rules),
        ("claude-memory", claude_memory),
        ("serena", serena),
        ("beads", beads),
        ("mcp-memory", mcp_memory),
        ("mcp-memory", mcp_memory_as_one_object),
        ("basic-memory", basic_memory),
        ("mem0", mem0),
        ("claude-mem", claude_mem),
        ("lore", lore),
        ("lynkr", lynkr),
        ("claude-flow", claude_flow),
        ("claude-flow", claude_flow_json),
        ("loki", loki),
        ("okf", okf),
    ]
}


@pytest.fixture(params=BUILDERS)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Sample]:
    name, builder = BUILDERS[request.param]
    top = tmp_path / "theirs"
    top.mkdir()
    return name, builder(top)


def contents(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    return {str(file): file.read_bytes() for file in files if file.is_file()}


def kinds(found: Imported) -> dict[str, int]:
    return dict(Counter(record.kind for record in found.records))


def entries_refused(found: Imported) -> int:
    return sum(refused.entries for refused in found.refused)


def facts(found: Imported) -> dict[str, Fact]:
    return {r.statement: r for r in found.records if isinstance(r, Fact)}


def built(name: str, tmp_path: Path) -> Path:
    (tmp_path / "theirs").mkdir()
    return BUILDERS[name][1](tmp_path / "theirs").path


# -- the contract --------------------------------------------------------------------------------


def test_every_source_has_a_sample() -> None:
    tried = {name for name, _ in BUILDERS.values()}
    assert tried | {"loki-export"} == set(SOURCES)  # tests/test_interop_export.py has that one


def test_its_files_are_known_as_its_own(source: tuple[str, Sample]) -> None:
    name, sample = source
    assert detected(sample.path) == [name]
    assert source_of(sample.path) == name


def test_each_entry_becomes_a_record_or_is_listed(
    ws: Workspace, source: tuple[str, Sample]
) -> None:
    name, sample = source
    found = import_memory(ws, "", sample.path)
    assert (found.source, found.known) == (name, 0)
    assert kinds(found) == sample.new
    assert entries_refused(found) == sample.refused
    assert all(refused.where and refused.why for refused in found.refused)


def test_importing_again_adds_nothing(ws: Workspace, source: tuple[str, Sample]) -> None:
    _, sample = source
    first = import_memory(ws, "", sample.path)
    ws.sync()
    before = contents(ws.layout.loki)
    again = import_memory(ws, "", sample.path)
    assert (again.records, again.known) == ([], len(first.records))
    assert contents(ws.layout.memory) == {
        path: data for path, data in before.items() if path.startswith(str(ws.layout.memory))
    }


def test_a_plan_says_the_same_and_writes_nothing(ws: Workspace, source: tuple[str, Sample]) -> None:
    _, sample = source
    before = contents(ws.layout.memory)
    plan = import_memory(ws, "", sample.path, ImportOptions(plan_only=True))
    assert contents(ws.layout.memory) == before
    done = import_memory(ws, "", sample.path)
    assert [record.id for record in plan.records] == [record.id for record in done.records]


def test_their_files_stay_as_they_are(ws: Workspace, source: tuple[str, Sample]) -> None:
    _, sample = source
    folder = sample.path.parent if sample.path.is_file() else sample.path
    before = contents(folder)
    import_memory(ws, "", sample.path)
    assert contents(folder) == before


def test_a_secret_does_not_get_in(ws: Workspace, source: tuple[str, Sample]) -> None:
    _, sample = source
    found = import_memory(ws, "", sample.path)
    stored = b"".join((*contents(ws.layout.loki).values(), *contents(ws.layout.local).values()))
    assert SECRET.encode() not in stored
    assert any("[REDACTED:" in json.dumps(record.document()) for record in found.records)


def test_whatever_they_say_has_the_origin_of_an_import(
    ws: Workspace, source: tuple[str, Sample]
) -> None:
    _, sample = source
    for record in import_memory(ws, "", sample.path).records:
        origin = (
            record.metadata["loki-origin"]
            if isinstance(record, Skill)
            else getattr(record, "origin", None)
        )
        assert origin == "import", record.id


def test_episodes_stay_on_this_machine_unless_they_are_to_be_shared(
    ws: Workspace, source: tuple[str, Sample]
) -> None:
    _, sample = source
    options = ImportOptions(plan_only=True)
    private = import_memory(ws, "", sample.path, options).records
    shared = import_memory(ws, "", sample.path, options._replace(scope="project")).records
    assert {r.scope for r in private if isinstance(r, Episode)} <= {"local"}
    assert {r.scope for r in shared if isinstance(r, Episode)} <= {"project"}


# -- what is particular to one of them -------------------------------------------------------------


def test_the_tree_and_the_links_of_lore_are_kept(ws: Workspace, tmp_path: Path) -> None:
    found = facts(import_memory(ws, "lore", built("lore", tmp_path)))
    root, child = found["Error handling in Rust"], found["anyhow is for applications"]
    old = next(fact for fact in found.values() if fact.status == "superseded")
    assert (child.parent, child.depth, child.importance) == (root.id, 1, 0.9)
    assert [(link.relation, link.to) for link in child.links] == [("related_to", old.id)]
    assert [(link.relation, link.to) for link in old.links] == [("superseded_by", child.id)]
    assert child.valid_from == "2026-01-08"


def test_a_memory_of_one_conversation_stays_private(ws: Workspace, tmp_path: Path) -> None:
    found = import_memory(ws, "lynkr", built("lynkr", tmp_path)).records
    assert [(r.scope, r.type) for r in found if isinstance(r, Fact)] == [
        ("project", "preference"),
        ("local", "fact"),
    ]


def test_sessions_of_other_projects_come_only_when_asked_for(ws: Workspace, tmp_path: Path) -> None:
    path = built("claude_mem", tmp_path)
    ours = import_memory(ws, "claude-mem", path)
    assert [r.why for r in ours.refused] == ["memory of another project"]
    more = import_memory(ws, "claude-mem", path, ImportOptions(every_project=True))
    assert [r.title() for r in more.records] == ["Not ours: of another project it holds a lock"]


def test_a_short_value_is_told_with_its_key(ws: Workspace, tmp_path: Path) -> None:
    found = facts(import_memory(ws, "claude-flow", built("claude_flow", tmp_path)))
    fact = found["package manager: pnpm"]
    assert (fact.category, fact.tags) == ("build", ["tools"])


def test_a_skill_in_json_becomes_markdown_with_its_sections(ws: Workspace, tmp_path: Path) -> None:
    found = import_memory(ws, "loki", built("loki", tmp_path))
    skill = next(record for record in found.records if isinstance(record, Skill))
    assert (skill.name, skill.steps) == ("run-tests", ["tox"])
    assert skill.common_errors == [("no tox", "install it")]


def test_records_of_a_loki_folder_keep_their_ids_and_their_evidence(
    ws: Workspace, tmp_path: Path
) -> None:
    import_memory(ws, "loki", built("loki", tmp_path))
    pattern: Memory = ws.get("sem-001")
    assert pattern.document()["source_episodes"] == ["ep-2026-01-06-001"]
    assert ws.get("ep-2026-01-06-001").kind == "episode"


def test_fields_without_a_place_are_counted(ws: Workspace, tmp_path: Path) -> None:
    assert import_memory(ws, "beads", built("beads", tmp_path)).left_out == {"dependencies": 1}


def test_names_of_home_folders_do_not_get_in(ws: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "m.json", json.dumps([{"memory": "Logs are in /home/ana/shop/logs"}]))
    (record,) = import_memory(ws, "mem0", path).records
    assert record.title() == "Logs are in ~/shop/logs"
    pattern = {"id": "sem-9", "pattern": "Work in /Users/ana/shop"}
    write(tmp_path / "p/.loki/memory/semantic/patterns/sem-9.json", json.dumps(pattern))
    (record,) = import_memory(ws, "loki", tmp_path / "p").records
    assert (record.id, record.title()) == ("sem-9", "Work in ~/shop")


def test_rules_say_to_which_files_they_apply(ws: Workspace, tmp_path: Path) -> None:
    found = facts(import_memory(ws, "rules", built("rules", tmp_path)))
    types = found["Use explicit types."]
    assert (types.type, types.document()["applies_to"]) == ("rule", "*.ts")
    assert found["Testing: make test"].type == "rule"


def test_a_file_that_is_named_is_read_whatever_its_name(ws: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "HOUSE-RULES.md", "Prices are kept in cents everywhere.\n")
    assert detected(path) == []
    (record,) = import_memory(ws, "rules", path).records
    assert "scope" not in record.document(), "the project's is the default"


def test_memory_of_several_systems_must_be_named(ws: Workspace, tmp_path: Path) -> None:
    rules(tmp_path / "both")
    serena(tmp_path / "both")
    with pytest.raises(InvalidRecord, match="several systems: serena, rules"):
        import_memory(ws, "", tmp_path / "both")
    assert import_memory(ws, "serena", tmp_path / "both").records


def test_a_workspace_is_not_imported_into_itself(ws: Workspace, project: Path) -> None:
    with pytest.raises(InvalidRecord, match="memory of this workspace"):
        import_memory(ws, "loki", project)


def test_a_path_without_memory_is_refused_with_the_names_of_sources(
    ws: Workspace, tmp_path: Path
) -> None:
    with pytest.raises(InvalidRecord, match="no memory of a known system"):
        import_memory(ws, "", write(tmp_path / "empty.txt", "nothing"))


_COUNTED = (
    "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id FROM n)"
    " SELECT id, 'x' AS content, 1 AS importance, 1 AS created_at FROM n"
)
ENDLESS = {
    "a view": f"CREATE VIEW memories AS {_COUNTED}",
    "a virtual table": f"CREATE VIEW v AS {_COUNTED};"
    "CREATE VIRTUAL TABLE memories"
    " USING fts5(id, content, importance, created_at, content=v, content_rowid=id)",
}


@pytest.mark.parametrize("script", ENDLESS.values(), ids=ENDLESS)
def test_a_table_that_computes_what_it_shows_is_none(
    ws: Workspace, tmp_path: Path, script: str
) -> None:
    path = database(tmp_path / "lynkr" / "memories.db", script)
    with pytest.raises(InvalidRecord):
        import_memory(ws, "lynkr", path)


def test_a_column_that_is_computed_is_not_read(ws: Workspace, tmp_path: Path) -> None:
    columns = "id TEXT, importance REAL, created_at TEXT"
    endless = "GENERATED ALWAYS AS (hex(zeroblob(60000000)))"  # more than a value may have
    row = "'a', .5, '2026-03-02T09:10:00Z'"
    script = (
        f"CREATE TABLE memories ({columns}, content TEXT, note TEXT {endless});"  # noqa: S608
        f"INSERT INTO memories VALUES ({row}, 'Deploys need a tag')"
    )
    import_memory(ws, "lynkr", database(tmp_path / "one" / "memories.db", script))
    assert [memory.statement for memory in ws.list() if isinstance(memory, Fact)] == [
        "Deploys need a tag"
    ]
    script = (
        f"CREATE TABLE memories ({columns}, content TEXT {endless});"  # noqa: S608
        f"INSERT INTO memories VALUES ({row})"
    )
    found = import_memory(ws, "lynkr", database(tmp_path / "two" / "memories.db", script))
    assert not found.records


def test_a_pipe_is_not_waited_for(ws: Workspace, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "CLAUDE.md")
    with pytest.raises(InvalidRecord):
        import_memory(ws, "", tmp_path / "CLAUDE.md")


def test_a_damaged_database_is_an_error_that_names_it(ws: Workspace, tmp_path: Path) -> None:
    path = built("lore", tmp_path)
    path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 8192)
    with pytest.raises(InvalidRecord, match="cannot be read as a database"):
        import_memory(ws, "lore", path)
