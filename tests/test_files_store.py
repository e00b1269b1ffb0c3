"""The store: guarded by etags, all or nothing, no link followed, no secret written."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from loki_memory import Fact, Memory, Pattern, Workspace
from loki_memory.errors import (
    Conflict,
    FileChanged,
    IdTaken,
    InvalidRecord,
    LokiMemoryError,
    RejectedValue,
    StoreBusy,
    StoreFailed,
)
from loki_memory.files import lock
from loki_memory.files.layout import layout, place, view_bases
from loki_memory.files.store import Store
from loki_memory.models import Tombstone, parse

# Put together here, so that no file of this repository looks as if it held one.
SECRET = "ghp" + "_" + "aB3dE5gH7jK9" * 3
CLEAN = "[REDACTED:github_pat]"


@pytest.fixture
def store(ws: Workspace) -> Store:
    return ws.store


def fact(text: str = "The tests need a database", **fields: Any) -> Fact:
    return parse(Fact, {"statement": text, **fields})


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, links not followed."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


# -- reading and writing -------------------------------------------------------------------------


def test_what_is_written_is_read(store: Store) -> None:
    written = store.write(fact())
    assert store.record(place(written)) == written


def test_a_file_that_is_not_there_is_none(store: Store) -> None:
    assert store.read("semantic/facts/fact-none.json") is None
    assert store.record("semantic/facts/fact-none.json") is None


def test_equal_content_is_not_written_again(store: Store) -> None:
    written = store.write(fact())
    path = store.layout.resolve(place(written))
    before = stamp(path)
    store.write(fact())
    with store.change() as change:
        change.put(fact())
        change.put(fact("Another"))
    assert stamp(path) == before


def test_a_changed_file_is_replaced_and_not_overwritten(store: Store) -> None:
    written = store.write(fact())
    path = store.layout.resolve(place(written))
    before = path.stat().st_ino
    with path.open("rb") as reader:
        store.write(fact(category="testing"))
        assert b"category" not in reader.read()
    assert path.stat().st_ino != before


def test_nothing_else_is_left_in_the_folders(store: Store) -> None:
    store.write(fact())
    with store.change() as change:
        change.put(fact("A"))
        change.put(fact("B"))
    names = [path.name for path in store.layout.memory.rglob("*")]
    assert not [name for name in names if name.startswith((".tmp", ".txn"))]


# -- etags ---------------------------------------------------------------------------------------


def test_the_etag_that_was_seen_opens_the_file(store: Store) -> None:
    path = place(store.write(fact()))
    seen = store.read(path)
    assert seen
    store.write(fact(category="new"), if_match=seen.etag)
    assert store.record(path) == fact(category="new")


def test_a_writer_that_saw_an_older_version_is_refused(store: Store) -> None:
    path = place(store.write(fact()))
    seen = store.read(path)
    assert seen
    store.write(fact(category="by another"))
    with pytest.raises(FileChanged) as refused:
        store.write(fact(category="mine"), if_match=seen.etag)
    assert store.record(path) == fact(category="by another")
    now = store.read(path)
    assert now
    assert refused.value.etag == now.etag


def test_an_etag_for_a_file_that_is_gone_is_refused(store: Store) -> None:
    with pytest.raises(FileChanged):
        store.write(fact(), if_match="0" * 32)
    assert store.read(place(fact())) is None


def test_a_removal_is_guarded_too(store: Store) -> None:
    path = place(store.write(fact()))
    with pytest.raises(FileChanged):
        store.remove(path, if_match="0" * 32)
    seen = store.read(path)
    assert seen
    store.remove(path, if_match=seen.etag)
    assert store.read(path) is None


# -- ids -----------------------------------------------------------------------------------------


def test_an_id_belongs_to_one_record(store: Store) -> None:
    one = parse(Pattern, {"id": "sem-001", "pattern": "A"})
    with store.change() as change:
        change.create(one)
    other = parse(Pattern, {"id": "sem-001", "pattern": "B"})
    with store.change() as change, pytest.raises(IdTaken, match="sem-001"):
        change.create(other)
    assert store.record(place(one)) == one


def test_the_same_record_again_is_no_error(store: Store) -> None:
    for _ in range(2):
        with store.change() as change:
            change.create(fact())
    assert store.record(place(fact())) == fact()


def test_two_records_of_one_change_cannot_share_an_id(store: Store) -> None:
    def both() -> None:
        with store.change() as change:
            change.create(parse(Pattern, {"id": "sem-001", "pattern": "A"}))
            change.create(parse(Pattern, {"id": "sem-001", "pattern": "B"}))

    with pytest.raises(IdTaken):
        both()
    assert store.read("semantic/patterns/sem-001.json") is None


# -- all or nothing ------------------------------------------------------------------------------


def test_nothing_is_written_if_the_change_fails(store: Store) -> None:
    old = store.write(fact())
    before = tree(store.layout.memory)

    def fail() -> None:
        with store.change() as change:
            change.put(fact(category="new"))
            change.put(fact("Another"))
            change.remove(place(old))
            change.render("semantic/facts.json", b"[]")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert tree(store.layout.memory) == before


def test_one_bad_record_keeps_all_of_a_change_out(store: Store) -> None:
    store.write(fact())
    before = tree(store.layout.memory)

    def too_much() -> None:
        with store.change() as change:
            change.put(fact("A"))
            change.put(fact("B", extra="x" * (1 << 20)))

    with pytest.raises(InvalidRecord):
        too_much()
    assert tree(store.layout.memory) == before


def test_a_change_reads_what_it_is_about_to_write(store: Store) -> None:
    with store.change() as change:
        change.put(fact(category="new"))
        assert change.record(place(fact())) == fact(category="new")
        change.remove(place(fact()))
        assert change.record(place(fact())) is None
    assert store.read(place(fact())) is None


def test_a_move_keeps_the_bytes(store: Store) -> None:
    path = store.layout.memory / "semantic" / "facts" / "mine.json"
    path.write_bytes(b'{"statement":"by hand"  }')
    with store.change() as change:
        change.move("semantic/facts/mine.json", "archive/semantic/facts/mine.json")
    assert not path.exists()
    moved = store.layout.memory / "archive/semantic/facts/mine.json"
    assert moved.read_bytes() == b'{"statement":"by hand"  }'


@pytest.mark.parametrize("name", ["handoffs", "semantic/patterns"])
def test_a_file_in_place_of_a_folder_is_said_and_does_not_shut_the_store(
    ws: Workspace, name: str
) -> None:
    folder = ws.layout.memory / name
    if folder.is_dir():
        folder.rmdir()
    folder.write_text("not a folder", encoding="utf-8")

    def several() -> None:
        with ws.store.change() as change:
            change.put(fact())
            change.render(f"{name}/x.json", b"{}")

    with pytest.raises(StoreFailed, match="Nothing was changed"):
        several()
    assert ws.list() == []
    ws.remember("A")
    assert [memory.title() for memory in ws.list()] == ["A"]


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        object(),
        float("nan"),
        float("inf"),
        2**70,
        "\ud800",
        "a\0b",
        nested(100),
        nested(300),
        nested(5000),
    ],
    ids=["object", "NaN", "infinity", "2**70", "surrogate", "NUL", "100", "300", "5000"],
)
def test_a_value_that_is_no_json_is_refused_in_words(ws: Workspace, value: object) -> None:
    with pytest.raises(InvalidRecord):
        ws.record({"goal": "G", "extra": {"inside": value}})
    assert ws.list() == []


# -- links lead nowhere --------------------------------------------------------------------------


def linked(link: Path, target: Path) -> Path:
    """Put a link where a folder or file of the workspace was."""
    if link.is_dir():
        shutil.rmtree(link)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)
    return target


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "precious.txt").write_text("precious", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "place_", ["memory/semantic/facts", "memory/semantic", "memory/.txn", "memory", "local"]
)
def test_a_linked_folder_is_not_written_through(
    ws: Workspace, project: Path, outside: Path, place_: str
) -> None:
    linked(project / ".loki" / place_, outside)
    before = tree(outside)
    ws.close()
    for scope in ("project", "local"):
        with suppress(LokiMemoryError):
            Workspace.open(project).remember("A private thing", scope=scope)
    assert tree(outside) == before


def test_a_linked_cache_is_not_written_through(ws: Workspace, project: Path, outside: Path) -> None:
    linked(project / ".loki" / "cache", outside)
    before = tree(outside)
    with suppress(LokiMemoryError):
        Workspace.open(project).list()
    assert tree(outside) == before


def test_linked_views_are_not_written_through(ws: Workspace, project: Path, outside: Path) -> None:
    bases = Path(view_bases(ws.layout))
    linked(bases, outside)
    before = tree(outside)
    ws.remember("A")
    ws.sync()
    assert any(f"{bases.name} is a symbolic link" in notice for notice in ws.notices)
    assert tree(outside) == before


def test_a_linked_record_is_neither_read_nor_written(ws: Workspace, outside: Path) -> None:
    target = outside / "fact.json"
    target.write_text('{"statement": "from outside"}', encoding="utf-8")
    linked(ws.layout.resolve(place(fact())), target)
    with pytest.raises(StoreFailed):
        ws.remember(fact().statement)
    assert ws.list() == []
    assert "symbolic link" in ws.care.problems()[0].reason
    assert target.read_text(encoding="utf-8") == '{"statement": "from outside"}'


def test_a_linked_folder_is_not_read(ws: Workspace, outside: Path) -> None:
    (outside / "fact.json").write_text('{"statement": "from outside"}', encoding="utf-8")
    linked(ws.layout.memory / "semantic" / "facts", outside)
    ws.remember("A", kind="pattern")
    assert [memory.title() for memory in ws.list()] == ["A"]


def test_a_linked_lock_is_not_followed(
    ws: Workspace, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where folders cannot be locked, as on NFS, a file is."""

    def no_folders(fd: int, how: int) -> None:
        raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr(fcntl, "flock", no_folders)
    linked(ws.layout.cache / "lock", outside / "created-by-the-lock")
    with pytest.raises(StoreFailed):
        ws.remember("A")
    assert list(outside.iterdir()) == [outside / "precious.txt"]


def test_a_linked_view_hides_nothing_else(ws: Workspace, outside: Path) -> None:
    ws.remember("A")
    target = outside / "facts.json"
    target.write_text('[{"statement": "from outside"}]', encoding="utf-8")
    linked(ws.layout.memory / "semantic" / "facts.json", target)
    assert [memory.title() for memory in ws.list()] == ["A"]
    ws.remember("B")
    assert target.read_text(encoding="utf-8") == '[{"statement": "from outside"}]'
    assert "semantic/facts.json" in {problem.path for problem in ws.care.problems()}


def test_a_linked_gitignore_is_not_copied(ws: Workspace, project: Path, outside: Path) -> None:
    ignore = project / ".loki" / ".gitignore"
    ignore.unlink()
    linked(ignore, outside / "precious.txt")
    with suppress(LokiMemoryError):
        Workspace.init(project)
    assert ignore.is_symlink() or "precious" not in ignore.read_text(encoding="utf-8")


def test_a_symlinked_root_is_refused_by_name(project: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (project / ".loki").symlink_to(tmp_path / "real")
    with pytest.raises(LokiMemoryError, match="real"):
        layout(project)


# -- what a clone brings is data -----------------------------------------------------------------


def plant_intent(folder: Path, steps: list[list[str]], inode: int | None = None) -> None:
    """A change that is decided, as one would lie there who knew the inode of the folder."""
    marker = {"folder": os.lstat(folder).st_ino if inode is None else inode, "steps": steps}
    (folder / "intent.json").write_text(json.dumps(marker), encoding="utf-8")


@pytest.mark.parametrize("path", ["semantic/facts/planted.json", "local/semantic/facts/x.json"])
def test_an_intent_that_was_decided_in_another_folder_is_not_carried_out(
    ws: Workspace, path: str
) -> None:
    folder = ws.layout.memory / ".txn"
    folder.mkdir()
    (folder / "0").write_text('{"statement": "Planted"}', encoding="utf-8")
    plant_intent(folder, [["0", path, ""]], inode=os.lstat(folder).st_ino + 1)
    ws.remember("A")
    assert [memory.title() for memory in ws.list()] == ["A"]
    assert not ws.layout.resolve(path).exists()


@pytest.mark.parametrize("path", ["../../precious.txt", "semantic/../../../precious.txt"])
@pytest.mark.parametrize("staged", ["", "0"], ids=["remove", "replace"])
def test_an_intent_that_came_with_a_clone_leads_nowhere(
    ws: Workspace, project: Path, path: str, staged: str
) -> None:
    precious = project / "precious.txt"
    precious.write_text("precious", encoding="utf-8")
    folder = ws.layout.memory / ".txn"
    folder.mkdir()
    (folder / "0").write_text("hostile", encoding="utf-8")
    plant_intent(folder, [[staged, path, ""]])
    for use in (ws.list, lambda: ws.remember("A")):
        with suppress(LokiMemoryError):
            use()
    assert precious.read_text(encoding="utf-8") == "precious"


def test_an_intent_that_came_with_a_clone_follows_no_link(ws: Workspace, outside: Path) -> None:
    linked(ws.layout.memory / "semantic" / "facts", outside)
    folder = ws.layout.memory / ".txn"
    folder.mkdir()
    (folder / "0").write_text("hostile", encoding="utf-8")
    steps = [["0", "semantic/facts/planted.json", ""], ["", "semantic/facts/precious.txt", ""]]
    plant_intent(folder, steps)
    before = tree(outside)
    for use in (ws.list, lambda: ws.remember("A", kind="pattern")):
        with suppress(LokiMemoryError):
            use()
    assert tree(outside) == before


@pytest.mark.parametrize(
    "steps",
    [
        [["", ""]],
        [["0", ""]],
        [["", "."]],
        [["", "semantic"]],
        [["0", "semantic/facts"]],
        [["../../x", "semantic/facts/x.json"]],
        [["0", "semantic/facts/x.json/y.json"]],
    ],
    ids=json.dumps,
)
def test_an_intent_that_nobody_can_carry_out_does_not_shut_the_store(
    ws: Workspace, steps: list[list[str]]
) -> None:
    folder = ws.layout.memory / ".txn"
    folder.mkdir()
    (folder / "0").write_text("hostile", encoding="utf-8")
    plant_intent(folder, [[*step, ""] for step in steps], inode=0)
    ws.remember("A")
    assert [memory.title() for memory in ws.list()] == ["A"]


def test_refused_intents_do_not_shut_the_store_however_many_there_are(ws: Workspace) -> None:
    for number in range(3):
        folder = ws.layout.memory / ".txn"
        folder.mkdir()
        (folder / "0").write_text("hostile", encoding="utf-8")
        plant_intent(folder, [["0", "../../x", ""]])
        ws.remember(f"Fact {number}")
    assert len(ws.list()) == 3


@pytest.mark.parametrize(
    ("base", "view", "entry", "path"),
    [
        (
            "semantic-facts.json",
            "semantic/facts.json",
            {"id": "fact-evil", "statement": "E"},
            "../../planted.json",
        ),
        (
            "episodic-index.json",
            "episodic/index.json",
            {"id": "ep-evil", "goal": "E", "timestamp": "2026-01-06"},
            "episodic/../../../planted.json",
        ),
    ],
)
def test_a_view_base_that_came_with_a_clone_leads_nowhere(
    ws: Workspace, project: Path, base: str, view: str, entry: dict[str, str], path: str
) -> None:
    views = Path(view_bases(ws.layout))
    views.mkdir(parents=True)
    rendered = {"etag": "", "entries": {entry["id"]: [path, "0"]}}
    (views / base).write_text(json.dumps(rendered), encoding="utf-8")
    (ws.layout.memory / view).write_text(json.dumps([entry]), encoding="utf-8")
    ws.sync()
    assert not (project / "planted.json").exists()
    assert [memory.id for memory in ws.list()] == [entry["id"]]


def test_an_index_that_came_with_a_clone_is_not_believed(
    ws: Workspace, project: Path, tmp_path: Path
) -> None:
    ws.remember("We review every change")
    ws.list()
    ws.close()
    with sqlite3.connect(ws.layout.cache / "index.db") as database:
        database.execute("UPDATE memories SET body = replace(body, 'review', 'skip reviewing')")
    clone = Path(shutil.copytree(project, tmp_path / "clone"))
    titles = [memory.title() for memory in Workspace.open(clone).list()]
    assert titles == ["We review every change"]


@pytest.mark.parametrize("scope", ["project", "local"])
def test_what_is_rejected_in_a_change_is_refused_in_the_same_one(store: Store, scope: str) -> None:
    """Where nothing was rejected before, nobody looks for tombstones."""
    store.write(fact())
    stone = parse(Tombstone, {"value": "The tests need a server", "scope": scope})
    with store.change() as change:
        change.put(fact("Harmless"))
        change.put(stone)
        with pytest.raises(RejectedValue):
            change.put(fact("The tests need a SERVER."))


def test_keys_that_become_one_are_refused(store: Store) -> None:
    with pytest.raises(InvalidRecord, match="twice"):
        store.write(parse(Fact, {"statement": "A", "\u00e9": 1, "e\u0301": 2}))


def test_what_is_returned_is_what_was_stored_if_letters_were_composed(store: Store) -> None:
    stored = store.write(fact("gro\u0308ßer"))
    assert stored.statement == "größer"
    assert store.record(place(stored)) == stored


# -- the lock ------------------------------------------------------------------------------------


def test_the_memory_folder_holds_records_only(ws: Workspace) -> None:
    ws.record({"goal": "Add search"})
    ws.remember("A")
    ws.sync()
    with pytest.raises(ZeroDivisionError), ws.store.change():
        raise ZeroDivisionError
    names = {path.name for path in ws.layout.memory.rglob("*")}
    assert not [name for name in names if name.startswith(".")]


@pytest.fixture(params=["folder", "file"])
def lockable(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file system that locks folders, or one that locks files only, as NFS does."""
    flock = fcntl.flock

    def of_files(fd: int, how: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EBADF, "Bad file descriptor")
        flock(fd, how)

    if request.param == "file":
        monkeypatch.setattr(fcntl, "flock", of_files)
    return str(request.param)


@pytest.mark.usefixtures("lockable")
def test_a_held_store_lets_nobody_else_in(store: Store) -> None:
    other = Store(store.layout)
    with store.change(), pytest.raises(StoreBusy, match="lock_seconds"), other.change(seconds=0):
        pass
    other.write(fact())
    assert store.record(place(fact()))


def test_a_held_store_lets_nobody_else_in_when_the_cache_is_deleted(store: Store) -> None:
    store.write(fact())
    other = Store(store.layout)
    with store.change():
        shutil.rmtree(store.layout.cache, ignore_errors=True)
        with pytest.raises(StoreBusy), other.change(seconds=0):
            pass


def test_a_waiter_does_not_take_a_lock_that_was_deleted(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    waiter = os.open(path, os.O_RDWR | os.O_CREAT)
    path.unlink()
    assert not lock._try(waiter, path)
    path.touch()
    assert not lock._try(waiter, path)
    os.close(waiter)
    with lock.locked(path, 0):
        assert path.exists()


@pytest.mark.usefixtures("lockable")
def test_a_deleted_cache_loses_nobodys_change(store: Store) -> None:
    path = place(store.write(fact()))
    with suppress(Conflict, StoreBusy, StoreFailed), store.change() as change:
        mine = change.record(path)
        assert mine
        shutil.rmtree(store.layout.cache, ignore_errors=True)
        acknowledged = "importance"
        with suppress(StoreBusy):
            Store(store.layout, lock_seconds=0).write(fact(category="by another"))
            acknowledged = "category"
        change.put(mine.changed(importance=0.5))
    now = store.record(path)
    assert now
    assert acknowledged in now.document()


# -- secrets -------------------------------------------------------------------------------------


def remembered(ws: Workspace, kind: Any = "fact") -> Memory:
    return ws.remember(f"The token is {SECRET}", kind=kind)


def corrected(ws: Workspace) -> Memory:
    return ws.correct(ws.remember("A").id, category=f"uses {SECRET}")


WRITERS: dict[str, Callable[[Workspace], Any]] = {
    "record": lambda ws: ws.record({"goal": f"Log in with {SECRET}", "task_id": SECRET}),
    "record, deep inside": lambda ws: ws.record({"goal": "G", "x": {"y": [{SECRET: SECRET}]}}),
    "remember a fact": remembered,
    "remember a pattern": lambda ws: remembered(ws, "pattern"),
    "remember a learning": lambda ws: remembered(ws, "learning"),
    "remember in private": lambda ws: ws.remember(f"Mine is {SECRET}", scope="local"),
    "remember for the user": lambda ws: ws.remember(f"Mine is {SECRET}", scope="user"),
    "correct": corrected,
    "reject": lambda ws: ws.reject(ws.remember("A").id, why=f"it shows {SECRET}"),
    "checkpoint": lambda ws: ws.team.checkpoint({"agent_id": SECRET, "current_task": SECRET}),
    "hand off": lambda ws: ws.team.hand_off("a", "b", f"Rotated {SECRET}", note=SECRET),
    "add a skill": lambda ws: ws.skills.add(f"# Skill: Log in\n\n## Steps\n1. use {SECRET}\n"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_no_way_in_lets_a_secret_reach_the_disk(
    ws: Workspace, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    returned = WRITERS[name](ws)
    ws.list()
    ws.sync()
    ws.close()
    assert SECRET not in repr(returned)
    for root in (tmp_path, Path(os.environ["LOKI_HOME"])):
        holding = [path for path, data in tree(root).items() if SECRET.encode() in data]
        assert holding == []
        assert SECRET not in " ".join(str(path) for path in root.rglob("*"))


def test_an_id_is_not_derived_from_a_secret(ws: Workspace) -> None:
    assert remembered(ws).id == fact(f"The token is {CLEAN}").id
    episode = ws.record({"goal": f"Use {SECRET}", "timestamp": "2026-01-06"})
    clean = ws.record({"goal": f"Use {CLEAN}", "timestamp": "2026-01-06"})
    assert episode.id == clean.id


def test_history_does_not_bring_a_secret_back(ws: Workspace) -> None:
    path = ws.layout.memory / "semantic" / "facts" / "fact-1.json"
    path.write_text(json.dumps({"id": "fact-1", "statement": f"It is {SECRET}"}), encoding="utf-8")
    record = ws.correct("fact-1", statement="It was rotated")
    assert record.document()["history"][0]["was"] == {"statement": f"It is {CLEAN}"}
    assert SECRET not in path.read_text(encoding="utf-8")


def test_a_secret_written_by_hand_stays_in_the_file_and_out_of_the_index(ws: Workspace) -> None:
    path = ws.layout.memory / "semantic" / "facts" / "fact-1.json"
    text = f'{{\n  "id": "fact-1",\n  "statement": "The token is {SECRET}"\n}}'
    path.write_text(text, encoding="utf-8")
    assert ws.get("fact-1").title() == f"The token is {CLEAN}"
    [problem] = ws.care.problems()
    assert (problem.path, problem.line) == ("semantic/facts/fact-1.json", 3)
    assert "github_pat" in problem.reason
    assert SECRET not in str(problem)
    ws.sync()
    ws.close()
    assert path.read_text(encoding="utf-8") == text
    assert SECRET.encode() not in (ws.layout.cache / "index.db").read_bytes()
    view = (ws.layout.memory / "semantic" / "facts.json").read_text(encoding="utf-8")
    assert SECRET not in view


def test_each_line_with_a_secret_is_named(ws: Workspace) -> None:
    path = ws.layout.memory / "semantic" / "facts" / "fact-1.json"
    text = f'{{\n  "statement": "{SECRET}",\n  "by": "ana",\n  "note": "{SECRET}"\n}}'
    path.write_text(text, encoding="utf-8")
    assert [problem.line for problem in ws.care.problems()] == [2, 4]


def test_a_problem_does_not_tell_a_secret(ws: Workspace) -> None:
    facts = ws.layout.memory / "semantic" / "facts"
    (facts / "a.json").write_text(json.dumps({"statement": "A", "at": SECRET}), encoding="utf-8")
    (facts / "b.json").write_text(json.dumps({"statement": "A", "id": SECRET}), encoding="utf-8")
    (facts / "c.json").write_text(
        f'{{"statement": "A", "{SECRET}": 1, "{SECRET}": 2}}', encoding="utf-8"
    )
    assert len(ws.care.problems()) == 3
    assert SECRET not in "".join(map(str, ws.care.problems()))


def test_a_secret_in_a_view_goes_no_further(ws: Workspace) -> None:
    view = ws.layout.memory / "semantic" / "facts.json"
    view.write_text(json.dumps([{"statement": f"The token is {SECRET}"}]), encoding="utf-8")
    ws.list()
    ws.close()
    assert SECRET.encode() not in (ws.layout.cache / "index.db").read_bytes()


def test_a_secret_in_a_view_is_taken_over_once_and_clean(ws: Workspace) -> None:
    view = ws.layout.memory / "semantic" / "facts.json"
    view.write_text(json.dumps([{"statement": f"The token is {SECRET}"}]), encoding="utf-8")
    ws.sync()
    facts = tree(ws.layout.memory / "semantic" / "facts")
    assert list(facts) == [f"{fact(f'The token is {CLEAN}').id}.json"]
    ws.sync()
    assert tree(ws.layout.memory / "semantic" / "facts") == facts


def test_an_id_that_looks_like_a_secret_hides_nothing_else(ws: Workspace) -> None:
    ws.remember("A")
    hostile = "glpat" + "-" + "aB3dE5gH7jK9mN1pQ2rS"
    path = ws.layout.memory / "semantic" / "facts" / "x.json"
    path.write_text(json.dumps({"id": hostile, "statement": "B"}), encoding="utf-8")
    assert "A" in [memory.title() for memory in ws.list()]
    assert hostile not in "".join(map(str, ws.care.problems()))
