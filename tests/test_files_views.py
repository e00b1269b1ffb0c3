"""Views: rendered from records, accepted as input, and never the place where something is lost."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from test_models import EPISODE, PATTERN

from loki_memory import Workspace
from loki_memory.files import codec
from loki_memory.files.layout import view_bases
from loki_memory.models.ids import digest

PATTERNS, FACTS, LINKS = "semantic/patterns.json", "semantic/facts.json", "semantic/links.json"
ANTI_PATTERNS, EPISODES = "semantic/anti-patterns.json", "episodic/index.json"
LEARNINGS = "learnings/2026-01-06.json"
OLD_LAYOUT: dict[str, Any] = {
    PATTERNS: {"patterns": [PATTERN, {"id": "sem-002", "pattern": "Second"}]},
    ANTI_PATTERNS: {"anti_patterns": [{"what_fails": "Deploying on Friday", "why": "Weekend"}]},
    FACTS: [{"content": "The tests need a database"}],
    LINKS: {"links": [{"from": "sem-001", "relation": "supersedes", "to": "sem-002"}]},
    EPISODES: {"episodes": [{"id": "ep-2026-01-05-012", "timestamp": "2026-01-05", "goal": "G"}]},
    LEARNINGS: ["Run the contract tests first", {"lesson": "Types first", "source": "ep-1"}],
}


def write(ws: Workspace, path: str, value: object) -> Path:
    file = ws.layout.memory / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return file


def shown(ws: Workspace, path: str) -> Any:
    return json.loads((ws.layout.memory / path).read_text(encoding="utf-8"))


def tree(ws: Workspace, *, hidden: bool = True) -> dict[str, bytes]:
    """Every file but the cache and the bases; `hidden` counts what we keep beside views."""
    loki, bases = ws.layout.loki, view_bases(ws.layout)
    found = {
        path.relative_to(loki).as_posix(): path.read_bytes()
        for path in sorted(loki.rglob("*"))
        if path.is_file()
        and not path.is_relative_to(ws.layout.cache)
        and not path.is_relative_to(bases)
    }
    return found if hidden else {p: d for p, d in found.items() if "/." not in p}


def titles(ws: Workspace, **filters: Any) -> list[str]:
    return sorted(memory.title() for memory in ws.list(**filters))


def edit(ws: Workspace, path: str, number: int = 0, **fields: object) -> None:
    """Change one entry of a view, as an agent would: with its own formatting."""
    view = shown(ws, path)
    entries = view if isinstance(view, list) else next(iter(view.values()))
    entries[number].update(fields)
    write(ws, path, view)


def record_of(ws: Workspace, memory_id: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(ws.browse.where(memory_id).read_text(encoding="utf-8"))
    return loaded


def edit_record(ws: Workspace, memory_id: str, **fields: object) -> None:
    path = ws.browse.where(memory_id)
    path.write_text(json.dumps({**record_of(ws, memory_id), **fields}), encoding="utf-8")


# -- rendering -----------------------------------------------------------------------------------


def test_a_view_shows_all_records_of_its_kind_sorted_and_canonical(ws: Workspace) -> None:
    facts = [ws.remember(text) for text in ("C", "A", "B")]
    ws.sync()
    view = shown(ws, FACTS)
    assert [entry["id"] for entry in view["facts"]] == sorted(fact.id for fact in facts)
    assert view["facts"][0] == record_of(ws, view["facts"][0]["id"])
    assert (ws.layout.memory / FACTS).read_bytes() == codec.dump(view)


def test_the_temporal_index_shows_what_finds_an_episode_again(ws: Workspace) -> None:
    ws.record(EPISODE)
    ws.sync()
    assert shown(ws, EPISODES) == {
        "episodes": [
            {
                "id": "ep-2026-01-06-001",
                "timestamp": "2026-01-06T10:30:00Z",
                "task_id": "task-042",
                "agent": "eng-001-backend",
                "goal": "Implement POST /api/todos endpoint",
                "outcome": "success",
            }
        ]
    }


def test_learnings_are_shown_by_day(ws: Workspace) -> None:
    ws.remember("One", kind="learning", at="2026-01-06")
    ws.remember("Two", kind="learning", at="2026-01-07")
    ws.sync()
    assert [entry["lesson"] for entry in shown(ws, LEARNINGS)["learnings"]] == ["One"]
    assert [e["lesson"] for e in shown(ws, "learnings/2026-01-07.json")["learnings"]] == ["Two"]


def test_private_and_rejected_memories_are_not_shown(ws: Workspace) -> None:
    ws.remember("Public")
    ws.remember("Private", scope="local")
    ws.remember("For one session", scope="session")
    ws.reject(ws.remember("Wrong").id)
    ws.sync()
    assert [entry["statement"] for entry in shown(ws, FACTS)["facts"]] == ["Public"]


def test_archived_and_forgotten_memories_leave_the_view(ws: Workspace) -> None:
    kept, archived, forgotten = (ws.remember(text) for text in ("A", "B", "C"))
    ws.sync()
    ws.archive(archived.id)
    ws.forget(forgotten.id)
    ws.sync()
    assert [entry["id"] for entry in shown(ws, FACTS)["facts"]] == [kept.id]


def test_the_last_learning_of_a_day_leaves_the_view_too(ws: Workspace) -> None:
    ws.remember("Kept")
    learning = ws.remember("One", kind="learning", at="2026-01-06")
    ws.sync()
    ws.archive(learning.id)
    ws.sync()
    assert shown(ws, LEARNINGS) == {"learnings": []}


def test_a_second_sync_changes_no_byte(ws: Workspace) -> None:
    for path, value in OLD_LAYOUT.items():
        write(ws, path, value)
    ws.sync()
    before = tree(ws, hidden=False)
    stamps = {path: (ws.layout.loki / path).stat().st_mtime_ns for path in before}
    for _ in range(2):
        assert not ws.sync()
        assert tree(ws, hidden=False) == before
        assert {p: (ws.layout.loki / p).stat().st_mtime_ns for p in before} == stamps


# -- the table: what becomes of an entry ---------------------------------------------------------


def test_an_entry_as_rendered_leaves_a_newer_record_alone(ws: Workspace) -> None:
    fact = ws.remember("A")
    ws.sync()
    edit_record(ws, fact.id, category="newer")
    view = shown(ws, FACTS)
    view["facts"].append({"statement": "B"})
    write(ws, FACTS, view)
    ws.sync()
    assert ws.get(fact.id).document()["category"] == "newer"
    assert {entry["statement"] for entry in shown(ws, FACTS)["facts"]} == {"A", "B"}


def test_an_edited_entry_is_taken_over(ws: Workspace) -> None:
    fact = ws.remember("A")
    ws.sync()
    edit(ws, FACTS, category="edited", mood={"new": [1]})
    ws.sync()
    assert record_of(ws, fact.id)["category"] == "edited"
    assert record_of(ws, fact.id)["mood"] == {"new": [1]}
    assert ws.care.problems() == []


def test_when_both_changed_the_record_stays_and_the_entry_is_kept(ws: Workspace) -> None:
    fact = ws.remember("A")
    ws.sync()
    edit(ws, FACTS, category="view")
    edit_record(ws, fact.id, category="file")
    ws.sync()
    record = record_of(ws, fact.id)
    assert record["category"] == "file"
    assert [conflict["category"] for conflict in record["conflicts"]] == ["view"]
    [problem] = ws.care.problems()
    assert problem.field == "conflicts"
    assert problem.path == f"semantic/facts/{fact.id}.json"


def test_a_conflict_is_noted_once(ws: Workspace) -> None:
    fact = ws.remember("A")
    ws.sync()
    edit(ws, FACTS, category="view")
    edit_record(ws, fact.id, category="file")
    for _ in range(3):
        ws.sync()
    assert len(record_of(ws, fact.id)["conflicts"]) == 1


def test_both_changed_to_the_same_is_no_conflict(ws: Workspace) -> None:
    fact = ws.remember("A")
    ws.sync()
    edit(ws, FACTS, category="same")
    edit_record(ws, fact.id, category="same")
    ws.sync()
    assert "conflicts" not in record_of(ws, fact.id)
    assert ws.care.problems() == []


def test_an_added_entry_becomes_a_record(ws: Workspace) -> None:
    ws.remember("A", kind="pattern")
    ws.sync()
    view = shown(ws, PATTERNS)
    view["patterns"].append(PATTERN)
    write(ws, PATTERNS, view)
    ws.sync()
    record = record_of(ws, "sem-001")
    assert record["pattern"] == PATTERN["pattern"]
    assert ws.browse.where("sem-001") == ws.layout.memory / "semantic/patterns/sem-001.json"


def test_where_an_entry_came_from_is_not_for_the_entry_to_say(ws: Workspace) -> None:
    fact = ws.remember("A")
    write(ws, FACTS, [{"statement": "B", "origin": "owner"}])
    ws.sync()
    edit(ws, FACTS, origin="owner")
    edit(ws, FACTS, 1, origin="owner")
    ws.sync()
    assert {memory.document()["origin"] for memory in ws.list()} == {"agent"}
    assert ws.get(fact.id)


def test_a_missing_entry_deletes_nothing_and_comes_back(ws: Workspace) -> None:
    ws.remember("A")
    ws.remember("B")
    ws.sync()
    view = shown(ws, FACTS)
    del view["facts"][0]
    write(ws, FACTS, view)
    ws.sync()
    assert titles(ws) == ["A", "B"]
    assert len(shown(ws, FACTS)["facts"]) == 2


def test_an_empty_view_deletes_nothing(ws: Workspace) -> None:
    ws.remember("A")
    ws.sync()
    write(ws, FACTS, {"facts": []})
    ws.sync()
    assert titles(ws) == ["A"]
    assert len(shown(ws, FACTS)["facts"]) == 1


def test_a_missing_field_deletes_nothing(ws: Workspace) -> None:
    fact = ws.remember("A", category="kept")
    ws.sync()
    write(ws, FACTS, [{"id": fact.id, "statement": "A", "importance": 0.9}])
    ws.sync()
    assert record_of(ws, fact.id)["category"] == "kept"
    assert record_of(ws, fact.id)["importance"] == 0.9


@pytest.mark.parametrize(("path", "kind"), [(FACTS, "fact"), (LEARNINGS, "learning")])
def test_a_deleted_view_comes_back(
    ws: Workspace, path: str, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that was rendered a moment ago: the clock stands still here."""
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now)
    ws.remember("A", kind=kind, at="2026-01-06")
    ws.sync()
    before = (ws.layout.memory / path).read_bytes()
    (ws.layout.memory / path).unlink()
    ws.sync()
    assert (ws.layout.memory / path).read_bytes() == before
    assert titles(ws) == ["A"]


def test_views_without_their_base_are_only_rendered_again(ws: Workspace) -> None:
    fact = ws.remember("A")
    ws.sync()
    view = (ws.layout.memory / FACTS).read_bytes()
    record = ws.browse.where(fact.id).read_bytes()
    for path in Path(view_bases(ws.layout)).iterdir():
        path.unlink()
    ws.sync()
    assert (ws.layout.memory / FACTS).read_bytes() == view
    assert ws.browse.where(fact.id).read_bytes() == record


@pytest.mark.parametrize("base", ["", "[]", '{"entries": 5}', '{"entries": {"x": 1}}', "\xff"])
def test_a_broken_base_loses_nothing(ws: Workspace, base: str) -> None:
    fact = ws.remember("A")
    ws.sync()
    for path in Path(view_bases(ws.layout)).iterdir():
        path.write_text(base, encoding="latin-1")
    edit(ws, FACTS, category="edited")
    ws.sync()
    record = record_of(ws, fact.id)
    assert "edited" in (record.get("category"), record.get("conflicts", [{}])[0].get("category"))


def test_a_deleted_cache_makes_no_conflict_of_a_view_that_is_out_of_date(ws: Workspace) -> None:
    """As after `git pull`: it brings records, and views are not tracked."""
    fact = ws.remember("A", category="before")
    ws.sync()
    path = ws.browse.where(fact.id)
    document = {**json.loads(path.read_bytes()), "category": "pulled"}
    path.write_text(json.dumps(document), encoding="utf-8")
    os.utime(ws.layout.memory / FACTS, (0, 0))
    ws.close()
    shutil.rmtree(ws.layout.cache)
    ws.sync()
    assert json.loads(path.read_bytes()) == document
    assert shown(ws, FACTS)["facts"][0]["category"] == "pulled"
    assert ws.care.problems() == []


def test_a_deleted_cache_loses_no_edit_of_a_view(ws: Workspace) -> None:
    fact = ws.remember("A")
    ws.sync()
    edit(ws, FACTS, category="edited")
    os.utime(ws.browse.where(fact.id), (0, 0))
    ws.close()
    shutil.rmtree(ws.layout.cache)
    ws.sync()
    record = record_of(ws, fact.id)
    assert "edited" in (record.get("category"), record.get("conflicts", [{}])[0].get("category"))


# -- shapes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["anti_patterns", "anti-patterns", "antiPatterns", "ANTI_PATTERNS", "antipatterns"]
)
def test_the_list_may_have_any_spelling_of_its_name_and_keeps_it(ws: Workspace, name: str) -> None:
    write(ws, ANTI_PATTERNS, {name: [{"what_fails": "A"}]})
    ws.sync()
    assert titles(ws) == ["A"]
    assert list(shown(ws, ANTI_PATTERNS)) == [name]


def test_a_bare_list_stays_a_bare_list(ws: Workspace) -> None:
    write(ws, PATTERNS, [{"pattern": "A"}])
    ws.sync()
    ws.remember("B", kind="pattern")
    ws.sync()
    assert sorted(entry["pattern"] for entry in shown(ws, PATTERNS)) == ["A", "B"]


def test_foreign_keys_beside_the_list_are_kept(ws: Workspace) -> None:
    write(ws, PATTERNS, {"version": "1.0", "patterns": [{"pattern": "A"}], "meta": {"by": [1]}})
    ws.sync()
    ws.remember("B", kind="pattern")
    ws.sync()
    view = shown(ws, PATTERNS)
    assert (view["version"], view["meta"]) == ("1.0", {"by": [1]})
    assert len(view["patterns"]) == 2


def test_a_second_list_of_the_same_name_is_not_lost(ws: Workspace) -> None:
    write(ws, FACTS, {"facts": [{"statement": "A"}], "Facts": [{"statement": "B"}]})
    ws.sync()
    found = (ws.layout.memory / FACTS).read_text(encoding="utf-8")
    assert '"B"' in found or titles(ws) == ["A", "B"]


def test_a_byte_order_mark_and_windows_line_ends_are_read(ws: Workspace) -> None:
    text = json.dumps({"facts": [{"statement": "A"}]}, indent=2).replace("\n", "\r\n")
    (ws.layout.memory / FACTS).write_bytes(b"\xef\xbb\xbf" + text.encode())
    ws.sync()
    assert titles(ws) == ["A"]


# -- the old layout ------------------------------------------------------------------------------


@pytest.fixture
def old(ws: Workspace) -> Workspace:
    for path, value in OLD_LAYOUT.items():
        write(ws, path, value)
    return ws


OLD_TITLES = sorted(
    [
        PATTERN["pattern"],
        "Second",
        "Deploying on Friday: Weekend",
        "The tests need a database",
        "sem-001 supersedes sem-002",
        "G",
        "Run the contract tests first",
        "Types first",
    ]
)


def test_a_reader_lists_the_old_layout_and_writes_nothing(old: Workspace) -> None:
    before = tree(old)
    assert titles(old) == OLD_TITLES
    assert old.get("sem-001").title() == PATTERN["pattern"]
    assert set(old.status().pending_views) == set(OLD_LAYOUT)
    assert old.care.problems() == []
    old.browse.stats()
    old.care.doctor()
    assert tree(old) == before


def test_the_first_sync_takes_the_old_layout_over(old: Workspace) -> None:
    old.sync()
    assert titles(old) == OLD_TITLES
    assert old.status().pending_views == []
    assert old.browse.where("sem-001") == old.layout.memory / "semantic/patterns/sem-001.json"
    records = [path for path in tree(old) if path.count("/") == 3 and "/." not in path]
    assert len(records) == len(OLD_TITLES)


def test_the_first_write_takes_the_old_layout_over(old: Workspace) -> None:
    old.remember("New")
    assert (old.layout.memory / "semantic/patterns/sem-001.json").is_file()
    assert titles(old) == sorted([*OLD_TITLES, "New"])


def test_a_write_to_what_stands_in_a_view_only_works(old: Workspace) -> None:
    old.correct("sem-001", confidence=0.5)
    assert record_of(old, "sem-001")["confidence"] == 0.5


def test_taking_over_loses_no_field(old: Workspace) -> None:
    old.sync()
    record = record_of(old, "sem-001")
    for name, value in PATTERN.items():
        expected = sorted(value) if name == "source_episodes" else value
        assert record[name] == expected


def test_bare_texts_and_objects_are_learnings_of_their_day(ws: Workspace) -> None:
    write(ws, LEARNINGS, OLD_LAYOUT[LEARNINGS])
    ws.sync()
    learnings = {memory.title(): memory for memory in ws.list(kind="learning")}
    assert learnings["Types first"].document()["source"] == "ep-1"
    assert {memory.when()[:10] for memory in learnings.values()} == {"2026-01-06"}
    assert len(list((ws.layout.memory / "learnings/2026-01-06").iterdir())) == 2


def test_an_edited_episode_index_changes_the_episode_and_keeps_the_rest(ws: Workspace) -> None:
    ws.record(EPISODE)
    ws.sync()
    edit(ws, EPISODES, outcome="failure", goal="Implement POST /api/notes endpoint")
    ws.sync()
    record = record_of(ws, "ep-2026-01-06-001")
    assert record["outcome"] == "failure"
    assert record["context"]["goal"] == "Implement POST /api/notes endpoint"
    assert record["context"]["constraints"] == EPISODE["context"]["constraints"]
    assert record["action_log"] == EPISODE["action_log"]


def test_an_episode_in_the_index_without_a_file_becomes_one(ws: Workspace) -> None:
    write(ws, EPISODES, [{"id": "ep-2026-01-06-001", "timestamp": "2026-01-06", "goal": "G"}])
    ws.sync()
    assert ws.get("ep-2026-01-06-001").title() == "G"
    assert ws.browse.where("ep-2026-01-06-001").parent.name == "2026-01-06"


# -- what cannot be taken over stays -------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "field"),
    [
        ([{"pattern": "Good"}, {"category": "no pattern"}], "patterns.1.pattern"),
        ([{"pattern": "Good"}, "just text"], "patterns.1"),
        ([{"pattern": "Good"}, {"pattern": "Bad", "id": "../x"}], "patterns.1.id"),
        ([{"pattern": "Good"}, None], "patterns.1"),
    ],
)
def test_a_view_with_an_unreadable_entry_stays_as_it_is(
    ws: Workspace, entries: list[object], field: str
) -> None:
    file = write(ws, PATTERNS, {"patterns": entries})
    before = file.read_bytes()
    ws.sync()
    ws.remember("Another", kind="pattern")
    ws.sync()
    assert file.read_bytes() == before
    assert titles(ws) == ["Another", "Good"]
    assert [(p.path, p.field) for p in ws.care.problems()] == [(PATTERNS, field)]


def test_a_mended_entry_is_taken_over_and_the_view_rendered_again(ws: Workspace) -> None:
    write(ws, PATTERNS, {"patterns": [{"pattern": "Good"}, {"category": "x"}]})
    ws.sync()
    write(ws, PATTERNS, {"patterns": [{"pattern": "Good"}, {"pattern": "Mended"}]})
    ws.sync()
    assert titles(ws) == ["Good", "Mended"]
    assert ws.care.problems() == []
    assert all("id" in entry for entry in shown(ws, PATTERNS)["patterns"])


@pytest.mark.parametrize("text", ["", "{", "null", "7", '{"patterns": 5}', '{"other": []}', "[[]]"])
def test_a_view_that_is_none_stays_as_it_is_and_is_a_problem(ws: Workspace, text: str) -> None:
    ws.remember("A", kind="pattern")
    file = write(ws, PATTERNS, text)
    ws.sync()
    assert file.read_text(encoding="utf-8") == text
    assert titles(ws) == ["A"]
    assert {problem.path for problem in ws.care.problems()} == {PATTERNS}


def test_a_view_cut_off_anywhere_stays_and_takes_nothing_away(ws: Workspace) -> None:
    ws.remember("A", kind="pattern")
    ws.sync()
    whole = (ws.layout.memory / PATTERNS).read_text(encoding="utf-8")
    for length in range(0, len(whole) - 2, 7):
        file = write(ws, PATTERNS, whole[:length])
        ws.sync()
        assert file.read_text(encoding="utf-8") == whole[:length]
        assert titles(ws) == ["A"]
    assert ws.care.problems() != []


def test_a_rejected_value_in_a_view_is_not_taken_over(ws: Workspace) -> None:
    ws.remember("Kept")
    ws.reject(ws.remember("We deploy on Fridays").id)
    ws.sync()
    file = write(ws, FACTS, [{"id": "fact-001", "statement": "we DEPLOY on fridays"}])
    ws.sync()
    assert titles(ws) == ["Kept"]
    assert not (ws.layout.memory / "semantic/facts/fact-001.json").exists()
    assert "fridays" in file.read_text(encoding="utf-8")


def test_a_rejected_value_in_a_view_is_said(ws: Workspace) -> None:
    ws.remember("Kept")
    ws.reject(ws.remember("We deploy on Fridays").id)
    write(ws, FACTS, [{"id": "fact-001", "statement": "we DEPLOY on fridays"}])
    ws.sync()
    said = [*ws.notices, *map(str, ws.care.problems())]
    assert [text for text in said if "rejected" in text and FACTS in text]


def test_two_entries_with_one_id_are_both_kept(ws: Workspace) -> None:
    write(ws, PATTERNS, [{"id": "sem-001", "pattern": "A"}, {"id": "sem-001", "pattern": "B"}])
    ws.sync()
    found = "".join(
        path.read_text(encoding="utf-8") for path in ws.layout.memory.glob("*/*/*.json")
    )
    assert '"A"' in found
    assert '"B"' in found
    assert ws.care.problems() != []


def test_an_entry_does_not_become_a_record_of_another_kind(ws: Workspace) -> None:
    write(ws, PATTERNS, [{"id": "sem-001", "pattern": "A"}])
    ws.sync()
    write(ws, ANTI_PATTERNS, [{"id": "sem-001", "what_fails": "B"}])
    ws.sync()
    assert "what_fails" not in json.dumps(record_of(ws, "sem-001"))
    assert "B" in (ws.layout.memory / ANTI_PATTERNS).read_text(encoding="utf-8")
    assert "sem-001" in " ".join([*ws.notices, *map(str, ws.care.problems())])


def test_a_view_older_than_a_changed_record_does_not_bring_the_old_text_back(
    ws: Workspace,
) -> None:
    fact = ws.remember("A", category="old")
    ws.sync()
    stale = (ws.layout.memory / FACTS).read_bytes()
    ws.correct(fact.id, category="new")
    os.utime(ws.layout.memory / FACTS)
    ws.sync()
    assert record_of(ws, fact.id)["category"] == "new"
    assert (ws.layout.memory / FACTS).read_bytes() != stale


def test_an_edited_view_and_a_consolidation_make_no_conflict(ws: Workspace) -> None:
    """The run changes the record that the view was taken over into: nobody else did."""
    view = ws.layout.memory / "semantic" / "patterns.json"
    entry = {"id": "sem-001", "pattern": "Handlers return void in strict mode", "confidence": 0.9}
    view.write_text(json.dumps({"patterns": [entry]}))
    met = {"type": "tsc", "message": "error TS7030: Not all code paths return a value"}
    for number in (1, 2):
        given = {"goal": f"Add endpoint {number}", "session": f"s{number}", "outcome": "success"}
        helped = [{"id": "sem-001", "helpful": True}]
        ws.record({**given, "errors_encountered": [met], "recalled": helped})
        ws.consolidate()
        shown = json.loads(view.read_text())
        shown["patterns"][0]["pattern"] += "!"
        view.write_text(json.dumps(shown))
    ws.consolidate()
    assert ws.care.problems() == []
    assert ws.get("sem-001").title() == "Handlers return void in strict mode!!"


# -- what anti-patterns taught ---------------------------------------------------------------------

NO_RETURN = {"message": "TS7030: no return", "resolution": "annotate the handler with `: void`"}


def met(ws: Workspace, day: str) -> None:
    """Record an episode that met an error and overcame it."""
    errors = [NO_RETURN]
    given = {"goal": f"Add a route on {day}", "outcome": "success", "errors_encountered": errors}
    ws.record({**given, "timestamp": f"{day}T09:00:00Z"})
    ws.flush()


def learning_files(ws: Workspace) -> list[Path]:
    return sorted((ws.layout.memory / "learnings").glob("*/*.json"))


def test_a_day_shows_what_anti_patterns_taught_on_it_and_no_file_repeats_them(
    ws: Workspace,
) -> None:
    for day in ("2026-01-06", "2026-01-07"):
        met(ws, day)
    ws.consolidate()
    (warning,) = ws.list(kind="anti-pattern")
    for day in ("2026-01-06", "2026-01-07"):
        (entry,) = shown(ws, f"learnings/{day}.json")["learnings"]
        assert entry["lesson"] == "TS7030: no return: annotate the handler with `: void`"
        assert (entry["source"], entry["timestamp"]) == (warning.id, day)
    assert not learning_files(ws)
    assert [line.at for line in ws.browse.learnings()] == ["2026-01-07", "2026-01-06"]
    assert [line.at for line in ws.browse.learnings(since="2026-01-07")] == ["2026-01-07"]


def test_without_its_base_a_day_is_not_taken_for_notes(ws: Workspace) -> None:
    met(ws, "2026-01-06")
    view = ws.layout.memory / LEARNINGS
    before = view.read_bytes()
    for bases in [*ws.layout.loki.rglob(".views")]:
        shutil.rmtree(bases)
    with Workspace.open(ws.layout.root) as again:
        again.sync()
    assert not learning_files(ws)
    assert view.read_bytes() == before


def test_what_somebody_adds_to_the_entry_of_an_anti_pattern_becomes_a_note(ws: Workspace) -> None:
    met(ws, "2026-01-06")
    edit(ws, LEARNINGS, lesson="Annotate route handlers first")
    ws.sync()
    (note,) = ws.list(kind="learning")
    assert note.title() == "Annotate route handlers first"
    assert [entry["id"] for entry in shown(ws, LEARNINGS)["learnings"]] == [note.id]


def test_notes_stand_beside_what_anti_patterns_taught(ws: Workspace) -> None:
    met(ws, "2026-01-06")
    ws.remember("Types first", kind="learning", at="2026-01-06")
    ws.sync()
    lessons = {entry["lesson"] for entry in shown(ws, LEARNINGS)["learnings"]}
    assert lessons == {"Types first", "TS7030: no return: annotate the handler with `: void`"}


def test_a_record_from_before_learnings_were_a_view_is_shown_once(ws: Workspace) -> None:
    met(ws, "2026-01-06")
    (warning,) = ws.list(kind="anti-pattern")
    name = f"learn-{digest('learning', warning.id, '2026-01-06')}"
    old = {"id": name, "timestamp": "2026-01-06T09:00:00Z", "lesson": "TS7030: no return: …"}
    write(ws, f"learnings/2026-01-06/{name}.json", old)
    ws.sync()
    assert [entry["id"] for entry in shown(ws, LEARNINGS)["learnings"]] == [name]
    assert [line.id for line in ws.browse.learnings()] == [name]


def test_a_view_without_its_base_is_no_edit_of_what_it_shows(ws: Workspace) -> None:
    """The index of episodes shows an outcome where the record has none."""
    ws.record({"goal": "Build the parser"})
    ws.sync()
    [path] = ws.layout.memory.glob("episodic/*/*.json")
    before = path.read_bytes()
    shutil.rmtree(ws.layout.cache)
    with Workspace.open(ws.layout.root) as again:
        again.remember("Something else")
        again.sync()
    assert path.read_bytes() == before
