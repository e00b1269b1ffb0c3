"""What this process wrote is taken in without a look at other files, and hides nothing of them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sync import is_current

from loki_memory import Fact, Workspace
from loki_memory.files.store import Change
from loki_memory.index.index import Index
from loki_memory.models import parse
from loki_memory.sync import rebuild


def path_of(name: str) -> str:
    return f"semantic/facts/fact-{name}.json"


def put(change: Change, name: str, statement: str) -> None:
    change.put(parse(Fact, {"id": f"fact-{name}", "statement": statement}), path_of(name))


def by_hand(ws: Workspace, name: str, statement: str, *, named: str = "") -> Path:
    """A fact that somebody else writes."""
    path = ws.layout.resolve(path_of(name))
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"id": f"fact-{named or name}", "statement": statement}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def indexed(ws: Workspace) -> list[str]:
    """Titles, without a look at any file."""
    return [row[0] for row in ws.index.ask("SELECT title FROM memories ORDER BY title")]


def digest_from_nothing(ws: Workspace) -> str:
    fresh = Index(None)
    rebuild(ws.layout, fresh, 0)
    try:
        return fresh.digest()
    finally:
        fresh.close()


@pytest.fixture
def three(ws: Workspace) -> Workspace:
    with ws.store.change() as change:
        for name in "abc":
            put(change, name, f"Statement {name}")
    ws.sync()
    return ws


def test_what_was_written_changed_and_removed_is_indexed(three: Workspace) -> None:
    with three.store.change() as change:
        put(change, "a", "Another a")
        put(change, "d", "Statement d")
        change.remove(path_of("b"))
        paths = change.paths()
    changes = three.home.wrote(paths)
    assert (changes.added, changes.modified, changes.removed) == (
        [path_of("d")],
        [path_of("a")],
        [path_of("b")],
    )
    assert indexed(three) == ["Another a", "Statement c", "Statement d"]
    assert three.index.digest() == digest_from_nothing(three)


def test_what_somebody_wrote_over_ours_is_what_is_indexed(three: Workspace) -> None:
    with three.store.change() as change:
        put(change, "a", "Ours")
        put(change, "d", "Ours too")
        paths = change.paths()
    by_hand(three, "a", "Theirs")
    three.home.wrote(paths)
    assert indexed(three) == ["Ours too", "Statement b", "Statement c", "Theirs"]
    assert three.index.digest() == digest_from_nothing(three)


def test_a_record_that_holds_a_conflict_is_a_problem_at_once(three: Workspace) -> None:
    disputed = {"id": "fact-a", "statement": "Ours", "conflicts": [{"statement": "Theirs"}]}
    with three.store.change() as change:
        change.put(parse(Fact, disputed), path_of("a"))
        paths = change.paths()
    three.home.wrote(paths)
    assert three.index.ask("SELECT path FROM problems") == [(path_of("a"),)]
    assert three.index.digest() == digest_from_nothing(three)


def test_the_first_record_of_a_folder_is_indexed(three: Workspace) -> None:
    with three.store.change() as change:
        stored = change.put(parse(Fact, {"statement": "For me alone", "scope": "local"}))
        paths = change.paths()
    assert three.home.wrote(paths).added == [f"local/semantic/facts/{stored.id}.json"]
    assert "For me alone" in indexed(three)


def test_what_is_no_record_is_none_of_its_business(three: Workspace) -> None:
    with three.store.change() as change:
        change.move(path_of("a"), f"archive/{path_of('a')}")
        paths = change.paths()
    assert three.home.wrote(paths).removed == [path_of("a")]
    assert indexed(three) == ["Statement b", "Statement c"]


def test_what_was_written_and_left_alone_is_no_change(three: Workspace) -> None:
    assert not three.home.wrote([path_of("a"), path_of("b"), path_of("never")])


@pytest.mark.parametrize("limit", ["0", "10000"])
def test_what_somebody_else_did_meanwhile_is_seen_by_the_next_look(
    three: Workspace, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Whether that look compares folders or every file."""
    monkeypatch.setenv("LOKI_SYNC_SCAN_LIMIT", limit)
    with three.store.change() as change:
        put(change, "d", "Statement d")
        paths = change.paths()
    by_hand(three, "e", "By somebody")
    three.layout.resolve(path_of("b")).unlink()
    three.home.wrote(paths)
    assert indexed(three) == ["Statement a", "Statement b", "Statement c", "Statement d"]
    with Workspace.open(three.layout.root) as other:
        assert sorted(memory.title() for memory in other.list()) == [
            "By somebody",
            "Statement a",
            "Statement c",
            "Statement d",
        ]


def test_an_index_that_came_from_elsewhere_is_made_anew(three: Workspace, tmp_path: Path) -> None:
    shutil.copytree(three.layout.root, tmp_path / "copy")
    with Workspace.open(tmp_path / "copy") as copy:
        by_hand(copy, "z", "Only here")
        copy.home.wrote([])
        assert indexed(copy) == ["Only here", "Statement a", "Statement b", "Statement c"]


_NAMES = st.sampled_from("abcd")
_STEPS = st.one_of(
    st.tuples(st.just("put"), _NAMES, _NAMES),
    st.tuples(st.just("remove"), _NAMES, _NAMES),
    st.tuples(st.just("by hand"), _NAMES, _NAMES),  # the second name is the id that it claims
    st.tuples(st.just("unlink"), _NAMES, _NAMES),
)


def _ours(ws: Workspace, step: str, name: str, number: int) -> None:
    with ws.store.change() as change:
        if step == "put":
            put(change, name, f"Ours {number}")
        elif change.read(path_of(name)):
            change.remove(path_of(name))
        paths = change.paths()
    ws.home.wrote(paths)


@settings(max_examples=60, deadline=None)
@given(st.lists(_STEPS, min_size=1, max_size=12))
def test_after_any_steps_of_ours_and_of_others_a_sync_equals_a_rebuild(
    steps: list[tuple[str, str, str]],
) -> None:
    with tempfile.TemporaryDirectory() as root, Workspace.init(root) as ws:
        by_hand(ws, "anchor", "One always stays")
        ws.sync()
        for number, (step, name, claimed) in enumerate(steps):
            if step == "by hand":
                by_hand(ws, name, f"Theirs {number}", named=claimed)
            elif step == "unlink":
                ws.layout.resolve(path_of(name)).unlink(missing_ok=True)
            else:
                _ours(ws, step, name, number)
        ws.sync()
        assert ws.index.digest() == digest_from_nothing(ws)


# -- when a workspace is closed --------------------------------------------------------------------


def test_who_closes_a_workspace_leaves_what_they_wrote_in_the_index(three: Workspace) -> None:
    three.remember("Statement d")
    assert indexed(three) == ["Statement a", "Statement b", "Statement c"]
    three.close()
    assert indexed(three) == ["Statement a", "Statement b", "Statement c", "Statement d"]
    assert three.index.digest() == digest_from_nothing(three)


def test_who_closes_a_workspace_takes_in_what_others_wrote_meanwhile(three: Workspace) -> None:
    three.remember("Statement d")
    by_hand(three, "e", "Statement e")
    three.close()
    assert "Statement e" in indexed(three)
    assert three.index.digest() == digest_from_nothing(three)


def test_closing_does_not_look_at_files_if_nothing_was_written(three: Workspace) -> None:
    by_hand(three, "e", "Statement e")
    three.close()
    assert "Statement e" not in indexed(three)


def test_closing_does_not_wait_for_who_is_at_the_index(three: Workspace) -> None:
    three.remember("Statement d")
    other = Index(three.index.path)
    with other.change():
        three.close()
    other.close()
    assert "Statement d" not in indexed(three)
    three.sync()
    assert "Statement d" in indexed(three)


def test_closing_makes_no_index_where_there_is_none(three: Workspace) -> None:
    shutil.rmtree(three.layout.cache)
    three.index.close()
    with three.store.change() as change:
        put(change, "d", "Statement d")
    three.close()
    assert not (three.layout.cache / "index.db").exists()


def test_files_with_new_stamps_and_known_content_are_no_change(three: Workspace) -> None:
    """And to find that out takes nothing that could read them."""
    three.layout.resolve(path_of("a")).touch()
    three.layout.resolve("semantic/facts.json").touch()
    code = (
        "import sys, time; from pathlib import Path; from loki_memory.files.layout import Layout;"
        "from loki_memory.index.index import Index; from loki_memory.sync import sync;"
        f"layout = Layout(*map(Path, {[str(part) for part in three.layout]!r}));"
        "index = Index(layout.cache / 'index.db');"
        "print(bool(sync(layout, index, time.time_ns() + 3 * 10**9)), 'pydantic' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert told.stdout.split() == ["False", "False"]
    assert is_current(three.home)


def test_a_view_with_a_new_stamp_and_an_edit_is_a_change(three: Workspace) -> None:
    view = three.layout.resolve("semantic/facts.json")
    view.write_text(view.read_text().replace("Statement a", "Statement A"), encoding="utf-8")
    three.home.ensure("edits")
    assert "Statement A" in indexed(three)
