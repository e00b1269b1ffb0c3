"""One episode for one piece of work, though the agent records it and hooks capture it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from claude_lines import SESSION, Transcript

from loki_memory import Workspace
from loki_memory.ingest.run import ingest

ERROR = "Exit code 2\nsrc/login.ts(1,17): error TS7030: Not all code paths return a value."


def session(project: Path) -> Path:
    transcript = Transcript(cwd=str(project)).say("Fix the login tests")
    transcript.call("Bash", ERROR, failed=True, command="npm test")
    transcript.call("Edit", "ok", file_path=str(project / "src/login.ts"), new_string="return 1")
    transcript.call("Bash", "ok", command="npm test").reply("The tests pass.")
    return transcript.write(project.parent / f"{SESSION}.jsonl")


def goals(ws: Workspace) -> list[str]:
    return sorted(episode.context.goal for episode in ws.list(kind="episode"))  # type: ignore[attr-defined]


def record(ws: Workspace, **fields: Any) -> None:
    given = {"goal": "Login tests mended", "timestamp": "2026-03-02T09:01:00Z", **fields}
    ws.record(given)


@pytest.mark.parametrize(
    "fields",
    [
        {"session": SESSION},
        {"files_modified": ["src/login.ts"]},
        {"errors_encountered": [{"type": "npm test", "message": ERROR}]},
    ],
)
def test_work_that_the_agent_recorded_is_not_told_again(
    ws: Workspace, project: Path, fields: dict[str, Any]
) -> None:
    record(ws, **fields)
    ingest(ws, [session(project)])
    assert goals(ws) == ["Login tests mended"]


@pytest.mark.parametrize(
    "fields",
    [
        {"session": "another"},
        {"files_modified": ["src/other.ts"]},
        {"files_modified": ["src/login.ts"], "timestamp": "2026-03-02T12:00:00Z"},
    ],
)
def test_other_work_is_told(ws: Workspace, project: Path, fields: dict[str, Any]) -> None:
    record(ws, **fields)
    ingest(ws, [session(project)])
    assert goals(ws) == ["Fix the login tests", "Login tests mended"]
