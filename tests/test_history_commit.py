"""Commits of memory: in every state of a repository, nothing of the user's is disturbed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from loki_memory import Workspace
from loki_memory.errors import InvalidConfig
from loki_memory.git_repository import Repository
from loki_memory.history import plumbing_commit as history
from loki_memory.history.commit import commit
from loki_memory.history.inline_commit import Committed
from loki_memory.history.plumbing_commit import FILE, File, Message, Seal, stage, standing, written

Act = Callable[["Project"], object]
NOW = "2026-01-20T10:00:00Z"
SEAL = Seal(NOW)


class Project:
    """A repository with a person's work in it, staged and not, and a workspace."""

    def __init__(self, root: Path, *options: str) -> None:
        self.root = root
        root.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main", *options)
        self.git("config", "user.name", "Ana")
        self.git("config", "user.email", "ana@example.org")
        (root / "app.py").write_text("one\n", encoding="utf-8")
        (root / "lib.py").write_text("lib\n", encoding="utf-8")

    def git(self, *args: str, check: bool = True) -> str:
        command = ["git", *args]
        done = subprocess.run(
            command, cwd=self.root, check=check, capture_output=True, text=True, timeout=300
        )
        return done.stdout

    def begin(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "first")

    def edit(self) -> None:
        """Staged, edited again after that, and untracked."""
        (self.root / "app.py").write_text("two\n", encoding="utf-8")
        self.git("add", "app.py")
        (self.root / "app.py").write_text("three\n", encoding="utf-8")
        (self.root / "notes.txt").write_text("mine\n", encoding="utf-8")

    def others(self) -> list[str]:
        """Everything that is not memory, as git and the disk have it."""
        outside = ("--", ".", ":(exclude).loki")
        return [
            self.git("diff", *outside),
            self.git("diff", "--cached", *outside),
            self.git("status", "--porcelain", *outside),
            self.git("ls-files", "--stage", *outside),
            *(path.read_text() for path in sorted(self.root.glob("*.*")) if path.is_file()),
        ]

    def committed(self, rev: str = "HEAD") -> list[str]:
        return self.git("ls-tree", "-r", "--name-only", rev, "--", ".loki/memory").splitlines()

    def log(self) -> list[str]:
        return self.git("log", "--format=%s", check=False).splitlines()


@pytest.fixture
def made(project: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("LOKI_NOW", NOW)
    made = Project(project)
    made.begin()
    return made


@pytest.fixture
def workspace(made: Project) -> Iterator[Workspace]:
    with Workspace.init(made.root) as workspace:
        workspace.remember("Deploys happen on Fridays")
        yield workspace


def conflict(made: Project) -> None:
    """Two branches that changed one line."""
    made.git("switch", "-q", "-c", "other")
    (made.root / "app.py").write_text("theirs\n", encoding="utf-8")
    made.git("commit", "-qam", "theirs")
    made.git("switch", "-q", "main")
    (made.root / "app.py").write_text("ours\n", encoding="utf-8")
    made.git("commit", "-qam", "ours")


# -- what is committed ---------------------------------------------------------------------------


def test_a_commit_takes_memory_and_leaves_all_else(made: Project, workspace: Workspace) -> None:
    made.edit()
    before = made.others()
    done = commit(workspace)
    assert made.others() == before
    assert made.git("rev-parse", "HEAD").strip() == done.commit
    assert made.log() == ["memory: 1 fact added", "first"]
    changed = made.git("show", "--name-only", "--format=", "HEAD").splitlines()
    assert changed == list(done.paths)
    assert all(path.startswith(".loki/") for path in changed)
    assert made.git("status", "--porcelain", "--", ".loki") == ""
    assert commit(workspace) == Committed(branch="main"), "a second time there is nothing to do"


def test_a_stray_file_among_memory_is_left_to_its_owner(
    made: Project, workspace: Workspace
) -> None:
    workspace.remember("Cents are integers")
    (workspace.layout.memory / "semantic" / "scratch.py").write_text("print()\n")
    (workspace.layout.memory / "notes.txt").write_text("mine\n")
    done = commit(workspace)
    assert not [path for path in done.paths if path.endswith((".txt", ".py"))]
    assert [kept.path.rpartition("/")[2] for kept in done.kept_out] == ["notes.txt", "scratch.py"]
    assert "?? .loki/memory/notes.txt" in made.git("status", "--porcelain")


def test_what_is_derived_or_private_is_not_committed(made: Project, workspace: Workspace) -> None:
    workspace.remember("Only here", scope="local")
    workspace.continuity(goal="Deploy")
    workspace.sync()
    commit(workspace)
    inside = made.git("ls-tree", "-r", "--name-only", "HEAD", "--", ".loki").splitlines()
    named = [path for path in inside if "/witness/" not in path]
    assert [path.rpartition("/")[0] for path in named] == [
        ".loki",
        ".loki",
        ".loki/memory/semantic/facts",
    ]


def test_removed_memory_is_removed_by_the_next_commit(made: Project, workspace: Workspace) -> None:
    fact = workspace.remember("Never mind")
    commit(workspace)
    workspace.forget(fact.id)
    done = commit(workspace)
    assert f".loki/memory/semantic/facts/{fact.id}.json" in done.paths
    assert not any(fact.id in path for path in made.committed())


def test_a_memory_that_the_user_staged_is_committed_as_it_lies_on_disk(
    made: Project, workspace: Workspace
) -> None:
    fact = workspace.remember("Tests need a database")
    made.git("add", ".loki")
    workspace.correct(fact.id, confidence=0.25)
    commit(workspace)
    path = f".loki/memory/semantic/facts/{fact.id}.json"
    assert made.git("show", f"HEAD:{path}") == (made.root / path).read_text(encoding="utf-8")
    assert made.git("status", "--porcelain") == ""


def test_a_staged_edit_that_was_taken_back_on_disk_is_no_change(
    made: Project, workspace: Workspace
) -> None:
    commit(workspace)
    (made.root / ".loki/config.toml").write_text("format = 1 # edited\n", encoding="utf-8")
    made.git("add", ".loki")
    made.git("show", "HEAD:.loki/config.toml")
    kept = made.git("show", "HEAD:.loki/config.toml")
    (made.root / ".loki/config.toml").write_text(kept, encoding="utf-8")
    assert commit(workspace).paths == ()


def test_names_that_need_quoting_are_committed(made: Project, workspace: Workspace) -> None:
    odd = '.loki/memory/skills/deploy/a "b" \\ é\n.md'
    (made.root / odd).parent.mkdir(parents=True)
    (made.root / odd).write_text("asset", encoding="utf-8")
    assert odd in commit(workspace).paths
    assert made.git("show", f"HEAD:{odd}") == "asset"
    assert made.git("status", "--porcelain") == ""


def test_a_script_of_a_skill_stays_executable(made: Project, workspace: Workspace) -> None:
    script = made.root / ".loki/memory/skills/deploy/run.sh"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\n", encoding="utf-8")
    script.chmod(0o755)
    commit(workspace)
    assert made.git("ls-tree", "HEAD", "--", str(script)).startswith("100755")
    assert made.git("status", "--porcelain") == ""


# -- what it says --------------------------------------------------------------------------------


def test_a_commit_says_what_changed_who_did_it_and_which_run(
    made: Project, workspace: Workspace
) -> None:
    workspace.record({"goal": "Fix the build", "outcome": "success", "agent": "eng-1"})
    done = commit(workspace)
    repository = Repository.find(made.root)
    assert repository is not None
    newest = repository.commits("HEAD~1..HEAD")[0]
    assert newest.subject == done.subject == "memory: 1 fact added"
    assert "Deploys happen on Fridays" in newest.body
    assert newest.trailers["Loki-Agent"] == "eng-1"
    assert len(newest.trailers["Loki-Run"]) == 10
    assert newest.trailers["Loki-Head"].count(":") == 2
    assert (newest.author, newest.at) == ("Ana", NOW)


def test_a_subject_and_an_agent_may_be_given(made: Project, workspace: Workspace) -> None:
    commit(workspace, "qa-1", subject="what we\nlearned")
    assert made.log()[0] == "what we learned"
    assert "Loki-Agent: qa-1\n" in made.git("log", "-1", "--format=%B")


def test_a_dry_run_writes_nothing(made: Project, workspace: Workspace) -> None:
    def files() -> list[Path]:
        return sorted(path for path in made.root.rglob("*") if not path.name.endswith("lock"))

    before = files()
    done = commit(workspace, dry_run=True)
    assert done.subject == "memory: 1 fact added"
    assert done.paths
    assert (made.log(), files()) == (["first"], before)
    assert made.git("status", "--porcelain") == "?? .loki/\n"


# -- what is kept out ----------------------------------------------------------------------------

SECRET = "AKIA" + "QYLPMN5HHHFPZAM2"
MARKED = "<<<<<<< HEAD\nformat = 1\n=======\nformat = 2\n>>>>>>> other\n"


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        ("memory/semantic/facts/fact-bad.json", "{", "is not valid JSON"),
        ("memory/semantic/facts/fact-less.json", '{"confidence": 1}', "statement is missing"),
        ("memory/semantic/facts/fact-mid.json", MARKED, "conflict"),
        ("memory/semantic/facts/fact-key.json", f'{{"statement": "use {SECRET}"}}', "secret"),
        ("memory/semantic/facts/fact-two.json", f'{{"kind": "{SECRET}"}}', ""),
        ("memory/skills/deploy/SKILL.md", MARKED, "conflict"),
        ("memory/skills/deploy/run.sh", f"export KEY={SECRET}", "secret"),
        ("notes.toml", MARKED, "conflict"),
    ],
)
def test_what_git_should_not_keep_stays_out_and_is_named(
    made: Project, workspace: Workspace, path: str, text: str, reason: str
) -> None:
    bad = made.root / ".loki" / path
    bad.parent.mkdir(parents=True, exist_ok=True)
    bad.write_text(text, encoding="utf-8")
    done = commit(workspace)
    assert [kept.path for kept in done.kept_out] == [f".loki/{path}"]
    assert reason in done.kept_out[0].reason
    assert SECRET not in done.kept_out[0].reason
    assert done.commit, "the rest is committed"
    assert f".loki/{path}" not in made.git("ls-tree", "-r", "--name-only", "HEAD")
    assert bad.read_text(encoding="utf-8") == text
    bad.write_text("", encoding="utf-8") if bad.suffix == ".toml" else bad.unlink()
    assert commit(workspace).kept_out == ()


def test_a_record_that_broke_keeps_its_last_good_version(
    made: Project, workspace: Workspace
) -> None:
    fact = workspace.remember("Tests need a database")
    commit(workspace)
    path = workspace.browse.where(fact.id)
    good = path.read_text(encoding="utf-8")
    path.write_text(MARKED, encoding="utf-8")
    assert commit(workspace).kept_out
    assert made.git("show", f"HEAD:{path.relative_to(made.root)}") == good


def test_links_and_repositories_within_memory_stay_out(made: Project, workspace: Workspace) -> None:
    (made.root / ".loki/memory/skills").mkdir(exist_ok=True)
    (made.root / ".loki/memory/skills/link.md").symlink_to("/etc/hostname")
    inner = made.root / ".loki/memory/skills/inner"
    subprocess.run(["git", "init", "-q", inner], check=True)
    (inner / "SKILL.md").write_text("x", encoding="utf-8")
    kept = dict(commit(workspace).kept_out)
    assert kept == {
        ".loki/memory/skills/inner/": "is a git repository of its own",
        ".loki/memory/skills/link.md": "is no ordinary file",
    }


# -- states in which it is committed -------------------------------------------------------------


def failing_hooks(made: Project) -> None:
    for name in ("pre-commit", "commit-msg", "post-commit", "reference-transaction"):
        hook = made.root / ".git/hooks" / name
        hook.write_text("#!/bin/sh\ntouch hook-ran.txt\nexit 1\n", encoding="utf-8")
        hook.chmod(0o755)


def unavailable_key(made: Project) -> None:
    made.git("config", "commit.gpgSign", "true")
    made.git("config", "user.signingKey", "0000000000000000")
    made.git("config", "gpg.program", "false")


def nobody(made: Project) -> None:
    made.git("config", "--unset", "user.name")
    made.git("config", "--unset", "user.email")


def windows_line_ends(made: Project) -> None:
    made.git("config", "core.autocrlf", "true")


def unmerged_code(made: Project) -> None:
    """A stash that did not apply leaves unmerged files, and nothing that is under way."""
    made.git("checkout", "-q", "HEAD", "--", "app.py")
    (made.root / "app.py").write_text("stashed\n", encoding="utf-8")
    made.git("stash", "-q")
    (made.root / "app.py").write_text("meanwhile\n", encoding="utf-8")
    made.git("commit", "-qam", "meanwhile")
    made.git("stash", "pop", "-q", check=False)
    assert "UU app.py" in made.git("status", "--porcelain")


def intended_file(made: Project) -> None:
    made.git("add", "-N", "notes.txt")


def a_filter_that_fails(made: Project) -> None:
    made.git("config", "filter.broken.clean", "false")
    made.git("config", "filter.broken.required", "true")
    (made.root / ".git/info/attributes").write_text("/.loki/** filter=broken\n", encoding="utf-8")


@pytest.mark.parametrize(
    "state",
    [
        failing_hooks,
        unavailable_key,
        nobody,
        windows_line_ends,
        unmerged_code,
        intended_file,
    ],
)
def test_a_commit_is_made_and_nothing_else_changes(
    made: Project, workspace: Workspace, state: Act
) -> None:
    made.edit()
    state(made)
    before, earlier = made.others(), made.log()
    done = commit(workspace)
    assert done.commit, done.reason
    assert made.others() == before
    assert made.log() == ["memory: 1 fact added", *earlier]
    assert not (made.root / "hook-ran.txt").exists()
    assert made.git("status", "--porcelain", "--", ".loki") == ""


def test_bytes_are_committed_as_they_are_whatever_filters_say(
    made: Project, workspace: Workspace
) -> None:
    a_filter_that_fails(made)
    done = commit(workspace)
    assert done.commit, done.reason
    path = next(path for path in done.paths if "/facts/" in path)
    assert made.git("cat-file", "-p", f"HEAD:{path}") == (made.root / path).read_text()


def test_where_git_knows_no_user_the_commit_is_by_the_program(
    made: Project, workspace: Workspace
) -> None:
    nobody(made)
    commit(workspace)
    assert made.git("log", "-1", "--format=%an <%ae>") == "loki-mem <loki-mem@localhost>\n"


def test_the_first_commit_of_a_repository_may_be_one_of_memory(project: Path) -> None:
    made = Project(project)
    made.git("add", "app.py")
    with Workspace.init(project) as workspace:
        workspace.remember("Deploys happen on Fridays")
        before = made.others()
        assert commit(workspace).commit
    assert made.others() == before
    assert made.log() == ["memory: 1 fact added"]
    assert made.git("status", "--porcelain") == "A  app.py\n?? lib.py\n"


def test_memory_follows_the_branch_of_a_worktree(made: Project, tmp_path: Path) -> None:
    made.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    with Workspace.init(tmp_path / "tree") as workspace:
        workspace.remember("Deploys happen on Fridays")
        assert commit(workspace).branch == "other"
    assert made.committed("other")
    assert made.committed("main") == []


def test_memory_in_a_submodule_is_committed_there(made: Project, tmp_path: Path) -> None:
    other = Project(tmp_path / "other")
    other.begin()
    allowed = ("-c", "protocol.file.allow=always")
    made.git(*allowed, "submodule", "--quiet", "add", str(other.root), "sub")
    made.git("commit", "-qm", "submodule")
    with Workspace.init(made.root / "sub") as workspace:
        workspace.remember("Deploys happen on Fridays")
        assert commit(workspace).commit
    inner = made.git("-C", "sub", "log", "--format=%s").splitlines()
    assert inner == ["memory: 1 fact added", "first"]
    assert made.log() == ["submodule", "first"]


def test_a_workspace_in_a_subfolder_is_committed_with_its_path(made: Project) -> None:
    (made.root / "services/api").mkdir(parents=True)
    with Workspace.init(made.root / "services/api") as workspace:
        workspace.remember("Deploys happen on Fridays")
        done = commit(workspace)
    assert done.commit
    assert all(path.startswith("services/api/.loki/") for path in done.paths)
    assert made.git("status", "--porcelain") == ""


def test_a_repository_with_long_ids_is_committed_to(project: Path) -> None:
    made = Project(project, "--object-format=sha256")
    made.begin()
    with Workspace.init(project) as workspace:
        workspace.remember("Deploys happen on Fridays")
        assert len(commit(workspace).commit) == 64
    assert made.git("status", "--porcelain") == ""
    made.git("fsck", "--strict")


def test_what_was_committed_survives_a_check_of_the_repository(
    made: Project, workspace: Workspace
) -> None:
    commit(workspace)
    made.git("gc", "-q", "--prune=now")
    made.git("fsck", "--strict")
    assert made.committed()


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is missing")
@pytest.mark.usefixtures("workspace")
def test_f39_gits_index_is_flushed_before_it_gets_its_name(made: Project, tmp_path: Path) -> None:
    """An index that a power cut empties takes along what its user had staged."""
    log = tmp_path / "calls"
    traced = ("strace", "-f", "-y", "-e", "trace=fsync,rename", "-o", str(log))
    call = (*traced, sys.executable, "-m", "loki_memory", "commit")
    subprocess.run(call, cwd=made.root, check=True, capture_output=True)
    lines = [line for line in log.read_text(errors="replace").splitlines() if "/index" in line]
    renamed = next(at for at, line in enumerate(lines) if "rename(" in line)
    assert any("fsync(" in line and "index" in line for line in lines[:renamed]), lines


def test_commits_never_leave_so_many_packs_that_git_begins_to_tidy_up(made: Project) -> None:
    repository = Repository.find(made.root)
    assert repository is not None
    commits = [repository.head() or ""]
    for number in range(45):
        files = {".loki/memory/a.json": File(FILE, b"%d" % number)}
        commits.append(written(repository, files, commits[-1:], Message("m"), SEAL))
    made.git("update-ref", "refs/heads/main", commits[-1])
    assert len(list((made.root / ".git/objects/pack").glob("*.pack"))) == 40
    assert made.git("rev-list", "--count", "HEAD") == "46\n"
    made.git("fsck", "--strict")


# -- states in which it is not -------------------------------------------------------------------


class State(NamedTuple):
    """A state that a commit would disturb: how to get there, what is said, how to leave it."""

    enter: Act
    reason: str
    leave: Act


def merging(made: Project) -> None:
    conflict(made)
    made.git("merge", "-q", "other", check=False)


def rebasing(made: Project) -> None:
    conflict(made)
    made.git("rebase", "-q", "other", check=False)


def picking(made: Project) -> None:
    conflict(made)
    made.git("cherry-pick", "other", check=False)


def reverting(made: Project) -> None:
    conflict(made)
    (made.root / "app.py").write_text("later\n", encoding="utf-8")
    made.git("commit", "-qam", "later")
    made.git("revert", "--no-edit", "HEAD~1", check=False)


def bisecting(made: Project) -> None:
    conflict(made)
    made.git("bisect", "start", "HEAD", "HEAD~1")


def aborting(what: str) -> Act:
    return lambda made: made.git(what, "--abort")


STATES = {
    "merge": State(merging, "a merge is under way", aborting("merge")),
    "rebase": State(rebasing, "a rebase is under way", aborting("rebase")),
    "cherry-pick": State(picking, "a cherry-pick is under way", aborting("cherry-pick")),
    "revert": State(reverting, "a revert is under way", aborting("revert")),
    "bisect": State(bisecting, "a bisect is under way", lambda m: m.git("bisect", "reset")),
    "detached": State(
        lambda made: made.git("switch", "-q", "--detach"),
        "HEAD is detached",
        lambda made: made.git("switch", "-q", "main"),
    ),
    "locked": State(
        lambda made: (made.root / ".git/index.lock").touch(),
        "the index is locked",
        lambda made: (made.root / ".git/index.lock").unlink(),
    ),
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_nothing_is_committed_where_it_would_disturb_and_the_next_run_catches_up(
    made: Project, workspace: Workspace, state: State
) -> None:
    state.enter(made)
    head, index = made.git("rev-parse", "HEAD"), (made.root / ".git/index").read_bytes()
    done = commit(workspace)
    assert (done.commit, done.reason) == ("", state.reason)
    assert made.git("rev-parse", "HEAD") == head
    assert (made.root / ".git/index").read_bytes() == index
    assert not (made.root / ".loki/memory/witness").exists(), "nothing tracked was touched"
    state.leave(made)
    assert commit(workspace).commit
    assert made.committed()


def test_without_git_memory_is_written_and_the_reason_told(ws: Workspace) -> None:
    ws.remember("Deploys happen on Fridays")
    assert commit(ws).reason == "there is no git repository here"


def test_where_the_lock_cannot_be_taken_the_reason_is_told(
    made: Project, workspace: Workspace
) -> None:
    local = workspace.layout.local
    local.rename(local.with_name("aside"))
    local.touch()
    assert str(local) in commit(workspace).reason
    assert made.log() == ["first"]


def test_without_a_git_program_the_reason_is_told(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit(workspace).reason == "git is not installed"


def test_memory_that_git_ignores_is_told_apart_from_memory_that_did_not_change(
    made: Project, workspace: Workspace
) -> None:
    (made.root / ".gitignore").write_text(".loki/\n", encoding="utf-8")
    assert commit(workspace).reason == "git ignores .loki/memory"


def test_memory_is_not_committed_where_that_is_turned_off(
    made: Project, workspace: Workspace
) -> None:
    workspace.home.set_config("git.mode", "off")
    assert commit(workspace).reason == "git.mode is off"
    assert made.log() == ["first"]


def test_a_mode_that_does_not_exist_is_refused(workspace: Workspace) -> None:
    with pytest.raises(InvalidConfig, match="inline, branch or off"):
        workspace.home.set_config("git.mode", "sideways")


def test_another_commit_under_way_is_waited_for_and_then_told(workspace: Workspace) -> None:
    from loki_memory.files.lock import locked

    workspace.home.set_config("store.lock_seconds", "0")
    with locked(workspace.layout.local / "commit.lock", 0):
        assert commit(workspace).reason == "another process is committing or writing"
    assert commit(workspace).commit


# -- others at the same time ---------------------------------------------------------------------


def test_a_branch_that_moved_meanwhile_is_not_overwritten(made: Project) -> None:
    repository = Repository.find(made.root)
    assert repository is not None
    path = ".loki/memory/a.json"
    (made.root / path).parent.mkdir(parents=True)
    (made.root / path).write_text("memory", encoding="utf-8")
    files = {path: File(FILE, b"memory")}
    at = standing(repository, ".loki")
    made.git("commit", "-q", "--allow-empty", "-m", "meanwhile")
    assert history.commit(repository, at, files, Message("ours"), SEAL) is None
    assert made.log() == ["meanwhile", "first"]
    at = standing(repository, ".loki")
    assert history.commit(repository, at, files, Message("ours"), SEAL)
    assert made.log() == ["ours", "meanwhile", "first"]
    assert made.git("status", "--porcelain") == ""


def test_killed_before_the_branch_moved_the_next_commit_takes_it(
    made: Project, workspace: Workspace
) -> None:
    repository = Repository.find(made.root)
    assert repository is not None
    stage(repository, [".loki/config.toml"])
    assert made.git("status", "--porcelain", "--", ".loki/config.toml").startswith("A ")
    assert ".loki/config.toml" in commit(workspace).paths
    assert made.git("status", "--porcelain") == ""


WRITER = """\
import sys
from loki_memory import Workspace
from loki_memory.history.commit import commit
with Workspace.open(sys.argv[1]) as workspace:
    for number in range(4):
        workspace.remember(f"Statement {number} of writer {sys.argv[2]}")
        done = commit(workspace)
        assert done.commit or not done.reason, done
"""


def test_processes_that_commit_at_once_lose_nothing(made: Project, workspace: Workspace) -> None:
    commit(workspace)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, made.root, str(number)], env=environment)
        for number in range(4)
    ]
    assert [writer.wait(timeout=300) for writer in writers] == [0] * 4
    commit(workspace)
    facts = [path for path in made.committed() if "/facts/" in path]
    assert len(facts) == 1 + 16
    assert made.git("status", "--porcelain") == ""
    assert made.git("log", "--merges", "--format=%h") == ""
