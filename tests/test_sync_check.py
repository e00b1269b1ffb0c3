"""The few files that are about to be shown: taken in first where they changed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from test_sync import LONG_AGO, overwrite, wait_until_current, write

from loki_memory import Workspace
from loki_memory.sync import check

NOW = LONG_AGO + 3_600_000_000_000


@pytest.fixture
def settled(ws: Workspace) -> Workspace:
    """A workspace whose files are old enough to be known by their stamps."""
    for name in ("a", "b", "c"):
        write(ws, name, statement=f"Statement {name}")
    ws.sync()
    for folder, _, names in os.walk(ws.layout.memory):
        for name in (".", *names):
            os.utime(Path(folder, name), ns=(LONG_AGO, LONG_AGO))
    ws.sync()
    return ws


def fact(ws: Workspace, name: str) -> Path:
    return ws.layout.memory / "semantic" / "facts" / f"{name}.json"


def _edited(ws: Workspace) -> None:
    overwrite(fact(ws, "a"), statement="Changed")


def _deleted(ws: Workspace) -> None:
    fact(ws, "a").unlink()


def _replaced(ws: Workspace) -> None:
    scratch = ws.layout.root / "scratch"
    shutil.copyfile(fact(ws, "b"), scratch)
    os.replace(scratch, fact(ws, "a"))


def test_files_as_they_were_need_no_second_answer(settled: Workspace) -> None:
    wait_until_current(settled.home)
    paths = ["semantic/facts/a.json", "semantic/facts/b.json"]
    assert not check(settled.layout, settled.index, paths, NOW)
    assert not settled.home.ensure("shown", paths)


@pytest.mark.parametrize("change", [_edited, _deleted, _replaced])
def test_a_file_that_changed_is_taken_in_before_it_is_shown(
    settled: Workspace, change: object
) -> None:
    wait_until_current(settled.home)
    assert callable(change)
    change(settled)
    assert settled.home.ensure("shown", ["semantic/facts/b.json", "semantic/facts/a.json"])
    fresh = {memory.title() for memory in settled.list()}
    assert {title for (title,) in settled.index.ask("SELECT title FROM memories")} == fresh
    assert "Statement a" not in fresh


def test_two_files_of_one_folder_are_both_taken_in(settled: Workspace) -> None:
    wait_until_current(settled.home)
    overwrite(fact(settled, "a"), statement="Changed a")
    overwrite(fact(settled, "c"), statement="Changed c")
    paths = ["semantic/facts/a.json", "semantic/facts/c.json"]
    assert check(settled.layout, settled.index, paths, NOW).modified == paths
    titles = [row[0] for row in settled.index.ask("SELECT title FROM memories ORDER BY id")]
    assert titles == ["Changed a", "Statement b", "Changed c"]
