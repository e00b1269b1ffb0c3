"""The index: derived, disposable, and in agreement with itself."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from test_models import EPISODE, LEDGER, PATTERN

from loki_memory import Workspace
from loki_memory.files.scan import etag
from loki_memory.index.index import Index
from loki_memory.sync import rebuild


@pytest.fixture
def full(ws: Workspace) -> Workspace:
    """A workspace with something of every kind, one change of each sort behind it."""
    ws.record(EPISODE)
    ws.record({"goal": "Größe prüfen 一二三 🎉", "timestamp": "2026-01-07"})
    pattern = ws.layout.memory / "semantic" / "patterns" / "sem-001.json"
    pattern.write_text(json.dumps(PATTERN), encoding="utf-8")
    ws.team.checkpoint(LEDGER)
    ws.team.hand_off("eng", "qa", "Added search", relevant_patterns=["sem-001"])
    ws.skills.add("# Skill: Run the tests\n\n## Steps\n1. pytest -q\n")
    ws.remember("Run the contract tests first", kind="learning")
    ws.remember("Deploying on Friday", kind="anti-pattern")
    fact = ws.remember("The tests need a database", by="ana")
    ws.link(fact.id, "elaborates", "sem-001")
    ws.list()
    ws.correct(fact.id, statement="The tests need a server")
    ws.reject(ws.remember("We deploy on Fridays").id)
    ws.forget(ws.remember("Soon forgotten").id)
    (ws.layout.memory / "handoffs" / "bad.json").write_text("{", encoding="utf-8")
    ws.list()
    return ws


def tree(folder: Path, besides: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_relative_to(besides)
    }


def titles(ws: Workspace) -> list[str]:
    return sorted(memory.title() for memory in ws.list())


def reopened(ws: Workspace) -> Workspace:
    ws.close()
    return Workspace.open(ws.layout.root)


# -- what the index says -------------------------------------------------------------------------


def test_full_text_agrees_with_the_rows(full: Workspace) -> None:
    """FTS5 compares its index with the content table, row by row, only when asked with a 1."""
    database = full.index.writer()
    database.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
    database.execute("INSERT INTO parts (parts, rank) VALUES ('integrity-check', 1)")
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []


def test_full_text_agrees_after_texts_came_went_and_changed_places(full: Workspace) -> None:
    """Among them ids that two files claim: what they say is put in and out within one change."""
    folder = full.layout.memory / "semantic" / "facts"
    for number in range(3):
        (folder / "one.json").write_text(json.dumps({"id": "fact-x", "statement": f"One {number}"}))
        (folder / "two.json").write_text(json.dumps({"id": "fact-x", "statement": f"Two {number}"}))
        (folder / f"new{number}.json").write_text(json.dumps({"statement": f"New {number}"}))
        full.list()
        (folder / f"new{number}.json").unlink()
        (folder / "one.json").rename(folder / "zwei.json")
        full.list()
        (folder / "zwei.json").rename(folder / "one.json")
        test_full_text_agrees_with_the_rows(full)
        test_the_vocabulary_counts_the_passages_that_use_a_word(full)


def test_a_text_that_stays_is_not_indexed_again(ws: Workspace) -> None:
    fact = ws.remember("The tests need a database")
    ws.sync()
    rows = "SELECT row, text FROM passages"
    before = ws.index.ask(rows)
    ws.correct(fact.id, importance=0.9)
    ws.sync()
    assert ws.get(fact.id).document()["importance"] == 0.9
    assert ws.index.ask(rows) == before


def test_an_index_that_disagrees_is_noticed_by_that_check(full: Workspace) -> None:
    database = full.index.writer()
    database.execute("INSERT INTO words (rowid, text) VALUES (9999, 'nowhere')")
    with pytest.raises(sqlite3.DatabaseError):
        database.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")


def test_the_vocabulary_counts_the_passages_that_use_a_word(full: Workspace) -> None:
    rows = full.index.ask("SELECT text FROM passages WHERE key <> 0")
    counted: Counter[str] = Counter()
    scratch = sqlite3.connect(":memory:")
    for row in rows:
        scratch.execute(
            "CREATE VIRTUAL TABLE one USING fts5 (text, tokenize = 'unicode61 remove_diacritics 0')"
        )
        scratch.execute("CREATE VIRTUAL TABLE terms USING fts5vocab (one, 'row')")
        scratch.execute("INSERT INTO one VALUES (?)", row)
        counted.update(term for (term,) in scratch.execute("SELECT term FROM terms"))
        scratch.execute("DROP TABLE terms")
        scratch.execute("DROP TABLE one")
    expected = {word: uses for word, uses in counted.items() if 2 <= len(word) <= 64}
    assert dict(full.index.ask("SELECT word, uses FROM vocabulary")) == expected


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("server", "The tests need a server"),
        ("endpoints", EPISODE["context"]["goal"]),  # porter: endpoint
        ("grosse OR große", "Größe prüfen 一二三 🎉"),
        ("annotation", EPISODE["context"]["goal"]),  # in the errors of the episode
        ("pytest", "Run the tests"),
    ],
)
def test_words_find_their_memories(full: Workspace, query: str, title: str) -> None:
    rows = full.index.ask(
        "SELECT m.title FROM words JOIN passages AS p ON p.row = words.rowid "
        "JOIN memories AS m ON m.row = p.memory WHERE words MATCH ?",
        query,
    )
    assert [row for row in rows if row[0].startswith(title)]


def test_a_word_that_nobody_uses_any_more_is_gone(full: Workspace) -> None:
    words = {row[0] for row in full.index.ask("SELECT word FROM vocabulary")}
    assert "server" in words
    assert not words & {"database", "forgotten"} - set(" ".join(titles(full)).lower().split())


def test_parts_of_words_find_words(full: Workspace) -> None:
    rows = full.index.ask("SELECT word FROM parts WHERE parts MATCH ?", '"ontrac"')
    assert ("contract",) in rows


def test_edges_come_from_records_and_from_links(full: Workspace) -> None:
    _, back = full.browse.edges("sem-001")
    relations = {relation for relation, _ in back}
    assert {"elaborates", "refers_to", "learned"} <= relations
    out, _ = full.browse.edges("sem-001")
    assert ("derived_from", "ep-2026-01-06-001") in out


def test_the_etag_of_a_row_is_that_of_its_file(full: Workspace) -> None:
    for path, tag in full.index.ask("SELECT path, etag FROM memories"):
        assert tag == etag(full.layout.resolve(path).read_bytes())


def test_the_synced_index_equals_the_rebuilt_one(full: Workspace) -> None:
    fresh = Index(None)
    rebuild(full.layout, fresh, 0)
    assert full.index.digest() == fresh.digest()
    fresh.close()


def test_each_kind_has_a_fingerprint_that_changes_with_it(full: Workspace) -> None:
    before = {kind: full.index.fingerprint(kind) for kind in ("fact", "pattern")}
    full.remember("Another fact")
    full.list()
    assert full.index.fingerprint("fact") != before["fact"]
    assert full.index.fingerprint("pattern") == before["pattern"]


# -- the index never writes memory ---------------------------------------------------------------


def test_using_the_index_touches_no_memory_file(full: Workspace) -> None:
    full.sync()
    before = tree(full.layout.loki, full.layout.cache)
    for use in (
        full.list,
        full.status,
        full.browse.stats,
        full.care.problems,
        full.browse.summaries,
        full.care.doctor,
    ):
        use()
    full.get("sem-001")
    full.browse.edges("sem-001")
    assert tree(full.layout.loki, full.layout.cache) == before


def test_a_row_that_is_lost_takes_no_file_with_it(full: Workspace) -> None:
    """The truth is in the files: what the index forgot comes back, and no write follows it."""
    full.sync()
    path = full.browse.where("sem-001")
    full.index.writer().execute("DELETE FROM memories WHERE id = 'sem-001'")
    full.remember("Something else")
    full.sync()
    assert path.is_file()
    full.rebuild()
    assert full.get("sem-001").title() == PATTERN["pattern"]


# -- deleting and damaging it --------------------------------------------------------------------


def _of_the_index(workspace: Workspace) -> list[str]:
    """The notices without that of a file which cannot be read: a new index names it again."""
    return [said for said in workspace.notices if "bad.json" not in said]


def test_the_cache_may_be_deleted_between_any_two_uses(full: Workspace) -> None:
    expected = titles(full)
    for _ in range(3):
        full.close()
        shutil.rmtree(full.layout.cache)
        assert titles(full) == expected
    assert _of_the_index(full) == []


def test_the_cache_may_be_deleted_under_an_open_workspace(full: Workspace) -> None:
    expected = titles(full)
    shutil.rmtree(full.layout.cache)
    full.remember("A new one")
    assert titles(full) == sorted([*expected, "A new one"])
    assert titles(reopened(full)) == sorted([*expected, "A new one"])


def overwritten(data: bytes) -> bytes:
    return b"SQLite format 3\0" + b"\xa5" * (len(data) - 16)


DAMAGE: dict[str, Any] = {
    "text": lambda data: b"this is no database, and long enough to be read as one" * 50,
    "zeros": lambda data: bytes(len(data)),
    "cut in half": lambda data: data[: len(data) // 2],
    "cut to one page": lambda data: data[:4096],
    "overwritten": overwritten,
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_index_is_moved_aside_rebuilt_and_said_once(full: Workspace, name: str) -> None:
    expected = titles(full)
    full.close()
    path = full.layout.cache / "index.db"
    path.write_bytes(DAMAGE[name](path.read_bytes()))
    fresh = Workspace.open(full.layout.root)
    assert titles(fresh) == expected
    assert len(_of_the_index(fresh)) == 1
    assert (full.layout.cache / "index.db.aside").exists()
    assert titles(fresh) == expected
    assert len(_of_the_index(fresh)) == 1
    assert titles(reopened(fresh)) == expected
    assert reopened(fresh).notices == []


def test_an_empty_index_file_is_filled(full: Workspace) -> None:
    expected = titles(full)
    full.close()
    (full.layout.cache / "index.db").write_bytes(b"")
    assert titles(Workspace.open(full.layout.root)) == expected


def test_the_database_of_another_program_is_moved_aside(full: Workspace) -> None:
    expected = titles(full)
    full.close()
    path = full.layout.cache / "index.db"
    path.unlink()
    with sqlite3.connect(path) as alien:
        alien.execute("CREATE TABLE memories (id TEXT)")
    alien.close()
    fresh = Workspace.open(full.layout.root)
    assert titles(fresh) == expected
    assert "not made by loki-memory" in " ".join(fresh.notices)
    aside = sqlite3.connect(full.layout.cache / "index.db.aside")
    assert aside.execute("SELECT name FROM sqlite_schema").fetchall() == [("memories",)]
    aside.close()


@pytest.mark.parametrize("version", [0, 999])
def test_an_index_of_another_schema_is_moved_aside(full: Workspace, version: int) -> None:
    expected = titles(full)
    full.close()
    other = sqlite3.connect(full.layout.cache / "index.db")
    other.execute(f"PRAGMA user_version = {version}")
    other.close()
    fresh = Workspace.open(full.layout.root)
    assert titles(fresh) == expected
    assert f"schema version is {version}" in " ".join(fresh.notices)


def test_damage_in_any_page_never_keeps_memory_from_being_listed(full: Workspace) -> None:
    expected = titles(full)
    full.close()
    path = full.layout.cache / "index.db"
    whole = path.read_bytes()
    for page in range(1, len(whole) // 4096):
        start = page * 4096
        path.write_bytes(whole[:start] + b"\xa5" * 4096 + whole[start + 4096 :])
        fresh = Workspace.open(full.layout.root)
        assert titles(fresh) == expected, page
        fresh.close()


def test_a_folder_in_place_of_the_index_is_no_obstacle(full: Workspace) -> None:
    expected = titles(full)
    full.close()
    path = full.layout.cache / "index.db"
    path.unlink()
    path.mkdir()
    assert titles(Workspace.open(full.layout.root)) == expected


def test_a_file_in_place_of_the_cache_is_no_obstacle(full: Workspace) -> None:
    expected = titles(full)
    full.close()
    shutil.rmtree(full.layout.cache)
    full.layout.cache.write_text("not a folder", encoding="utf-8")
    fresh = Workspace.open(full.layout.root)
    assert titles(fresh) == expected
    assert "in memory" in " ".join(fresh.notices)


# -- connections ---------------------------------------------------------------------------------


def test_the_journal_is_safe_for_this_version_of_sqlite(full: Workspace) -> None:
    mode = full.index.writer().execute("PRAGMA journal_mode").fetchone()[0]
    assert mode == ("wal" if sqlite3.sqlite_version_info >= (3, 51, 3) else "truncate")


def test_a_reader_cannot_write(full: Workspace) -> None:
    full.close()
    index = Index(full.layout.cache / "index.db")
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        index.reader().execute("DELETE FROM memories")
    index.close()


def test_readers_are_served_while_another_connection_writes(full: Workspace) -> None:
    expected = titles(full)
    other = sqlite3.connect(full.layout.cache / "index.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        assert titles(full) == expected
        full.remember("Written meanwhile")
        full.list()
        assert "updating the index" in " ".join(full.notices)
    finally:
        other.execute("ROLLBACK")
        other.close()
    assert "Written meanwhile" in titles(full)


def test_the_cache_is_ignored_by_git_wherever_it_lies(full: Workspace) -> None:
    assert (full.layout.cache / ".gitignore").read_text(encoding="utf-8") == "*\n"


def test_a_child_process_uses_the_workspace_of_its_parent(full: Workspace) -> None:
    expected = titles(full)
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        try:
            full.remember("From the child")
            good = titles(full) == sorted([*expected, "From the child"])
        except BaseException:  # noqa: BLE001 - whatever it is, the parent is told
            good = False
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert titles(full) == sorted([*expected, "From the child"])
    verdicts = {finding.check: finding.verdict for finding in full.care.doctor(deep=True).findings}
    assert verdicts["index"] == "ok"
