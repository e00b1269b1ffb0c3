"""Hooks start no git; what `verify` found is told by the session after the one that looked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import git

from loki_memory import Workspace
from loki_memory.hooks.response import GUARD, respond

PROGRAM = [sys.executable, "-c", "from loki_memory.cli import program; program()", "hook"]
EVENTS = {
    "SessionStart": {"source": "startup"},
    "UserPromptSubmit": {"prompt": "Why do the payment tests fail?"},
    "PreToolUse": {"tool_name": "Bash", "tool_input": {"command": "git commit -m x"}},
    "PostToolUseFailure": {"tool_name": "Bash", "error": "fatal: nothing to commit"},
}


def begin(project: Path) -> Workspace:
    """A repository whose memory is committed and newer than the last look at it."""
    git(project, "init", "-q", "-b", "main")
    workspace = Workspace.init(project)
    workspace.remember("The payment tests need a database")
    workspace.remember("We deploy on Fridays")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "begin")
    return workspace


def watched(folder: Path) -> tuple[str, Path]:
    """A PATH whose git leaves a mark, unless a process calls it that a hook handed its work to."""
    folder.mkdir()
    mark = folder / "called"
    program = folder / "git"
    program.write_text(f'#!/bin/sh\n[ -n "${GUARD}" ] || echo "$@" >> "{mark}"\n', encoding="utf-8")
    program.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}", mark


@pytest.mark.parametrize("name", EVENTS)
def test_a_hook_starts_no_git(project: Path, tmp_path: Path, name: str) -> None:
    begin(project).close()
    path, mark = watched(tmp_path / "bin")
    given = {"session_id": "one", "cwd": str(project), **EVENTS[name]}
    subprocess.run(
        [*PROGRAM, name],
        input=json.dumps(given).encode(),
        cwd=project,
        env={**os.environ, "PATH": path},
        check=True,
        capture_output=True,
    )
    assert not mark.exists(), mark.read_text(encoding="utf-8")


def start(project: Path, *, wait: bool = False) -> str:
    given = {"session_id": "one", "cwd": str(project), "source": "startup"}
    response = respond("SessionStart", json.dumps(given).encode(), {}, wait=wait)
    assert response.err == ""
    told: dict[str, str] = json.loads(response.out) if response.out else {}
    return told.get("systemMessage", "")


def test_a_lost_record_is_told_once_by_the_session_after_the_look(project: Path) -> None:
    with begin(project) as workspace:
        kept = next(workspace.layout.memory.rglob("fact-*.json"))
    git(project, "rm", "-q", "--cached", str(kept))
    kept.unlink()
    start(project, wait=True)  # the process that the hook hands its work to
    assert "1 finding of `loki-mem verify` (missing: fact-" in start(project)
    assert start(project) == ""


def test_nothing_is_told_where_all_is_well(project: Path) -> None:
    begin(project).close()
    start(project, wait=True)
    assert start(project) == ""
