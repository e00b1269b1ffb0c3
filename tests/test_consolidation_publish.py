"""Sessions are private, lessons are shared: what is published, when, and in which form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loki_memory import Workspace
from loki_memory.install.git import install_git
from loki_memory.models import AntiPattern, Belief, Episode, Fact
from loki_memory.models.text import run_hashes
from tests.conftest import git

LESSON = "The payment tests need a running Redis, started with `make redis`, on port 6380."
GOAL = "please make the payment tests pass again because the release is waiting for them today"
STATED = {"text": LESSON, "type": "gotcha", "score": 0.5}


def session(number: int, lesson: str = LESSON, **fields: Any) -> dict[str, Any]:
    """A captured session as `ingest` writes it."""
    return {
        "goal": f"{GOAL} ({number})",
        "timestamp": f"2026-03-{number:02}T09:00:00Z",
        "session": f"session-{number}",
        "agent": "claude-code",
        "outcome": "success",
        "scope": "local",
        "captured": True,
        "statements": [{**STATED, "text": lesson}],
        **fields,
    }


@pytest.fixture
def repo(project: Path) -> Iterator[Workspace]:
    git(project, "init", "-q", "-b", "main")
    with Workspace.init(project) as workspace:
        git(project, "add", "-A")
        git(project, "commit", "-qm", "begin")
        yield workspace


def tracked(ws: Workspace) -> list[Path]:
    """The beliefs that git sees."""
    folder = ws.layout.memory / "semantic"
    return sorted(path for path in folder.rglob("*-*.json") if path.parent != folder)


def beliefs(ws: Workspace) -> list[Belief]:
    return [one for one in ws.list() if isinstance(one, Belief)]


def confirmed(ws: Workspace, *numbers: int) -> Path:
    """Record sessions that say the same; returns the file that is published."""
    ws.record([session(number) for number in numbers])
    ws.consolidate()
    (published,) = tracked(ws)
    return published


def commit_all(ws: Workspace) -> None:
    git(ws.layout.root, "add", "-A")
    git(ws.layout.root, "commit", "-qm", "memory")


# -- candidates ------------------------------------------------------------------------------------


def test_what_one_captured_session_teaches_stays_on_this_machine(repo: Workspace) -> None:
    repo.record(session(1))
    repo.consolidate()
    (fact,) = beliefs(repo)
    assert (fact.title(), fact.scope) == (LESSON, "local")
    assert tracked(repo) == []
    assert git(repo.layout.root, "status", "--porcelain") == ""


def test_a_candidate_is_recalled(repo: Workspace) -> None:
    repo.record(session(1))
    repo.consolidate()
    assert LESSON in [hit.title for hit in repo.recall("payment tests redis")]


def test_a_second_run_has_nothing_to_do(repo: Workspace) -> None:
    repo.record([session(1), session(2), session(3, "Use `make seed` before the billing tests.")])
    assert repo.consolidate().written
    again = repo.consolidate()
    assert (again.steps, again.written, again.archived) == ([], 0, 0)


# -- what is published -----------------------------------------------------------------------------


def test_what_two_sessions_confirm_is_published(repo: Workspace) -> None:
    repo.record(session(1))
    repo.consolidate()
    repo.record(session(2))
    report = repo.consolidate()
    (path,) = tracked(repo)
    assert json.loads(path.read_text())["statement"] == LESSON
    assert ("published", path.stem) in [(step.what, step.id) for step in report.steps]
    (fact,) = beliefs(repo)
    assert fact.scope == "project"


def test_two_episodes_of_one_session_confirm_nothing(repo: Workspace) -> None:
    repo.record([session(1), session(2, session="session-1")])
    repo.consolidate()
    assert tracked(repo) == []


def test_a_setting_says_in_how_many_sessions_it_must_be_met(repo: Workspace) -> None:
    repo.home.set_config("publish.sessions", "3")
    repo.record([session(1), session(2)])
    repo.consolidate()
    assert tracked(repo) == []
    repo.record(session(3))
    repo.consolidate()
    assert len(tracked(repo)) == 1


def test_a_published_file_says_of_private_episodes_what_others_need(repo: Workspace) -> None:
    published = json.loads(confirmed(repo, 1, 2).read_text())
    marks = published["evidence"]["episodes"]
    assert sorted(marks) == published["evidence"]["for"]
    first = marks[published["evidence"]["for"][0]]
    assert (first["day"], first["agent"], first["outcome"]) == (
        "2026-03-01",
        "claude-code",
        "success",
    )
    assert "session-1" not in json.dumps(published)
    assert GOAL not in json.dumps(published)


@pytest.mark.parametrize(
    "text",
    [
        "The payment tests read /home/ana/work/pay/settings.toml and ignore the environment.",
        "The payment tests send a mail to ana.lang@example.org that must not leave the machine.",
        f"The user said: {GOAL}, so the Redis on port 6380 comes first.",
    ],
    ids=["home path", "e-mail", "prompt"],
)
def test_what_names_a_person_or_quotes_a_prompt_is_not_published(
    repo: Workspace, text: str
) -> None:
    repo.record([session(1, text), session(2, text)])
    repo.consolidate()
    assert tracked(repo) == []
    assert [fact.title() for fact in beliefs(repo)] == [text]


@pytest.mark.parametrize(
    ("message", "files"),
    [
        ("main.go:12:2: exec.Command must not be called, it takes no context (noctx)", 1),
        ("redis-cli: could not connect to server on port 6380", 0),
    ],
)
def test_a_change_of_code_is_published_as_the_remedy_of_a_linters_rule(
    repo: Workspace, message: str, files: int
) -> None:
    change = "Change `exec.Command(name)` \u2192 `exec.CommandContext(ctx, name)` (main.go)"
    met = {"type": "Bash", "message": message, "resolution": change}
    repo.record([session(n, statements=[], errors_encountered=[met]) for n in (1, 2)])
    repo.consolidate()
    assert len(tracked(repo)) == files


def test_what_repeats_eight_words_of_any_prompt_is_not_published(repo: Workspace) -> None:
    asked = sorted(run_hashes(f"Please implement this plan: {LESSON} Then commit."))
    other = session(3, "Rounding in the importer must never happen before the sum is known.")
    repo.record([session(1), session(2), {**other, "prompt_hashes": asked}])
    repo.consolidate()
    assert tracked(repo) == []


def test_a_session_that_was_resumed_under_another_id_counts_once(repo: Workspace) -> None:
    copied = {**session(1), "id": "ep-2026-03-01-copied", "session": "session-1-resumed"}
    repo.record([session(1), copied])
    repo.consolidate()
    assert tracked(repo) == []
    repo.record(session(2))
    repo.consolidate()
    assert len(tracked(repo)) == 1


def test_a_candidate_that_somebody_accepts_is_published(project: Path, repo: Workspace) -> None:
    repo.record(session(1))
    repo.consolidate()
    with Workspace.open(project, origin="owner") as owner:
        (asked,) = owner.history.candidates().shifts
        owner.history.approve(asked.id)
        owner.consolidate(learn=False)
    (path,) = tracked(repo)
    assert json.loads(path.read_text())["origin"] == "owner"


def test_what_rests_on_episodes_that_were_recorded_on_purpose_is_published_at_once(
    repo: Workspace,
) -> None:
    repo.record({**session(1), "captured": False, "scope": "project"})
    repo.consolidate()
    assert len(tracked(repo)) == 1


def test_background_work_publishes_nothing(repo: Workspace) -> None:
    repo.record([session(1), session(2)])
    repo.record({**session(3, "Migrations of billing run in one transaction."), "scope": "project"})
    git(repo.layout.root, "add", "-A")
    git(repo.layout.root, "commit", "-qm", "an episode")
    repo.consolidate(reach="nothing")
    assert git(repo.layout.root, "status", "--porcelain") == ""
    repo.consolidate()
    assert len(tracked(repo)) == 2


def test_nothing_is_committed_unless_that_is_asked_for(repo: Workspace) -> None:
    before = git(repo.layout.root, "rev-parse", "HEAD")
    confirmed(repo, 1, 2)
    assert git(repo.layout.root, "rev-parse", "HEAD") == before
    repo.consolidate(commit=True)
    assert git(repo.layout.root, "rev-parse", "HEAD") != before


# -- a published lesson and its candidate ----------------------------------------------------------


def test_new_evidence_waits_for_a_commit(repo: Workspace) -> None:
    path = confirmed(repo, 1, 2)
    commit_all(repo)
    before = path.read_bytes()
    repo.record(session(3))
    repo.consolidate()
    assert path.read_bytes() == before
    repo.consolidate(learn=False, reach="all")
    assert len(json.loads(path.read_text())["evidence"]["for"]) == 3
    assert repo.consolidate().written == 0


def test_evidence_that_waits_counts_with_later_evidence(repo: Workspace) -> None:
    """A run looks only at what is new, and must not forget what it has not published."""
    confirmed(repo, 1, 2)
    commit_all(repo)
    for number in (3, 4):
        repo.record(session(number))
        repo.consolidate()
    repo.consolidate(commit=True)
    (path,) = tracked(repo)
    assert len(json.loads(path.read_text())["evidence"]["for"]) == 4


def test_a_lesson_is_shown_once(repo: Workspace) -> None:
    confirmed(repo, 1, 2)
    assert [fact.title() for fact in beliefs(repo)] == [LESSON]
    assert repo.care.problems() == []
    repo.rebuild()
    assert [fact.title() for fact in beliefs(repo)] == [LESSON]
    assert repo.care.problems() == []


def test_on_a_branch_without_its_file_a_lesson_is_a_candidate_again(repo: Workspace) -> None:
    root = repo.layout.root
    git(root, "checkout", "-q", "-b", "feature")
    confirmed(repo, 1, 2)
    commit_all(repo)
    git(root, "checkout", "-q", "main")
    repo.sync()
    (fact,) = beliefs(repo)
    assert fact.scope == "local"
    repo.consolidate()
    assert len(tracked(repo)) == 1


def test_a_lesson_that_vanished_with_a_stash_is_a_candidate_again(repo: Workspace) -> None:
    path = confirmed(repo, 1, 2)
    git(repo.layout.root, "stash", "-q", "--include-untracked")
    assert not path.exists()
    repo.sync()
    (fact,) = beliefs(repo)
    assert fact.scope == "local"
    repo.consolidate()
    assert tracked(repo) == [path]


def test_what_somebody_deleted_is_not_published_again(repo: Workspace) -> None:
    path = confirmed(repo, 1, 2)
    commit_all(repo)
    path.unlink()
    commit_all(repo)
    repo.record(session(3))
    repo.consolidate()
    assert tracked(repo) == []
    (fact,) = beliefs(repo)
    assert (fact.scope, len(fact.evidence.for_)) == ("local", 3)


def test_without_git_a_deleted_file_is_not_published_again(ws: Workspace) -> None:
    confirmed(ws, 1, 2).unlink()
    ws.record(session(3))
    ws.consolidate()
    assert tracked(ws) == []


@pytest.mark.parametrize("way", ["forget", "archive"])
def test_what_is_taken_out_leaves_no_candidate_behind(repo: Workspace, way: str) -> None:
    name = confirmed(repo, 1, 2).stem
    getattr(repo, way)(name)
    assert beliefs(repo) == []
    repo.restore(name)
    assert [fact.id for fact in beliefs(repo)] == [name]


def test_words_that_a_person_changed_stay(project: Path, repo: Workspace) -> None:
    name = confirmed(repo, 1, 2).stem
    with Workspace.open(project, origin="owner") as owner:
        owner.correct(name, statement="Start Redis with `make redis` before the payment tests.")
    repo.record(session(3))
    repo.consolidate(commit=True)
    (path,) = tracked(repo)
    found = json.loads(path.read_text())
    assert found["statement"] == "Start Redis with `make redis` before the payment tests."


# -- other clones ----------------------------------------------------------------------------------


@pytest.fixture
def clone(repo: Workspace, tmp_path: Path) -> Iterator[Workspace]:
    """A clone of the repository after two sessions, without the sessions."""
    confirmed(repo, 1, 2)
    commit_all(repo)
    git(tmp_path, "clone", "-q", str(repo.layout.root), "clone")
    with Workspace.open(tmp_path / "clone") as workspace:
        yield workspace


def test_a_clone_has_the_lesson_and_keeps_it(clone: Workspace) -> None:
    (before,) = tracked(clone)
    written = before.read_bytes()
    clone.record(session(9, "Something else: the billing tests need `make seed` first."))
    clone.consolidate(commit=True)
    assert before.read_bytes() == written
    assert clone.list(kind="episode", scope="project") == []


def test_a_clone_weighs_evidence_that_it_cannot_read(repo: Workspace, clone: Workspace) -> None:
    clone.record(session(3))
    clone.consolidate(commit=True)
    (path,) = tracked(clone)
    here, there = json.loads(path.read_text()), beliefs(repo)[0]
    assert len(here["evidence"]["for"]) == len(here["evidence"]["episodes"]) == 3
    assert here["confidence"] > (there.confidence or 0)


def test_nothing_is_said_to_be_missing_in_a_clone(clone: Workspace) -> None:
    name = tracked(clone)[0].stem
    assert [source.kept for source in clone.history.blame(name).sources] == ["private"] * 2
    assert [fault for fault in clone.history.check() if fault.check == "dangling"] == []
    links = [found for found in clone.care.doctor().findings if found.check == "links"]
    assert [found.verdict for found in links] == ["ok"]


def test_two_clones_publish_the_same_lesson_under_one_name(repo: Workspace, tmp_path: Path) -> None:
    root = repo.layout.root
    git(tmp_path, "clone", "-q", str(root), "clone")
    with Workspace.open(tmp_path / "clone") as other:
        confirmed(repo, 1, 2)
        commit_all(repo)
        confirmed(other, 3, 4)
        commit_all(other)
        assert tracked(repo)[0].name == tracked(other)[0].name
        other_root = other.layout.root
    git(root, "pull", "-q", "--no-rebase", "-X", "ours", str(other_root), "main")
    assert len(tracked(repo)) == 1


def test_evidence_of_two_clones_is_joined_by_the_merge_driver(
    repo: Workspace, clone: Workspace
) -> None:
    root = repo.layout.root
    install_git(repo)
    repo.record(session(3))
    repo.consolidate(commit=True)
    clone.record(session(4))
    clone.consolidate(commit=True)
    git(root, "pull", "-q", "--no-rebase", str(clone.layout.root), "main")
    (path,) = tracked(repo)
    evidence = json.loads(path.read_text())["evidence"]
    assert len(evidence["for"]) == len(evidence["episodes"]) == 4
    repo.consolidate()
    (fact,) = beliefs(repo)
    assert len(fact.evidence.for_) == 4


# -- sessions that git tracks ----------------------------------------------------------------------


def in_old_form(ws: Workspace) -> None:
    """A workspace from the time when captured sessions were tracked."""
    ws.record([session(number, scope="project") for number in (1, 2)])
    ws.record({"goal": "Write the manual", "outcome": "success", "timestamp": "2026-03-03"})
    ws.consolidate()
    commit_all(ws)


def episodes(ws: Workspace) -> dict[str, str]:
    return {one.goal: one.scope for one in ws.list(kind="episode") if isinstance(one, Episode)}


def test_captured_sessions_leave_git_when_that_is_asked_for(repo: Workspace) -> None:
    in_old_form(repo)
    (name,) = [path.stem for path in tracked(repo)]
    done = repo.care.gc(untrack_sessions=True)
    assert (len(done.untracked or ()), done.completed) == (2, [name])
    assert episodes(repo) == {
        f"{GOAL} (1)": "local",
        f"{GOAL} (2)": "local",
        "Write the manual": "project",
    }
    (path,) = tracked(repo)
    assert len(json.loads(path.read_text())["evidence"]["episodes"]) == 2
    changed = git(repo.layout.root, "status", "--porcelain").splitlines()
    assert len(changed) == 3
    assert repo.consolidate().written == 0


def test_a_dry_run_says_what_would_leave_git(repo: Workspace) -> None:
    in_old_form(repo)
    done = repo.care.gc(untrack_sessions=True, dry_run=True)
    assert len(done.untracked or ()) == 2
    assert git(repo.layout.root, "status", "--porcelain") == ""


# -- few files -------------------------------------------------------------------------------------

LESSONS = (
    LESSON,
    "The contract tests compare generated files, so run `make schema` before `make contract`.",
    "The upload to staging hangs without the VPN profile `ops-eu`, so connect to it first.",
)
ERRORS = (
    ("SQLITE_BUSY: database is locked", "open the database with `timeout=5`"),
    ("TS7030: Not all code paths return a value", "annotate the handler with `: void`"),
    ("EADDRINUSE: address already in use :::3000", "stop the old server with `make stop`"),
)


def changed_files(ws: Workspace) -> list[str]:
    """The files that a commit of everything would hold."""
    listed = git(ws.layout.root, "status", "--porcelain", "-uall")
    return listed.splitlines()


def test_a_phase_with_three_lessons_of_captured_sessions_changes_six_files_at_most(
    repo: Workspace,
) -> None:
    given = [{**STATED, "text": lesson} for lesson in LESSONS]
    repo.record([session(number, statements=given) for number in (1, 2)])
    repo.consolidate()
    assert len(tracked(repo)) == 3
    assert len(changed_files(repo)) <= 6


def test_a_phase_with_three_lessons_of_recorded_episodes_changes_six_files_at_most(
    repo: Workspace,
) -> None:
    """Three episodes that somebody recorded on purpose, and one file for the lesson of each."""
    for number, (message, remedy) in enumerate(ERRORS, 1):
        errors = [{"message": message, "resolution": remedy}]
        repo.record(
            {
                "goal": f"Part {number} of the release",
                "timestamp": f"2026-03-{number:02}T09:00:00Z",
                "outcome": "success",
                "errors_encountered": errors,
            }
        )
    repo.consolidate()
    assert len(repo.list(kind="anti-pattern")) == 3
    assert len(changed_files(repo)) <= 6


# -- learning at once ------------------------------------------------------------------------------

ERROR = {"type": "Bash", "message": "redis-cli: could not connect to server on port 6380"}


def test_the_next_session_has_the_lesson_of_the_last(repo: Workspace) -> None:
    met = {**ERROR, "resolution": "Redis was not running; `make redis` starts it."}
    repo.record(session(1, errors_encountered=[met]))
    assert repo.sessions.learn("session-1") == 1
    (warning,) = repo.list(kind="anti-pattern")
    assert isinstance(warning, AntiPattern)
    assert (warning.prevention, warning.scope) == (met["resolution"], "local")
    assert tracked(repo) == []


def test_learning_at_once_gives_what_a_consolidation_gives(repo: Workspace, tmp_path: Path) -> None:
    met = {**ERROR, "resolution": "Redis was not running; `make redis` starts it."}
    told = [session(number, errors_encountered=[met]) for number in (1, 2)]
    for one in told:
        repo.record(one)
        repo.sessions.learn(one["session"])
    repo.consolidate()
    with Workspace.init(tmp_path / "other") as other:
        other.record(told)
        other.consolidate()
        assert {one.id: one.document() for one in beliefs(repo)} == {
            one.id: one.document() for one in beliefs(other)
        }
    assert isinstance(next(one for one in beliefs(repo) if one.kind == "fact"), Fact)


def test_a_skill_of_captured_sessions_stays_on_this_machine(repo: Workspace) -> None:
    """Its description quotes what users asked for."""
    for number, name in enumerate(("todos", "users", "tags"), 5):
        log = [
            {"action": "read_file", "target": "openapi.yaml"},
            {"action": "write_file", "target": f"src/routes/{name}.ts"},
            {"action": "run_command", "target": "npm run types"},
            {"action": "run_command", "target": "npm test"},
        ]
        goal = f"Implement /api/{name} endpoint"
        repo.record(session(number, goal=goal, action_log=log, statements=[]))
    repo.consolidate()
    assert len(repo.list(kind="skill")) == 1
    assert git(repo.layout.root, "status", "--porcelain") == ""
    assert repo.consolidate().written == 0
