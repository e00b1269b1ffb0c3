"""Many processes at one workspace: nothing acknowledged is lost, nothing is read torn.

LOKI_TEST_LONG=1 multiplies the number of updates by five.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from processes import LONG, crash, hear, ids, rebuilt_digest, start, tell

from loki_memory import Fact, Workspace
from loki_memory.errors import FileChanged, StoreBusy, StoreFailed
from loki_memory.files.codec import encode
from loki_memory.files.layout import place
from loki_memory.files.lock import locked_folder
from loki_memory.files.store import Store
from loki_memory.models import parse

WRITERS = 8
UPDATES = 500 if LONG else 100
INCREMENTS = 250 if LONG else 50


@contextmanager
def _readers(project: Path, *ways: str) -> Iterator[list[tuple[int, list[str]]]]:
    """Readers that read all the while; what they found is there when the block is left."""
    readers = [start("reader.py", project, way) for way in ways]
    found: list[tuple[int, list[str]]] = []
    try:
        for reader in readers:
            assert hear(reader) == "ready"
        yield found
        for reader in readers:
            out, complaint = reader.communicate("stop\n")
            assert not complaint
            found.append(tuple(json.loads(out)))
    finally:
        for reader in readers:
            reader.kill()
            reader.wait()


def _together(script: str, *arguments: object) -> list[list[str]]:
    """Run writers that start at one moment; what each of them said."""
    writers = [start(script, *(str(a).format(n) for a in arguments)) for n in range(WRITERS)]
    try:
        for writer in writers:
            assert hear(writer) == "ready"
        for writer in writers:
            tell(writer, "go")
        said = [writer.communicate() for writer in writers]
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    assert [complaint for _, complaint in said if complaint] == []
    return [out.splitlines() for out, _ in said]


@pytest.fixture
def shared(ws: Workspace) -> str:
    return ws.remember("We deploy on Fridays", category="start").id


def test_every_acknowledged_update_of_eight_processes_is_there(
    ws: Workspace, project: Path, shared: str
) -> None:
    with _readers(project, "files", "library") as found:
        said = _together("writer.py", project, "w{0}", UPDATES, shared)
    acknowledged = [tuple(json.loads(line)) for lines in said for line in lines]
    assert len(acknowledged) == WRITERS * UPDATES

    corrections = [value for act, value in acknowledged if act == "correct"]
    stored = {value for act, value in acknowledged if act != "correct"}
    assert stored <= set(ids(ws))
    assert len(ids(ws)) == len(set(ids(ws)))
    document = ws.get(shared).document()
    before = [entry["was"]["category"] for entry in document["history"]]
    assert Counter([*before, document["category"]]) == Counter(["start", *corrections])

    ws.sync()
    assert ws.care.problems() == []
    assert ws.index.digest() == rebuilt_digest(ws)
    for rounds, wrong in found:
        assert rounds
        assert wrong == []


def test_a_counter_that_eight_processes_swap_ends_exact(ws: Workspace, project: Path) -> None:
    ws.team.checkpoint({"agent_id": "counter", "tasks_completed": 0})
    with _readers(project, "files") as found:
        _together("counter.py", project, "ledgers/counter.json", INCREMENTS)
    ledger = ws.get("ledger-counter")
    assert ledger.document()["tasks_completed"] == WRITERS * INCREMENTS
    assert found[0][1] == []


def test_questions_wait_for_whoever_is_writing_the_index(ws: Workspace) -> None:
    """The connection that changes the index without waiting answers questions too."""
    with ws.index.change(wait=False):
        pass
    assert ws.index.scalar("PRAGMA busy_timeout") >= 1000


def test_what_was_just_acknowledged_is_found_while_another_process_writes_the_index(
    ws: Workspace,
) -> None:
    ws.sync()
    other = sqlite3.connect(ws.layout.cache / "index.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    memory_id = ws.remember("We deploy on Fridays").id
    try:
        try:
            assert ws.correct(memory_id, category="process").id == memory_id
            assert ws.get(memory_id).title() == "We deploy on Fridays"
        except StoreBusy:
            pass  # waited in vain, and says so; "there is no such memory" would be a lie
    finally:
        other.close()
    assert ws.get(memory_id).title() == "We deploy on Fridays"


def test_a_reader_never_sees_half_of_a_change(ws: Workspace, project: Path) -> None:
    """A writer that is stopped between two renames still holds the store."""
    facts = [parse(Fact, {"statement": f"Half {n}"}) for n in range(2)]
    ws.sync()
    crash(ws, {place(fact): encode(fact) for fact in facts}, renames=2)
    with locked_folder(ws.layout.memory, 0, else_file=Path()), Workspace.open(project) as reader:
        assert len(reader.list()) in {0, 2}
    assert len(ws.list()) == 2


def test_deleting_the_cache_makes_nobody_overwrite_what_was_acknowledged(
    ws: Workspace,
) -> None:
    """`git clean -fdx` deletes it."""
    before, first, second = (
        [parse(Fact, {"id": f"fact-{n}", "statement": "Old", "category": word}) for n in range(2)]
        for word in ("before", "first", "second")
    )
    _put(ws.store, before)
    acknowledged = None
    with suppress(FileChanged, StoreBusy, StoreFailed), ws.store.change() as change:
        for fact in first:
            assert change.record(place(fact))
            change.put(fact)
        shutil.rmtree(ws.layout.cache, ignore_errors=True)
        with suppress(StoreBusy):
            _put(Store(ws.layout, lock_seconds=0), second)
            acknowledged = "second"
    found = {fact.document()["category"] for fact in ws.list()}
    assert found == {acknowledged or "first"}


def _put(store: Store, records: list[Fact]) -> None:
    with store.change() as change:
        for record in records:
            change.put(record)


def test_an_edit_by_hand_between_reading_and_writing_is_not_overwritten(ws: Workspace) -> None:
    path = place(ws.store.write(parse(Fact, {"id": "fact-1", "statement": "Old"})))
    with pytest.raises(FileChanged):
        _edited_while_changing(ws, path)
    assert ws.get("fact-1").title() == "By hand"


def _edited_while_changing(ws: Workspace, path: str) -> None:
    with ws.store.change() as change:
        record = change.record(path)
        assert record is not None
        ws.layout.resolve(path).write_text('{"id": "fact-1", "statement": "By hand"}')
        change.put(record.changed(category="x"), path)


def test_a_forked_process_opens_the_index_for_itself(ws: Workspace) -> None:
    ws.remember("Before the fork")
    ws.sync()
    child = os.fork()
    if not child:
        ws.remember("In the child")
        os._exit(0 if len(ws.list()) == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert len(ws.list()) == 2
    assert ws.index.digest() == rebuilt_digest(ws)
