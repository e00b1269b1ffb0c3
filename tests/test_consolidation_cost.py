"""One more episode, and none: what was learned before is not read again, and stays as it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import record_files

from loki_memory import Workspace
from loki_memory.consolidation.features import version
from loki_memory.consolidation.snapshot import Thresholds

MANY = 60  # episodes that met one error: of so many only the newest are read for their words


def episode(n: int, **more: Any) -> dict[str, Any]:
    """Two errors; each day has three such episodes, each session two."""
    return {
        "task_id": f"task-{n:03d}",
        "timestamp": f"2026-01-{n // 3 + 1:02d}T{10 + n % 3}:30:00Z",
        "session": f"session-{n // 2}",
        "agent": "sql-001",
        "context": {"goal": f"List the singers of concert {n}", "files_involved": ["concert.sql"]},
        "action_log": [
            {"action": "run_sql", "target": "SELECT name FROM singers", "error": ERRORS[0]},
            {"action": "run_sql", "target": "SELECT name FROM singer", "result": "ok"},
            {"action": "run_sql", "target": "SELECT age FROM singer", "error": ERRORS[1]},
        ],
        "outcome": "success" if n % 4 else "failure",
        **more,
    }


ERRORS = ("Table 'concert.singers' doesn't exist", "Unknown column 'age' in 'field list'")
EPISODES = [episode(n) for n in range(MANY)]


def beliefs(workspace: Workspace) -> dict[str, bytes]:
    return {path: data for path, data in record_files(workspace).items() if "episodic/" not in path}


# -- one more episode ------------------------------------------------------------------------------


@pytest.mark.parametrize("is_indexed", [True, False])
def test_episode_by_episode_is_learned_what_all_of_them_teach_at_once(
    tmp_path: Path, is_indexed: bool
) -> None:
    with Workspace.init(tmp_path / "singly") as ws:
        for one in EPISODES:
            ws.record(one)
            if is_indexed:
                ws.sync()
        singly = beliefs(ws)
    with Workspace.init(tmp_path / "at-once") as ws:
        ws.record(EPISODES)
        assert beliefs(ws) == singly


def test_what_a_run_extracted_teaches_the_next_episode_what_files_teach(tmp_path: Path) -> None:
    *old, new = EPISODES
    with Workspace.init(tmp_path / "kept") as kept, Workspace.init(tmp_path / "lost") as lost:
        for ws in (kept, lost):
            ws.record(old)
            ws.consolidate(day="2026-01-01")
        with lost.index.change() as change:
            change.keep_features("none", [], [])
        code = version(repr(Thresholds.of(kept.config)))
        assert len(dict(kept.index.features_of(ids(kept), code))) == len(old)
        for ws in (kept, lost):
            ws.record(new)
        assert beliefs(kept) == beliefs(lost)


def ids(workspace: Workspace) -> list[str]:
    return [one.id for one in workspace.list(kind="episode")]


# -- nothing new -----------------------------------------------------------------------------------


def test_a_run_that_finds_nothing_new_loads_no_scikit_learn(tmp_path: Path) -> None:
    with Workspace.init(tmp_path) as ws:
        ws.record(EPISODES)
        ws.consolidate()
    code = (
        "import sys\n"
        "from loki_memory import Workspace\n"
        f"with Workspace.open({str(tmp_path)!r}) as ws:\n"
        "    assert not ws.consolidate().steps\n"
        "assert not {'sklearn', 'scipy'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_another_day_is_looked_at_though_no_file_changed(tmp_path: Path) -> None:
    lonely = episode(0, action_log=[], errors_encountered=[], scope="local", captured=True)
    with Workspace.init(tmp_path) as ws:
        ws.record([lonely])
        ws.consolidate()
        assert ws.consolidate().archived == 0
        assert ws.consolidate(day="2026-12-01").archived == 1
