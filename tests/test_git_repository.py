"""The repository that a workspace lies in: found, asked quietly, and read without a checkout."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from loki_memory.errors import GitFailed, UnknownRevision
from loki_memory.git_repository import Repository, listing

Git = Callable[..., str]


@pytest.fixture
def git(project: Path) -> Git:
    """Run git in the project, which is a repository."""

    def run(*args: str, at: Path = project, **env: str) -> str:
        done = subprocess.run(
            ["git", *args],
            cwd=at,
            env={**os.environ, **env},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    run("init", "-q", "-b", "main")
    run("config", "user.name", "Ana")
    run("config", "user.email", "ana@example.org")
    return run


@pytest.fixture
def repository(git: Git, project: Path) -> Repository:
    found = Repository.find(project)
    assert found is not None
    return found


def put(project: Path, path: str, text: str) -> None:
    place = project / ".loki/memory" / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")


def save(git: Git, subject: str, when: str = "2026-01-20T12:00:00Z", body: str = "") -> str:
    git("add", "-A")
    message = f"{subject}\n\n{body}" if body else subject
    git("commit", "-q", "--allow-empty", "-m", message, GIT_COMMITTER_DATE=when)
    return git("rev-parse", "HEAD")


# -- finding -------------------------------------------------------------------------------------


def test_a_folder_without_git_has_no_repository(project: Path) -> None:
    assert Repository.find(project) is None
    with pytest.raises(GitFailed, match="no git repository"):
        Repository.open(project)


def test_a_bare_repository_holds_no_working_files(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "bare"], check=True)
    assert Repository.find(tmp_path / "bare") is None
    subprocess.run(["git", "init", "-q", tmp_path / "odd"], check=True)
    subprocess.run(["git", "-C", tmp_path / "odd", "config", "core.bare", "true"], check=True)
    assert Repository.find(tmp_path / "odd") is None


def test_without_a_git_program_there_is_no_repository(
    git: Git, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(project))
    with pytest.raises(GitFailed, match="not installed"):
        Repository.open(project)


def test_a_workspace_in_a_subfolder_knows_its_place(git: Git, project: Path) -> None:
    inner = project / "services/api"
    inner.mkdir(parents=True)
    found = Repository.find(inner)
    assert found is not None
    assert (found.root, found.prefix) == (project.resolve(), "services/api/.loki")
    assert found.memory == "services/api/.loki/memory"


def test_worktrees_share_a_common_directory_and_have_one_each(
    git: Git, project: Path, tmp_path: Path
) -> None:
    save(git, "first")
    git("worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    here, there = Repository.find(project), Repository.find(tmp_path / "tree")
    assert here is not None
    assert there is not None
    assert here.common_dir == there.common_dir == project.resolve() / ".git"
    assert here.git_dir != there.git_dir
    assert (here.branch(), there.branch()) == ("main", "other")


def test_what_a_hook_left_in_the_environment_does_not_lead_elsewhere(
    git: Git, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = save(git, "first")
    elsewhere = tmp_path / "elsewhere"
    subprocess.run(["git", "init", "-q", elsewhere], check=True)
    monkeypatch.setenv("GIT_DIR", str(elsewhere / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(elsewhere / ".git/index"))
    found = Repository.find(project)
    assert found is not None
    assert (found.root, found.head()) == (project.resolve(), head)


# -- quiet ---------------------------------------------------------------------------------------


def test_no_command_of_the_repositorys_configuration_runs(
    git: Git, project: Path, tmp_path: Path
) -> None:
    """Filters, watchers, pagers and diff programs of an unpacked repository are not trusted."""
    proof = tmp_path / "ran"
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {proof}\ncat\n", encoding="utf-8")
    evil.chmod(0o755)
    put(project, "a.json", "1")
    save(git, "first")
    put(project, "a.json", "2")
    for key in ("core.fsmonitor", "core.pager", "diff.external", "filter.x=y.clean"):
        git("config", key, str(evil))
    git("config", "filter.x=y.required", "true")
    (project / ".gitattributes").write_text('*.json "filter=x=y"\n', encoding="utf-8")
    (project / ".git/info/attributes").write_text("*.json filter=x=y\n", encoding="utf-8")
    found = Repository.find(project)
    assert found is not None
    os.utime(project / ".loki/memory/a.json", (1, 1))
    told = found.run("status", "--porcelain")
    assert b" M .loki/memory/a.json" in told
    assert b"a.json" in found.run("diff-files", "--name-only")
    assert b"a.json" in found.run("diff-index", "--raw", "HEAD")
    assert any("a.json" in entry for entry in listing(project, "status", "--porcelain", "-z"))
    found.commits(None)
    assert not proof.exists()
    git("status")  # git itself does run them: what would be no proof is
    assert proof.exists()


def test_nothing_is_fetched_unless_it_is_asked_for(
    git: Git, repository: Repository, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    subprocess.run(["git", "init", "-q", "--bare", other], check=True)
    with pytest.raises(GitFailed, match="not allowed"):
        repository.run("ls-remote", str(other))
    assert repository.reach("ls-remote", str(other)) == b""


def test_a_command_that_asks_for_a_password_fails_at_once(
    git: Git, repository: Repository, tmp_path: Path
) -> None:
    helper = tmp_path / "ask.sh"
    helper.write_text("#!/bin/sh\nread answer < /dev/tty && exit 0\nexit 7\n", encoding="utf-8")
    helper.chmod(0o755)
    git("config", "alias.ask", f"!{helper}")
    with pytest.raises(GitFailed):
        repository.run("ask")


def test_a_failure_says_what_git_complained_of(repository: Repository) -> None:
    with pytest.raises(GitFailed) as raised:
        repository.run("cat-file", "-p", "nonsense")
    assert raised.value.reason == "Not a valid object name nonsense"
    assert "git cat-file failed" in str(raised.value)


# -- where it stands -----------------------------------------------------------------------------


def test_before_the_first_commit_there_is_a_branch_and_no_head(repository: Repository) -> None:
    assert (repository.head(), repository.branch(), repository.busy()) == (None, "main", "")
    assert repository.commits(None) == []


def test_a_detached_head_is_told(git: Git, repository: Repository) -> None:
    git("checkout", "-q", "--detach", save(git, "first"))
    assert (repository.branch(), repository.busy()) == (None, "HEAD is detached")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("MERGE_HEAD", "a merge"),
        ("rebase-merge", "a rebase"),
        ("CHERRY_PICK_HEAD", "a cherry-pick"),
        ("REVERT_HEAD", "a revert"),
        ("BISECT_LOG", "a bisect"),
        ("index.lock", "the index is locked"),
    ],
)
def test_what_is_under_way_is_told(repository: Repository, name: str, told: str) -> None:
    (repository.git_dir / name).touch()
    assert repository.busy() == told


# -- the past ------------------------------------------------------------------------------------


def test_a_revision_may_be_a_name_or_a_date(git: Git, repository: Repository) -> None:
    first = save(git, "first", "2026-01-10T09:00:00Z")
    second = save(git, "second", "2026-01-20T23:30:00Z")
    assert repository.commit_of("main~1") == first
    assert repository.commit_of(second[:8]) == second
    assert repository.commit_of("2026-01-19") == first
    assert repository.commit_of("2026-01-20") == second, "a day counts to its end"
    assert repository.commit_of("2026-01-20T12:00:00Z") == first


@pytest.mark.parametrize("name", ["nonsense", "--all", "-n1", "2026-01-01", "f" * 40, ""])
def test_an_unknown_revision_is_refused(git: Git, repository: Repository, name: str) -> None:
    save(git, "first", "2026-01-10T09:00:00Z")
    with pytest.raises(UnknownRevision):
        repository.commit_of(name)


def test_the_memory_of_a_commit_is_read_without_a_checkout(
    git: Git, repository: Repository, project: Path
) -> None:
    put(project, "semantic/facts/ä b.json", "old")
    put(project, "skills/x.md", "same")
    (project / ".loki/memory/link.json").symlink_to("skills/x.md")
    first = save(git, "first")
    put(project, "semantic/facts/ä b.json", "new")
    save(git, "second")
    then, now = repository.tree(first), repository.tree("HEAD")
    assert list(then) == ["semantic/facts/ä b.json", "skills/x.md"], "a link is no memory"
    assert then["skills/x.md"] == now["skills/x.md"]
    assert repository.tree("HEAD", "skills") == {"skills/x.md": now["skills/x.md"]}
    blobs = dict(repository.blobs([*then.values(), *now.values()]))
    assert [blobs[one] for one in then.values()] == [b"old", b"same"]
    assert blobs[now["semantic/facts/ä b.json"]] == b"new"
    assert repository.blob_id(b"new") == now["semantic/facts/ä b.json"]


def test_a_commit_without_memory_has_an_empty_tree(git: Git, repository: Repository) -> None:
    assert repository.tree(save(git, "first")) == {}


def test_a_blob_that_is_missing_is_an_error_and_not_silence(repository: Repository) -> None:
    with pytest.raises(GitFailed, match="missing"):
        list(repository.blobs(["e" * 40]))


def test_commits_are_told_newest_first_with_their_trailers(
    git: Git, repository: Repository, project: Path
) -> None:
    put(project, "a.json", "1")
    first = save(git, "first", "2026-01-10T09:00:00Z")
    put(project, "b.json", "1")
    body = "learned: one\ntwo\n\nLoki-Agent: eng-1\nLoki-Run: 7m2c9k4xq1"
    second = save(git, "second: a subject", "2026-01-11T10:00:00+02:00", body)
    newest, oldest = repository.commits(None)
    assert (newest.id, newest.parents, oldest.parents) == (second, (first,), ())
    assert (newest.author, newest.email) == ("Ana", "ana@example.org")
    assert (newest.at, newest.subject) == ("2026-01-11T08:00:00Z", "second: a subject")
    assert newest.body == "learned: one\ntwo"
    assert newest.trailers == {"Loki-Agent": "eng-1", "Loki-Run": "7m2c9k4xq1"}
    assert repository.commits("HEAD~1..HEAD") == [newest]
    assert repository.commits(None, ["a.json"]) == [oldest]
    assert repository.commits(None, ["*.json"]) == [], "a path is no pattern"
