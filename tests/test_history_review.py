"""Reviewing memory in a real repository: what is compared, what is read, and what a person says."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from loki_memory import Workspace
from loki_memory.cli.review import diff_command, review_command
from loki_memory.errors import NoHistory, RejectedValue, UnknownRevision
from loki_memory.files.codec import encode
from loki_memory.files.layout import place
from loki_memory.history.belief_diff import Shift
from loki_memory.history.review import accept, diff, open_questions, reword, since_branching
from loki_memory.models import AntiPattern, Episode, Fact, Memory, Pattern, Skill, parse

EP1, EP2 = "ep-2026-01-06-0000000001", "ep-2026-01-06-0000000002"


def git(folder: Path, *args: str) -> str:
    env = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_DATE": "2026-01-20T09:00:00Z",
        "GIT_COMMITTER_DATE": "2026-01-20T09:00:00Z",
    }
    name = ("-c", "user.name=Ana", "-c", "user.email=ana@example.org")
    command = ["git", *name, *args]
    done = subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path, message: str = "memory") -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repo(project: Path) -> Path:
    git(project, "init", "-b", "main")
    git(project, "config", "user.name", "Ana")
    return project


@pytest.fixture
def ws(repo: Path) -> Iterator[Workspace]:
    with Workspace.init(repo, origin="owner") as workspace:
        commit(repo, "start")
        yield workspace


def write(ws: Workspace, record: Memory, path: str = "") -> Memory:
    target = ws.layout.resolve(path or place(record))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(encode(record))
    return record


def episode(name: str = EP1, goal: str = "Fix the tests") -> Episode:
    start = {"id": name, "goal": goal, "timestamp": "2026-01-06T09:00:00Z"}
    return parse(Episode, {**start, "outcome": "success", "agent": "eng-1"})


def pattern(**fields: Any) -> Pattern:
    start = {"id": "sem-001", "pattern": "Migrate first", "confidence": 0.6}
    return parse(Pattern, {**start, "source_episodes": [EP1], **fields})


def fact(name: str = "fact-a", statement: str = "The port is 80", **fields: Any) -> Fact:
    return parse(Fact, {"id": name, "statement": statement, **fields})


def told(ws: Workspace, span: str | None = None) -> list[tuple[str, str]]:
    return [(one.what, one.id) for one in diff(ws, span).shifts]


# -- what is compared ------------------------------------------------------------------------------


def test_without_a_span_the_working_tree_is_compared_with_the_last_commit(
    ws: Workspace, repo: Path
) -> None:
    write(ws, fact())
    commit(repo)
    assert told(ws) == []
    write(ws, fact(statement="The port is 81"))
    write(ws, pattern())  # untracked
    assert told(ws) == [("learned", "sem-001"), ("corrected", "fact-a")]
    git(repo, "add", "-A")  # staged or not is all the same
    assert told(ws) == [("learned", "sem-001"), ("corrected", "fact-a")]


def test_before_the_first_commit_everything_is_new(repo: Path) -> None:
    with Workspace.init(repo) as ws:
        write(ws, fact())
        assert told(ws) == [("added", "fact-a")]
        assert diff(ws).before == "nothing"


def test_commits_branches_and_what_a_branch_brings(ws: Workspace, repo: Path) -> None:
    write(ws, fact())
    first = commit(repo)
    git(repo, "checkout", "-b", "topic")
    write(ws, pattern())
    second = commit(repo)
    git(repo, "checkout", "main")
    write(ws, fact("fact-b", "Tests need a database"))
    commit(repo)
    assert told(ws, f"{first}..{second}") == [("learned", "sem-001")]
    assert told(ws, "topic") == [("added", "fact-b"), ("removed", "sem-001")]
    assert told(ws, "main..topic") == [("learned", "sem-001"), ("removed", "fact-b")]
    assert told(ws, "main...topic") == [("learned", "sem-001")]
    assert told(ws, "..topic") == told(ws, "main..topic")
    assert diff(ws, f"{first[:7]}..topic").after == f"topic ({second[:10]})"


def test_a_merge_commit_is_told_by_what_it_brought(ws: Workspace, repo: Path) -> None:
    git(repo, "checkout", "-b", "topic")
    write(ws, pattern())
    commit(repo)
    git(repo, "checkout", "main")
    write(ws, fact())
    commit(repo)
    git(repo, "merge", "--no-ff", "-m", "merge", "topic")
    assert told(ws, "HEAD^!") == [("learned", "sem-001")]
    assert told(ws, "topic^!") == [("learned", "sem-001")]


def test_the_first_commit_began_with_nothing(ws: Workspace, repo: Path) -> None:
    root = git(repo, "rev-list", "--max-parents=0", "HEAD")
    assert diff(ws, f"{root}^!").before == "nothing"


def test_a_merge_under_way_is_told_against_the_branch(ws: Workspace, repo: Path) -> None:
    write(ws, fact())
    commit(repo)
    git(repo, "checkout", "-b", "topic")
    write(ws, fact(statement="The port is 81"))
    commit(repo)
    git(repo, "checkout", "main")
    write(ws, fact(statement="The port is 82"))
    commit(repo)
    with pytest.raises(subprocess.CalledProcessError):
        git(repo, "merge", "topic")
    found = diff(ws)
    assert found.shifts == []
    assert [one.path for one in found.invalid] == ["semantic/facts/fact-a.json"]
    assert "conflict markers" in found.invalid[0].reason


def test_a_span_that_git_does_not_know_is_an_error(ws: Workspace, repo: Path) -> None:
    for span in ("nowhere", "nowhere..HEAD", "HEAD..--output=x", "HEAD...nowhere"):
        with pytest.raises(UnknownRevision):
            diff(ws, span)
    git(repo, "checkout", "--orphan", "other")
    commit(repo)
    with pytest.raises(UnknownRevision):
        diff(ws, "main...other")


def test_without_git_there_is_nothing_to_compare(project: Path) -> None:
    with Workspace.init(project) as ws, pytest.raises(NoHistory):
        diff(ws)


def test_a_workspace_below_the_top_of_its_repository(repo: Path) -> None:
    inner = repo / "packages" / "api"
    inner.mkdir(parents=True)
    with Workspace.init(inner) as ws:
        commit(repo)
        write(ws, fact())
        assert told(ws) == [("added", "fact-a")]


# -- what is read ----------------------------------------------------------------------------------


def test_a_record_that_moves_to_the_archive_is_archived_and_comes_back(
    ws: Workspace, repo: Path
) -> None:
    write(ws, fact())
    commit(repo)
    ws.archive("fact-a")
    assert told(ws) == [("archived", "fact-a")]
    commit(repo)
    ws.restore("fact-a")
    assert told(ws) == [("restored", "fact-a")]
    assert told(ws, "HEAD^!") == [("archived", "fact-a")]


def test_what_vanishes_from_the_archive_is_removed(ws: Workspace, repo: Path) -> None:
    write(ws, fact())
    ws.archive("fact-a")
    commit(repo)
    (ws.layout.memory / "archive/semantic/facts/fact-a.json").unlink()
    assert told(ws) == [("removed", "fact-a")]


def test_a_file_that_moves_takes_its_record_along(ws: Workspace, repo: Path) -> None:
    write(ws, fact())
    commit(repo)
    folder = ws.layout.memory / "semantic/facts"
    (folder / "fact-a.json").rename(folder / "port.json")
    assert told(ws) == []


def test_a_file_that_cannot_be_read_is_named_and_loses_no_belief(ws: Workspace, repo: Path) -> None:
    write(ws, fact())
    commit(repo)
    (ws.layout.memory / "semantic/facts/fact-a.json").write_text('{"statement": 7')
    found = diff(ws)
    assert found.shifts == []
    assert [one.path for one in found.invalid] == ["semantic/facts/fact-a.json"]


def test_rendered_views_are_no_change(ws: Workspace, repo: Path) -> None:
    write(ws, fact())
    ws.sync()
    assert (ws.layout.memory / "semantic/facts.json").exists()
    commit(repo)
    assert told(ws) == []


def test_taking_over_a_tracked_view_of_the_old_layout_changes_no_belief(repo: Path) -> None:
    memory = repo / ".loki/memory/semantic"
    memory.mkdir(parents=True)
    entry = pattern(origin="agent").document()
    (memory / "patterns.json").write_text(json.dumps({"patterns": [entry]}))
    commit(repo)
    with Workspace.init(repo) as ws:
        ws.sync()
        assert (memory / "patterns/sem-001.json").exists()
        assert told(ws) == []
    entry["confidence"] = 0.9
    git(repo, "rm", "-q", "--cached", ".loki/memory/semantic/patterns.json")
    (memory / "patterns/sem-001.json").write_text(json.dumps(entry))
    with Workspace.open(repo) as ws:
        assert told(ws) == [("strengthened", "sem-001")]


def test_a_name_that_is_no_text_is_no_memory(ws: Workspace, repo: Path) -> None:
    folder = os.fsencode(ws.layout.memory / "semantic/facts")
    with open(folder + b"/fact-\xff.json", "wb") as file:
        file.write(encode(fact()))
    assert told(ws) == []
    commit(repo)
    assert told(ws, "HEAD^!") == []


def test_private_memory_takes_no_part(ws: Workspace) -> None:
    ws.remember("my own note", scope="local")
    assert told(ws) == []


def test_a_secret_in_a_file_is_not_told_any_further(ws: Workspace) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    write(ws, fact(statement=f"The token is {secret}"))
    assert secret not in json.dumps(diff(ws).shifts)
    assert len(diff(ws).shifts) == 1


@pytest.mark.parametrize("where", ["among the changes", "unchanged", "archived", "oddly named"])
def test_each_shift_names_the_episodes_behind_it(ws: Workspace, repo: Path, where: str) -> None:
    odd = "episodic/2026-01-06/first.json" if where == "oddly named" else ""
    write(ws, episode(), odd)
    if where == "archived":
        ws.archive(EP1)
    if where != "among the changes":
        commit(repo)
    write(ws, pattern())
    found = diff(ws)
    assert found.shifts[0].caused_by == (EP1,)
    assert found.evidence[EP1] == (EP1, "Fix the tests", "success", "eng-1")
    last = commit(repo)
    assert diff(ws, f"{last}^!").evidence == found.evidence


def test_an_episode_that_is_nowhere_is_left_out(ws: Workspace) -> None:
    write(ws, pattern())
    found = diff(ws)
    assert (found.shifts[0].caused_by, found.evidence) == ((EP1,), {})


# -- the commands ----------------------------------------------------------------------------------


def run(command: Any, folder: Path, *args: str) -> Result:
    obj = {"directory": str(folder), "json": False}
    return CliRunner().invoke(command, args, obj=obj, catch_exceptions=False)


def test_diff_prints_one_line_per_belief_with_what_caused_it(ws: Workspace, repo: Path) -> None:
    write(ws, episode())
    write(ws, pattern(conditions=["CI"]))
    said = run(diff_command, repo).output.splitlines()
    assert said[1:] == [
        "learned  1",
        "  sem-001  Migrate first  (0.60)",
        "      when: CI",
        f"      from {EP1} Fix the tests: success, by eng-1",
        "recorded  1",
        f"  {EP1}  Fix the tests",
        "      outcome: success",
        "      agent: eng-1",
        "dates, keys and scores of what is new are left out; `loki-mem diff --all` shows them",
    ]
    everything = run(diff_command, repo, "--all").output
    assert f"  {EP1}  Fix the tests" in everything
    assert "      timestamp: 2026-01-06T09:00:00Z" in everything


def test_a_remedy_and_a_link_are_said_once(ws: Workspace, repo: Path) -> None:
    lesson = {
        "what_fails": "Calling the API twice",
        "prevention": "Wait for the first answer",
        "resolutions": [
            {"do": "Wait for the first answer", "for": [EP1]},
            {"do": "Ask once", "for": [EP1]},
        ],
        "links": [{"to": "sem-001", "relation": "related_to"}],
        "source_episodes": [EP1],
        "tags": ["api"],
    }
    write(ws, episode())
    write(ws, pattern())
    write(ws, parse(AntiPattern, {"id": "anti-1", **lesson}))
    said = run(diff_command, repo).output
    assert said.count("Wait for the first answer") == 1
    assert "do: Ask once" in said
    assert said.count("sem-001") == 2  # itself, and the link to it
    assert "tags: api" in said


def test_a_field_that_is_new_to_an_old_memory_is_always_shown(ws: Workspace, repo: Path) -> None:
    fact = ws.remember("Deploys need a tag")
    commit(repo)
    path = repo / ".loki/memory/semantic/facts" / f"{fact.id}.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "importance": 0.9}))
    assert "importance" in run(diff_command, repo).output


def test_diff_as_json_and_as_a_comment(ws: Workspace, repo: Path) -> None:
    write(ws, episode())
    write(ws, pattern())
    value = json.loads(run(diff_command, repo, "--format", "json").stdout_bytes)
    assert value["counts"] == {"learned": 1, "recorded": 1}
    assert value["shifts"][0]["id"] == "sem-001"
    assert value["evidence"][0]["goal"] == "Fix the tests"
    comment = run(diff_command, repo, "--format", "markdown").output
    assert comment.startswith("<!-- loki-mem review -->\n### Memory: 1 pattern learned, 1 episode")


def test_nothing_to_tell_is_said(ws: Workspace, repo: Path) -> None:
    assert run(diff_command, repo).output.splitlines()[-1] == "no belief changed"


def test_a_terminal_finds_nothing_to_obey_in_a_diff(ws: Workspace, repo: Path) -> None:
    write(ws, fact(statement="red \x1b[31m and\nforged  line"))
    assert "\x1b" not in run(diff_command, repo).output
    assert "red <U+001B>[31m and forged line" in run(diff_command, repo).output


def test_review_begins_where_the_branch_left_the_default_branch(ws: Workspace, repo: Path) -> None:
    left = commit(repo)
    assert since_branching(ws) == left
    git(repo, "checkout", "-b", "topic")
    write(ws, fact())
    commit(repo)
    write(ws, pattern(status="candidate"))
    assert since_branching(ws) == left
    said = run(review_command, repo).output
    assert "learned  pattern\n  sem-001  Migrate first  (0.60)\n      status: candidate" in said
    assert "added  fact\n  fact-a  The port is 80" in said


def test_review_without_a_terminal_refuses_to_ask(ws: Workspace, repo: Path) -> None:
    said = CliRunner().invoke(
        review_command, ["--interactive"], obj={"directory": str(repo), "json": False}
    )
    assert said.exit_code == 2
    assert "no terminal" in said.output


def test_review_goes_up_to_the_working_tree(ws: Workspace, repo: Path) -> None:
    obj = {"directory": str(repo), "json": False}
    said = CliRunner().invoke(review_command, ["HEAD^..HEAD"], obj=obj)
    assert said.exit_code == 2
    assert "name one commit" in said.output


# -- a person's word -------------------------------------------------------------------------------


def asked(ws: Workspace) -> list[Shift]:
    return open_questions(ws)[1]


def test_what_was_accepted_is_the_persons_and_not_asked_again(ws: Workspace) -> None:
    write(ws, pattern(origin="agent"))
    assert [one.id for one in asked(ws)] == ["sem-001"]
    accept(ws, "sem-001")
    stored = ws.get("sem-001").document()
    assert stored["origin"] == "owner"
    assert [one["by"] for one in stored["reviewed"]] == ["Ana"]
    assert asked(ws) == []
    assert accept(ws, "sem-001").document() == stored


def test_a_correction_after_a_review_is_asked_again(ws: Workspace, repo: Path) -> None:
    write(ws, fact())
    accept(ws, "fact-a")
    commit(repo)
    ws.correct("fact-a", statement="The port is 81")
    assert [(one.what, one.id) for one in asked(ws)] == [("corrected", "fact-a")]


def test_an_agent_that_accepts_is_noted_and_not_trusted_more(repo: Path) -> None:
    with Workspace.init(repo, origin="agent") as ws:
        write(ws, pattern(origin="import"))
        stored = accept(ws, "sem-001").document()
        assert (stored["origin"], stored["reviewed"][0]["origin"]) == ("import", "agent")


def test_a_skill_keeps_its_reviews_in_its_metadata(ws: Workspace) -> None:
    ws.skills.add(Skill.from_sections("deploy", "Deploy", steps=["push"]))
    assert [one.id for one in asked(ws)] == ["skill-deploy"]
    accept(ws, "skill-deploy")
    assert asked(ws) == []
    skill = ws.get("skill-deploy")
    assert isinstance(skill, Skill)
    assert skill.metadata["loki-reviewed"].startswith("Ana 20")
    assert skill.steps == ["push"]


def test_other_words_are_a_correction_that_is_accepted(ws: Workspace) -> None:
    write(ws, fact())
    reword(ws, "fact-a", "The port is 8080")
    stored = ws.get("fact-a").document()
    assert stored["statement"] == "The port is 8080"
    assert stored["history"][0]["was"] == {"statement": "The port is 80"}
    assert asked(ws) == []


PROGRAM = """\
import sys
from loki_memory.cli.review import review_command
review_command(["--interactive"], obj={"directory": sys.argv[1], "json": False})
"""


def on_a_terminal(folder: Path, typed: str, **env: str) -> str:
    """What `review --interactive` shows to someone who types this."""
    ours, theirs = pty.openpty()
    os.write(ours, typed.encode())
    environment = {**os.environ, "LOKI_NOW": "2026-01-21T09:00:00Z", **env}
    for name in ("EDITOR", "VISUAL"):
        if name not in env:
            environment.pop(name, None)
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True
    ) as process:
        os.close(theirs)
        shown = b"".join(iter(lambda: _read(ours), b""))
        process.wait()
    os.close(ours)
    return shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # nobody is at the other end any more
        return b""


def test_a_person_steps_through_new_beliefs(ws: Workspace, repo: Path) -> None:
    write(ws, episode())
    write(ws, pattern())
    write(ws, fact("fact-a", "Tests need a database"))
    write(ws, fact("fact-b", "The port is 80"))
    write(ws, fact("fact-c", "Deploy on Fridays"))
    shown = on_a_terminal(repo, "v\na\ne\nTests need Postgres\nr\na guess\ns\n")
    assert "1 of 4" in shown
    assert f"from {EP1} Fix the tests: success, by eng-1" in shown
    assert "1 accepted, 1 edited, 1 rejected, 1 skipped" in shown
    with Workspace.open(repo) as after:
        assert after.get("sem-001").document()["reviewed"] == [
            {"at": "2026-01-21", "by": "Ana", "origin": "owner"}
        ]
        assert after.get("fact-a").title() == "Tests need Postgres"
        assert after.get("fact-b").document()["status"] == "rejected"
        with pytest.raises(RejectedValue, match="a guess"):
            after.remember("the port is 80")
        assert [one.id for one in asked(after)] == ["fact-c"]


def test_a_person_may_stop_half_way_and_use_an_editor(
    ws: Workspace, repo: Path, tmp_path: Path
) -> None:
    write(ws, fact("fact-a", "The port is 80"))
    write(ws, fact("fact-b", "Tests need a database"))
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nprintf 'The port is 8080' > \"$1\"\n")
    editor.chmod(0o755)
    shown = on_a_terminal(repo, "e\nq\n", EDITOR=str(editor))
    assert "1 edited" in shown
    with Workspace.open(repo) as after:
        assert after.get("fact-a").title() == "The port is 8080"
        assert [one.id for one in asked(after)] == ["fact-b"]


def test_no_candidate_is_said_as_such(repo: Path) -> None:
    Workspace.init(repo)

    said = run(review_command, repo, "--candidates").output

    assert said.splitlines()[-1].startswith("no candidate waits; `loki-mem ingest`")
