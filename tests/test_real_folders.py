"""`.loki` folders as people have them: several schemas, empty files, files of other programs.

With LOKI_BENCH_DATA=DIR the real folders in DIR/loki_real are tried too.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from loki_memory import Workspace
from loki_memory.errors import LokiMemoryError
from loki_memory.files.layout import view_kind

# Read when this module is: later, LOKI_* is taken out of the environment.
REAL = Path(os.environ.get("LOKI_BENCH_DATA") or "/nowhere") / "loki_real"
FOLDERS = sorted(REAL.glob("*/final")) if REAL.is_dir() else []
OURS = {"config.toml", ".gitignore"}


def tree(root: Path) -> dict[str, bytes]:
    """Every file that we must not change: all but the views and what we add."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        inside = name.rpartition(".loki/")[2]
        derived = inside.startswith(("cache/", "local/", "memory/.")) or inside in OURS
        if path.is_file() and not derived and not view_kind(inside.removeprefix("memory/")):
            found[name] = path.read_bytes()
    return found


def titles(ws: Workspace, **filters: Any) -> list[str]:
    return sorted(memory.title() for memory in ws.list(**filters))


def put(loki: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = loki / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


# -- real folders --------------------------------------------------------------------------------


@pytest.mark.skipif(not FOLDERS, reason="LOKI_BENCH_DATA names no folder with loki_real/")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_a_real_folder_is_read_and_nothing_in_it_changes(folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy", symlinks=True))
    before = tree(copy)
    workspaces = [path.parent for path in copy.rglob(".loki") if path.is_dir()]
    assert workspaces
    for root in workspaces:
        with Workspace.open(root) as ws:
            listed = {memory.id for memory in ws.list(status="all")}
            assert tree(copy) == before
            ws.status()
            ws.sync()
            assert {memory.id for memory in ws.list(status="all")} == listed
    after = tree(copy)
    assert {name: after.get(name) for name in before} == before


@pytest.mark.skipif(not FOLDERS, reason="LOKI_BENCH_DATA names no folder with loki_real/")
def test_the_real_folder_with_handoffs_and_episodes_is_listed_wholly(tmp_path: Path) -> None:
    [folder] = [f for f in FOLDERS if (f / ".loki" / "memory" / "handoffs").is_dir()]
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    view = copy / ".loki" / "memory" / "semantic" / "patterns.json"
    entries = json.loads(view.read_text(encoding="utf-8"))
    entries = entries if isinstance(entries, list) else entries["patterns"]
    with Workspace.open(copy) as ws:
        assert len(ws.list(kind="episode")) == 29
        assert len(ws.list(kind="handoff")) == 22
        assert len(ws.list(kind="pattern", status="all")) == len(entries) > 0
        ws.sync()
        assert len(ws.list(kind="pattern", status="all")) == len(entries)
        assert len(list((copy / ".loki/memory/semantic/patterns").glob("*.json"))) == len(entries)


# -- small ones of our own -----------------------------------------------------------------------

MESSY: dict[str, dict[str, str]] = {
    "nothing but the folder": {"CONTINUITY.md": "# now\n"},
    "empty files": {
        "memory/semantic/patterns.json": "",
        "memory/episodic/index.json": "",
        "memory/semantic/facts/empty.json": "",
        "memory/skills/empty.md": "",
        "memory/ledgers/empty.json": "\n",
        "memory/learnings/2026-01-06.json": "",
    },
    "files of other programs": {
        "memory/index.json": '{"version": "1.1.0", "topics": []}',
        "memory/timeline.json": '{"recent_actions": [{"action": "x"}]}',
        "memory/token_economics.json": "{}",
        "memory/semantic/notes.txt": "notes",
        "memory/semantic/graph/edges.json": "[]",
        "memory/handoffs/20260321-101500.md": "# Handoff\n",
        "memory/skills/README.md": "# About skills\n",
        "memory/skills/deploy/scripts/run.sh": "#!/bin/sh\n",
        "memory/learnings/notes.json": "[]",
        "state/orchestrator.json": "{}",
        "queue/pending.json": "[]",
        "session.json": "{}",
    },
    "views of another shape": {
        "memory/semantic/patterns.json": '{"patterns": {}, "version": 2}',
        "memory/semantic/anti-patterns.json": '"soon"',
        "memory/semantic/facts.json": "null",
        "memory/semantic/links.json": '{"edges": []}',
        "memory/episodic/index.json": '{"episodes": "none"}',
    },
    "broken everything": {
        "memory/semantic/patterns.json": "{",
        "memory/semantic/patterns/a.json": "{]",
        "memory/semantic/facts/b.json": '{"fact": ',
        "memory/episodic/2026-01-06/c.json": "not json",
        "memory/episodic/d.json": '{"goal": 5, "timestamp": {}}',
        "memory/handoffs/e.json": "[]",
        "memory/skills/f.md": "---\na: [\n---\n# F\n",
        "memory/ledgers/g.json": '{"agent_id": ""}',
        "memory/learnings/2026-01-06.json": "[1, 2]",
        "memory/learnings/2026-01-06/h.json": "{}",
        "config.toml": "format = 1\n",
    },
    "only empty folders": {"memory/semantic/patterns/.gitkeep": "", "memory/episodic/.gitkeep": ""},
}


@pytest.mark.parametrize("name", MESSY)
def test_a_messy_folder_is_read_and_nothing_in_it_changes(project: Path, name: str) -> None:
    put(project / ".loki", MESSY[name])
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    with Workspace.open(project) as ws:
        assert ws.list(status="all") == []
        ws.status()
        ws.care.doctor(deep=True)
        ws.sync()
        ws.remember("Good all the same")
        ws.record({"goal": "And this"})
        assert titles(ws) == ["And this", "Good all the same"]
        ws.sync()
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("name", ["empty files", "views of another shape", "broken everything"])
def test_every_file_that_cannot_be_read_is_a_problem(project: Path, name: str) -> None:
    put(project / ".loki", MESSY[name])
    with Workspace.open(project) as ws:
        expected = {path.removeprefix("memory/") for path in MESSY[name] if "memory/" in path}
        assert {problem.path for problem in ws.care.problems()} == expected


def test_files_of_other_programs_are_no_problem(project: Path) -> None:
    put(project / ".loki", MESSY["files of other programs"])
    with Workspace.open(project) as ws:
        assert ws.care.problems() == []


def test_handoffs_episodes_and_patterns_as_a_real_tool_writes_them(project: Path) -> None:
    handoff = {
        "timestamp": "2026-03-21T10:15:00+00:00Z",
        "reason": "session_end",
        "iteration": 3,
        "files_modified": ["src/app.ts"],
        "task_status": {"pending": 1},
        "open_questions": [],
        "key_decisions": ["use tabs"],
        "blockers": [],
    }
    episode = {
        "id": "ep-2026-03-21-abc",
        "task_id": "iteration-3",
        "timestamp": "2026-03-21T10:15:00.123456+00:00Z",
        "duration_seconds": 0,
        "agent": "loki-orchestrator",
        "context": {"phase": "BUILD", "goal": "Do it", "constraints": [], "files_involved": []},
        "action_log": [],
        "outcome": "success",
        "errors_encountered": [],
        "artifacts_produced": [],
        "git_commit": None,
        "tokens_used": 0,
        "files_read": [],
        "files_modified": [],
        "importance": 0.5,
        "last_accessed": None,
        "access_count": 0,
    }
    pattern = {
        "id": "sem-abc",
        "pattern": "Use tabs",
        "category": "general",
        "conditions": [],
        "correct_approach": "",
        "incorrect_approach": "",
        "confidence": 0.8,
        "source_episodes": [],
        "usage_count": 0,
        "last_used": None,
        "links": [],
        "importance": 0.5,
    }
    put(
        project / ".loki",
        {
            "memory/handoffs/20260321-101500.json": json.dumps(handoff),
            "memory/handoffs/20260321-101500.md": "# Handoff",
            "memory/episodic/2026-03-21/task-ep.json": json.dumps(episode),
            "memory/semantic/patterns.json": json.dumps(
                {"version": "1.1.0", "patterns": [pattern], "last_updated": "2026-03-21"}
            ),
        },
    )
    with Workspace.open(project) as ws:
        assert titles(ws) == ["Do it", "Use tabs", "session_end"]
        ws.sync()
        assert titles(ws) == ["Do it", "Use tabs", "session_end"]
        assert ws.care.problems() == []
        view = json.loads((project / ".loki/memory/semantic/patterns.json").read_text("utf-8"))
        assert view["version"] == "1.1.0"
        assert view["patterns"][0] == pattern | {"origin": "import"}


def test_a_file_named_loki_is_said(project: Path) -> None:
    (project / ".loki").write_text("not a folder", encoding="utf-8")
    with pytest.raises(LokiMemoryError, match=r"\.loki"):
        Workspace.init(project)
    with pytest.raises(LokiMemoryError, match=r"\.loki"):
        Workspace.open(project).remember("A")
    assert (project / ".loki").read_text(encoding="utf-8") == "not a folder"
