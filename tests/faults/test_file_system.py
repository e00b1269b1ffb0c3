"""The file system fails, at each system call of a write in turn, and in ways that people meet.

Whatever happens: the old bytes or the new ones, never a mixture; what is acknowledged is there; an
error says what state it leaves behind. LOKI_TEST_LONG=1 adds each call of a change of many files.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count, groupby
from pathlib import Path
from typing import Any

import pytest
from processes import LONG, leftovers, rebuilt_digest, record_files, start
from processes.tracing import Outcome, can_trace, traced

from loki_memory import Episode, Fact, Memory, Workspace
from loki_memory.errors import StoreFailed
from loki_memory.files import transaction
from loki_memory.files.codec import encode
from loki_memory.files.layout import place
from loki_memory.models import parse

DECIDED = "The change is decided"
Wanted = Mapping[str, Memory | None]  # what shall stand at each path; None removes


def _fact(number: int, word: str) -> Fact:
    return parse(Fact, {"id": f"fact-{number}", "statement": f"Fact {number}", "category": word})


def _at(*records: Memory) -> dict[str, Memory | None]:
    return {place(record): record for record in records}


def _episodes(word: str, number: int) -> list[Memory]:
    day = {"timestamp": "2026-01-06T10:00:00Z"}
    return [parse(Episode, {**day, "goal": f"{word} {n}"}) for n in range(number)]


BASE = _at(_fact(1, "old"), _fact(2, "old"))
CHANGES: dict[str, Wanted] = {
    "one": _at(_fact(1, "new")),
    "one in a new folder": _at(*_episodes("new", 1)),
    "two": _at(_fact(1, "new"), _fact(2, "new")),
    "remove": {place(_fact(1, "")): None},
    "remove and add": {place(_fact(1, "")): None, **_at(_fact(3, "new"))},
    "many": _at(*_episodes("new", 33)),
}
_SINGLE = ("open", "write", "fsync", "rename")
_SEVERAL = (*_SINGLE, "unlink", "mkdir", "rmdir")
USED = [  # the calls that each of them makes
    *(("one", call) for call in _SINGLE),
    *(("one in a new folder", call) for call in (*_SINGLE, "mkdir")),
    *(("two", call) for call in _SEVERAL),
    *(("remove", call) for call in ("open", "fsync", "unlink")),
    *(("remove and add", call) for call in _SEVERAL),
    *(("many", call) for call in ("syncfs", *(_SEVERAL if LONG else ("fsync",)))),
]


def _carry_out(ws: Workspace, wanted: Wanted) -> str:
    with ws.store.change() as change:
        for path, record in wanted.items():
            if record is None:
                change.remove(path)
            else:
                change.put(record, path)
    return "done"


def _data(wanted: Wanted) -> dict[str, bytes]:
    return {path: encode(record) for path, record in wanted.items() if record is not None}


def _begin_again(ws: Workspace) -> dict[str, bytes]:
    """Bring the memory back to where each case starts, by writes that must work."""
    with ws.store.change():
        pass  # completes what was decided
    extra = dict.fromkeys(record_files(ws).keys() - BASE.keys())
    _carry_out(ws, {**BASE, **extra})
    assert leftovers(ws) == [] or ws.care.gc()
    for path in extra:
        if path.startswith("episodic/"):
            folder = ws.layout.resolve(path).parent
            if folder.is_dir():
                folder.rmdir()
    assert record_files(ws) == _data(BASE)
    return _data(BASE)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    if not can_trace(tmp_path):
        pytest.skip("strace is missing or may not attach")
    return tmp_path / "log"


def _each(
    ws: Workspace, wanted: Wanted, call: str, effect: str, log: Path
) -> Iterator[tuple[Outcome, dict[str, bytes], dict[str, bytes]]]:
    """Make a change with a fault in the first call, in the second, … until none is hit any more.

    Yields how it ended, and the files as they were and as they were wanted.
    """
    for number in count(1):
        old = _begin_again(ws)
        new = {p: d for p, d in {**old, **_data(wanted)}.items() if wanted.get(p, "") is not None}
        outcome = traced(partial(_carry_out, ws, wanted), call, f"{effect}:when={number}", log)
        for path, data in record_files(ws).items():
            assert data in {old.get(path), new.get(path)}, f"{path} is torn at {call} {number}"
        if not outcome.injected:
            break
        yield outcome, old, new
    assert number > 1, f"no {call} was called"
    assert outcome.said == "returned 'done'"
    assert record_files(ws) == new


_ONE = ["write", "flush", "rename", "flush"]


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("one", _ONE),
        # The contents, the marker that decides, the witness's lines, and then the names.
        ("two", ["write", "flush", *_ONE, "write", "rename", "flush"]),
        ("many", ["write", "flush", *_ONE, "write", "rename", "flush"]),
    ],
)
def test_bytes_are_flushed_before_they_get_their_name_and_the_folder_after(
    ws: Workspace, log: Path, name: str, steps: list[str]
) -> None:
    """No kill shows that a flush is missing, only a power cut does: so look at the calls."""
    _begin_again(ws)
    traced(partial(_carry_out, ws, CHANGES[name]), "durable", "error=EIO:when=9999", log)
    calls = re.findall(r"^(write|rename|fsync|syncfs)", log.read_text(), re.MULTILINE)
    kinds = ["flush" if "sync" in call else call for call in calls]
    made = [kind for kind, _ in groupby(kinds[kinds.index("write") :])]
    assert made[: len(steps)] == steps


@pytest.mark.parametrize(("name", "call"), USED)
def test_killed_at_each_call_a_change_is_there_wholly_or_not(
    ws: Workspace, log: Path, name: str, call: str
) -> None:
    for outcome, old, new in _each(ws, CHANGES[name], call, "signal=SIGKILL", log):
        assert outcome.killed
        ws.sync()
        assert record_files(ws) in (old, new)
        ws.store.write(_fact(2, "old"))  # any write clears what is left of the change
        assert not [path for path in leftovers(ws) if path.startswith(".txn")]


@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
@pytest.mark.parametrize(("name", "call"), USED)
def test_an_error_at_each_call_is_said_and_says_what_it_leaves(
    ws: Workspace, log: Path, name: str, call: str, error: str
) -> None:
    for outcome, old, new in _each(ws, CHANGES[name], call, f"error={error}", log):
        if call in {"open", "write"} and outcome.said == "returned 'done'":
            assert record_files(ws) == new  # it hit the witness, which never stands in the way
            continue
        assert outcome.said.startswith("StoreFailed: ")
        if DECIDED in outcome.said:
            ws.sync()
            assert record_files(ws) == new
        else:
            assert record_files(ws) == old
            assert leftovers(ws) == []


def test_an_error_while_reading_makes_a_problem_that_goes_away_again(
    ws: Workspace, log: Path
) -> None:
    """A disk that fails for a moment: the file is not taken for empty, nor for bad for ever."""
    ws.remember("Fact 1")
    path = ws.browse.where(ws.remember("Fact 2").id)
    ws.close()
    shutil.rmtree(ws.layout.cache)
    list_ids = partial(_titles_and_problems, ws)
    failed = traced(list_ids, "read", "error=EIO", log, only=path)
    assert failed.injected
    assert "Fact 1" in failed.said
    assert "cannot be read" in failed.said
    assert path.read_bytes()
    with Workspace.open(ws.layout.root) as after:
        after.sync()
        assert after.care.problems() == []
        assert after.index.digest() == rebuilt_digest(after)


def _titles_and_problems(ws: Workspace) -> list[str]:
    return [*sorted(memory.title() for memory in ws.list()), *map(str, ws.care.problems())]


def test_killed_while_writing_the_index_it_is_whole_at_the_next_look(
    ws: Workspace, log: Path
) -> None:
    for number in count(1, 1 if LONG else 7):
        ws.store.write(_fact(number, f"new {number}"))
        ws.close()
        outcome = traced(ws.sync, "index", f"signal=SIGKILL:when={number}", log)
        with Workspace.open(ws.layout.root) as after:
            after.sync()
            assert after.care.problems() == []
            assert after.index.digest() == rebuilt_digest(after)
        if not outcome.killed:
            break
    assert number > 7


@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
def test_an_index_that_cannot_be_written_does_not_keep_a_reader_from_its_answer(
    ws: Workspace, log: Path, error: str
) -> None:
    ws.sync()
    ws.close()
    ws.store.write(_fact(1, "new"))
    found = traced(partial(_titles_and_problems, ws), "index", f"error={error}", log)
    assert found.injected
    assert found.said == "returned ['Fact 1']"


@pytest.mark.parametrize("name", ["one", "two"])
def test_a_rename_that_did_not_happen_is_noticed(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """F07: success is said only of what is there."""
    _begin_again(ws)
    monkeypatch.setattr(os, "replace", lambda *_, **__: None)
    with pytest.raises(StoreFailed):
        _carry_out(ws, CHANGES[name])


@pytest.mark.parametrize("name", ["one", "two", "remove and add"])
def test_each_rename_that_did_not_happen_is_noticed(ws: Workspace, log: Path, name: str) -> None:
    """The same for each rename by itself, told by the kernel that all is well."""
    for outcome, *_ in _each(ws, CHANGES[name], "rename", "retval=0", log):
        assert outcome.said.startswith("StoreFailed: ")


# -- permissions -----------------------------------------------------------------------------------


@pytest.fixture
def as_user() -> tuple[str, ...]:
    """The command that runs another one without the superuser's right to read and write all."""
    if os.geteuid():
        return ()
    command = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
    if not shutil.which("setpriv") or subprocess.run([*command, "true"], check=False).returncode:
        pytest.skip("the superuser may write everywhere, and cannot give that up here")
    return command


@pytest.fixture
def permissions(ws: Workspace) -> Iterator[Callable[[Path, int], None]]:
    """Chmod that is undone in the end, so that the folder can be removed."""
    changed: dict[Path, int] = {}

    def chmod(path: Path, mode: int) -> None:
        changed.setdefault(path, path.stat().st_mode)
        path.chmod(mode)

    yield chmod
    for path, mode in reversed(changed.items()):
        path.chmod(mode)


Chmod = Callable[[Path, int], None]
TITLES = "sorted(memory.title() for memory in ws.list())"
PROBLEMS = "[problem.path for problem in ws.care.problems()]"


def _ask(ws: Workspace, as_user: tuple[str, ...], *expressions: str) -> list[Any]:
    process = start("ask.py", ws.layout.root, *expressions, before=as_user)
    out, complaint = process.communicate()
    assert not complaint
    answers: list[Any] = json.loads(out)
    return answers


@pytest.mark.parametrize("indexed", [True, False])
def test_a_read_only_workspace_is_read_and_says_that_it_cannot_be_written(
    ws: Workspace, as_user: tuple[str, ...], permissions: Chmod, indexed: bool
) -> None:
    ws.remember("Fact 1")
    if indexed:
        ws.sync()
    ws.close()
    before = record_files(ws)
    for path in [ws.layout.loki, *ws.layout.loki.rglob("*")]:
        permissions(path, 0o555 if path.is_dir() else 0o444)
    titles, problems, status, said, sync = _ask(
        ws, as_user, TITLES, PROBLEMS, "ws.status().counts", "ws.remember('Fact 2')", "ws.sync()"
    )
    assert titles == ["Fact 1"]
    assert problems == []
    assert status == {"fact": 1}
    assert said.startswith("StoreFailed")
    assert "Permission denied" in said
    assert "StoreFailed" in str(sync) or indexed
    assert record_files(ws) == before


def test_a_decided_change_in_a_read_only_workspace_does_not_keep_readers_out(
    ws: Workspace, as_user: tuple[str, ...], permissions: Chmod
) -> None:
    ws.remember("Fact 1")
    transaction._decide(
        ws.layout, transaction._stage(ws.layout, [transaction.Write("ledgers/a.json", b"{}")])
    )
    ws.close()
    for path in [ws.layout.loki, *ws.layout.loki.rglob("*")]:
        permissions(path, 0o555 if path.is_dir() else 0o444)
    assert _ask(ws, as_user, TITLES) == [["Fact 1"]]


def test_a_file_that_may_not_be_read_is_a_problem_and_never_empty(
    ws: Workspace, as_user: tuple[str, ...], permissions: Chmod
) -> None:
    ws.remember("Fact 1")
    hidden = ws.browse.where(ws.remember("Fact 2").id)
    before = hidden.read_bytes()
    permissions(hidden, 0)
    titles, problems, said = _ask(
        ws, as_user, TITLES, PROBLEMS, "ws.remember('Fact 2', category='x')"
    )
    assert titles == ["Fact 1"]
    assert problems == [f"semantic/facts/{hidden.name}"]
    assert said.startswith("StoreFailed")
    permissions(hidden, 0o644)
    assert hidden.read_bytes() == before
    assert _ask(ws, as_user, TITLES, PROBLEMS) == [["Fact 1", "Fact 2"], []]


def test_a_view_that_may_not_be_read_hides_nothing_else(
    ws: Workspace, as_user: tuple[str, ...], permissions: Chmod
) -> None:
    ws.remember("Fact 1")
    ws.sync()
    view = ws.layout.memory / "semantic" / "facts.json"
    view.write_bytes(view.read_bytes() + b"\n")
    permissions(view, 0)
    assert _ask(ws, as_user, TITLES, PROBLEMS) == [["Fact 1"], ["semantic/facts.json"]]


def test_a_folder_that_may_not_be_read_is_a_problem_and_loses_nothing(
    ws: Workspace, as_user: tuple[str, ...], permissions: Chmod
) -> None:
    ws.remember("Fact 1")
    ws.record({"goal": "Goal 1", "timestamp": "2026-01-06T10:00:00Z"})
    ws.sync()
    permissions(ws.layout.memory / "episodic" / "2026-01-06", 0)
    titles, problems = _ask(ws, as_user, TITLES, PROBLEMS)
    assert "Fact 1" in titles
    assert problems == ["episodic/2026-01-06"]
    permissions(ws.layout.memory / "episodic" / "2026-01-06", 0o755)
    assert _ask(ws, as_user, TITLES, PROBLEMS) == [["Fact 1", "Goal 1"], []]


# -- a full disk -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def full_disk(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What happened while episodes were recorded on a small disk until it was full."""
    folder, alone = tmp_path_factory.mktemp("small"), ("unshare", "--map-root-user", "--mount")
    may = ("sh", "-c", 'mount -t tmpfs -o size=64k tmpfs "$0"', str(folder))
    if not shutil.which("unshare") or subprocess.run([*alone, *may], check=False).returncode:
        pytest.skip("no file system may be mounted here")
    out, complaint = start("full_disk.py", folder, 400, before=alone).communicate()
    assert not complaint
    said: dict[str, Any] = json.loads(out)
    return said


def test_on_a_full_disk_a_write_says_so_and_what_was_acknowledged_stays(
    full_disk: dict[str, Any],
) -> None:
    assert len(full_disk["acknowledged"]) > 10
    assert full_disk["error"].startswith("StoreFailed")
    assert "No space left" in full_disk["error"]
    assert full_disk["leftovers"] == []
    assert full_disk["read after"] == sorted(full_disk["acknowledged"])
    assert full_disk["problems"] == []
    assert full_disk["index"]
    assert full_disk["again"]


def test_on_a_full_disk_memory_can_be_read(full_disk: dict[str, Any]) -> None:
    assert full_disk["read when full"] == sorted(full_disk["acknowledged"])
