"""Every use of a workspace, one method at a time."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from test_models import EPISODE, HOSTILE_IDS, LEDGER

from loki_memory import Episode, Fact, Handoff, Skill, Workspace
from loki_memory.errors import (
    IdTaken,
    InvalidConfig,
    InvalidRecord,
    LokiMemoryError,
    NewerFormat,
    NotAWorkspace,
    NotFound,
    RejectedValue,
    SymlinkedRoot,
)
from loki_memory.files.layout import view_bases
from loki_memory.index.index import Index
from loki_memory.models import RELATIONS, parse
from loki_memory.models.kinds import FACT_TYPES
from loki_memory.settings import SETTINGS

NOW = "2026-01-06T12:00:00Z"


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOKI_NOW", NOW)


def tree(folder: Path) -> dict[str, bytes]:
    """Every file of a folder but the cache."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "cache" not in path.parts
    }


def titles(ws: Workspace, **filters: Any) -> list[str]:
    return sorted(memory.title() for memory in ws.list(**filters))


def by_hand(ws: Workspace, path: str, **fields: Any) -> Path:
    file = ws.layout.memory / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(fields), encoding="utf-8")
    return file


def file_of(ws: Workspace, memory_id: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(ws.browse.where(memory_id).read_text(encoding="utf-8"))
    return loaded


# -- init ----------------------------------------------------------------------------------------


def test_init_makes_the_folders_the_settings_and_the_gitignore(project: Path) -> None:
    Workspace.init(project)
    loki = project / ".loki"
    assert (loki / "config.toml").read_text(encoding="utf-8").endswith("format = 1\n")
    assert "/cache/" in (loki / ".gitignore").read_text(encoding="utf-8")
    assert (loki / "memory" / "semantic" / "patterns").is_dir()


def test_init_twice_changes_nothing(project: Path) -> None:
    Workspace.init(project).remember("A")
    before = tree(project)
    Workspace.init(project)
    assert tree(project) == before


def test_init_touches_nothing_outside_its_folder(project: Path) -> None:
    subprocess.run(["git", "init", "-q", project], check=True)
    (project / "README.md").write_text("hello", encoding="utf-8")
    (project / ".gitignore").write_text("x\n", encoding="utf-8")
    before = tree(project)
    Workspace.init(project)
    ours = (".loki/", ".git/loki-memory/")  # the second is the zone of this machine
    after = {path: data for path, data in tree(project).items() if not path.startswith(ours)}
    assert after == before


def test_init_creates_the_project_folder_if_need_be(tmp_path: Path) -> None:
    ws = Workspace.init(tmp_path / "a" / "b")
    assert ws.list() == []


@pytest.mark.parametrize("foreign", [b"/secrets\n", b"/secrets", b"/a\r\n/b\r\n", b"# caf\xe9\n"])
def test_init_appends_to_a_foreign_gitignore(project: Path, foreign: bytes) -> None:
    path = project / ".loki" / ".gitignore"
    path.parent.mkdir()
    path.write_bytes(foreign)
    Workspace.init(project)
    assert path.read_bytes().startswith(foreign)
    assert b"\n/cache/\n" in path.read_bytes()
    once = path.read_bytes()
    Workspace.init(project)
    assert path.read_bytes() == once


def test_git_ignores_what_is_derived_and_tracks_what_is_not(project: Path) -> None:
    subprocess.run(["git", "init", "-q", project], check=True)
    ws = Workspace.init(project)
    fact = ws.remember("A")
    ws.sync()
    (project / ".loki" / "CONTINUITY.md").write_text("now", encoding="utf-8")
    status = ["git", "-C", str(project), "status", "--porcelain", "--untracked-files=all"]
    shown = subprocess.run(status, check=True, capture_output=True, text=True).stdout.split("\n")
    assert sorted(line[3:] for line in shown if line) == [
        ".loki/.gitignore",
        ".loki/config.toml",
        f".loki/memory/semantic/facts/{fact.id}.json",
    ]


def test_the_home_folder_is_no_project(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path(os.environ["HOME"])
    with pytest.raises(LokiMemoryError, match="home"):
        Workspace.init(home)
    assert list(home.iterdir()) == []


# -- open ----------------------------------------------------------------------------------------


def test_open_looks_upwards_from_a_folder(ws: Workspace, project: Path) -> None:
    deep = project / "src" / "deep"
    deep.mkdir(parents=True)
    assert Workspace.open(deep).layout.root == project


def test_open_looks_upwards_from_the_working_directory(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    assert Workspace.open().layout.root == project


def test_open_takes_the_workspace_that_the_environment_names(
    ws: Workspace, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    Workspace.init(other)
    monkeypatch.setenv("LOKI_WORKSPACE", str(project))
    monkeypatch.chdir(other)
    assert Workspace.open().layout.root == project
    assert Workspace.open(other).layout.root == other


def test_open_says_that_there_is_no_workspace_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NotAWorkspace, match="loki-mem init"):
        Workspace.open(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_open_says_that_the_folder_is_missing(tmp_path: Path) -> None:
    with pytest.raises(NotAWorkspace, match="nowhere"):
        Workspace.open(tmp_path / "nowhere")


def test_open_says_that_the_root_is_a_link(project: Path, tmp_path: Path) -> None:
    Workspace.init(tmp_path / "real")
    (project / ".loki").symlink_to(tmp_path / "real" / ".loki")
    with pytest.raises(SymlinkedRoot, match="real"):
        Workspace.open(project)


def test_the_users_own_memory_is_never_the_answer() -> None:
    home = Path(os.environ["HOME"])
    (home / ".loki" / "memory").mkdir(parents=True)
    (home / "project").mkdir()
    for start in (home, home / "project"):
        with pytest.raises(NotAWorkspace):
            Workspace.open(start)


def test_the_users_own_memory_is_never_the_answer_wherever_it_was_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(os.environ["HOME"])
    (home / ".loki" / "memory").mkdir(parents=True)
    (home / "project").mkdir()
    monkeypatch.setenv("LOKI_HOME", str(tmp_path / "elsewhere" / ".loki"))
    with pytest.raises(NotAWorkspace):
        Workspace.open(home / "project")


def test_the_users_own_memory_is_never_the_answer_behind_a_linked_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real" / "project").mkdir(parents=True)
    (tmp_path / "real" / ".loki" / "memory").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("HOME", str(tmp_path / "link"))
    monkeypatch.delenv("LOKI_HOME")
    with pytest.raises(NotAWorkspace):
        Workspace.open(tmp_path / "real" / "project")


def test_a_workspace_may_be_used_after_it_was_closed(ws: Workspace) -> None:
    ws.remember("A")
    ws.close()
    assert titles(ws) == ["A"]


# -- record --------------------------------------------------------------------------------------


def test_a_recorded_episode_is_on_disk_and_listed(ws: Workspace) -> None:
    episode = ws.record(EPISODE)
    assert isinstance(episode, Episode)
    assert episode.id == "ep-2026-01-06-001"
    path = ws.layout.memory / "episodic/2026-01-06/task-042-ep-2026-01-06-001.json"
    assert json.loads(path.read_text(encoding="utf-8"))["git_commit"] == "abc123"
    assert ws.get(episode.id) == episode


def test_an_episode_may_come_as_a_model(ws: Workspace) -> None:
    model = parse(Episode, EPISODE)
    assert ws.record(model).document() == {**model.document(), "origin": "agent"}


def test_an_episode_that_does_not_say_when_is_from_now(ws: Workspace) -> None:
    assert ws.record({"goal": "G"}).timestamp == NOW


def test_many_episodes_come_back_in_their_order(ws: Workspace) -> None:
    goals = [f"Goal {number}" for number in range(20)]
    assert [episode.goal for episode in ws.record({"goal": goal} for goal in goals)] == goals
    assert titles(ws, kind="episode") == sorted(goals)


def test_no_episodes_at_all_are_no_error(ws: Workspace) -> None:
    assert ws.record([]) == []


@pytest.mark.parametrize(
    "bad", [{}, {"goal": ""}, {"goal": "G", "outcome": "meh"}, "text", None, 7]
)
def test_one_bad_episode_keeps_all_of_them_out(ws: Workspace, bad: Any) -> None:
    before = tree(ws.layout.loki)
    with pytest.raises(InvalidRecord, match="episode 2"):
        ws.record([{"goal": "A"}, bad, {"goal": "C"}])
    assert tree(ws.layout.loki) == before


def test_the_same_episode_again_changes_nothing(ws: Workspace) -> None:
    first = ws.record(EPISODE)
    before = tree(ws.layout.loki)
    assert ws.record(EPISODE) == first
    assert tree(ws.layout.loki) == before


def test_another_episode_with_the_same_id_is_refused(ws: Workspace) -> None:
    ws.record(EPISODE)
    with pytest.raises(IdTaken):
        ws.record({**EPISODE, "task_id": "task-043"})
    assert len(ws.list(kind="episode")) == 1


def test_an_episode_that_stands_in_a_file_of_another_name_is_not_doubled(ws: Workspace) -> None:
    file = by_hand(ws, "episodic/2026-01-06/task-001.json", **EPISODE)
    ws.list()
    assert ws.record(EPISODE).id == EPISODE["id"]
    assert list(file.parent.iterdir()) == [file]


def test_origin_is_bound_to_the_way_in(project: Path) -> None:
    agent = Workspace.init(project)
    owner = Workspace.open(project, origin="owner")
    assert agent.record({"goal": "A", "origin": "owner"}).origin == "agent"
    assert owner.record({"goal": "B", "origin": "external"}).origin == "owner"
    assert agent.remember("A").document()["origin"] == "agent"
    assert owner.remember("B").document()["origin"] == "owner"
    assert agent.team.checkpoint({"agent_id": "x", "origin": "owner"}).origin == "agent"


# -- remember ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("fact", "statement"),
        ("pattern", "pattern"),
        ("anti-pattern", "what_fails"),
        ("learning", "lesson"),
    ],
)
def test_every_kind_of_statement_is_remembered(ws: Workspace, kind: Any, field: str) -> None:
    memory = ws.remember("  Deploying on Friday ", kind=kind, category="ops", importance=0.9)
    assert memory.kind == kind
    document = file_of(ws, memory.id)
    assert document[field] == "Deploying on Friday"
    assert (document["category"], document["importance"]) == ("ops", 0.9)


@pytest.mark.parametrize("kind", FACT_TYPES)
def test_a_type_of_fact_is_a_kind_to_remember(ws: Workspace, kind: Any) -> None:
    memory = ws.remember("Use US English everywhere", kind=kind)
    assert memory.kind == "fact"
    assert file_of(ws, memory.id)["type"] == kind


@pytest.mark.parametrize("kind", ["episode", "skill", "link", "nonsense"])
def test_other_kinds_are_not_made_from_a_text(ws: Workspace, kind: Any) -> None:
    with pytest.raises(InvalidRecord, match="kind"):
        ws.remember("A", kind=kind)


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_nothing_is_not_remembered(ws: Workspace, text: str) -> None:
    with pytest.raises(InvalidRecord):
        ws.remember(text)
    assert ws.list() == []


def test_the_same_statement_again_is_brought_up_to_date(ws: Workspace) -> None:
    first = ws.remember("We deploy on Fridays", category="ops", by="ana")
    again = ws.remember("we deploy  on FRIDAYS.", importance=0.7)
    assert again.id == first.id
    document = file_of(ws, first.id)
    assert document["statement"] == "We deploy on Fridays"
    assert (document["category"], document["by"], document["importance"]) == ("ops", "ana", 0.7)
    assert len(ws.list()) == 1


def test_the_same_statement_again_does_not_change_since_when_it_holds(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ws.remember("A")
    before = ws.browse.where(first.id).read_bytes()
    monkeypatch.setenv("LOKI_NOW", "2026-02-01T00:00:00Z")
    ws.remember("A")
    assert ws.browse.where(first.id).read_bytes() == before


def test_a_statement_that_stands_in_a_file_of_another_name_is_not_doubled(ws: Workspace) -> None:
    file = by_hand(ws, "semantic/facts/mine.json", statement="We use tabs")
    ws.list()
    ws.remember("We use tabs", category="style")
    assert list(file.parent.iterdir()) == [file]
    assert titles(ws) == ["We use tabs"]
    assert ws.care.problems() == []


def test_a_statement_that_has_an_id_of_its_own_is_not_doubled(ws: Workspace) -> None:
    by_hand(ws, "semantic/patterns/sem-001.json", id="sem-001", pattern="Use tabs")
    ws.list()
    ws.remember("Use tabs", kind="pattern")
    assert titles(ws) == ["Use tabs"]


def test_a_statement_whose_record_says_something_else_now_is_a_new_one(ws: Workspace) -> None:
    first = ws.remember("We deploy on Fridays")
    ws.correct(first.id, statement="We deploy on Mondays")
    second = ws.remember("We deploy on Fridays")
    assert second.id != first.id
    assert titles(ws) == ["We deploy on Fridays", "We deploy on Mondays"]
    assert ws.remember("We deploy on Fridays").id == second.id


def test_when_and_where_it_was_said_make_facts_of_their_own(ws: Workspace) -> None:
    said: list[dict[str, Any]] = [
        {},
        {"session": "s-1"},
        {"session": "s-2"},
        {"at": "2026-01-05"},
        {"session": "s-1", "at": "2026-01-05"},
    ]
    assert len({ws.remember("It rains", **where).id for where in said}) == len(said)
    assert len(ws.list()) == len(said)


def test_a_topic_tree_knows_its_depth(ws: Workspace) -> None:
    topic = ws.remember("Testing")
    concept = ws.remember("Contract tests", parent=topic.id)
    detail = ws.remember("They need a database", parent=concept.id)
    depths = [memory.document().get("depth") for memory in (topic, concept, detail)]
    assert depths == [None, 1, 2]
    assert ws.browse.edges(topic.id)[1] == [("part_of", concept.id)]


def test_an_unknown_parent_is_not_found(ws: Workspace) -> None:
    with pytest.raises(NotFound):
        ws.remember("A", parent="fact-none")


@pytest.mark.parametrize(
    ("field", "value"), [("importance", 2.0), ("at", "soon"), ("scope", "galaxy")]
)
def test_a_field_that_is_wrong_is_named(ws: Workspace, field: str, value: Any) -> None:
    with pytest.raises(InvalidRecord, match=field):
        ws.remember("A", **{field: value})


@pytest.mark.parametrize(("word", "number"), [("high", 0.9), ("Medium", 0.5), ("low", 0.2)])
def test_an_importance_in_words_is_stored_as_a_number(
    ws: Workspace, word: str, number: float
) -> None:
    said = ws.remember("We deploy on Fridays", importance=word)
    assert ws.get(said.id).document()["importance"] == number
    ws.correct(said.id, importance=0.7)
    ws.correct(said.id, importance=word)
    assert ws.get(said.id).document()["importance"] == number


def test_an_importance_in_words_is_read_from_a_file(ws: Workspace) -> None:
    said = ws.remember("We deploy on Fridays", importance=0.7)
    (path,) = ws.layout.root.rglob(f"{said.id}.json")
    path.write_text(path.read_text().replace("0.7", '"high"'))
    fact = ws.get(said.id)
    assert isinstance(fact, Fact)
    assert fact.importance == 0.9


# -- get and list --------------------------------------------------------------------------------


def test_what_is_not_there_is_not_found(ws: Workspace) -> None:
    with pytest.raises(NotFound, match="fact-none"):
        ws.get("fact-none")


@pytest.fixture
def varied(ws: Workspace) -> Workspace:
    ws.record({"goal": "Old", "timestamp": "2026-01-01"})
    ws.record({"goal": "New", "timestamp": "2026-01-05"})
    ws.remember("A fact", at="2026-01-03")
    by_hand(ws, "semantic/patterns/sem-1.json", id="sem-1", pattern="Past", status="superseded")
    by_hand(ws, "semantic/patterns/sem-2.json", id="sem-2", pattern="Maybe", status="candidate")
    ws.reject(ws.remember("Rejected", at="2026-01-02").id)
    ws.remember("Private", scope="local", at="2026-01-04")
    return ws


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, ["A fact", "Maybe", "New", "Old", "Private"]),
        ({"kind": "episode"}, ["New", "Old"]),
        ({"kind": "pattern"}, ["Maybe"]),
        ({"kind": "pattern", "status": "all"}, ["Maybe", "Past"]),
        ({"status": "superseded"}, ["Past"]),
        ({"status": "candidate"}, ["Maybe"]),
        ({"status": "rejected"}, ["Rejected"]),
        ({"kind": "tombstone"}, ["Rejected"]),
        ({"since": "2026-01-04"}, ["New", "Private"]),
        ({"scope": "local"}, ["Private"]),
        ({"scope": "project", "kind": "fact"}, ["A fact"]),
        ({"kind": "handoff"}, []),
    ],
)
def test_a_list_shows_what_is_asked_for(
    varied: Workspace, filters: dict[str, Any], expected: list[str]
) -> None:
    assert titles(varied, **filters) == expected
    assert sorted(summary.title for summary in varied.browse.summaries(**filters)) == expected


def test_a_list_shows_the_newest_first(varied: Workspace) -> None:
    dated = [memory.title() for memory in varied.list(since="2026-01-01")]
    assert dated == ["New", "Private", "A fact", "Old"]


def test_a_list_of_an_unknown_kind_says_which_there_are(ws: Workspace) -> None:
    with pytest.raises(InvalidRecord, match="anti-pattern"):
        ws.list(kind="antipattern")  # type: ignore[arg-type]


def test_a_beginning_of_an_id_is_enough(ws: Workspace) -> None:
    fact = ws.remember("A")
    assert ws.resolve(fact.id[:8]) == fact.id
    assert ws.resolve(fact.id) == fact.id
    with pytest.raises(NotFound):
        ws.resolve("sem-")
    ws.remember("B")
    with pytest.raises(NotFound, match="several"):
        ws.resolve("fact-")


# -- ids that must not reach a path --------------------------------------------------------------

WITH_AN_ID: dict[str, Callable[[Workspace, str], Any]] = {
    "get": lambda ws, name: ws.get(name),
    "where": lambda ws, name: ws.browse.where(name),
    "edges": lambda ws, name: ws.browse.edges(name),
    "correct": lambda ws, name: ws.correct(name, category="x"),
    "pin": lambda ws, name: ws.pin(name),
    "reject": lambda ws, name: ws.reject(name),
    "forget": lambda ws, name: ws.forget(name),
    "archive": lambda ws, name: ws.archive(name),
    "restore": lambda ws, name: ws.restore(name),
    "accept": lambda ws, name: ws.team.accept(name),
    "close_handoff": lambda ws, name: ws.team.close_handoff(name),
    "link from": lambda ws, name: ws.link(name, "related_to", "fact-kept"),
    "link to": lambda ws, name: ws.link("fact-kept", "related_to", name),
    "remember below": lambda ws, name: ws.remember("A", parent=name or "../x"),
    "record": lambda ws, name: ws.record({"goal": "G", "id": name or "../x"}),
}
NASTIEST = [name for name in HOSTILE_IDS if "/" in name or "\\" in name or "\0" in name][:12]


@pytest.mark.parametrize("method", WITH_AN_ID)
def test_no_method_lets_a_hostile_id_reach_a_path(ws: Workspace, method: str) -> None:
    by_hand(ws, "semantic/facts/fact-kept.json", id="fact-kept", statement="Kept")
    ws.forget(ws.remember("Forgotten").id)
    ws.sync()
    planted = {"files": {"../../planted.json": "{}"}, "references": {}}
    for folder in (ws.layout.root, ws.layout.loki, ws.layout.memory, ws.layout.local):
        (folder / "x.json").write_text(json.dumps(planted), encoding="utf-8")
    before = tree(ws.layout.root)
    hostile = [*NASTIEST, *("../" * depth + "x" for depth in range(1, 7)), "", "con", "."]
    for name in HOSTILE_IDS if method in {"restore", "record"} else hostile:
        with pytest.raises(LokiMemoryError):
            WITH_AN_ID[method](ws, name)
    assert tree(ws.layout.root) == before


# -- correct and pin -----------------------------------------------------------------------------


def test_a_program_may_store_a_long_turn_of_talk(ws: Workspace) -> None:
    said = "word " * 10_000
    assert ws.get(ws.remember(said).id).title() == said.strip()


def test_a_correction_keeps_what_was_said_before(ws: Workspace) -> None:
    fact = ws.remember("We deploy on Fridays", category="ops")
    corrected = ws.correct(fact.id, statement="We deploy on Mondays", confidence=0.666)
    assert corrected.id == fact.id
    document = file_of(ws, fact.id)
    assert (document["statement"], document["confidence"]) == ("We deploy on Mondays", 0.67)
    assert document["category"] == "ops"
    assert document["history"] == [
        {
            "on": "2026-01-06",
            "by": "agent",
            "was": {"statement": "We deploy on Fridays", "confidence": None},
        }
    ]


def test_a_correction_that_changes_nothing_leaves_the_file_alone(ws: Workspace) -> None:
    fact = ws.remember("A", category="ops")
    before = ws.browse.where(fact.id).read_bytes()
    ws.correct(fact.id, category="ops")
    assert ws.browse.where(fact.id).read_bytes() == before


@pytest.mark.parametrize("field", ["id", "history", "$schema", "nonsense", "origin"])
def test_what_cannot_be_corrected_is_refused(ws: Workspace, field: str) -> None:
    fact = ws.remember("A")
    before = ws.browse.where(fact.id).read_bytes()
    with pytest.raises(InvalidRecord) as refused:
        ws.correct(fact.id, **{field: "owner"})
    assert field in str(refused.value)
    assert "statement" in str(refused.value)
    assert ws.browse.where(fact.id).read_bytes() == before


def test_a_field_that_somebody_else_added_can_be_corrected(ws: Workspace) -> None:
    by_hand(ws, "semantic/facts/fact-1.json", id="fact-1", statement="A", mood="bad")
    assert ws.correct("fact-1", mood="good").document()["mood"] == "good"


def test_a_wrong_correction_changes_nothing(ws: Workspace) -> None:
    fact = ws.remember("A")
    with pytest.raises(InvalidRecord, match="confidence"):
        ws.correct(fact.id, confidence="high")
    assert "confidence" not in file_of(ws, fact.id)


def test_an_episode_and_a_ledger_can_be_corrected(ws: Workspace) -> None:
    episode = ws.record({"goal": "G"})
    assert ws.correct(episode.id, outcome="failed").document()["outcome"] == "failure"
    ledger = ws.team.checkpoint(LEDGER)
    assert ws.correct(ledger.id, tasks_completed=13).document()["tasks_completed"] == 13


def test_pin_and_let_go(ws: Workspace) -> None:
    fact = ws.remember("A")
    ws.pin(fact.id)
    assert ws.browse.summaries()[0].pinned
    ws.pin(fact.id, pinned=False)
    assert not ws.browse.summaries()[0].pinned
    episode = ws.record({"goal": "G"})
    assert file_of(ws, ws.pin(episode.id).id)["pinned"] is True


def test_what_has_no_pin_cannot_be_pinned(ws: Workspace) -> None:
    handoff = ws.team.hand_off("a", "b", "Done")
    with pytest.raises(InvalidRecord, match="handoff"):
        ws.pin(handoff.id)


# -- reject --------------------------------------------------------------------------------------

SPELLINGS = [
    "We deploy on Fridays",
    "we  DEPLOY on fridays.",
    "We depl\u043ey \u043en Frid\u0430ys",  # Cyrillic
    "We de\u200bploy on Fridays",
    "Ｗｅ ｄｅｐｌｏｙ ｏｎ Ｆｒｉｄａｙｓ",  # noqa: RUF001
]


@pytest.fixture
def rejected(ws: Workspace) -> Workspace:
    ws.remember("Kept")
    ws.reject(ws.remember("We deploy on Fridays").id, why="we never did")
    return ws


def test_a_rejected_memory_is_not_listed_and_its_stone_says_why(rejected: Workspace) -> None:
    assert titles(rejected) == ["Kept"]
    [stone] = rejected.list(kind="tombstone")
    assert stone.document()["value"] == "We deploy on Fridays"
    assert stone.document()["why"] == "we never did"
    assert rejected.browse.where(stone.id).parent.name == "rejected"


@pytest.mark.parametrize("kind", ["fact", "pattern", "learning", "anti-pattern"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_rejected_value_is_not_remembered_however_spelled(
    rejected: Workspace, spelling: str, kind: Any
) -> None:
    before = tree(rejected.layout.memory)
    with pytest.raises(RejectedValue, match="we never did"):
        rejected.remember(spelling, kind=kind)
    assert tree(rejected.layout.memory) == before
    assert titles(rejected) == ["Kept"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_rejected_value_in_a_file_or_a_view_is_not_listed(
    rejected: Workspace, spelling: str
) -> None:
    by_hand(rejected, "semantic/facts/fact-9.json", id="fact-9", statement=spelling)
    by_hand(rejected, "semantic/patterns.json", patterns=[{"id": "sem-9", "pattern": spelling}])
    assert titles(rejected) == ["Kept"]
    rejected.sync()
    assert titles(rejected) == ["Kept"]
    assert not (rejected.layout.memory / "semantic/patterns/sem-9.json").exists()


def test_a_correction_does_not_bring_a_rejected_value_back(rejected: Workspace) -> None:
    [kept] = rejected.list()
    with pytest.raises(RejectedValue):
        rejected.correct(kept.id, statement="we deploy on fridays")
    assert titles(rejected) == ["Kept"]


def test_a_rejection_survives_a_rebuild_and_a_new_cache(rejected: Workspace) -> None:
    rejected.rebuild()
    assert titles(rejected) == ["Kept"]
    with pytest.raises(RejectedValue):
        Workspace.open(rejected.layout.root).remember("We deploy on Fridays!")


@pytest.mark.parametrize("named_by", ["stone", "memory"])
def test_restore_lifts_a_rejection(rejected: Workspace, named_by: str) -> None:
    [stone] = rejected.list(kind="tombstone")
    rejected.restore(stone.id if named_by == "stone" else stone.document()["rejected"])
    assert titles(rejected) == ["Kept", "We deploy on Fridays"]
    assert rejected.list(kind="tombstone") == []
    rejected.remember("We deploy on Fridays", category="ops")


def test_a_stone_that_somebody_else_wrote_keeps_its_value_out(ws: Workspace) -> None:
    by_hand(ws, "semantic/rejected/no-fridays.json", value="We deploy on Fridays")
    with pytest.raises(RejectedValue):
        ws.remember("we deploy on fridays")


@pytest.mark.parametrize("kind", ["learning", "pattern", "anti-pattern"])
def test_every_statement_can_be_rejected(ws: Workspace, kind: Any) -> None:
    ws.remember("Kept")
    ws.reject(ws.remember("Wrong", kind=kind).id)
    assert titles(ws) == ["Kept"]
    with pytest.raises(RejectedValue):
        ws.remember("wrong", kind=kind)


def test_a_rejected_skill_is_not_added_again(ws: Workspace) -> None:
    ws.remember("Kept")
    skill = ws.skills.add("---\nname: deploy\n---\n# Deploy\n")
    ws.reject(skill.id)
    assert titles(ws) == ["Kept"]
    with pytest.raises(RejectedValue):
        ws.skills.add("---\nname: deploy\n---\n# Deploy again\n")


def test_what_is_no_statement_cannot_be_rejected(ws: Workspace) -> None:
    episode = ws.record({"goal": "G"})
    with pytest.raises(InvalidRecord, match="forget"):
        ws.reject(episode.id)


def test_rejecting_a_private_memory_does_not_publish_it(ws: Workspace) -> None:
    ws.remember("Public")
    private = ws.remember("My private opinion", scope="local")
    ws.reject(private.id)
    published = b"".join(tree(ws.layout.memory).values())
    assert b"private opinion" not in published
    with pytest.raises(RejectedValue):
        ws.remember("my private opinion", scope="local")


# -- forget, archive, restore --------------------------------------------------------------------


@pytest.fixture
def linked(ws: Workspace) -> Workspace:
    """Two episodes; what rests on the first only, on both, and on a person's word."""
    for name in ("ep-1", "ep-2"):
        ws.record({"id": name, "goal": name})
    semantic = "semantic/patterns/{}.json"
    by_hand(
        ws, semantic.format("sem-only"), id="sem-only", pattern="Only", source_episodes=["ep-1"]
    )
    by_hand(
        ws,
        semantic.format("sem-both"),
        id="sem-both",
        pattern="Both",
        evidence={"for": ["ep-1", "ep-2"], "against": []},
    )
    by_hand(
        ws,
        semantic.format("sem-owner"),
        id="sem-owner",
        pattern="Owner",
        source_episodes=["ep-1"],
        origin="owner",
    )
    by_hand(
        ws, "semantic/facts/fact-2nd.json", id="fact-2nd", statement="2nd",
        source_episodes=["sem-only"],
    )  # fmt: skip
    by_hand(ws, "semantic/anti-patterns/anti-1.json", id="anti-1", what_fails="W", source="ep-1")
    ws.team.checkpoint(
        {"agent_id": "eng", "context": {"patterns_learned": ["sem-only", "sem-both"]}}
    )
    ws.link("sem-only", "supersedes", "sem-both")
    ws.sync()
    return ws


def test_forget_takes_out_what_rests_on_nothing_else(linked: Workspace) -> None:
    link = linked.list(kind="link")[0].id
    gone = linked.forget("ep-1", why="private")
    assert set(gone.removed) == {"ep-1", "sem-only", "fact-2nd", "anti-1", link}
    assert titles(linked) == ["Both", "Owner", "eng", "ep-2"]


def test_forget_takes_references_out_of_what_stays(linked: Workspace) -> None:
    gone = linked.forget("ep-1")
    assert set(gone.changed) == {"sem-both", "sem-owner", "ledger-eng"}
    assert file_of(linked, "sem-both")["evidence"]["for"] == ["ep-2"]
    assert file_of(linked, "sem-owner")["source_episodes"] == []
    assert file_of(linked, "ledger-eng")["context"]["patterns_learned"] == ["sem-both"]
    linked.sync()
    left = b"".join(tree(linked.layout.memory).values())
    assert b"sem-only" not in left
    assert b'"ep-1"' not in left


def test_forget_takes_out_every_mention(ws: Workspace) -> None:
    fact = ws.remember("Shown to the agent")
    episode = ws.record({"goal": "G", "recalled": [{"id": fact.id, "helpful": True}]})
    by_hand(
        ws,
        "semantic/anti-patterns/anti-1.json",
        id="anti-1",
        what_fails="W",
        resolutions=[{"do": "X", "for": ["ep-1", "ep-2"]}],
    )
    ws.record({"id": "ep-1", "goal": "E"})
    ws.forget(fact.id)
    ws.forget("ep-1")
    assert file_of(ws, episode.id)["recalled"] == []
    assert file_of(ws, "anti-1")["resolutions"] == [{"do": "X", "for": ["ep-2"]}]


def test_restore_brings_everything_back_byte_for_byte(linked: Workspace) -> None:
    before = tree(linked.layout.memory)
    linked.forget("ep-1")
    assert tree(linked.layout.memory) != before
    assert linked.restore("ep-1").title() == "ep-1"
    assert tree(linked.layout.memory) == before
    assert len(linked.list()) == 9


def test_restore_does_not_undo_what_was_changed_since(linked: Workspace) -> None:
    linked.forget("ep-1")
    linked.correct("sem-both", category="newer")
    linked.restore("ep-1")
    assert file_of(linked, "sem-both")["category"] == "newer"
    assert "Only" in titles(linked)


def test_restore_of_what_was_never_gone_is_not_found(ws: Workspace) -> None:
    fact = ws.remember("A")
    for name in (fact.id, "fact-none"):
        with pytest.raises(NotFound):
            ws.restore(name)


@pytest.mark.parametrize(
    "kept",
    ["[]", "{", '{"files": 5}', '{"files": {"../../x.json": "{}"}, "references": {}}'],
)
def test_a_copy_of_something_forgotten_that_makes_no_sense_is_said(
    ws: Workspace, kept: str
) -> None:
    folder = ws.layout.local / "memory" / ".forgotten"
    folder.mkdir(parents=True)
    (folder / "fact-1.json").write_text(kept, encoding="utf-8")
    before = tree(ws.layout.root)
    with pytest.raises(LokiMemoryError):
        ws.restore("fact-1")
    assert tree(ws.layout.root) == before


def test_what_was_forgotten_can_be_remembered_anew(ws: Workspace) -> None:
    ws.remember("Kept")
    fact = ws.remember("A")
    ws.forget(fact.id)
    assert ws.remember("A").id == fact.id
    assert titles(ws) == ["A", "Kept"]


def test_an_archived_memory_is_kept_as_it_was_and_comes_back(ws: Workspace) -> None:
    ws.remember("Kept")
    path = by_hand(ws, "semantic/facts/mine.json", id="fact-1", statement="A")
    data = path.read_bytes()
    assert ws.archive("fact-1") == "archive/semantic/facts/mine.json"
    assert (ws.layout.memory / "archive/semantic/facts/mine.json").read_bytes() == data
    assert titles(ws) == ["Kept"]
    with pytest.raises(NotFound):
        ws.get("fact-1")
    assert ws.restore("fact-1").title() == "A"
    assert path.read_bytes() == data


def test_archiving_again_does_not_lose_the_first_version(ws: Workspace) -> None:
    ws.remember("Kept")
    fact = ws.remember("A", category="first")
    ws.archive(fact.id)
    ws.remember("A", category="second")
    with suppress(LokiMemoryError):
        ws.archive(fact.id)
    everything = b"".join(tree(ws.layout.memory).values())
    assert b'"first"' in everything
    assert b'"second"' in everything


# -- link ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_relation_can_be_stated(ws: Workspace, relation: str) -> None:
    a, b = ws.remember("A"), ws.remember("B")
    link = ws.link(a.id, relation, b.id)
    assert (relation, b.id) in ws.browse.edges(a.id)[0]
    assert file_of(ws, link.id)["from"] == a.id
    assert ws.link(a.id, relation, b.id) == link
    assert len(ws.list(kind="link")) == 1


def test_an_unknown_relation_says_which_there_are(ws: Workspace) -> None:
    a = ws.remember("A")
    with pytest.raises(InvalidRecord, match="supersedes"):
        ws.link(a.id, "likes", a.id)


# -- ledgers and handoffs ------------------------------------------------------------------------


def test_a_checkpoint_replaces_the_last_one(ws: Workspace) -> None:
    ws.team.checkpoint(LEDGER)
    second = ws.team.checkpoint({"agent_id": LEDGER["agent_id"], "current_task": "task-043"})
    assert second.last_checkpoint == NOW
    [ledger] = ws.list(kind="ledger")
    assert ledger.document()["current_task"] == "task-043"
    assert ws.browse.where(ledger.id).name == "eng-001-backend.json"


def test_a_checkpoint_replaces_a_ledger_of_another_file_name(ws: Workspace) -> None:
    """Loki Mode's documents keep the ledger of eng-001-backend in eng-001.json."""
    file = by_hand(ws, "ledgers/eng-001.json", **LEDGER)
    ws.list()
    ws.team.checkpoint({**LEDGER, "tasks_completed": 13})
    assert list(file.parent.iterdir()) == [file]
    [ledger] = ws.list(kind="ledger")
    assert ledger.document()["tasks_completed"] == 13


def test_a_handoff_is_open_then_accepted_then_done(ws: Workspace) -> None:
    handoff = ws.team.hand_off(
        "eng", "qa", "Added search", needs_testing=["paging"], priority="high"
    )
    assert handoff.state == "open"
    assert ws.status().open_handoffs == 1
    accepted = ws.team.accept(handoff.id, by="qa-2")
    assert (accepted.state, accepted.accepted_by, accepted.accepted_at) == ("accepted", "qa-2", NOW)
    assert ws.status().open_handoffs == 0
    closed = ws.team.close_handoff(handoff.id, note="all green")
    assert (closed.state, closed.note, closed.closed_at) == ("done", "all green", NOW)
    assert file_of(ws, handoff.id)["context"]["priority"] == "high"


def test_an_open_handoff_may_be_closed_or_expire(ws: Workspace) -> None:
    one, two = ws.team.hand_off("a", "b", "One"), ws.team.hand_off("a", "b", "Two")
    assert ws.team.close_handoff(one.id).state == "done"
    assert ws.team.close_handoff(two.id, status="expired").state == "expired"


def test_a_handoff_never_goes_back(ws: Workspace) -> None:
    handoff = ws.team.hand_off("a", "b", "Done")
    ws.team.accept(handoff.id)
    with pytest.raises(InvalidRecord, match="accepted"):
        ws.team.accept(handoff.id)
    ws.team.close_handoff(handoff.id)
    for again in (ws.team.accept, ws.team.close_handoff):
        with pytest.raises(InvalidRecord, match="done"):
            again(handoff.id)


@pytest.mark.parametrize("status", ["open", "accepted", "lost", ""])
def test_a_handoff_is_closed_as_done_or_expired_only(ws: Workspace, status: str) -> None:
    handoff = ws.team.hand_off("a", "b", "Done")
    ws.team.accept(handoff.id)
    with pytest.raises(InvalidRecord):
        ws.team.close_handoff(handoff.id, status=status)


def test_only_handoffs_are_accepted(ws: Workspace) -> None:
    fact = ws.remember("A")
    with pytest.raises(InvalidRecord, match="no handoff"):
        ws.team.accept(fact.id)


def test_a_handoff_that_others_wrote_is_open_if_it_is_addressed(ws: Workspace) -> None:
    by_hand(ws, "handoffs/h1.json", id="handoff-1", to_agent="qa", timestamp="2026-01-06")
    by_hand(ws, "handoffs/h2.json", id="handoff-2", timestamp="2026-01-06", reason="session end")
    states = {m.id: m.state for m in ws.list(kind="handoff") if isinstance(m, Handoff)}
    assert states == {"handoff-1": "open", "handoff-2": "done"}


# -- skills --------------------------------------------------------------------------------------


def test_a_skill_is_added_and_replaced(ws: Workspace) -> None:
    first = ws.skills.add("# Skill: Run the tests\n\n## Steps\n1. pytest\n")
    assert first.name == "run-the-tests"
    assert ws.browse.where(first.id).name == "run-the-tests.md"
    ws.skills.add(Skill.from_sections("run-the-tests", "How to test.", steps=["pytest -q"]))
    [skill] = ws.list(kind="skill")
    assert isinstance(skill, Skill)
    assert (skill.description, skill.steps) == ("How to test.", ["pytest -q"])


def test_a_skill_is_replaced_where_it_stands(ws: Workspace) -> None:
    folder = ws.layout.memory / "skills" / "deploy"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: deploy\n---\n# Old\n", encoding="utf-8")
    (folder / "notes.md").write_text("notes", encoding="utf-8")
    ws.list()
    ws.skills.add("---\nname: deploy\ndescription: D\n---\n# New\n")
    assert "# New" in (folder / "SKILL.md").read_text(encoding="utf-8")
    assert not (ws.layout.memory / "skills" / "deploy.md").exists()
    assert titles(ws) == ["New"]


# -- problems, status, stats ---------------------------------------------------------------------


def test_a_problem_says_where_why_and_what_to_do(ws: Workspace) -> None:
    file = ws.layout.memory / "semantic/facts/x.json"
    file.write_text('{\n  "statement": "A",\n  "confidence": "high"\n}', encoding="utf-8")
    [problem] = ws.care.problems()
    assert (problem.path, problem.line, problem.field) == ("semantic/facts/x.json", 3, "confidence")
    assert "number" in problem.reason
    assert problem.advice
    assert str(problem).startswith("semantic/facts/x.json:3: confidence: ")


def test_status_counts_and_says_what_next(ws: Workspace, project: Path) -> None:
    empty = ws.status()
    assert not empty.well
    assert "nothing is remembered" in empty.next[0]
    ws.remember("A")
    ws.team.hand_off("a", "b", "C")
    well = ws.status()
    assert well.well
    assert well.counts == {"fact": 1, "handoff": 1}
    assert (well.workspace, well.open_handoffs, well.git) == (str(project), 1, False)
    assert well.index_bytes > 0
    (ws.layout.memory / "semantic/facts/x.json").write_text("{", encoding="utf-8")
    by_hand(ws, "semantic/patterns.json", patterns=[{"pattern": "P"}])
    ill = ws.status()
    assert (ill.problems, ill.pending_views) == (1, ["semantic/patterns.json"])
    assert "loki-mem doctor" in ill.next[0]
    assert "loki-mem sync" in ill.next[1]


def test_stats_count_everything(ws: Workspace) -> None:
    ws.record({"goal": "A", "outcome": "failed", "agent": "eng", "timestamp": "2026-01-05"})
    ws.record({"goal": "B", "outcome": "ok", "agent": "eng"})
    ws.remember("Three words here", scope="local")
    stats = ws.browse.stats()
    assert stats.kinds == {"episode": 2, "fact": 1}
    assert stats.outcomes == {"failure": 1, "success": 1}
    assert stats.agents == {"eng": 2}
    assert stats.scopes == {"project": 2, "local": 1}
    assert stats.days == {"2026-01-05": 1, "2026-01-06": 1}
    assert stats.files == 3
    assert stats.memory_bytes > 0
    assert stats.words == 3


# -- gc and doctor -------------------------------------------------------------------------------

LITTER = [
    "memory/semantic/facts/.tmp-1-1",
    "memory/episodic/.tmp-2-2",
    "memory/archive/semantic/facts/.tmp-4-4",
    "cache/index.db.aside",
]


def test_gc_clears_litter_and_nothing_else(ws: Workspace) -> None:
    ws.remember("A")
    ws.sync()
    ws.close()
    before = tree(ws.layout.loki)
    litter = [*(ws.layout.loki / path for path in LITTER), Path(view_bases(ws.layout)) / ".tmp-3-3"]
    for path in litter:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("litter", encoding="utf-8")
    planned = ws.care.gc(dry_run=True)
    assert len(planned.files) == len(litter)
    assert planned.bytes == len(litter) * len("litter")
    assert all(path.exists() for path in litter)
    assert ws.care.gc() == planned
    assert not any(path.exists() for path in litter)
    assert tree(ws.layout.loki) == before


def test_gc_keeps_what_was_forgotten_lately(ws: Workspace, project: Path) -> None:
    ws.remember("Kept")
    fact = ws.remember("A")
    ws.forget(fact.id)
    assert ws.care.gc().files == []
    ws.restore(fact.id)
    ws.forget(fact.id)
    [copy] = (ws.layout.local / "memory" / ".forgotten").iterdir()
    os.utime(copy, (0, 0))
    assert ws.care.gc().files == [str(copy)]
    with pytest.raises(NotFound):
        ws.restore(fact.id)


def test_a_healthy_workspace_is_well(ws: Workspace) -> None:
    ws.remember("A")
    for deep in (False, True):
        diagnosis = ws.care.doctor(deep=deep)
        assert diagnosis.well
        assert diagnosis.problems == []


def test_the_doctor_names_links_that_lead_nowhere(ws: Workspace) -> None:
    by_hand(ws, "semantic/patterns/sem-1.json", pattern="P", links=[{"to": "sem-404"}])
    said = " ".join(finding.said for finding in ws.care.doctor().findings)
    assert "sem-404" in said
    assert not ws.care.doctor().well


def test_the_deep_doctor_finds_a_row_that_differs_from_its_file_and_mends_it(
    ws: Workspace,
) -> None:
    fact = ws.remember("A")
    ws.list()
    ws.index.writer().execute("UPDATE memories SET body = replace(body, '\"A\"', '\"B\"')")
    assert ws.care.doctor().well
    assert fact.id in " ".join(finding.said for finding in ws.care.doctor(deep=True).findings)
    assert not ws.care.doctor(deep=True).well
    ws.care.doctor(deep=True, fix=True)
    assert ws.care.doctor(deep=True).well
    assert titles(ws) == ["A"]


def test_the_doctor_without_fix_writes_nothing(ws: Workspace) -> None:
    ws.remember("A")
    by_hand(ws, "semantic/patterns.json", patterns=[{"pattern": "P"}])
    (ws.layout.memory / "semantic/facts/.tmp-1-1").write_text("x", encoding="utf-8")
    before = tree(ws.layout.loki)
    ws.care.doctor(deep=True)
    assert tree(ws.layout.loki) == before


def test_the_doctor_mends_what_loses_nothing(ws: Workspace) -> None:
    ws.remember("A")
    by_hand(ws, "semantic/patterns.json", patterns=[{"pattern": "P"}])
    (ws.layout.memory / "semantic/facts/.tmp-1-1").write_text("x", encoding="utf-8")
    (ws.layout.loki / ".gitignore").unlink()
    ws.care.doctor(fix=True)
    assert ws.care.doctor(deep=True).well
    assert titles(ws) == ["A", "P"]
    assert ws.status().well
    assert (ws.layout.loki / ".gitignore").exists()


# -- settings ------------------------------------------------------------------------------------


def configured(ws: Workspace, text: str) -> Workspace:
    (ws.layout.loki / "config.toml").write_text(text, encoding="utf-8")
    return Workspace.open(ws.layout.root)


def test_later_sources_win(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "store.lock_seconds"
    user = Path(os.environ["LOKI_HOME"])
    assert ws.config.values[name].source == "default"
    user.mkdir()
    (user / "config.toml").write_text("[store]\nlock_seconds = 1\n", encoding="utf-8")
    assert Workspace.open(ws.layout.root).config.get(name) == 1
    text = "format = 1\n[store]\nlock_seconds = 2\n"
    assert configured(ws, text).config.get(name) == 2
    monkeypatch.setenv("LOKI_STORE_LOCK_SECONDS", "3")
    value = Workspace.open(ws.layout.root).config.values[name]
    assert (value.value, value.source) == (3, "environment")


@pytest.mark.parametrize(
    "setting",
    [s for s in SETTINGS if not s.names_path and not s.is_personal],
    ids=lambda setting: setting.name,
)
def test_every_setting_can_be_set_and_keeps_comments(ws: Workspace, setting: Any) -> None:
    path = ws.layout.loki / "config.toml"
    path.write_text("# mine\nformat = 1  # do not touch\n", encoding="utf-8")
    value = setting.choices[-1] if setting.choices else 1 if setting.is_switch else 7
    value = str(value) if isinstance(setting.default, str) else value
    ws.home.set_config(setting.name, str(value))
    assert ws.config.values[setting.name].value == value
    assert Workspace.open(ws.layout.root).config.values[setting.name].value == value
    text = path.read_text(encoding="utf-8")
    assert "# mine" in text
    assert "# do not touch" in text
    assert setting.meaning


@pytest.mark.parametrize(
    ("name", "value"),
    [("nonsense", "1"), ("format", "2"), ("store.lock_seconds", "soon"), ("gc.keep_days", "-1")],
)
def test_a_setting_that_is_none_is_refused(ws: Workspace, name: str, value: str) -> None:
    before = (ws.layout.loki / "config.toml").read_bytes()
    with pytest.raises(InvalidConfig):
        ws.home.set_config(name, value)
    assert (ws.layout.loki / "config.toml").read_bytes() == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("format = ", "TOML"),
        ("= 1", "TOML"),
        ("[store\n", "TOML"),
        ("format = 'one'", "format"),
        ("format = true", "format"),
        ("format = -1", "format"),
        ("format = 1\n[store]\nlock_seconds = 'long'", "whole number"),
        ("format = 1\n[store]\nlock_seconds = -1", "whole number"),
        ("format = 1\n[store]\nlock_seconds = true", "whole number"),
        ("format = 1\n[store]\nlock_seconds = [1]", "whole number"),
        ("format = 1\n[store]\nlock_seconds = 2.5", "whole number"),
        ("format = 1\n[store]\nlock_seconds = inf", "whole number"),
        ("format = 1\n[store]\nlock_seconds = nan", "whole number"),
    ],
)
def test_settings_that_cannot_be_read_are_said_with_their_file(
    ws: Workspace, text: str, said: str
) -> None:
    ill = configured(ws, text)
    before = tree(ws.layout.loki)
    for use in (ill.list, ill.status, lambda: ill.remember("A"), lambda: ill.record({"goal": "G"})):
        with pytest.raises(InvalidConfig, match=said) as refused:
            use()
        assert "config.toml" in str(refused.value)
    assert tree(ws.layout.loki) == before


def test_settings_that_are_no_text_are_said(ws: Workspace) -> None:
    (ws.layout.loki / "config.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidConfig, match=r"config\.toml"):
        Workspace.open(ws.layout.root).list()


def test_a_variable_that_is_no_number_is_said_by_name(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_SYNC_SCAN_LIMIT", "many")
    with pytest.raises(InvalidConfig, match="LOKI_SYNC_SCAN_LIMIT"):
        Workspace.open(ws.layout.root).list()


def test_a_setting_that_nothing_reads_is_said(ws: Workspace) -> None:
    later = configured(ws, "format = 1\n[store]\nlock_secs = 3\n")
    later.list()
    assert [said for said in later.notices if "store.lock_secs" in said]


def test_a_table_where_a_number_belongs_does_not_break_setting_it(ws: Workspace) -> None:
    later = configured(ws, "format = 1\nstore = 3\n")
    with pytest.raises(InvalidConfig):
        later.home.set_config("store.lock_seconds", "5")


USES: dict[str, Callable[[Path], Any]] = {
    "init": Workspace.init,
    "list": lambda root: Workspace.open(root).list(),
    "status": lambda root: Workspace.open(root).status(),
    "sync": lambda root: Workspace.open(root).sync(),
    "rebuild": lambda root: Workspace.open(root).rebuild(),
    "remember": lambda root: Workspace.open(root).remember("A"),
    "record": lambda root: Workspace.open(root).record({"goal": "G"}),
    "gc": lambda root: Workspace.open(root).care.gc(),
    "doctor": lambda root: Workspace.open(root).care.doctor(fix=True),
}


@pytest.mark.parametrize("use", USES)
def test_a_newer_format_is_refused_in_words_and_nothing_is_written(project: Path, use: str) -> None:
    (project / ".loki").mkdir()
    (project / ".loki" / "config.toml").write_text("format = 2\n", encoding="utf-8")
    before = sorted(project.rglob("*"))
    with pytest.raises(NewerFormat, match=r"format 2.*newer loki-memory"):
        USES[use](project)
    assert sorted(project.rglob("*")) == before


def test_a_workspace_without_settings_is_read_and_completed_by_the_first_write(
    project: Path,
) -> None:
    memory = project / ".loki" / "memory" / "semantic" / "facts"
    memory.mkdir(parents=True)
    (memory / "x.json").write_text('{"statement": "A"}', encoding="utf-8")
    ws = Workspace.open(project)
    before = tree(project)
    assert titles(ws) == ["A"]
    assert tree(project) == before
    ws.remember("B")
    assert (project / ".loki" / "config.toml").exists()
    assert (project / ".loki" / ".gitignore").exists()


def test_a_workspace_says_which_project_it_is(ws: Workspace, project: Path) -> None:
    assert repr(ws) == f"<Workspace {str(project)!r} origin='agent'>"


RESULTS: dict[str, Callable[[Workspace], Any]] = {
    "get": lambda ws: ws.get("sem-001"),
    "list": lambda ws: ws.list(),
    "summaries": lambda ws: ws.browse.summaries(),
    "recall": lambda ws: ws.recall("return types of handlers"),
    "context": lambda ws: ws.context("Add an endpoint"),
    "consolidate": lambda ws: ws.consolidate(commit=True),
    "record": lambda ws: ws.record({"goal": "G", "timestamp": "2026-01-20T09:00:00Z"}),
    "remember": lambda ws: ws.remember("A"),
    "reject": lambda ws: ws.reject("sem-001"),
    "forget": lambda ws: ws.forget("sem-001"),
    "problems": lambda ws: ws.care.problems(),
    "status": lambda ws: ws.status(),
    "doctor": lambda ws: ws.care.doctor(),
    "sync": lambda ws: ws.sync(),
    "topics": lambda ws: ws.browse.topics(),
    "timeline": lambda ws: ws.browse.timeline(),
    "graph": lambda ws: ws.browse.graph("sem-001"),
    "commit": lambda ws: ws.history.commit(),
    "verify": lambda ws: ws.history.verify(),
    "resume_brief": lambda ws: ws.team.resume_brief("eng-001-backend"),
}


@pytest.mark.parametrize("result", RESULTS)
def test_results_can_be_pickled(example: Path, result: str) -> None:
    with Workspace.open(example) as ws:
        there = RESULTS[result](ws)
    again = pickle.loads(pickle.dumps(there))  # noqa: S301
    assert again == there
    assert vars(again) == vars(there) if hasattr(there, "__dict__") else True


def test_flushing_and_closing_leave_index_and_views_right(ws: Workspace, project: Path) -> None:
    ws.remember("Deploys happen on Fridays")
    ws.remember("I prefer tabs", scope="user")
    ws.flush()
    ws.remember("Deploys are announced")
    ws.close()
    view = json.loads((ws.layout.memory / "semantic/facts.json").read_text())
    stated = {fact["statement"] for fact in view["facts"]}
    assert stated == {"Deploys happen on Fridays", "Deploys are announced"}
    later = Workspace.open(project)
    assert [len(home.index.summaries()) for home in later.homes] == [2, 1]


def test_a_flush_that_fails_is_a_notice(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    ws.list()
    kept = ws.remember("Deploys happen on Fridays")
    with Index(ws.layout.cache / "index.db").change():
        monkeypatch.setattr("loki_memory.index.database.BUSY_SECONDS", 0.01)
        ws.index.close()
        ws.flush()
    assert [notice for notice in ws.notices if notice.startswith("stored, but index and views")]
    assert ws.get(kept.id) == kept


def test_a_valid_episode_is_not_parsed_again(ws: Workspace) -> None:
    episode = ws.sessions.valid_episode({"goal": "Add search", "timestamp": "2026-01-06T10:00:00Z"})
    assert ws.sessions.valid_episode(episode) is episode
    assert ws.record(episode) == episode
    other = Workspace(ws.home, origin="owner")
    assert other.sessions.valid_episode(episode).origin == "owner"


def test_a_change_is_read_though_the_cache_was_deleted_under_an_open_index(ws: Workspace) -> None:
    memory = ws.remember("Deploys happen on Fridays")
    ws.sync()
    shutil.rmtree(ws.layout.cache)
    ws.pin(memory.id)
    assert ws.get(memory.id).document()["pinned"]
