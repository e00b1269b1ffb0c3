"""Blame, log, bisect and revert, in real repositories."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import git

from loki_memory import Workspace
from loki_memory.errors import NoChange, NoHistory, UnknownRevision
from loki_memory.history.bisect import bisect
from loki_memory.history.blame import blame, log
from loki_memory.history.revert import revert


def commit(root: Path, message: str) -> str:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", message)
    return git(root, "rev-parse", "HEAD")


@pytest.fixture
def ws(project: Path) -> Workspace:
    git(project, "init", "-q", "-b", "main")
    return Workspace.init(project)


def met(goal: str, day: int, session: str) -> dict[str, object]:
    """An episode that met one error and got over it."""
    error = "error TS7030: Not all code paths return a value."
    return {
        "goal": goal,
        "timestamp": f"2026-01-{day:02d}T10:00:00Z",
        "agent": "eng-001",
        "session": session,
        "git_commit": "abc1234",
        "outcome": "success",
        "errors_encountered": [
            {"type": "TS7030", "message": error, "resolution": "return void explicitly"}
        ],
    }


def test_blame_names_the_episodes_agents_and_commits(ws: Workspace) -> None:
    ws.record(met("Add the list endpoint", 6, "s1"))
    first = commit(ws.layout.root, "one")
    ws.record(met("Add the create endpoint", 7, "s2"))
    second = commit(ws.layout.root, "two")
    belief = ws.list(kind="anti-pattern")[0]
    told = blame(ws, belief.id)
    assert [(s.goal, s.agent, s.session, s.commit, s.kept) for s in told.sources] == [
        ("Add the list endpoint", "eng-001", "s1", "abc1234", "live"),
        ("Add the create endpoint", "eng-001", "s2", "abc1234", "live"),
    ]
    assert [(step.commit, [s.what for s in step.shifts]) for step in told.steps] == [
        (second, ["strengthened"]),
        (first, ["learned"]),
    ]
    assert told.stated_by == ""


def test_blame_of_what_somebody_stated_names_them(ws: Workspace) -> None:
    fact = ws.remember("We deploy on Fridays", by="ana")
    assert blame(ws, fact.id).stated_by == "ana"


def test_every_belief_of_the_example_rests_on_something_that_survives(example: Path) -> None:
    ws = Workspace.open(example)
    ws.consolidate()
    for record in (*ws.list(kind="pattern"), *ws.list(kind="anti-pattern"), *ws.list(kind="skill")):
        told = blame(ws, record.id)
        alive = [source for source in told.sources if source.kept in {"live", "archived"}]
        assert told.stated_by or alive, record.id


def test_an_archived_episode_is_found_in_the_archive(ws: Workspace) -> None:
    episode = ws.record(met("Add the list endpoint", 6, "s1"))
    ws.archive(episode.id)
    belief = ws.list(kind="anti-pattern")[0]
    assert [source.kept for source in blame(ws, belief.id).sources] == ["archived"]


def test_an_episode_whose_file_was_deleted_is_found_in_history(ws: Workspace) -> None:
    episode = ws.record(met("Add the list endpoint", 6, "s1"))
    path = ws.browse.where(episode.id)
    commit(ws.layout.root, "one")
    path.unlink()
    commit(ws.layout.root, "two")
    belief = ws.list(kind="anti-pattern")[0]
    (source,) = blame(ws, belief.id).sources
    assert (source.kept, source.goal) == ("history", "Add the list endpoint")


def test_a_folder_without_git_still_tells_the_evidence(tmp_path: Path) -> None:
    ws = Workspace.init(tmp_path)
    ws.record(met("Add the list endpoint", 6, "s1"))
    told = blame(ws, ws.list(kind="anti-pattern")[0].id)
    assert len(told.sources) == 1
    assert told.steps == []
    with pytest.raises(NoHistory):
        log(ws)


def test_the_log_of_memory_passes_over_commits_of_code(ws: Workspace) -> None:
    ws.remember("Handlers return numbers")
    commit(ws.layout.root, "one")
    (ws.layout.root / "app.py").write_text("x = 1\n")
    commit(ws.layout.root, "code")
    assert [step.subject for step in log(ws)] == ["one"]


def test_the_log_of_a_belief_follows_it_into_the_archive(ws: Workspace) -> None:
    fact = ws.remember("Handlers return numbers")
    commit(ws.layout.root, "one")
    ws.correct(fact.id, statement="Handlers return text")
    commit(ws.layout.root, "two")
    ws.archive(fact.id)
    commit(ws.layout.root, "three")
    ws.restore(fact.id)
    told = [[shift.what for shift in step.shifts] for step in log(ws, fact.id)]
    assert told == [["archived"], ["corrected"], ["added"]]


def test_bisect_finds_the_commit_that_lost_a_memory(ws: Workspace) -> None:
    wanted = ws.remember("Contract tests need the database running")
    commit(ws.layout.root, "0")
    for number in range(1, 12):
        ws.remember(f"Remark number {number} about something else entirely: {number * 7919}")
        if number == 7:
            ws.correct(wanted.id, statement="Nothing of interest is said here")
        commit(ws.layout.root, str(number))
    turn = bisect(ws, "contract tests database", wanted.id, expected=True)
    assert turn.step.subject == "7"
    assert wanted.id in turn.before
    assert wanted.id not in turn.after
    assert "corrected" in [shift.what for shift in turn.step.shifts]


def test_bisect_finds_the_commit_that_brought_a_memory(ws: Workspace) -> None:
    ids = []
    for number in range(6):
        said = "Deploys are on Fridays" if number == 4 else f"Remark number {number}"
        ids.append(ws.remember(said).id)
        commit(ws.layout.root, str(number))
    assert bisect(ws, "when do we deploy?", ids[4], expected=False).step.subject == "4"


def test_bisect_says_when_nothing_changed(ws: Workspace) -> None:
    wanted = ws.remember("Contract tests need the database running")
    commit(ws.layout.root, "0")
    ws.remember("Something else")
    commit(ws.layout.root, "1")
    with pytest.raises(NoChange, match="as it should be"):
        bisect(ws, "contract tests", wanted.id, expected=True)


def test_bisect_looks_into_the_merge_that_brought_the_change(ws: Workspace) -> None:
    root = ws.layout.root
    wanted = ws.remember("Contract tests need the database running")
    commit(root, "begin")
    git(root, "switch", "-qc", "topic")
    ws.remember("A remark on the topic")
    commit(root, "topic 1")
    ws.forget(wanted.id)
    commit(root, "topic 2")
    ws.remember("Another remark on the topic")
    commit(root, "topic 3")
    git(root, "switch", "-q", "-")
    for number in range(3):  # later than all of the topic, and innocent
        ws.remember(f"Remark number {number} on the line itself")
        commit(root, f"line {number}")
    git(root, "merge", "-q", "--no-ff", "-m", "Merge topic", "topic")
    turn = bisect(ws, "contract tests", wanted.id, expected=True)
    assert turn.step.subject == "topic 2"
    assert (wanted.id in turn.before, wanted.id in turn.after) == (True, False)


def test_bisect_names_a_merge_that_did_it_itself(ws: Workspace) -> None:
    root = ws.layout.root
    wanted = ws.remember("Contract tests need the database running")
    commit(root, "begin")
    git(root, "switch", "-qc", "topic")
    ws.remember("A remark on the topic")
    commit(root, "topic")
    git(root, "switch", "-q", "-")
    git(root, "merge", "-q", "--no-ff", "--no-commit", "topic")
    ws.forget(wanted.id)
    commit(root, "Merge topic")
    assert bisect(ws, "contract tests", wanted.id, expected=True).step.subject == "Merge topic"


def test_bisect_within_given_ends(ws: Workspace) -> None:
    wanted = ws.remember("Contract tests need the database running")
    good = commit(ws.layout.root, "0")
    ws.remember("Something else")
    commit(ws.layout.root, "1")
    ws.forget(wanted.id)
    bad = commit(ws.layout.root, "2")
    turn = bisect(ws, "contract tests", wanted.id, expected=True, between=f"{good}..{bad}")
    assert turn.step.subject == "2"


def test_revert_undoes_a_consolidation_and_keeps_its_episodes(ws: Workspace) -> None:
    for day in (6, 7, 8):
        ws.record(met(f"Add endpoint number {day} to the service", day, f"s{day}"))
    commit(ws.layout.root, "episodes")
    before = {p: p.read_bytes() for p in ws.layout.memory.rglob("semantic/*/*.json")}
    ws.consolidate()
    assert set(ws.layout.memory.rglob("semantic/*/*.json")) != set(before)
    name = commit(ws.layout.root, "consolidated")
    revert(ws, name)
    assert {p: p.read_bytes() for p in ws.layout.memory.rglob("semantic/*/*.json")} == before
    assert len(ws.list(kind="episode")) == 3


def test_revert_keeps_what_changed_since(ws: Workspace) -> None:
    fact = ws.remember("Handlers return numbers")
    commit(ws.layout.root, "one")
    ws.correct(fact.id, confidence=0.5)
    name = commit(ws.layout.root, "two")
    ws.correct(fact.id, category="api")
    commit(ws.layout.root, "three")
    revert(ws, name)
    record = ws.get(fact.id)
    assert record.category == "api"  # type: ignore[attr-defined]
    assert record.confidence is None  # type: ignore[attr-defined]


def test_revert_brings_back_what_the_commit_archived(ws: Workspace) -> None:
    fact = ws.remember("Handlers return numbers")
    commit(ws.layout.root, "one")
    ws.archive(fact.id)
    name = commit(ws.layout.root, "two")
    revert(ws, name)
    assert ws.get(fact.id).title() == "Handlers return numbers"
    assert not list((ws.layout.memory / "archive").rglob("*.json"))


def test_revert_does_not_bring_back_what_was_rejected_since(ws: Workspace) -> None:
    fact = ws.remember("Handlers return numbers")
    commit(ws.layout.root, "one")
    ws.forget(fact.id)
    name = commit(ws.layout.root, "two")
    ws.reject(ws.remember("Handlers return numbers").id, why="they do not")
    assert revert(ws, name).written == []
    assert ws.list(kind="fact") == []


def test_an_unknown_run_is_named(ws: Workspace) -> None:
    ws.remember("Handlers return numbers")
    commit(ws.layout.root, "one")
    with pytest.raises(UnknownRevision, match="no-such-run"):
        revert(ws, "no-such-run")


def test_memory_on_a_branch_of_its_own_has_its_history_there(ws: Workspace) -> None:
    (ws.layout.root / "app.py").write_text("x = 1\n")
    git(ws.layout.root, "add", "app.py")
    git(ws.layout.root, "commit", "-q", "-m", "code")
    ws.home.set_config("git.mode", "branch")
    fact = ws.remember("Handlers return numbers")
    first = ws.history.commit().commit
    ws.correct(fact.id, statement="Handlers return text")
    assert [shift.what for shift in ws.history.diff().shifts] == ["corrected"]
    second = ws.history.commit().commit
    assert git(ws.layout.root, "log", "--format=%s") == "code"
    assert [step.commit for step in ws.history.log(fact.id)] == [second, first]
    assert ws.history.diff().shifts == []
    assert [hit.title for hit in ws.recall("handlers", as_of="HEAD")] == ["Handlers return text"]
    assert [hit.title for hit in ws.recall("handlers", as_of=first)] == ["Handlers return numbers"]


def test_blame_answers_for_a_lesson_of_this_machine_alone(ws: Workspace) -> None:
    commit(ws.layout.root, "begin")
    ws.record({**met("Add the list endpoint", 6, "s1"), "scope": "local", "captured": True})
    ws.consolidate()
    found = blame(ws, ws.history.candidates().shifts[0].id)
    assert [source.goal for source in found.sources] == ["Add the list endpoint"]
    assert found.steps == []


def test_blame_of_a_memory_that_came_with_thousands_of_others(ws: Workspace) -> None:
    kept = ws.remember("Service 0 listens on a port")
    facts = ws.layout.memory / "semantic" / "facts"
    for number in range(501):
        text = f'{{"id": "fact-{number:010}", "statement": "Fact {number}"}}'
        (facts / f"fact-{number:010}.json").write_text(text, encoding="utf-8")
    first = commit(ws.layout.root, "import")
    steps = blame(ws, kept.id).steps
    assert [(step.commit, [s.what for s in step.shifts]) for step in steps] == [(first, ["added"])]
