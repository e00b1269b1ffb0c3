"""Metrics of recent work: sums over episodes, and the files of `.loki/metrics`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loki_memory import Workspace
from loki_memory.browse.metrics import ToolUse, summary
from loki_memory.models import Episode, parse

FAILED = {"action": "Bash", "target": "npm test", "error": "1 failed"}
PASSED = {"action": "Bash", "target": "npm test"}
READ = {"action": "Read", "target": "src/cart.ts"}


def work(day: str, **fields: Any) -> dict[str, Any]:
    return {"goal": f"Work of {day}", "timestamp": f"{day}T10:00:00Z", **fields}


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("LOKI_NOW", "2026-01-20T12:00:00Z")
    workspace = Workspace.init(tmp_path)
    workspace.record(work("2026-01-13", outcome="failure"))  # eight days ago
    workspace.record(
        work(
            "2026-01-20", outcome="success", duration_seconds=60, action_log=[READ, FAILED, PASSED]
        )
    )
    return workspace


def _document(ws: Workspace, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ws.layout.loki / "metrics" / name).read_bytes())
    return found


def test_the_last_seven_days_are_summed(ws: Workspace) -> None:
    found = ws.browse.metrics()

    assert (found.since, found.until, found.tasks) == ("2026-01-14", "2026-01-20", 1)
    assert found.outcomes == {"success": 1}
    assert found.median_seconds == 60
    assert found.tools == [ToolUse("Bash", 2, 1), ToolUse("Read", 1, 0)]


def test_a_call_that_repeats_a_failed_one_is_a_retry() -> None:
    log = [FAILED, READ, FAILED, PASSED, PASSED]
    episode = parse(Episode, work("2026-01-20", action_log=log))

    assert summary([episode], "2026-01-14", "2026-01-20", 0).retries == 2


def test_the_files_are_written_and_git_ignores_them(ws: Workspace) -> None:
    found = ws.browse.metrics()

    names = ["dashboard.json", "efficiency/2026-01-20.json", "rewards/2026-01-20.json"]
    assert found.written == names
    assert _document(ws, names[0])["tasks"] == 1
    assert _document(ws, names[1])["tasks"][0]["retries"] == 1
    assert _document(ws, names[2])["tasks"][0]["outcome"] == 1
    assert (ws.layout.loki / "metrics" / ".gitignore").read_text() == "*\n"


def test_a_second_run_replaces_what_the_first_wrote(ws: Workspace) -> None:
    first = ws.browse.metrics()
    ws.record(work("2026-01-19", outcome="partial"))
    second = ws.browse.metrics()

    assert not second.kept
    assert set(first.written) < set(second.written)
    assert _document(ws, "dashboard.json")["tasks"] == 2


@pytest.mark.parametrize("theirs", [b'{"version": "1.0.0", "summary": {}}', b"not JSON", b"[]"])
def test_a_dashboard_that_somebody_else_wrote_stays(ws: Workspace, theirs: bytes) -> None:
    path = ws.layout.loki / "metrics" / "dashboard.json"
    path.parent.mkdir()
    path.write_bytes(theirs)

    found = ws.browse.metrics()

    assert found.kept == ["dashboard.json"]
    assert path.read_bytes() == theirs
    assert not (path.parent / ".gitignore").exists()
