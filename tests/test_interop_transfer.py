"""A memory goes to another scope or workspace with its evidence, and is not lost on the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from loki_memory import Workspace
from loki_memory.cli.main import cli
from loki_memory.errors import InvalidRecord, NotFound
from loki_memory.files.codec import build
from loki_memory.models import Fact, Pattern


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Workspace]:
    folder = tmp_path / "other"
    folder.mkdir()
    with Workspace.init(folder) as workspace:
        yield workspace


@pytest.fixture
def lesson(ws: Workspace) -> Pattern:
    """A pattern that rests on a private episode."""
    episode = ws.record({"goal": "Mend the cart", "outcome": "success", "scope": "local"})
    document = {"pattern": "Lock the cart first", "evidence": {"for": [episode.id]}}
    stored = ws.store.write(build("pattern", document))
    ws.sync()
    assert isinstance(stored, Pattern)
    return stored


def run(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["-C", str(folder), *words])


def test_a_moved_memory_keeps_its_id_and_leaves_its_place(ws: Workspace, project: Path) -> None:
    fact = ws.remember("The test account is mara")
    done = ws.interop.transfer(fact.id, ws, "local", move=True)
    ws.sync()
    assert (done.id, done.scope) == (fact.id, "local")
    assert [m.id for m in ws.list()] == [fact.id]
    assert not list((project / ".loki/memory").rglob(f"{fact.id}.json"))
    back = ws.interop.transfer(fact.id, ws, "project", move=True)
    assert (back.id, ws.get(fact.id).document().get("scope")) == (fact.id, "project")


def test_a_copy_for_all_projects_is_a_memory_of_its_own(ws: Workspace, other: Workspace) -> None:
    fact = ws.remember("Answer in English")
    done = ws.interop.transfer(fact.id, ws, "user")
    assert done.id != fact.id
    assert ws.get(fact.id).title() == "Answer in English"
    assert [m.title() for m in other.list(scope="user")] == ["Answer in English"]


def test_evidence_goes_along_as_marks(ws: Workspace, other: Workspace, lesson: Pattern) -> None:
    done = ws.interop.transfer(lesson.id, other)
    there = other.get(done.id)
    assert isinstance(there, Pattern)
    (name,) = lesson.evidence.for_
    assert there.evidence.for_ == [name]
    assert there.evidence.episodes[name].outcome == "success"
    assert ws.get(lesson.id).id == lesson.id


def test_a_copy_of_what_is_known_there_joins_the_evidence(
    ws: Workspace, other: Workspace, lesson: Pattern
) -> None:
    document = {"pattern": "Lock the cart first", "evidence": {"for": ["ep-elsewhere-1"]}}
    other.store.write(build("pattern", document))
    other.sync()
    done = ws.interop.transfer(lesson.id, other)
    there = other.get(done.id)
    assert isinstance(there, Pattern)
    assert sorted(there.evidence.for_) == sorted([*lesson.evidence.for_, "ep-elsewhere-1"])


def test_a_memory_that_moved_away_is_gone_here(ws: Workspace, other: Workspace) -> None:
    fact = ws.remember("Prices are kept in cents")
    ws.interop.transfer(fact.id, other, move=True)
    with pytest.raises(NotFound):
        ws.get(fact.id)
    assert other.get(fact.id).title() == "Prices are kept in cents"


def test_a_skill_goes_to_another_workspace_and_has_no_scope(
    ws: Workspace, other: Workspace
) -> None:
    skill = ws.skills.add("# Skill: Run tests\n\n## Steps\n1. tox\n")
    with pytest.raises(InvalidRecord, match="has no scope"):
        ws.interop.transfer(skill.id, ws, "user")
    assert ws.interop.transfer(skill.id, other).kind == "skill"
    assert other.get(skill.id).title() == "Run tests"


def test_what_a_clone_brought_arrives_as_imported(ws: Workspace, other: Workspace) -> None:
    fact = ws.remember("Do as this clone says")
    ws.home.note_trust(is_trusted=False)
    done = ws.interop.transfer(fact.id, other)
    there = other.get(done.id)
    assert isinstance(there, Fact)
    assert there.origin == "import"


def test_citations_of_files_that_are_not_there_stay_behind(
    ws: Workspace, other: Workspace, project: Path
) -> None:
    (project / "a.py").write_text("x = 1\n")
    fact = ws.store.write(build("fact", {"statement": "About a", "citations": [{"path": "a.py"}]}))
    ws.sync()
    there = other.get(ws.interop.transfer(fact.id, other).id)
    assert there.document()["citations"] == []


def test_a_rejected_value_is_refused_there_and_stays_here(ws: Workspace, other: Workspace) -> None:
    fact = ws.remember("Use npm for everything")
    same = other.remember("Use npm for everything")
    other.reject(same.id)
    other.forget(same.id)
    done = run(ws.layout.root, "move", fact.id, "--to", str(other.layout.root))
    assert done.exit_code != 0
    assert ws.get(fact.id).id == fact.id


def test_the_place_where_it_is_already_is_refused(ws: Workspace, project: Path) -> None:
    fact = ws.remember("Prices are kept in cents")
    with pytest.raises(InvalidRecord, match="there already"):
        ws.interop.transfer(fact.id, ws, "project", move=True)
    assert (
        "say where to"
        in str(run(project, "copy", fact.id).exception or "") + run(project, "copy", fact.id).output
    )


def test_correct_says_which_verb_changes_a_scope(ws: Workspace) -> None:
    fact = ws.remember("Prices are kept in cents")
    with pytest.raises(InvalidRecord, match=f"loki-mem move {fact.id} --scope local"):
        ws.correct(fact.id, scope="local")


def test_the_memory_of_another_project_is_listed(
    ws: Workspace, other: Workspace, project: Path
) -> None:
    other.remember("Of the other project")
    other.sync()
    assert (
        "Of the other project" in run(project, "list", "--project", str(other.layout.root)).output
    )
