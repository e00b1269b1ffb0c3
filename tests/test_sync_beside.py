"""A look at the files beside the work: it may say "nothing changed" only when that is so."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from test_sync import LONG_AGO, overwrite, write

from loki_memory import Workspace
from loki_memory.index.index import Index
from loki_memory.sync import Freshness, check, is_current
from loki_memory.sync.beside import begin

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="copies of a process"),
    pytest.mark.usefixtures("two_cores"),
]
FRESH = Freshness()
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


def found_nothing(ws: Workspace, freshness: Freshness = FRESH) -> bool | None:
    look = begin(ws.layout, ws.index, freshness)
    return None if look is None else bool(look.result())


def wait_until_current(ws: Workspace) -> None:
    """No ctime can be set: until the clock ticks, a file that was just touched is looked at."""
    for _ in range(10_000):
        if is_current(ws.layout, ws.index, FRESH):
            return
        ws.sync()
    raise AssertionError("the files never settle")


def test_an_index_that_is_up_to_date_is_found_so(settled: Workspace) -> None:
    wait_until_current(settled)
    assert found_nothing(settled) is True


def test_a_look_changes_nothing(settled: Workspace) -> None:
    wait_until_current(settled)
    overwrite(fact(settled, "a"), statement="Changed")
    before = settled.index.digest()
    assert not is_current(settled.layout, settled.index, FRESH)
    assert found_nothing(settled) is False
    assert settled.index.digest() == before


def _edited(ws: Workspace) -> None:
    overwrite(fact(ws, "a"), statement="Changed")


def _added(ws: Workspace) -> None:
    write(ws, "d", statement="New")


def _deleted(ws: Workspace) -> None:
    fact(ws, "a").unlink()


def _replaced(ws: Workspace) -> None:
    scratch = ws.layout.root / "scratch"
    shutil.copyfile(fact(ws, "b"), scratch)
    os.replace(scratch, fact(ws, "a"))


def _renamed(ws: Workspace) -> None:
    os.rename(fact(ws, "a"), fact(ws, "e"))


def _folder_deleted(ws: Workspace) -> None:
    shutil.rmtree(fact(ws, "a").parent)


@pytest.mark.parametrize(
    "change", [_edited, _added, _deleted, _replaced, _renamed, _folder_deleted]
)
def test_a_change_is_not_taken_for_none(settled: Workspace, change: object) -> None:
    wait_until_current(settled)
    assert callable(change)
    change(settled)
    assert found_nothing(settled) is False


def test_an_index_that_came_from_elsewhere_is_not_up_to_date(
    settled: Workspace, tmp_path: Path
) -> None:
    wait_until_current(settled)
    settled.close()
    copy = tmp_path / "copy"
    shutil.copytree(settled.layout.root, copy)
    with Workspace.open(copy) as other:
        assert found_nothing(other) is False


def test_more_files_than_the_limit_are_left_to_the_usual_look(settled: Workspace) -> None:
    wait_until_current(settled)
    assert found_nothing(settled, Freshness(scan_limit=2)) is False


def test_a_damaged_index_is_left_to_the_usual_look(settled: Workspace) -> None:
    settled.close()
    (settled.layout.cache / "index.db").write_bytes(b"no database" * 1000)
    with Workspace.open(settled.layout.root) as fresh:
        look = begin(fresh.layout, Index(settled.layout.cache / "index.db"), FRESH)
        assert look is None or not look.result()
        assert len(fresh.list()) == 3


def test_without_an_index_there_is_no_look(ws: Workspace) -> None:
    assert begin(ws.layout, Index(None), FRESH) is None
    assert begin(ws.layout, Index(ws.layout.cache / "missing.db"), FRESH) is None


def test_recall_uses_the_look_and_sees_what_changed_before_it(settled: Workspace) -> None:
    settled.close()
    overwrite(fact(settled, "a"), statement="Zebras cross here")
    with Workspace.open(settled.layout.root) as fresh:
        fresh.look_ahead()
        assert fresh.recall("zebras cross")[0].id == "fact-a"


# -- the few files that are about to be shown ----------------------------------------------------


def test_files_as_they_were_need_no_second_answer(settled: Workspace) -> None:
    wait_until_current(settled)
    paths = ["semantic/facts/a.json", "semantic/facts/b.json"]
    assert not check(settled.layout, settled.index, paths, NOW)
    assert settled.is_as_shown(paths)


@pytest.mark.parametrize("change", [_edited, _deleted, _replaced])
def test_a_file_that_changed_is_taken_in_before_it_is_shown(
    settled: Workspace, change: object
) -> None:
    wait_until_current(settled)
    assert callable(change)
    change(settled)
    assert not settled.is_as_shown(["semantic/facts/b.json", "semantic/facts/a.json"])
    fresh = {memory.title() for memory in settled.list()}
    assert {title for (title,) in settled.index.ask("SELECT title FROM memories")} == fresh
    assert "Statement a" not in fresh


def test_two_files_of_one_folder_are_both_taken_in(settled: Workspace) -> None:
    wait_until_current(settled)
    overwrite(fact(settled, "a"), statement="Changed a")
    overwrite(fact(settled, "c"), statement="Changed c")
    paths = ["semantic/facts/a.json", "semantic/facts/c.json"]
    assert check(settled.layout, settled.index, paths, NOW).modified == paths
    titles = [row[0] for row in settled.index.ask("SELECT title FROM memories ORDER BY id")]
    assert titles == ["Changed a", "Statement b", "Changed c"]
