"""F01, F28, F29: any number of processes write; each is served in its turn, and none is lost."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from processes import hear, start, tell

from loki_memory import Workspace
from loki_memory.errors import IdTaken, StoreBusy
from loki_memory.files.lock import locked, locked_folder
from loki_memory.models import Fact, parse

WRITERS, WRITES = 8, 12


def test_f01_processes_that_write_without_pause_are_all_served(
    ws: Workspace, project: Path
) -> None:
    ws.close()
    writers = [start("pauseless.py", project, name, WRITES) for name in range(WRITERS)]
    for writer in writers:
        assert hear(writer) == "ready"
    for writer in writers:
        tell(writer, "go")
    assert [hear(writer) for writer in writers] == [f"{WRITES} acknowledged"] * WRITERS
    for writer in writers:
        writer.wait()
    with Workspace.open(project) as after:
        found = {memory.title() for memory in after.list(kind="fact")}
    assert found == {f"Fact {n} of writer {w}" for w in range(WRITERS) for n in range(WRITES)}


def test_f28_a_lock_that_is_only_tried_says_that_it_is_held(tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()
    with locked_folder(memory, 0, else_file=tmp_path / "lock"):
        child = os.fork()
        if not child:
            os._exit(_is_busy(memory, tmp_path / "lock"))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    child = os.fork()
    if not child:
        os._exit(_is_busy(memory, tmp_path / "lock"))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _is_busy(memory: Path, file: Path) -> int:
    try:
        with locked_folder(memory, 0, else_file=file):
            return 0
    except StoreBusy:
        return 1


def test_f28_a_lock_is_taken_once_its_holder_was_killed(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with locked(tmp_path / "lock", 0):
            os.write(writing, b".")
            signal.pause()
    os.read(reading, 1)
    os.kill(child, 9)
    with locked(tmp_path / "lock", 600):
        os.waitpid(child, 0)


def test_f29_a_lock_file_that_was_deleted_lets_nobody_in_twice(tmp_path: Path) -> None:
    """The holder of the deleted file does not count: whoever comes takes the new one."""
    path = tmp_path / "lock"
    with locked(path, 0):
        with pytest.raises(StoreBusy), locked(path, 0):
            pass
        path.unlink()
        with locked(path, 0), pytest.raises(StoreBusy), locked(path, 0):
            pass


# -- ids that some systems take for one ------------------------------------------------------------


def _fact(name: str, statement: str) -> Fact:
    return parse(Fact, {"id": name, "statement": statement})


@pytest.mark.parametrize("name", ["fact-ABC", "fact-aBc"])
def test_f43_an_id_that_differs_only_by_case_is_refused(ws: Workspace, name: str) -> None:
    ws.store.write(_fact("fact-abc", "First"))
    with pytest.raises(IdTaken):
        ws.store.write(_fact(name, "Second"))
    ws.store.write(_fact("fact-abc", "First, said again"))
    ws.store.write(_fact("fact-abd", "Another"))
    assert [memory.title() for memory in ws.list()] == ["First, said again", "Another"]


def test_f43_two_files_whose_ids_differ_only_by_case_are_told_apart(ws: Workspace) -> None:
    """A clone may bring them; the one in small letters keeps its id."""
    ws.store.write(_fact("fact-abc", "First"))
    path = ws.layout.memory / "semantic" / "facts" / "fact-ABC.json"
    path.write_text('{"id": "fact-ABC", "statement": "Second"}')
    ws.sync()
    assert ws.get("fact-abc").title() == "First"
    assert {memory.title() for memory in ws.list()} == {"First", "Second"}
    assert [problem.path for problem in ws.care.problems()] == ["semantic/facts/fact-ABC.json"]
