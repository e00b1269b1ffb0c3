"""Rendering: entries that did not change are kept, and every view is as if it were made anew."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_models import EPISODE, PATTERN

from loki_memory import Memory, Workspace
from loki_memory.errors import FileChanged
from loki_memory.files import view_state, views
from loki_memory.files.layout import view_bases, view_kind
from loki_memory.files.view_rendering import Listed, render

FACTS = "semantic/facts.json"
# As agents and editors write them: other orders, other spellings, fields that nobody knows.
MESSY: dict[str, str] = {
    "semantic/patterns/sem-001.json": json.dumps({"zeal": 1, **PATTERN}),
    "semantic/patterns/hand.json": '{"confidence":0.123456789,"pattern":"Schlüssel zuerst"}\r\n',
    "semantic/anti-patterns/a.json": '{\n  "why": "Weekend",\n  "what_fails": "Friday"\n}\n',
    "semantic/facts/f.json": '\ufeff{"content": "gro\u0308ß", "b": {"y": 1, "x": [2.50]}}',
    "semantic/facts/copy.json": '{"id": "fact-one", "statement": "A"}',
    "semantic/facts/other.json": '{"id": "fact-one", "statement": "B"}',
    "semantic/links/l.json": '{"to": "sem-001", "relation": "supersedes", "from": "sem-002"}',
    "episodic/2026-01-06/e.json": json.dumps(EPISODE, indent=4),
    "episodic/2026-01-07/undated.json": '{"goal": "No date but the folder\'s"}',
    "learnings/2026-01-06/l.json": '{"lesson": "Types first"}',
}


def write(ws: Workspace, path: str, text: str) -> None:
    file = ws.layout.memory / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="")


def shown(ws: Workspace) -> dict[str, bytes]:
    """Every view with its bytes."""
    memory = ws.layout.memory
    return {path: (memory / path).read_bytes() for path in views.view_paths(ws.layout)}


def made_anew(ws: Workspace) -> dict[str, bytes]:
    """The same after they and all that is known of them were deleted."""
    for path in shown(ws):
        (ws.layout.memory / path).unlink()
    shutil.rmtree(view_bases(ws.layout))
    ws.sync()
    return shown(ws)


def assert_like_made_anew(ws: Workspace) -> None:
    """A day whose last learning went keeps a view that is empty."""
    rendered = shown(ws)
    anew = made_anew(ws)
    assert {path: rendered[path] for path in anew} == anew
    empty = {path for path in rendered if path not in anew}
    assert all(list(json.loads(rendered[path]).values()) == [[]] for path in empty)


def test_all_kinds_are_shown_as_if_made_anew(example: Path) -> None:
    with Workspace.open(example) as ws:
        ws.sync()
        for path, text in MESSY.items():
            write(ws, path, text)
            ws.sync()
        assert {view_kind(path) for path in shown(ws)} == set(view_state.SHOWN)
        assert_like_made_anew(ws)


def test_what_changes_beside_many_that_stay_is_shown_as_if_made_anew(ws: Workspace) -> None:
    for path, text in MESSY.items():
        write(ws, path, text)
    ws.sync()
    write(ws, "semantic/facts/copy.json", '{"id": "fact-one", "statement": "Changed"}')
    (ws.layout.memory / "semantic/patterns/hand.json").rename(
        ws.layout.memory / "semantic/patterns/renamed.json"
    )
    (ws.layout.memory / "episodic/2026-01-07/undated.json").rename(
        ws.layout.memory / "episodic/2026-01-06/undated.json"
    )
    (ws.layout.memory / "semantic/links/l.json").unlink()
    ws.sync()
    assert b"Changed" in shown(ws)[FACTS]
    assert b"2026-01-07" not in shown(ws)["episodic/index.json"]
    assert_like_made_anew(ws)


_WORDS = st.sampled_from(["A", "B", "é", "e\u0301", "Friday"])
_FOLDERS = {"semantic/facts": "statement", "semantic/patterns": "pattern", "learnings": "lesson"}


@st.composite
def _edits(draw: st.DrawFn) -> tuple[str, str]:
    """A file, and its next content; empty to delete it."""
    folder = draw(st.sampled_from(sorted(_FOLDERS)))
    day = draw(st.sampled_from(["/2026-01-06", "/2026-01-07"])) if folder == "learnings" else ""
    path = f"{folder}{day}/{draw(st.sampled_from('xyz'))}.json"
    fields = {_FOLDERS[folder]: draw(_WORDS), "note": draw(_WORDS)}
    named = {"id": draw(st.sampled_from(["one", "two"]))} if draw(st.booleans()) else {}
    text = json.dumps({**fields, **named}, ensure_ascii=draw(st.booleans()))
    return path, draw(st.sampled_from(["", text, text]))


@settings(max_examples=15, deadline=None)
@given(rounds=st.lists(st.lists(_edits(), min_size=1, max_size=4), min_size=1, max_size=4))
def test_any_edits_are_shown_as_if_made_anew(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple[str, str]]]
) -> None:
    with Workspace.init(tmp_path_factory.mktemp("any")) as ws:
        ws.remember("Always there")
        for edits in rounds:
            for path, text in edits:
                if text:
                    write(ws, path, text)
                else:
                    (ws.layout.memory / path).unlink(missing_ok=True)
            ws.sync()
        assert_like_made_anew(ws)


def test_a_rejection_that_comes_as_a_file_leaves_the_view_at_once(ws: Workspace) -> None:
    ws.remember("Right")
    wrong = ws.remember("Wrong")
    ws.reject(wrong.id)
    [stone] = (ws.layout.memory / "semantic/rejected").iterdir()
    text = stone.read_text(encoding="utf-8")
    stone.unlink()
    write(ws, f"semantic/facts/{wrong.id}.json", '{"statement": "Wrong"}')
    ws.sync()
    assert b"Wrong" in shown(ws)[FACTS]
    write(ws, f"semantic/rejected/{stone.name}", text)
    ws.sync()
    assert b"Wrong" not in shown(ws)[FACTS]


# -- what is known of a view ---------------------------------------------------------------------


def base(ws: Workspace) -> Path:
    return Path(view_bases(ws.layout), "semantic-facts.json")


@pytest.mark.parametrize("many", [2, 3])
def test_a_base_that_knows_less_is_written_again_with_all(ws: Workspace, many: int) -> None:
    fact = ws.remember("A")
    ws.sync()
    before, known = shown(ws), json.loads(base(ws).read_bytes())
    whole = known["entries"][fact.id]
    known["entries"] = {name: one[:many] for name, one in known["entries"].items()}
    base(ws).write_text(json.dumps(known), encoding="utf-8")
    ws.remember("B")
    ws.sync()
    assert before[FACTS] != shown(ws)[FACTS]
    assert json.loads(base(ws).read_bytes())["entries"][fact.id] == whole
    assert_like_made_anew(ws)


@pytest.mark.parametrize("size", [0, -5, 7, 10**9, 2.5, "x", None, [1]])
def test_a_base_that_tells_wrong_places_is_not_believed(ws: Workspace, size: object) -> None:
    ws.remember("A")
    ws.remember("Ä", category="b")
    ws.sync()
    known = json.loads(base(ws).read_bytes())
    for one in known["entries"].values():
        one[3] = size
    base(ws).write_text(json.dumps(known), encoding="utf-8")
    ws.remember("C")
    ws.sync()
    assert_like_made_anew(ws)


@pytest.mark.parametrize("forged", ["5", "{", '{"facts": 5}', '{"facts": ["x"]}', "[{}]"])
def test_a_view_and_a_base_that_came_with_a_clone_keep_nothing_from_being_read(
    ws: Workspace, forged: str
) -> None:
    ws.remember("A")
    write(ws, FACTS, forged)
    known = {"etag": views.etag(forged.encode()), "entries": {}}
    base(ws).parent.mkdir(parents=True, exist_ok=True)
    base(ws).write_text(json.dumps(known), encoding="utf-8")
    ws.sync()
    assert [memory.title() for memory in ws.list()] == ["A"]
    assert shown(ws)[FACTS] == forged.encode() or b'"A"' in shown(ws)[FACTS]


def test_an_edit_while_a_view_is_rendered_is_not_overwritten(ws: Workspace) -> None:
    fact = ws.remember("A")
    ws.sync()

    def edited_meanwhile(memory_id: str) -> Memory | None:
        write(ws, FACTS, '[{"statement": "From an editor"}]')
        return ws.get(memory_id).changed(category="new")

    listed = [Listed(fact.id, f"semantic/facts/{fact.id}.json", "another", "")]
    with pytest.raises(FileChanged):
        render(ws.store, "fact", listed, edited_meanwhile)
    ws.sync()
    assert sorted(memory.title() for memory in ws.list()) == ["A", "From an editor"]


def test_only_what_changed_is_read(ws: Workspace) -> None:
    facts = [ws.remember(text) for text in "ABC"]
    ws.sync()
    paths = {fact.id: f"semantic/facts/{fact.id}.json" for fact in facts}
    etags = {name: one[2] for name, one in json.loads(base(ws).read_bytes())["entries"].items()}
    listed = [Listed(name, paths[name], etags[name], "") for name in sorted(paths)]
    asked: list[str] = []
    record_of: Callable[[str], Any] = lambda name: asked.append(name) or ws.get(name)  # noqa: E731
    assert render(ws.store, "fact", listed, record_of) == []
    listed[1] = listed[1]._replace(etag="another")
    render(ws.store, "fact", listed, record_of)
    assert asked == [listed[1].id]
