"""The witness: every write of a record leaves a line, and a line cannot be touched unseen."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from loki_memory import Fact, Workspace
from loki_memory.errors import FileChanged
from loki_memory.files import transaction
from loki_memory.files.layout import layout, place
from loki_memory.files.store import Store
from loki_memory.integrity import write_log
from loki_memory.integrity.write_log import LOCAL, LogLine, chain_path, content_hash
from loki_memory.models import parse


def fact(text: str, **fields: object) -> Fact:
    return parse(Fact, {"statement": text, **fields})


def chain_file(store: Store) -> Path:
    return Path(chain_path(store.layout))


def lines(store: Store) -> list[LogLine]:
    found = [write_log.parsed(raw) for raw in write_log.split(chain_file(store).read_bytes())]
    assert None not in found
    return [line for line in found if line]


def told(store: Store) -> list[tuple[str, str]]:
    return [(line.op, line.path) for line in lines(store)]


def published(store: Store) -> list[Path]:
    return sorted(store.layout.resolve("witness").rglob("*.jsonl"))


@pytest.fixture
def store(ws: Workspace) -> Store:
    return ws.store


# -- what is noted -------------------------------------------------------------------------------


def test_every_write_leaves_a_line_that_follows_from_the_one_before(store: Store) -> None:
    one = store.write(fact("We deploy on Fridays"))
    store.write(one.changed(category="process"))
    store.remove(place(one))
    first, second, third = lines(store)
    assert [first.op, second.op, third.op] == ["put", "put", "remove"]
    assert (first.was, first.prev, first.seq) == ("", "", 1)
    assert second.was == first.sha256
    assert second.prev == write_log.line_hash(first.encoded())
    assert (third.was, third.sha256, third.seq) == (second.sha256, "", 3)
    assert len({line.writer for line in lines(store)}) == 1
    assert not write_log.testimony(store.layout).breaks


def test_the_line_of_a_record_has_the_hash_of_its_file(store: Store) -> None:
    path = place(store.write(fact("We deploy on Fridays")))
    assert lines(store)[0].sha256 == content_hash(store.layout.resolve(path).read_bytes())


def test_a_change_of_many_files_leaves_a_line_for_each(store: Store) -> None:
    with store.change() as change:
        written = [change.put(fact(f"Fact number {n}")) for n in range(5)]
    assert told(store) == [("put", place(one)) for one in written]


def test_equal_content_leaves_no_line(store: Store) -> None:
    store.write(fact("We deploy on Fridays"))
    store.write(fact("We deploy on Fridays"))
    assert len(lines(store)) == 1


def test_private_records_and_views_leave_no_line(ws: Workspace) -> None:
    ws.remember("Only on this machine", scope="local")
    ws.sync()
    assert not chain_file(ws.store).exists()
    ws.remember("We deploy on Fridays")
    ws.sync()
    assert [path for _, path in told(ws.store) if "semantic/facts/" not in path] == []


def test_an_archived_record_leaves_two_lines(ws: Workspace) -> None:
    path = place(ws.remember("We deploy on Fridays"))
    ws.archive(ws.list()[0].id)
    assert told(ws.store)[1:] == [("put", f"archive/{path}"), ("remove", path)]


def test_a_refused_write_leaves_no_line(store: Store) -> None:
    one = store.write(fact("We deploy on Fridays"))
    with pytest.raises(FileChanged):
        store.write(one.changed(category="process"), if_match="another etag")
    assert len(lines(store)) == 1


# -- never in the way ----------------------------------------------------------------------------


def test_what_a_crash_left_of_a_line_is_cut_off(store: Store) -> None:
    store.write(fact("One"))
    whole = chain_file(store).read_bytes()
    chain_file(store).write_bytes(whole + whole[:50])
    store.write(fact("Two"))
    assert [line.seq for line in lines(store)] == [1, 2]
    assert not write_log.testimony(store.layout).breaks


def test_a_chain_that_cannot_be_continued_is_kept_and_another_begins(store: Store) -> None:
    store.write(fact("One"))
    chain_file(store).write_bytes(b"nonsense\n")
    store.write(fact("Two"))
    assert [line.seq for line in lines(store)] == [1]
    found = write_log.testimony(store.layout).breaks
    assert [one.reason for one in found] == ["cannot be read"]
    assert chain_file(store).with_name(Path(found[0].file).name).read_bytes() == b"nonsense\n"


def test_a_chain_that_cannot_be_written_does_not_stop_a_write(store: Store) -> None:
    chain_file(store).mkdir(parents=True)
    written = store.write(fact("We deploy on Fridays"))
    assert store.record(place(written)) == written


def test_a_link_in_place_of_the_folder_is_not_followed(store: Store, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    store.layout.local.mkdir(exist_ok=True)
    (store.layout.local / "witness").symlink_to(outside)
    store.write(fact("We deploy on Fridays"))
    assert list(outside.iterdir()) == []
    assert len(write_log.testimony(store.layout)) == 0


def test_two_worktrees_of_one_clone_have_a_chain_each(project: Path, tmp_path: Path) -> None:
    git(project, "init", "-q")
    git(project, "commit", "-q", "--allow-empty", "-m", "first")
    git(project, "worktree", "add", "-q", str(tmp_path / "other"))
    here, there = (Store(Workspace.init(p).layout) for p in (project, tmp_path / "other"))
    assert here.layout.local == there.layout.local
    for store in (here, there, here):
        store.write(fact(f"Fact {len(list(chain_file(store).parent.glob('*')))}"))
    assert chain_file(here) != chain_file(there)
    assert lines(here)[0].writer != lines(there)[0].writer
    assert not write_log.testimony(here.layout).breaks


def git(folder: Path, *args: str) -> None:
    identity = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    subprocess.run(["git", *identity, *args], cwd=folder, check=True, capture_output=True)


def test_a_change_that_a_crash_interrupted_is_vouched_for_once_it_is_completed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(transaction, "_complete", crash)
    with pytest.raises(KeyboardInterrupt), store.change() as change:
        written = [change.put(fact(text)) for text in ("One", "Two")]
    monkeypatch.undo()
    with store.change():
        pass
    found = write_log.testimony(store.layout)
    for one in written:
        data = store.layout.resolve(place(one)).read_bytes()
        assert content_hash(data) in found.vouched[place(one)]


# -- where a chain does not hold -----------------------------------------------------------------


def three(store: Store) -> list[bytes]:
    for text in ("One", "Two", "Three"):
        store.write(fact(text))
    return write_log.split(chain_file(store).read_bytes())


def broken(store: Store, raw: list[bytes]) -> list[tuple[int, str]]:
    chain_file(store).write_bytes(b"".join(line + b"\n" for line in raw))
    found = write_log.testimony(store.layout).breaks
    assert all(one.file == LOCAL + chain_file(store).name for one in found)
    return [(one.number, one.reason.partition(":")[0]) for one in found]


def test_a_changed_line_breaks_the_chain_behind_it(store: Store) -> None:
    raw = three(store)
    other = raw[1].replace(b'"put"', b'"adopt"')
    assert broken(store, [raw[0], other, raw[2]]) == [
        (3, "does not follow from the line before it")
    ]


def test_a_line_that_was_taken_out_shows(store: Store) -> None:
    raw = three(store)
    assert broken(store, [raw[0], raw[2]]) == [(2, "is number 3 after 1")]


def test_lines_that_changed_places_show(store: Store) -> None:
    raw = three(store)
    assert [number for number, _ in broken(store, [raw[1], raw[0], raw[2]])] == [2, 3, 1]


def test_a_first_line_that_was_taken_out_shows(store: Store) -> None:
    raw = three(store)
    assert broken(store, raw[1:]) == [(1, "is number 2, and lines before it are not here")]


def test_other_spelling_of_the_same_line_shows(store: Store) -> None:
    raw = three(store)
    assert broken(store, [raw[0], raw[1], raw[2].replace(b":", b": ", 1)]) == [
        (3, "cannot be read")
    ]


def test_a_line_of_another_writer_shows(store: Store) -> None:
    raw = three(store)
    writer = lines(store)[0].writer.encode()
    assert broken(store, [*raw[:2], raw[2].replace(writer, b"w-0000000000")]) == [
        (3, "is another writer's")
    ]


def test_lines_beside_a_break_vouch_for_nothing(store: Store) -> None:
    raw = three(store)
    found = write_log.Testimony(
        [write_log.read("x", [raw[0], raw[1].replace(b'"put"', b'"adopt"'), raw[2]])]
    )
    assert list(found.vouched) == [lines(store)[0].path]


# -- publishing ----------------------------------------------------------------------------------


def test_there_is_nothing_to_publish_before_the_first_write(store: Store) -> None:
    assert store.publish_writes() == ""
    assert published(store) == []


def test_what_is_published_is_the_chain_up_to_its_head(store: Store) -> None:
    raw = three(store)
    head = store.publish_writes()
    writer = lines(store)[0].writer
    assert head == f"{writer}:3:{write_log.line_hash(raw[2])}"
    (file,) = published(store)
    assert file.parent.name == writer
    assert file.read_bytes() == chain_file(store).read_bytes()


def test_publishing_again_adds_a_file_with_what_is_new(store: Store) -> None:
    three(store)
    store.publish_writes()
    before = {path: path.read_bytes() for path in published(store)}
    assert store.publish_writes().split(":")[1] == "3"
    assert published(store) == list(before)
    store.write(fact("Four"))
    assert store.publish_writes().split(":")[1] == "4"
    (new,) = set(published(store)) - set(before)
    assert write_log.split(new.read_bytes()) == write_log.split(chain_file(store).read_bytes())[3:]
    assert all(path.read_bytes() == data for path, data in before.items())


def test_what_another_branch_published_is_published_here_too(store: Store) -> None:
    three(store)
    store.publish_writes()
    os.unlink(published(store)[0])  # as switching to a branch without it does
    store.write(fact("Four"))
    store.publish_writes()
    (file,) = published(store)
    assert len(write_log.split(file.read_bytes())) == 4


def test_a_published_chain_needs_no_chain_of_this_machine(store: Store) -> None:
    three(store)
    store.publish_writes()
    store.write(fact("Four"))
    store.publish_writes()
    os.unlink(chain_file(store))
    found = write_log.testimony(store.layout)
    assert not found.breaks
    assert len(found) == 4


def test_a_broken_chain_is_not_published(store: Store) -> None:
    raw = three(store)
    chain_file(store).write_bytes(b"\n".join([raw[0], raw[2], b""]))
    assert store.publish_writes() == ""
    assert published(store) == []


def test_a_published_file_that_lost_its_last_line_shows(store: Store) -> None:
    three(store)
    store.publish_writes()
    (file,) = published(store)
    file.write_bytes(b"".join(line + b"\n" for line in write_log.split(file.read_bytes())[:2]))
    os.unlink(chain_file(store))
    (found,) = write_log.testimony(store.layout).breaks
    assert (found.number, found.paths) == (2, (place(fact("Two")),))


def test_a_chain_that_was_cut_below_what_it_published_shows(store: Store) -> None:
    raw = three(store)
    store.publish_writes()
    chain_file(store).write_bytes(raw[0] + b"\n")
    (found,) = write_log.testimony(store.layout).breaks
    assert found.reason == "is the last, and 3 were published"
    assert found.paths == (place(fact("Two")), place(fact("Three")))


def test_two_branches_of_one_writer_merge_without_conflict(project: Path) -> None:
    git(project, "init", "-q", "-b", "main")
    store = Workspace.init(project).store
    assert store.layout == layout(project)

    def commit(text: str) -> None:
        store.write(fact(text))
        assert store.publish_writes()
        git(project, "add", "-A")
        git(project, "commit", "-q", "-m", text)

    commit("Before")
    git(project, "checkout", "-q", "-b", "side")
    commit("On the side")
    git(project, "checkout", "-q", "main")
    commit("On main")
    commit("On main again")
    git(project, "merge", "-q", "--no-edit", "side")
    assert not write_log.testimony(store.layout).breaks
    assert len(lines(store)) == 4


def test_line_ends_that_git_changed_do_not_count() -> None:
    assert content_hash(b"a\r\nb\r\n") == content_hash(b"a\nb\n") != content_hash(b"a\nb")
    assert content_hash(None) == ""


def test_only_records_are_witnessed() -> None:
    assert write_log.is_witnessed("semantic/facts/fact-1.json")
    assert write_log.is_witnessed("archive/skills/build.md")
    assert not write_log.is_witnessed("local/semantic/facts/fact-1.json")
    assert not write_log.is_witnessed("semantic/facts.json")
    assert not write_log.is_witnessed("witness/w-0123456789/00000001-00000003-0123456789.jsonl")
