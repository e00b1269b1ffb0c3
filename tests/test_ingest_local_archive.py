"""What exists on one machine only can be taken along, and is merged elsewhere without loss."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_consolidation_publish import LESSON, session

from loki_memory import Workspace
from loki_memory.errors import BadArchive, NotFound
from loki_memory.models import Belief
from tests.conftest import git


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Workspace]:
    folder = tmp_path / "other"
    folder.mkdir()
    with Workspace.init(folder) as workspace:
        yield workspace


@pytest.fixture
def archive(ws: Workspace, tmp_path: Path) -> Path:
    """A file of a machine with two sessions, what they taught, a note, and a use."""
    ws.record([session(1), session(2, "Use `make seed` before the demo, otherwise it is empty.")])
    ws.consolidate(reach="nothing")
    note = ws.remember("My own key is in the red safe", scope="local")
    ws.feedback(note.id, helpful=True)
    path = tmp_path / "mine.jsonl"
    ws.sessions.export_local(path)
    return path


def private(ws: Workspace) -> dict[str, bytes]:
    top = ws.layout.local / "memory"
    return {path.relative_to(top).as_posix(): path.read_bytes() for path in top.rglob("*-*.json")}


def written(path: Path, *lines: dict[str, Any]) -> Path:
    header = {"format": "loki-memory local", "version": 1}
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (header, *lines)))
    return path


def test_all_that_is_private_arrives_on_another_machine(
    ws: Workspace, other: Workspace, archive: Path
) -> None:
    done = other.sessions.import_local(archive)
    assert done.added["episode"] == 2
    assert done.refused == []
    assert private(other) == private(ws)
    assert {memory.id for memory in other.list()} == {memory.id for memory in ws.list()}
    note = next(memory for memory in other.list(scope="local") if "red safe" in memory.title())
    assert other.browse.uses(note.id).helpful == 1


def test_a_second_import_changes_nothing(other: Workspace, archive: Path) -> None:
    other.sessions.import_local(archive)
    before = private(other)
    done = other.sessions.import_local(archive)
    assert (done.added, done.joined, done.uses) == ({}, [], 0)
    assert private(other) == before


def test_only_its_user_can_read_the_file_and_no_other_is_overwritten(
    ws: Workspace, archive: Path
) -> None:
    assert stat.S_IMODE(os.stat(archive).st_mode) == 0o600
    before = archive.read_bytes()
    with pytest.raises(BadArchive, match="exists already"):
        ws.sessions.export_local(archive)
    assert archive.read_bytes() == before


def test_evidence_for_the_same_candidate_is_joined(
    ws: Workspace, other: Workspace, archive: Path
) -> None:
    other.record(session(3))
    other.consolidate(reach="nothing")
    (mine,) = [m for m in other.list(kind="fact") if m.title() == LESSON]
    done = other.sessions.import_local(archive)
    assert done.joined == [mine.id]
    both, theirs = other.get(mine.id), ws.get(mine.id)
    assert isinstance(mine, Belief)
    assert isinstance(both, Belief)
    assert isinstance(theirs, Belief)
    assert both.rests_on() == mine.rests_on() | theirs.rests_on()
    other.consolidate()
    assert (other.layout.memory / "semantic" / "facts" / f"{mine.id}.json").exists()


def test_what_was_changed_or_taken_out_here_stays_so(
    ws: Workspace, other: Workspace, archive: Path
) -> None:
    other.sessions.import_local(archive)
    note = next(memory for memory in other.list(scope="local") if "red safe" in memory.title())
    other.correct(note.id, category="keys")
    episodes = other.list(kind="episode")
    other.archive(episodes[0].id)
    other.forget(episodes[1].id)
    done = other.sessions.import_local(archive)
    assert "episode" not in done.added
    assert other.get(note.id).document()["category"] == "keys"
    for episode in episodes:
        with pytest.raises(NotFound):
            other.get(episode.id)


def test_a_plan_writes_nothing(other: Workspace, archive: Path) -> None:
    before = private(other)
    assert other.sessions.import_local(archive, plan_only=True).added["episode"] == 2
    assert private(other) == before


@pytest.mark.parametrize(
    "name",
    [
        "../../memory/semantic/facts/fact-a.json",
        "/etc/cron.d/x.json",
        "semantic/facts/../../../x.json",
        "confirmed-settings",
        ".forgotten/fact-a.json",
        "semantic\\facts\\x.json",
        "skills/.hidden/SKILL.md",
        7,
    ],
)
def test_a_file_that_names_other_places_is_refused_whole(
    other: Workspace, tmp_path: Path, name: object
) -> None:
    good = {"record": "semantic/facts/fact-good.json", "text": '{"statement": "Good"}'}
    path = written(tmp_path / "bad.jsonl", good, {"record": name, "text": "{}"})
    with pytest.raises(BadArchive, match="line 3"):
        other.sessions.import_local(path)
    assert not private(other)


def test_what_is_no_archive_is_refused_with_a_sentence(other: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    for text, reason in (
        ("", "is empty"),
        ("PK\x03\x04", "no JSON"),
        ('{"format": "other"}\n', "export --local"),
        ('{"format": "loki-memory local", "version": 9}\n', "newer"),
        ('"' + "x" * 5_000_000 + '"', "too long"),
    ):
        path.write_text(text)
        with pytest.raises(BadArchive, match=reason):
            other.sessions.import_local(path)


def test_a_record_that_cannot_be_read_does_not_stop_the_others(
    other: Workspace, tmp_path: Path
) -> None:
    bad = {"record": "semantic/facts/fact-bad.json", "text": "{ no"}
    good = {"record": "semantic/facts/fact-good.json", "text": '{"statement": "Good"}'}
    done = other.sessions.import_local(written(tmp_path / "a.jsonl", bad, good))
    assert done.added == {"fact": 1}
    assert len(done.refused) == 1
    (fact,) = other.list(kind="fact")
    assert fact.document()["scope"] == "local"


def test_a_secret_and_a_rejected_value_do_not_come_in(other: Workspace, tmp_path: Path) -> None:
    fact = other.remember("Deploy on Fridays")
    other.reject(fact.id)
    lines = [
        {"record": f"semantic/facts/fact-{n}.json", "text": json.dumps({"statement": text})}
        for n, text in enumerate(("Deploy on Fridays", "Use postgres://app:hunter2x@db/shop"))
    ]
    done = other.sessions.import_local(written(tmp_path / "a.jsonl", *lines))
    assert done.added == {"fact": 1}
    assert all(b"hunter2x" not in data for data in private(other).values())


def test_a_file_of_another_project_is_taken_only_if_that_is_said(
    ws: Workspace, other: Workspace, archive: Path, tmp_path: Path
) -> None:
    for workspace, url in ((ws, "https://example.org/ana/shop.git"), (other, "git@host.org:b/c")):
        git(workspace.layout.root, "init", "-q")
        git(workspace.layout.root, "remote", "add", "origin", url)
    shop, blog = (Workspace.open(workspace.layout.root) for workspace in (ws, other))
    path = tmp_path / "shop.jsonl"
    shop.sessions.export_local(path)
    with pytest.raises(BadArchive, match="--other-project"):
        blog.sessions.import_local(path)
    assert blog.sessions.import_local(path, other_project=True).added["episode"] == 2
