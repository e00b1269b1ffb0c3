"""The commands ingest, staged and replay."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
from claude_lines import Transcript, shop
from click.testing import CliRunner, Result

from loki_memory import Workspace
from loki_memory.cli.sessions import ingest_command, replay_command, staged_command


def run(ws: Workspace, command: click.Command, *args: str) -> Result:
    given = {"directory": str(ws.layout.root), "json": False}
    return CliRunner().invoke(command, args, obj=given, catch_exceptions=False)


def told(ws: Workspace, command: click.Command, *args: str) -> Any:
    return json.loads(run(ws, command, *args, "--json").stdout)


def git(folder: Path, *args: str) -> None:
    known = ["git", "-c", "user.name=ana", "-c", "user.email=ana@example.org", "-C", str(folder)]
    subprocess.run([*known, *args], check=True, capture_output=True)


def test_ingest_says_what_was_read_and_told(ws: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("nonsense\n" + shop().text())
    output = run(ws, ingest_command, str(path)).output
    assert "1 file: 15 new lines, 1 refused\n" in output
    assert "2 new episodes, 1 error" in output
    assert f"{path}:1 is not JSON" in output


def test_ingest_as_json_counts_everything(ws: Workspace, tmp_path: Path) -> None:
    done = told(ws, ingest_command, str(shop().write(tmp_path / "a.jsonl")))
    assert (done["lines"], done["read"], done["episodes"], done["errors"]) == (14, 14, 2, 1)


@pytest.mark.parametrize(
    ("scope", "said"), [("local", "stay on this machine"), ("project", "which git tracks")]
)
def test_the_first_ingest_says_who_sees_the_episodes(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: str, said: str
) -> None:
    ws.home.set_config("capture.scope", scope)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    work = Transcript(cwd=str(ws.layout.root)).say("Work")
    path = work.write(tmp_path / "claude" / "projects" / "x" / "a.jsonl")
    assert told(ws, ingest_command, "--plan") == {"files": [str(path)]}
    assert said in run(ws, ingest_command).output
    assert said not in run(ws, ingest_command).output


def test_staged_says_what_waits_and_why(ws: Workspace, tmp_path: Path) -> None:
    assert run(ws, staged_command).output == "nothing is waiting\n"
    work = Transcript().call("Bash", command="ls")
    run(ws, ingest_command, str(work.write(tmp_path / "a.jsonl")))
    (waiting,) = told(ws, staged_command)["staged"]
    assert waiting["what"] == work.session
    assert "no prompt" in waiting["why"]


def test_capture_that_is_off_says_so(ws: Workspace, tmp_path: Path) -> None:
    ws.home.set_config("memory.enabled", "false")
    output = run(ws, ingest_command, str(shop().write(tmp_path / "a.jsonl"))).output
    assert output == "capture is off: memory.enabled is false\n"


def test_replay_shows_actions_in_time_and_what_became_of_files(tmp_path: Path) -> None:
    top = tmp_path / "shop"
    top.mkdir()
    git(top, "init", "-q")
    for name in ("same.py", "edited.py", "new.py"):
        (top / name).write_text("x\n")
    git(top, "add", "same.py", "edited.py")
    git(top, "commit", "-q", "-m", "all")
    with Workspace.init(top) as ws:
        work = Transcript(cwd=str(top)).say("Change the shop")
        for name in ("same.py", "edited.py", "new.py", "gone.py"):
            work.call("Edit", file_path=str(top / name))
        for line in work.lines:  # after all that git has seen so far
            line["timestamp"] = line["timestamp"].replace("2026-", "2099-")
        run(ws, ingest_command, str(work.write(tmp_path / "a.jsonl")))
        (episode,) = ws.list(kind="episode")
        (top / "edited.py").write_text("y\n")
        shown = told(ws, replay_command, episode.id)
    assert {one["path"]: one["state"] for one in shown["files"]} == {
        "same.py": "unchanged",
        "edited.py": "changed",
        "new.py": "unknown",
        "gone.py": "missing",
    }
    assert [one["at"].strip() for one in shown["actions"]][:2] == ["0:10", "0:30"]


def test_a_commit_after_the_episode_changes_a_file(tmp_path: Path) -> None:
    top = tmp_path / "shop"
    top.mkdir()
    git(top, "init", "-q")
    (top / "later.py").write_text("x\n")
    git(top, "add", "later.py")
    git(top, "commit", "-q", "-m", "now")
    with Workspace.init(top) as ws:
        work = Transcript(cwd=str(top)).say("Change").call("Edit", file_path=str(top / "later.py"))
        run(ws, ingest_command, str(work.write(tmp_path / "a.jsonl")))
        (episode,) = ws.list(kind="episode")
        output = run(ws, replay_command, episode.id).output
    assert "changed    later.py" in output
