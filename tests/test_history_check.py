"""The gate for memory: each kind of fault is found, named, and has its own exit code."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from loki_memory import Workspace
from loki_memory.cli.review import check_command
from loki_memory.files.codec import encode
from loki_memory.files.layout import place
from loki_memory.history.check import CHECKS, EXIT_CODES, Fault, check, exit_code
from loki_memory.models import Episode, Fact, Link, Memory, Pattern, parse

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
EP1 = "ep-2026-01-06-0000000001"


def git(folder: Path, *args: str) -> str:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    command = ["git", "-c", "user.name=Ana", "-c", "user.email=ana@example.org", *args]
    done = subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "--allow-empty", "-m", "memory")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repo(project: Path) -> Path:
    git(project, "init", "-b", "main")
    return project


@pytest.fixture
def ws(repo: Path) -> Iterator[Workspace]:
    with Workspace.init(repo) as workspace:
        commit(repo)
        yield workspace


def write(ws: Workspace, record: Memory) -> Memory:
    target = ws.layout.resolve(place(record))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(encode(record))
    return record


def fact(name: str = "fact-a", statement: str = "The port is 80", **fields: Any) -> Fact:
    return parse(Fact, {"id": name, "statement": statement, **fields})


def pattern(**fields: Any) -> Pattern:
    return parse(Pattern, {"id": "sem-001", "pattern": "Migrate first", **fields})


def episode(**fields: Any) -> Episode:
    start = {"id": EP1, "goal": "Fix the tests", "timestamp": "2026-01-06T09:00:00Z"}
    return parse(Episode, {**start, **fields})


def found(ws: Workspace, span: str | None = None, **options: Any) -> list[tuple[str, str]]:
    return [(one.check, one.id or one.path) for one in check(ws, span, **options)]


# -- files -----------------------------------------------------------------------------------------


def test_sound_memory_has_no_fault(ws: Workspace) -> None:
    write(ws, episode())
    write(ws, pattern(source_episodes=[EP1]))
    assert check(ws, continuity_budget=2000) == []


def test_a_file_that_is_no_record(ws: Workspace) -> None:
    path = ws.layout.memory / "semantic/facts/broken.json"
    path.write_text('{"statement": ')
    (fault,) = check(ws)
    assert (fault.check, fault.path) == ("invalid", "semantic/facts/broken.json")
    assert "not valid JSON" in fault.said


@pytest.mark.parametrize("text", ['{"statement": "the token is %s"}', '{"statement": "%s'])
def test_a_secret_is_found_in_records_and_in_what_is_none(ws: Workspace, text: str) -> None:
    (ws.layout.memory / "semantic/facts/fact-s.json").write_text(text % SECRET)
    faults = check(ws)
    assert faults[0].check == "secret"
    assert faults[0].path == "semantic/facts/fact-s.json"
    assert all(SECRET not in f"{one}" for one in faults)


# -- lost beliefs ----------------------------------------------------------------------------------


def test_a_belief_whose_file_was_deleted_is_lost(ws: Workspace, repo: Path) -> None:
    write(ws, fact())
    commit(repo)
    (ws.layout.memory / "semantic/facts/fact-a.json").unlink()
    (fault,) = check(ws)
    assert (fault.check, fault.id, fault.path) == ("lost", "fact-a", "semantic/facts/fact-a.json")
    after = commit(repo)
    assert found(ws, f"{after}^!") == [("lost", "fact-a")]
    assert found(ws) == []  # that loss is behind us


def test_a_belief_that_was_archived_rejected_or_superseded_is_not_lost(
    ws: Workspace, repo: Path
) -> None:
    for name, text in (("fact-a", "A"), ("fact-b", "B"), ("fact-c", "C"), ("fact-d", "D")):
        write(ws, fact(name, text))
    write(ws, pattern(links=[{"to": "fact-d", "relation": "supersedes"}]))
    commit(repo)
    ws.archive("fact-a")
    ws.reject("fact-b")
    (ws.layout.memory / "semantic/facts/fact-b.json").unlink()
    write(ws, pattern(id="sem-002", links=[{"to": "fact-c", "relation": "supersedes"}]))
    (ws.layout.memory / "semantic/facts/fact-c.json").unlink()
    (ws.layout.memory / "semantic/facts/fact-d.json").unlink()  # its heir has not changed
    assert [one for one in found(ws) if one[0] == "lost"] == []
    (ws.layout.memory / "semantic/patterns/sem-001.json").unlink()
    lost = [one for one in found(ws) if one[0] == "lost"]
    assert lost == [("lost", "fact-d"), ("lost", "sem-001")]


def test_a_record_that_cannot_be_read_any_more_is_invalid_and_not_lost(
    ws: Workspace, repo: Path
) -> None:
    write(ws, fact())
    commit(repo)
    path = ws.layout.memory / "semantic/facts/fact-a.json"
    path.write_text(f"<<<<<<< ours\n{path.read_text()}")
    assert found(ws) == [("invalid", "semantic/facts/fact-a.json")]


# -- links and evidence ----------------------------------------------------------------------------


def test_evidence_and_links_that_lead_nowhere_dangle(ws: Workspace) -> None:
    link = {"to": "fact-z", "relation": "related_to"}
    write(ws, pattern(source_episodes=[EP1], links=[link]))
    write(ws, parse(Link, {"id": "link-1", "from": "fact-y", "to": "sem-001"}))
    said = [one.said for one in check(ws)]
    assert [one.split(",")[0] for one in said] == [
        "rests on or links to fact-y",
        f"rests on or links to {EP1}",
        "rests on or links to fact-z",
    ]
    assert {one.check for one in check(ws)} == {"dangling"}


def test_evidence_in_the_archive_does_not_dangle(ws: Workspace, repo: Path) -> None:
    write(ws, episode())
    write(ws, pattern(source_episodes=[EP1]))
    before = commit(repo)
    ws.archive(EP1)
    after = commit(repo)
    assert found(ws) == []
    assert found(ws, f"{before}..{after}") == []


def test_what_an_episode_was_shown_or_touched_need_not_be_here(ws: Workspace) -> None:
    write(ws, episode(recalled=[{"id": "fact-mine"}], files_modified=["src/app.py"]))
    assert found(ws) == []


def test_a_record_that_did_not_change_dangles_if_its_evidence_goes(
    ws: Workspace, repo: Path
) -> None:
    write(ws, episode())
    write(ws, pattern(source_episodes=[EP1]))
    before = commit(repo)
    ws.layout.resolve(place(episode())).unlink()
    after = commit(repo)
    assert found(ws, f"{before}..{after}") == [("dangling", "sem-001")]


# -- contradictions --------------------------------------------------------------------------------


def test_two_beliefs_that_contradict_each_other_and_hold_are_one_fault(ws: Workspace) -> None:
    for name, other in (("fact-a", "fact-b"), ("fact-b", "fact-a")):
        link = {"to": other, "relation": "contradicts"}
        write(ws, fact(name, f"{name} says so", status="disputed", links=[link]))
    (fault,) = check(ws)
    assert fault.check == "contradiction"
    assert "fact-a and fact-b" in fault.said


@pytest.mark.parametrize("status", ["superseded", "rejected", "retired"])
def test_a_contradiction_with_a_belief_that_was_given_up_is_settled(
    ws: Workspace, repo: Path, status: str
) -> None:
    write(ws, fact("fact-b", "The port is 81", status=status))
    before = commit(repo)
    write(ws, fact(links=[{"to": "fact-b", "relation": "contradicts"}]))
    assert found(ws) == []
    assert found(ws, before) == []


def test_a_contradiction_that_somebody_stated_counts_too(ws: Workspace) -> None:
    write(ws, fact())
    write(ws, fact("fact-b", "The port is 81"))
    link = {"id": "link-1", "from": "fact-b", "relation": "contradicts", "to": "fact-a"}
    write(ws, parse(Link, link))
    assert found(ws) == [("contradiction", "link-1")]


def test_a_disputed_belief_and_versions_to_choose_from_are_open(ws: Workspace) -> None:
    write(ws, fact(status="disputed"))
    write(ws, fact("fact-b", "B", conflicts=[{"statement": "C"}]))
    assert found(ws) == [("contradiction", "fact-a"), ("contradiction", "fact-b")]


# -- citations -------------------------------------------------------------------------------------


def test_a_citation_of_code_that_changed_or_went(ws: Workspace, repo: Path) -> None:
    (repo / "app.py").write_text("one\n")
    blob = git(repo, "hash-object", "app.py")
    write(ws, fact(citations=[{"path": "app.py", "blob": blob}, {"path": "any.py"}]))
    before = commit(repo)
    assert found(ws) == []
    (repo / "app.py").write_text("two\n")
    assert found(ws) == [("citation", "fact-a")]
    assert found(ws, f"{before}^!") == []  # as of that commit it holds
    (repo / "app.py").unlink()
    assert found(ws) == [("citation", "fact-a")]


def test_a_citation_never_leads_out_of_the_project(ws: Workspace, repo: Path) -> None:
    outside = repo.parent / "outside.txt"
    outside.write_text("secret\n")
    blob = git(repo, "hash-object", str(outside))
    places = ["../outside.txt", str(outside), "a\nb", "."]
    write(ws, fact(citations=[{"path": path, "blob": blob} for path in places]))
    assert found(ws) == [("citation", "fact-a")] * len(places)
    assert found(ws, f"{commit(repo)}^!") == [("citation", "fact-a")] * len(places)


def test_citations_in_a_workspace_below_the_top_of_its_repository(repo: Path) -> None:
    inner = repo / "api"
    inner.mkdir()
    (inner / "app.py").write_text("one\n")
    with Workspace.init(inner) as ws:
        blob = git(repo, "hash-object", "api/app.py")
        write(ws, fact(citations=[{"path": "app.py", "blob": blob}]))
        commit(repo)
        assert found(ws, "HEAD^!") == []


# -- working memory --------------------------------------------------------------------------------


def test_working_memory_that_outgrew_its_budget(ws: Workspace) -> None:
    (ws.layout.loki / "CONTINUITY.md").write_text("word " * 400)
    assert found(ws, continuity_budget=500) == []
    assert [one for one, _ in found(ws, continuity_budget=499)] == ["continuity"]


def test_working_memory_that_nobody_rendered_is_measured_as_it_would_be(ws: Workspace) -> None:
    write(ws, fact())
    assert [one for one, _ in found(ws, continuity_budget=1)] == ["continuity"]
    assert not (ws.layout.loki / "CONTINUITY.md").exists()


# -- what is looked at -----------------------------------------------------------------------------


def test_with_a_span_only_what_changed_is_looked_at(ws: Workspace, repo: Path) -> None:
    write(ws, fact("fact-old", "Old", source_episodes=["ep-2020-01-01-gone"]))
    before = commit(repo)
    write(ws, fact())
    after = commit(repo)
    assert found(ws, f"{before}..{after}") == []
    assert found(ws) == [("dangling", "fact-old")]


def test_without_git_the_whole_folder_is_looked_at(project: Path) -> None:
    with Workspace.init(project) as ws:
        write(ws, fact(source_episodes=["ep-2020-01-01-gone"]))
        ws.remember("a private note", scope="local")
        assert found(ws) == [("dangling", "fact-a")]


def test_a_shallow_clone_is_looked_at_as_a_whole_and_says_so(
    ws: Workspace, repo: Path, tmp_path: Path
) -> None:
    write(ws, fact(source_episodes=["ep-2020-01-01-gone"]))
    commit(repo)
    git(repo, "checkout", "-b", "topic")
    write(ws, pattern())
    commit(repo)
    git(repo, "checkout", "main")
    write(ws, fact("fact-b", "B"))
    commit(repo)
    shallow = tmp_path / "shallow"
    source = f"file://{repo}"
    git(tmp_path, "clone", "-q", "--depth=1", "--no-single-branch", source, str(shallow))
    git(shallow, "checkout", "-q", "topic")
    with Workspace.open(shallow) as clone:
        assert found(clone) == [("dangling", "fact-a")]
        assert clone.notices == []
        assert found(clone, "origin/main...HEAD") == [("dangling", "fact-a")]
        assert "shallow" in clone.notices[0]


def test_nothing_is_written(ws: Workspace, repo: Path) -> None:
    write(ws, fact())
    commit(repo)
    write(ws, pattern(source_episodes=[EP1]))
    before = sorted(path for path in repo.rglob("*"))
    check(ws)
    assert sorted(path for path in repo.rglob("*")) == before


# -- the command -----------------------------------------------------------------------------------


def run(folder: Path, *args: str) -> Result:
    obj = {"directory": str(folder), "json": False}
    return CliRunner().invoke(check_command, args, obj=obj, catch_exceptions=False)


def test_every_check_has_an_exit_code_of_its_own_and_an_option(ws: Workspace) -> None:
    assert len(set(EXIT_CODES.values())) == len(CHECKS)
    option = next(one for one in check_command.params if one.name == "skip")
    assert list(option.type.choices) == list(CHECKS)  # type: ignore[attr-defined]
    for name, code in EXIT_CODES.items():
        assert f"{code}  {name}" in (check_command.help or "")


def test_the_gravest_fault_decides_the_exit_code() -> None:
    faults = [Fault(name, "", "", "", "") for name in reversed(CHECKS)]
    assert exit_code([]) == 0
    for name in CHECKS:
        assert exit_code(faults) == EXIT_CODES[name]
        faults.pop()


def test_the_command_says_what_is_wrong_and_exits_with_its_code(ws: Workspace, repo: Path) -> None:
    assert (run(repo).exit_code, run(repo).output) == (0, "no fault found\n")
    write(ws, pattern(source_episodes=[EP1]))
    said = run(repo)
    assert said.exit_code == EXIT_CODES["dangling"]
    advice = f"Bring {EP1} back, or take it out of the record."
    assert said.output.splitlines() == [
        f"dangling  sem-001  rests on or links to {EP1}, which is not here",
        f"          semantic/patterns/sem-001.json: {advice}",
        "1 fault",
    ]
    assert run(repo, "--skip", "dangling").exit_code == 0
    value = json.loads(run(repo, "--json").stdout_bytes)
    assert (value["ok"], value["exit_code"]) == (False, EXIT_CODES["dangling"])
    assert value["findings"][0]["id"] == "sem-001"
