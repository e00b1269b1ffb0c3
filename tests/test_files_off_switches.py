"""Switches of other systems turn memory off here too, and what makes no sense counts as off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from loki_memory import Workspace
from loki_memory.cli.main import cli
from loki_memory.files.off_switches import switched_off
from loki_memory.ingest.pause import why_off

SAID = "Contract tests need the database running"


def settings(folder: Path, value: Any) -> None:
    text = value if isinstance(value, str) else json.dumps(value)
    (folder / "config.json").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    "value",
    [
        {"memory": {"disabled": True}},
        {"memory": {"disabled": "yes"}},
        {"memory": {"disabled": 1}},
        {"memory": {"disabled": []}},
        {"memory": False},
        {"memory": "whatever"},
        [],
        "{",
        "",
    ],
    ids=json.dumps,
)
def test_a_settings_file_of_loki_mode_turns_memory_off(tmp_path: Path, value: Any) -> None:
    settings(tmp_path, value)
    assert ".loki/config.json" in switched_off(tmp_path, {})


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"memory": {}},
        {"memory": {"disabled": False}},
        {"memory": {"disabled": None}},
        {"memory": {"disabled": "false"}},
        {"memory": True},
        {"other": {"disabled": True}},
    ],
    ids=json.dumps,
)
def test_a_settings_file_that_says_nothing_of_it_leaves_memory_on(
    tmp_path: Path, value: Any
) -> None:
    settings(tmp_path, value)
    assert switched_off(tmp_path, {}) == ""


def test_a_settings_file_that_cannot_be_read_turns_memory_off(tmp_path: Path) -> None:
    (tmp_path / "config.json").mkdir()
    assert "cannot be read" in switched_off(tmp_path, {})


@pytest.mark.parametrize(
    ("name", "off", "on"),
    [
        ("LOKI_MEMORY_CAPTURE_DISABLED", ["1", "true", "maybe"], ["", "0", "false", "No"]),
        ("LOKI_MEMORY_HOOK_DISABLED", ["1"], ["", "0"]),
        ("LOKI_SKIP_MEMORY", ["1", "yes", " on "], ["", "0", "off"]),
        ("MEMORY_ENABLED", ["false", "0", "no", "maybe"], ["", "1", "true", "YES"]),
    ],
)
def test_variables_of_other_systems(
    tmp_path: Path, name: str, off: list[str], on: list[str]
) -> None:
    for value in off:
        assert name in switched_off(tmp_path, {name: value}), value
    for value in on:
        assert switched_off(tmp_path, {name: value}) == "", value


@pytest.mark.parametrize("name", ["LOKI_SKIP_MEMORY", "MEMORY_ENABLED", "file"])
def test_nothing_is_captured_or_told_and_status_says_why(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    ws.remember(SAID)
    goal = "run the contract tests"
    assert SAID in ws.context(goal).text("detailed")
    if name == "file":
        settings(ws.layout.loki, {"memory": {"disabled": True}})
    else:
        monkeypatch.setenv(name, "false" if name == "MEMORY_ENABLED" else "1")
    assert why_off(ws).startswith("capture is off: ")
    assert ws.context(goal).text("detailed") == ""
    assert any("no memory is put before agents" in notice for notice in ws.notices)
    assert ws.recall(goal), "who asks is answered"
    printed = CliRunner().invoke(cli, ["-C", str(project), "status"]).output
    assert "capture is off: " in printed
