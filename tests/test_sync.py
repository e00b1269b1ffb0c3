"""Files to index: every change is noticed, whoever made it and however fast."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from loki_memory import Fact, Workspace
from loki_memory.errors import EverythingVanished
from loki_memory.files import codec
from loki_memory.files.scan import UNSETTLED, scan, settled
from loki_memory.history.as_of import follow
from loki_memory.home import Home
from loki_memory.index.index import Index
from loki_memory.models import parse
from loki_memory.sync import rebuild

LONG_AGO = 1_700_000_000_000_000_000


def facts(ws: Workspace) -> Path:
    return ws.layout.memory / "semantic" / "facts"


def write(ws: Workspace, name: str, **fields: Any) -> Path:
    """A fact as somebody writes it by hand."""
    path = facts(ws) / f"{name}.json"
    path.write_text(json.dumps({"id": f"fact-{name}", **fields}), encoding="utf-8")
    return path


def is_current(home: Home) -> bool:
    """Whether the index remembers every file with the stamp that it has."""
    known = {path: home.index.folder(path)[1] for path in home.index.folders()}
    return known == {path: folder.files for path, folder in scan(home.layout)}


def wait_until_current(home: Home) -> None:
    """No ctime can be set: until the clock ticks, a file that was just touched is looked at."""
    for _ in range(10_000):
        if is_current(home):
            return
        home.ensure("views")
    raise AssertionError("the files never settle")


def overwrite(path: Path, **fields: Any) -> None:
    """Change a file in place: its folder does not notice."""
    document = {**json.loads(path.read_text(encoding="utf-8")), **fields}
    with path.open("r+", encoding="utf-8") as file:
        file.truncate()
        file.write(json.dumps(document))


def titles(ws: Workspace, **filters: Any) -> list[str]:
    return sorted(memory.title() for memory in ws.list(**filters))


def assert_like_rebuilt(ws: Workspace) -> None:
    ws.list()
    fresh = Index(None)
    rebuild(ws.layout, fresh, 0)
    assert ws.index.digest() == fresh.digest()
    fresh.close()


# -- what counts as a change ---------------------------------------------------------------------


def test_changes_name_what_was_added_modified_and_removed(ws: Workspace) -> None:
    a, b = write(ws, "a", statement="A"), write(ws, "b", statement="B")
    assert ws.sync().added == ["semantic/facts/a.json", "semantic/facts/b.json"]
    overwrite(a, category="new")
    b.unlink()
    write(ws, "c", statement="C")
    changes = ws.sync()
    assert changes.added == ["semantic/facts/c.json"]
    assert changes.modified == ["semantic/facts/a.json"]
    assert changes.removed == ["semantic/facts/b.json"]
    assert not ws.sync()


def test_a_reader_sees_a_change_at_once(ws: Workspace) -> None:
    a = write(ws, "a", statement="A")
    write(ws, "z", statement="Z")
    assert titles(ws) == ["A", "Z"]
    overwrite(a, statement="Changed")
    assert titles(ws) == ["Changed", "Z"]
    a.unlink()
    assert titles(ws) == ["Z"]


@pytest.mark.parametrize(
    ("path", "text", "title"),
    [
        ("episodic/2026-01-06/task-001.json", '{"goal": "G"}', "G"),
        ("learnings/2026-01-06/x.json", '{"lesson": "L"}', "L"),
    ],
)
def test_a_record_that_is_dated_by_its_path_is_listed(
    ws: Workspace, path: str, text: str, title: str
) -> None:
    file = ws.layout.memory / path
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8")
    [memory] = ws.list()
    assert memory.title() == title
    assert memory.when()[:10] == "2026-01-06"
    assert ws.list(since="2026-01-06") == [memory]
    assert ws.get(memory.id) == memory
    ws.sync()
    assert file.read_text(encoding="utf-8") == text


def test_a_touched_file_is_no_change(ws: Workspace) -> None:
    path = write(ws, "a", statement="A")
    ws.sync()
    os.utime(path)
    assert not ws.sync()


def test_edges_that_come_go_and_weigh_otherwise_are_those_of_the_file(ws: Workspace) -> None:
    def links(*weights: float) -> list[dict[str, object]]:
        return [{"to": "fact-b", "relation": "elaborates", "strength": w} for w in weights]

    write(ws, "b", statement="B")
    for found in (links(0.5, 0.9), links(0.9, 0.5), links(0.5), [], links(0.9)):
        write(ws, "a", statement="A", links=found)
        ws.sync()
        weights = [weight for _, _, weight in ws.index.edges_from("fact-a")]
        assert weights == [one["strength"] for one in found[-1:]]
        assert_like_rebuilt(ws)


def test_changed_files_are_read_and_known_ones_left_alone(ws: Workspace) -> None:
    known = [write(ws, f"known-{number}", statement=f"Known {number}") for number in range(5)]
    ws.sync()
    for path in known:
        os.utime(path)
    overwrite(known[0], statement="Changed")
    write(ws, "new", statement="New")
    changes = ws.sync()
    assert changes.modified == ["semantic/facts/known-0.json"]
    assert changes.added == ["semantic/facts/new.json"]
    assert_like_rebuilt(ws)


def test_files_that_lie_in_no_folder_are_read_from_where_they_are(ws: Workspace) -> None:
    paths = [write(ws, f"{number}", statement=f"Now {number}") for number in range(3)]
    ws.sync()
    then = {
        f"semantic/facts/{path.name}": path.read_bytes().replace(b"Now", b"Then") for path in paths
    }
    follow(ws.layout, ws.index, then, state=1)
    titles_then = ws.index.ask("SELECT title FROM memories ORDER BY title")
    assert titles_then == [("Then 0",), ("Then 1",), ("Then 2",)]


def test_a_renamed_file_keeps_its_row(ws: Workspace) -> None:
    path = write(ws, "a", statement="A")
    write(ws, "b", statement="B")
    ws.sync()
    row = ws.index.scalar("SELECT row FROM memories WHERE id = 'fact-a'")
    path.rename(facts(ws) / "zz-renamed.json")
    changes = ws.sync()
    assert changes.added == ["semantic/facts/zz-renamed.json"]
    assert changes.removed == ["semantic/facts/a.json"]
    assert ws.index.scalar("SELECT row FROM memories WHERE id = 'fact-a'") == row
    assert ws.browse.where("fact-a").name == "zz-renamed.json"


def test_a_moved_folder_keeps_its_episodes(ws: Workspace) -> None:
    episode = ws.record({"id": "ep-1", "goal": "G", "timestamp": "2026-01-06"})
    ws.sync()
    folder = ws.layout.memory / "episodic"
    (folder / "2026-01-06").rename(folder / "old")
    assert ws.get(episode.id).title() == "G"
    assert ws.browse.where(episode.id).parent.name == "old"


def test_an_overwrite_of_the_same_size_and_time_is_noticed(ws: Workspace) -> None:
    path = write(ws, "a", statement="A1")
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    assert titles(ws) == ["A1"]
    overwrite(path, statement="A2")
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    assert titles(ws) == ["A2"]


def test_a_file_written_twice_within_one_tick_is_noticed(ws: Workspace) -> None:
    path = write(ws, "a", statement="A0")
    for number in range(1, 10):
        ws.sync()
        overwrite(path, statement=f"A{number}")
        assert titles(ws) == [f"A{number}"]


def test_a_stamp_is_believed_only_once_the_clock_has_moved_on() -> None:
    stamp = (LONG_AGO + 5, LONG_AGO + 5, 10)
    assert settled(stamp, LONG_AGO + 6) == UNSETTLED
    assert settled(stamp, LONG_AGO + 1_000_000_000) == stamp
    whole_seconds = (LONG_AGO, LONG_AGO, 10)
    assert settled(whole_seconds, LONG_AGO + 1_000_000_000) == UNSETTLED


def test_a_file_that_cannot_be_read_hides_no_other(ws: Workspace) -> None:
    write(ws, "a", statement="A")
    (facts(ws) / "b.json").write_text("{", encoding="utf-8")
    (facts(ws) / "c.json").write_bytes(b"\xff\xfe\0")
    (facts(ws) / "d.json").write_text("", encoding="utf-8")
    assert titles(ws) == ["A"]
    assert [problem.path[-6:] for problem in ws.care.problems()] == ["b.json", "c.json", "d.json"]
    (facts(ws) / "b.json").write_text('{"statement": "B"}', encoding="utf-8")
    assert titles(ws) == ["A", "B"]
    assert len(ws.care.problems()) == 2


def test_a_record_that_becomes_unreadable_is_a_problem_and_not_what_it_was(ws: Workspace) -> None:
    path = write(ws, "a", statement="A")
    write(ws, "b", statement="B")
    ws.sync()
    path.write_text("{", encoding="utf-8")
    assert titles(ws) == ["B"]
    assert [problem.path for problem in ws.care.problems()] == ["semantic/facts/a.json"]


@pytest.mark.parametrize(
    "text",
    [
        '{"goal": "G", "timestamp": "2026-01-06", "context": "free text"}',
        '{"goal": "G", "timestamp": "0001-01-01T00:00:00+05:00"}',
        '{"goal": "G", "timestamp": "2026-01-06", "links": {"to": "sem-1"}}',
        '{"goal": ["G"], "timestamp": 2026}',
        '{"context": {"goal": "G"}, "timestamp": "2026-01-06", "action_log": [1, "x", null]}',
    ],
)
def test_no_record_file_keeps_the_others_from_being_read(ws: Workspace, text: str) -> None:
    ws.remember("A")
    (ws.layout.memory / "episodic" / "strange.json").write_text(text, encoding="utf-8")
    assert "A" in titles(ws)
    assert len(ws.care.problems()) == 1


@pytest.mark.parametrize(
    "name", [b"\xff.json", b"\xe9t\xe9.json", b"a\nb.json", b" .json", b"%.json"]
)
def test_no_file_name_keeps_the_others_from_being_read(ws: Workspace, name: bytes) -> None:
    ws.remember("A")
    with open(os.fsencode(facts(ws)) + b"/" + name, "wb") as file:
        file.write(b'{"statement": "B"}')
    assert "A" in titles(ws)
    ws.sync()


def test_what_starts_with_a_dot_is_no_memory(ws: Workspace) -> None:
    (facts(ws) / ".tmp-1-1").write_text('{"statement": "half"}', encoding="utf-8")
    (facts(ws) / ".hidden.json").write_text('{"statement": "hidden"}', encoding="utf-8")
    assert titles(ws) == []
    assert ws.care.problems() == []


# -- everything gone -----------------------------------------------------------------------------


def test_everything_gone_at_once_is_refused_and_a_rebuild_accepts_it(ws: Workspace) -> None:
    for name in "abc":
        write(ws, name, statement=name)
    ws.sync()
    shutil.rmtree(facts(ws))
    for use in (ws.list, ws.sync, ws.status):
        with pytest.raises(EverythingVanished, match="3 memory files"):
            use()
    ws.rebuild()
    assert ws.list() == []
    assert not ws.sync()


def test_what_comes_back_is_as_if_it_had_not_been_gone(ws: Workspace) -> None:
    write(ws, "a", statement="A")
    ws.sync()
    away = facts(ws).rename(ws.layout.root / "away")
    with pytest.raises(EverythingVanished):
        ws.list()
    away.rename(facts(ws))
    assert titles(ws) == ["A"]


def test_the_last_of_several_gone_is_no_accident_if_one_stays(ws: Workspace) -> None:
    for name in "abc":
        write(ws, name, statement=name)
    ws.sync()
    for name in "ab":
        (facts(ws) / f"{name}.json").unlink()
    assert titles(ws) == ["c"]


@pytest.mark.parametrize("way_out", ["forget", "archive"])
def test_taking_out_the_only_memory_is_no_accident(ws: Workspace, way_out: str) -> None:
    fact = ws.remember("The only one")
    ws.list()
    getattr(ws, way_out)(fact.id)
    assert ws.list() == []
    ws.restore(fact.id)
    assert titles(ws) == ["The only one"]


# -- two files with one id -----------------------------------------------------------------------


@pytest.fixture
def contested(ws: Workspace) -> Workspace:
    """Two branches wrote the same sequential id for different facts."""
    for name in ("first", "second"):
        path = facts(ws) / f"{name}.json"
        path.write_text(json.dumps({"id": "fact-001", "statement": name}), encoding="utf-8")
    return ws


def test_the_first_path_holds_the_id_and_the_other_is_shown_under_its_own(
    contested: Workspace,
) -> None:
    assert titles(contested) == ["first", "second"]
    assert contested.get("fact-001").title() == "first"
    derived = parse(Fact, {"statement": "second"}).id
    assert contested.get(derived).title() == "second"
    [problem] = contested.care.problems()
    assert problem.path == "semantic/facts/second.json"
    assert "fact-001" in problem.reason
    assert derived in problem.reason


def test_it_does_not_matter_which_came_first(ws: Workspace) -> None:
    for name in ("second", "first"):
        path = facts(ws) / f"{name}.json"
        path.write_text(json.dumps({"id": "fact-001", "statement": name}), encoding="utf-8")
        ws.sync()
    assert ws.get("fact-001").title() == "first"
    assert titles(ws) == ["first", "second"]
    assert_like_rebuilt(ws)


def test_the_doctor_writes_the_id_and_the_problem_is_gone(contested: Workspace) -> None:
    contested.list()
    contested.care.doctor(fix=True)
    derived = parse(Fact, {"statement": "second"}).id
    written = json.loads((facts(contested) / "second.json").read_text(encoding="utf-8"))
    assert written["id"] == derived
    assert contested.care.problems() == []
    assert titles(contested) == ["first", "second"]


def test_the_id_goes_to_the_other_when_its_holder_is_gone(contested: Workspace) -> None:
    contested.sync()
    (facts(contested) / "first.json").unlink()
    assert contested.get("fact-001").title() == "second"
    assert contested.care.problems() == []
    assert_like_rebuilt(contested)


def test_a_copy_of_a_record_is_one_memory_and_a_problem(ws: Workspace) -> None:
    fact = ws.remember("A")
    shutil.copy(ws.browse.where(fact.id), facts(ws) / "zz-copy.json")
    assert titles(ws) == ["A"]
    [problem] = ws.care.problems()
    assert problem.path == "semantic/facts/zz-copy.json"
    assert fact.id in problem.reason


def test_three_files_with_one_id_are_three_memories(contested: Workspace) -> None:
    path = facts(contested) / "third.json"
    path.write_text(json.dumps({"id": "fact-001", "statement": "third"}), encoding="utf-8")
    assert titles(contested) == ["first", "second", "third"]
    assert len(contested.care.problems()) == 2
    assert_like_rebuilt(contested)


# -- more files than every command looks at ------------------------------------------------------


@pytest.fixture
def large(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """Above the limit, and long enough ago that folders can be believed."""
    monkeypatch.setenv("LOKI_SYNC_SCAN_LIMIT", "5")
    for number in range(8):
        write(ws, f"a{number}", statement=f"A{number}")
    settle(ws)
    with Workspace.open(ws.layout.root) as workspace:
        workspace.sync()
        yield workspace


def settle(ws: Workspace) -> None:
    """Let folders look as if nothing had happened in them for a long time."""
    for folder in (ws.layout.memory, *ws.layout.memory.rglob("*")):
        if folder.is_dir():
            os.utime(folder, ns=(LONG_AGO + 1, LONG_AGO + 1))


def test_above_the_limit_added_and_removed_files_are_seen_at_once(large: Workspace) -> None:
    write(large, "new", statement="New")
    assert "New" in titles(large)
    (facts(large) / "new.json").unlink()
    assert "New" not in titles(large)


def test_within_one_look_files_are_compared_once(large: Workspace) -> None:
    with large.home.one_look():
        assert not large.home.ensure("folders")
        write(large, "new", statement="New")
        assert not large.home.ensure("folders")
    assert large.home.ensure("folders").added == ["semantic/facts/new.json"]


def test_within_one_look_a_full_comparison_serves_every_later_question(large: Workspace) -> None:
    with large.home.one_look():
        write(large, "new", statement="New")
        assert large.home.ensure("read").added == ["semantic/facts/new.json"]
        write(large, "newer", statement="Newer")
        assert not large.home.ensure("read")
        assert not large.home.ensure("folders")
    assert large.home.ensure("read").added == ["semantic/facts/newer.json"]


def test_above_the_limit_replaced_files_are_seen_at_once(large: Workspace) -> None:
    codec_bytes = codec.encode(parse(Fact, {"id": "fact-a0", "statement": "Replaced"}))
    temporary = facts(large) / ".tmp-by-an-editor"
    temporary.write_bytes(codec_bytes)
    temporary.rename(facts(large) / "a0.json")
    assert "Replaced" in titles(large)


def test_above_the_limit_our_own_writes_are_seen_at_once(large: Workspace) -> None:
    large.correct("fact-a0", statement="Corrected")
    large.record({"goal": "On a new day", "timestamp": "2026-02-01"})
    assert {"Corrected", "On a new day"} <= set(titles(large))


def test_above_the_limit_a_new_folder_is_seen_at_once(large: Workspace) -> None:
    folder = large.layout.memory / "episodic" / "2026-03-01" / "deeper"
    folder.mkdir(parents=True)
    episode = '{"goal": "Deep", "timestamp": "2026-03-01"}'
    (folder / "x.json").write_text(episode, encoding="utf-8")
    assert "Deep" in titles(large)
    shutil.rmtree(folder.parent)
    assert "Deep" not in titles(large)


def test_above_the_limit_the_first_file_of_a_kind_is_seen_at_once(large: Workspace) -> None:
    skills = large.layout.memory / "skills"
    skills.rmdir()  # a clone has no empty folders
    large.sync()
    skills.mkdir()
    (skills / "deploy.md").write_text("# Deploy\n", encoding="utf-8")
    assert "Deploy" in titles(large)


def test_above_the_limit_the_first_private_memory_is_seen_at_once(large: Workspace) -> None:
    large.remember("Mine", scope="local")
    assert titles(large, scope="local") == ["Mine"]


def test_above_the_limit_an_overwrite_in_place_is_seen_by_get(large: Workspace) -> None:
    overwrite(facts(large) / "a0.json", statement="In place")
    settle(large)
    assert large.get("fact-a0").title() == "In place"
    assert "In place" in titles(large)


def test_above_the_limit_an_overwrite_in_place_is_seen_by_all_when_due(
    large: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    overwrite(facts(large) / "a0.json", statement="In place")
    monkeypatch.setenv("LOKI_SYNC_FULL_SCAN_SECONDS", "0")
    with Workspace.open(large.layout.root) as later:
        assert "In place" in titles(later)


def test_above_the_limit_a_sync_compares_every_file(large: Workspace) -> None:
    overwrite(facts(large) / "a0.json", statement="In place")
    assert large.sync().modified == ["semantic/facts/a0.json"]


def test_views_count_for_get_as_they_count_for_the_limit(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five records and their view are six files."""
    monkeypatch.setenv("LOKI_SYNC_SCAN_LIMIT", "5")
    for number in range(5):
        write(ws, f"a{number}", statement=f"A{number}")
    ws.sync()
    settle(ws)
    ws.sync()
    with Workspace.open(ws.layout.root) as fresh:
        fresh.list()
        overwrite(facts(ws) / "a0.json", statement="In place")
        assert fresh.get("fact-a0").title() == "In place"


def test_above_the_limit_everything_gone_is_refused_too(large: Workspace) -> None:
    shutil.rmtree(facts(large))
    (large.layout.memory / "semantic" / "facts.json").unlink()
    with pytest.raises(EverythingVanished):
        large.list()


def test_above_the_limit_the_index_equals_the_rebuilt_one(large: Workspace) -> None:
    write(large, "new", statement="New")
    (facts(large) / "a1.json").unlink()
    (facts(large) / "a2.json").rename(facts(large) / "moved.json")
    assert_like_rebuilt(large)


# -- many at once --------------------------------------------------------------------------------


def test_eight_threads_read_and_write_one_workspace(ws: Workspace) -> None:
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(5):
                ws.remember(f"Thread {number} step {step}")
                ws.record({"goal": f"Goal {number} {step}", "timestamp": "2026-01-06"})
                assert f"Thread {number} step {step}" in titles(ws, kind="fact")
                ws.status()
        except BaseException as error:  # noqa: BLE001 - shown below
            failed.append(error)

    threads = [Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(ws.list()) == 80
    assert [said for said in ws.notices if "damaged" in said] == []
    ws.sync()
    assert_like_rebuilt(ws)


def test_many_new_files_are_put_beside_those_that_are_known(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loki_memory.sync._MANY", 3)
    write(ws, "a", statement="A")
    later = time.time_ns() + 1_000_000_000  # what was written before is known for sure
    monkeypatch.setattr(time, "time_ns", lambda: later)
    ws.sync()
    for number in range(6):
        write(ws, f"new-{number}", statement=f"New {number}")
    monkeypatch.setattr("loki_memory.sync.rebuild", None)  # nothing is made anew
    assert len(ws.sync().added) == 6
    monkeypatch.undo()
    assert_like_rebuilt(ws)


def test_a_sync_of_most_files_says_what_it_changed_and_equals_a_rebuild(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loki_memory.sync._MANY", 3)
    facts = [ws.remember(f"Fact number {number}") for number in range(6)]
    ws.sync()
    folder = ws.layout.memory / "semantic" / "facts"
    for fact in facts[:4]:
        path = folder / f"{fact.id}.json"
        path.write_text(path.read_text().replace("Fact number", "Another fact"))
    (folder / f"{facts[4].id}.json").unlink()
    (folder / "fact-new.json").write_text('{"id": "fact-new", "statement": "New"}')
    changes = ws.sync()
    assert changes.added == ["semantic/facts/fact-new.json"]
    assert changes.modified == sorted(f"semantic/facts/{fact.id}.json" for fact in facts[:4])
    assert changes.removed == [f"semantic/facts/{facts[4].id}.json"]
    synced = ws.index.digest()
    ws.rebuild()
    assert ws.index.digest() == synced
