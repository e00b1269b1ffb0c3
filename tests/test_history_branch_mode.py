"""Memory on a branch of its own: merged file by file, exchanged without force, and never lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from loki_memory import Workspace
from loki_memory.errors import GitFailed, NotOnABranch
from loki_memory.git_repository import Repository
from loki_memory.history import memory_branch
from loki_memory.history.branch_mode import pull, push
from loki_memory.history.commit import commit
from loki_memory.history.memory_branch import REF, Tree, chosen, joined, restore
from loki_memory.history.plumbing_commit import (
    FILE,
    NOTHING,
    File,
    Message,
    Seal,
    TreeEntry,
    written,
)

NOW = "2026-01-20T10:00:00Z"
SEAL = Seal(NOW)
PLACE = ".loki/memory/semantic/facts"


def git(root: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout


def begin(root: Path) -> Path:
    root.mkdir(exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", "Ana")
    git(root, "config", "user.email", "ana@example.org")
    (root / "app.py").write_text("code\n", encoding="utf-8")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    return root


# -- the decision for each path ------------------------------------------------------------------


def side(**files: str) -> Tree:
    return {f".loki/memory/{name}.json": TreeEntry(FILE, blob) for name, blob in files.items()}


def test_who_changed_a_path_has_it() -> None:
    base = side(same="1", ours="1", theirs="1", gone="1")
    found = chosen(base, side(same="1", ours="2", theirs="1", gone="1"), side(same="1", ours="1",
        theirs="2", new="1"))  # fmt: skip
    assert found.both == []
    assert found.taken == {**side(theirs="2", new="1"), ".loki/memory/gone.json": NOTHING}


def test_equal_changes_are_one_change_and_different_ones_need_a_look_inside() -> None:
    found = chosen(side(a="1", b="1"), side(a="2", b="2", c="1"), side(a="2", b="3", c="2"))
    assert found.taken == {}
    assert found.both == [".loki/memory/b.json", ".loki/memory/c.json"]


def test_what_one_side_removed_and_the_other_changed_stays() -> None:
    assert chosen(side(a="1"), {}, side(a="2")).taken == side(a="2")
    assert chosen(side(a="1"), side(a="2"), {}).taken == {}


def test_what_one_side_archived_and_the_other_changed_goes() -> None:
    archived = {".loki/memory/archive/a.json": TreeEntry(FILE, "1")}
    gone = {".loki/memory/a.json": NOTHING}
    assert chosen(side(a="1"), side(a="2"), archived).taken == {**gone, **archived}
    assert chosen(side(a="1"), archived, side(a="2")).taken == {}


# -- merges of commits ---------------------------------------------------------------------------


@pytest.fixture
def repository(project: Path) -> Repository:
    found = Repository.find(begin(project))
    assert found is not None
    return found


def store(repository: Repository, parent: str, **files: str | None) -> str:
    """A commit with these files changed."""
    changed = {
        f"{PLACE}/{name}.json": File(FILE, text.encode()) if text is not None else None
        for name, text in files.items()
    }
    return written(repository, changed, [parent] if parent else [], Message("m"), SEAL)


def both(path: str, base: bytes | None, ours: bytes, theirs: bytes) -> bytes | None:
    """Say all three; or nothing, if a side is broken."""
    return None if b"broken" in ours + theirs else b"%b|%b|%b" % (base or b"", ours, theirs)


def contents(repository: Repository, commit: str) -> dict[str, str]:
    found = memory_branch.tree(repository, commit)
    blobs = dict(repository.blobs(entry.blob for entry in found.values()))
    return {
        path.removeprefix(f"{PLACE}/").removesuffix(".json"): blobs[entry.blob].decode()
        for path, entry in found.items()
    }


def test_two_lines_become_one_commit_with_both_as_parents(repository: Repository) -> None:
    base = store(repository, "", a="1", b="1", c="1")
    ours, theirs = store(repository, base, a="2", b="2"), store(repository, base, b="3", c=None)
    done = joined(repository, ours, theirs, both, Message("merged"), SEAL)
    assert contents(repository, done.commit) == {"a": "2", "b": "1|2|3"}
    assert (done.merged, done.kept) == ((f"{PLACE}/b.json",), ())
    assert repository.commits(f"{done.commit}~1..{done.commit}")[0].parents == (ours, theirs)


def test_a_line_that_has_the_other_already_is_taken_as_it_is(repository: Repository) -> None:
    base = store(repository, "", a="1")
    ahead = store(repository, base, a="2")
    for ours, theirs in ((base, ahead), (ahead, base), (ahead, ahead), ("", ahead), (ahead, "")):
        assert joined(repository, ours, theirs, both, Message("m"), SEAL).commit == ahead


def test_histories_that_share_nothing_are_merged_from_nothing(repository: Repository) -> None:
    ours, theirs = store(repository, "", a="1", b="2"), store(repository, "", b="3", c="4")
    done = joined(repository, ours, theirs, both, Message("m"), SEAL)
    assert contents(repository, done.commit) == {"a": "1", "b": "|2|3", "c": "4"}


def test_what_cannot_be_merged_stays_as_ours_and_is_named(repository: Repository) -> None:
    base = store(repository, "", a="1")
    ours, theirs = store(repository, base, a="broken"), store(repository, base, a="2")
    done = joined(repository, ours, theirs, both, Message("m"), SEAL)
    assert contents(repository, done.commit) == {"a": "broken"}
    assert (done.merged, done.kept) == ((), (f"{PLACE}/a.json",))


# -- a workspace on a branch of its own ----------------------------------------------------------


@pytest.fixture
def ana(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setenv("LOKI_GIT_MODE", "branch")
    with Workspace.init(begin(project)) as workspace:
        git(project, "add", ".loki/config.toml", ".loki/.gitignore")
        git(project, "commit", "-qm", "workspace")
        yield workspace


@pytest.fixture
def remote(ana: Workspace, tmp_path: Path) -> Path:
    """A place to push to, which has Ana's code."""
    place = tmp_path / "remote.git"
    root = ana.layout.root
    git(root, "init", "-q", "--bare", "-b", "main", str(place))
    git(root, "remote", "add", "origin", str(place))
    git(root, "push", "-q", "origin", "main")
    return place


def clone(remote: Path, place: Path, name: str) -> Workspace:
    git(remote.parent, "clone", "-q", str(remote), str(place))
    git(place, "config", "user.name", name)
    git(place, "config", "user.email", f"{name}@example.org")
    return Workspace.open(place)


def statements(workspace: Workspace) -> list[str]:
    return sorted(memory.title() for memory in workspace.list(kind="fact"))


def test_a_commit_goes_to_the_branch_and_nowhere_else(ana: Workspace) -> None:
    root = ana.layout.root
    ana.remember("Deploys happen on Fridays")
    index = (root / ".git/index").read_bytes()
    done = commit(ana)
    assert (done.branch, done.subject) == ("loki-memory", "memory: 1 fact added")
    assert git(root, "rev-parse", REF).strip() == done.commit
    assert (root / ".git/index").read_bytes() == index
    assert git(root, "log", "--format=%s", "main") == "workspace\nfirst\n"
    listed = git(root, "ls-tree", "-r", "--name-only", REF).splitlines()
    assert all(path.startswith(".loki/memory/") for path in listed)
    assert not any(path.endswith(("facts.json", ".lock")) for path in listed)
    assert ".loki/memory" not in git(root, "status", "--porcelain", "-uall")
    again = commit(ana)
    assert (again.commit, again.reason, again.paths) == ("", "", ())


@pytest.mark.parametrize("state", ["MERGE_HEAD", "index.lock", "detached"])
def test_what_goes_on_in_the_users_branch_is_no_obstacle(ana: Workspace, state: str) -> None:
    ana.remember("Deploys happen on Fridays")
    if state == "detached":
        git(ana.layout.root, "switch", "-q", "--detach")
    else:
        (ana.layout.root / ".git" / state).touch()
    assert commit(ana).commit


def test_changes_and_removals_follow(ana: Workspace) -> None:
    first, second = ana.remember("One"), ana.remember("Two")
    commit(ana)
    ana.correct(first.id, confidence=0.5)
    ana.forget(second.id)
    done = commit(ana)
    assert {f"{PLACE}/{first.id}.json", f"{PLACE}/{second.id}.json"} <= set(done.paths)
    listed = git(ana.layout.root, "ls-tree", "-r", "--name-only", REF)
    assert first.id in listed
    assert second.id not in listed


def test_switching_the_branch_of_the_code_leaves_memory_where_it_is(ana: Workspace) -> None:
    ana.remember("Deploys happen on Fridays")
    commit(ana)
    git(ana.layout.root, "switch", "-q", "-c", "other")
    git(ana.layout.root, "clean", "-qfd")
    assert statements(ana) == ["Deploys happen on Fridays"]


def test_files_that_were_cleaned_away_come_back_from_the_branch(ana: Workspace) -> None:
    ana.remember("Deploys happen on Fridays")
    commit(ana)
    before = {p: p.read_bytes() for p in (ana.layout.memory / "semantic/facts").iterdir()}
    ana.close()
    git(ana.layout.root, "clean", "-qfdx")
    assert not ana.layout.memory.exists()
    with Workspace.open(ana.layout.root) as again:
        assert restore(again.home) > 0
        assert statements(again) == ["Deploys happen on Fridays"]
        assert {p: p.read_bytes() for p in before} == before
        assert commit(again).paths == (), "and nothing counts as removed"
        assert restore(again.home) == 0


def test_worktrees_do_not_undo_each_others_changes(ana: Workspace, tmp_path: Path) -> None:
    ana.remember("Known to both")
    commit(ana)
    git(ana.layout.root, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    with Workspace.init(tmp_path / "tree") as other:
        commit(other)
        assert statements(other) == ["Known to both"]
        other.remember("Learned over there")
        ana.remember("Learned here")
        commit(other)
        commit(ana)
        assert statements(ana) == ["Known to both", "Learned here", "Learned over there"]
        commit(other)
        assert statements(other) == statements(ana)
    assert git(ana.layout.root, "rev-list", "--merges", "--count", REF) == "1\n"


def test_memory_that_was_tracked_with_the_code_is_told(ana: Workspace) -> None:
    ana.remember("Deploys happen on Fridays")
    git(ana.layout.root, "add", "-A")
    git(ana.layout.root, "commit", "-qm", "inline")
    assert "git rm -r -q --cached .loki/memory" in commit(ana).notes[0]


def test_this_pull_and_push_are_for_memory_on_a_branch(
    ana: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_GIT_MODE", "inline")
    ana.home.__dict__.pop("config", None)
    for exchange in (pull, push):
        with pytest.raises(NotOnABranch, match="git push"):
            exchange(ana)


# -- with others ---------------------------------------------------------------------------------


def test_nothing_that_only_looks_like_memory_is_taken_from_others(
    ana: Workspace, remote: Path
) -> None:
    """A change that was staged in a clone's `.txn` would be carried out, if it came through."""
    repository = Repository.find(ana.layout.root)
    assert repository is not None
    names = (".txn/intent.json", "semantic/facts.json")
    bad = {f".loki/memory/{name}": File(FILE, b"[]") for name in names}
    good = {".loki/memory/skills/deploy/run.sh": File("100755", b"#!/bin/sh\n")}
    made = written(repository, {**bad, **good}, [], Message("theirs"), SEAL)
    git(remote, "fetch", "-q", str(ana.layout.root), f"{made}:{REF}")
    pull(ana)
    assert not any((ana.layout.memory / name).exists() for name in names)
    script = ana.layout.memory / "skills/deploy/run.sh"
    assert os.access(script, os.X_OK)
    assert commit(ana).paths == ()


def test_what_one_pushes_the_other_has_after_a_pull(
    ana: Workspace, remote: Path, tmp_path: Path
) -> None:
    ana.remember("Deploys happen on Fridays")
    assert push(ana).what == "pushed to origin"
    with clone(remote, tmp_path / "ben", "ben") as ben:
        assert pull(ben).commit == git(remote, "rev-parse", REF).strip()
        assert statements(ben) == ["Deploys happen on Fridays"]
        assert pull(ben).what == "up to date"


def test_two_who_learned_apart_end_with_the_same(
    ana: Workspace, remote: Path, tmp_path: Path
) -> None:
    shared = ana.remember("Tests need a database")
    push(ana)
    with clone(remote, tmp_path / "ben", "ben") as ben:
        pull(ben)
        ana.remember("Ana's lesson")
        ana.correct(shared.id, importance=0.9)
        ben.remember("Ben's lesson")
        ben.correct(shared.id, category="testing")
        push(ana)
        done = push(ben)
        assert done.merged == (f"{PLACE}/{shared.id}.json",)
        pull(ana)
        assert statements(ana) == statements(ben)
        assert len(statements(ana)) == 3
        for workspace in (ana, ben):
            document = workspace.get(shared.id).document()
            assert (document["importance"], document["category"]) == (0.9, "testing")
    assert git(remote, "log", "--format=%s", "main").count("\n") == 2, "the code has not moved"


class Killed(BaseException):
    """The process ends here, as by `kill -9`: nothing may catch it."""


def test_a_pull_that_is_killed_at_any_call_of_git_is_completed_by_the_next(
    ana: Workspace, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, left = Repository.run, 0

    def cut_off(self: Repository, *args: str, **options: Any) -> bytes:
        nonlocal left
        left -= 1
        if left == 0:
            raise Killed
        return run(self, *args, **options)

    with clone(remote, tmp_path / "ben", "Ben") as ben:
        for number in range(1, 100):
            ana.remember(f"The first thing of round {number}")
            push(ana)
            left = number
            with monkeypatch.context() as patched:
                patched.setattr(Repository, "run", cut_off)
                with suppress(Killed):
                    pull(ben)
            ana.remember(f"The second thing of round {number}")
            push(ana)
            pull(ben)
            assert statements(ben) == statements(ana), f"killed at call {number}"
            if left > 0:
                break
        else:
            raise AssertionError("a pull that is not killed was never tried")


def test_histories_that_began_apart_are_joined(
    ana: Workspace, remote: Path, tmp_path: Path
) -> None:
    with clone(remote, tmp_path / "ben", "ben") as ben:
        ana.remember("Ana's lesson")
        ben.remember("Ben's lesson")
        commit(ben)
        push(ana)
        push(ben)
        pull(ana)
        assert statements(ana) == statements(ben) == ["Ana's lesson", "Ben's lesson"]


def test_who_is_overtaken_while_pushing_merges_and_tries_again(
    ana: Workspace, remote: Path, tmp_path: Path
) -> None:
    """A push of Ben's arrives between Ana's fetch and her push: his clone's hook is the timer."""
    with clone(remote, tmp_path / "ben", "ben") as ben:
        ben.remember("Ben's lesson")
        commit(ben)
        hook = remote / "hooks/update"
        hook.write_text(
            f"#!/bin/sh\nmv hooks/update hooks/done\nunset $(git rev-parse --local-env-vars)\n"
            f"cd {ben.layout.root} && git push -q origin {REF}:{REF}\nexit 1\n",
            encoding="utf-8",
        )
        hook.chmod(0o755)
        ana.remember("Ana's lesson")
        assert push(ana).what == "pushed to origin"
        assert statements(ana) == ["Ana's lesson", "Ben's lesson"]
        assert (remote / "hooks/done").exists()
        pull(ben)
        assert statements(ben) == statements(ana)


def test_a_remote_that_refuses_is_an_error_and_nothing_is_forced(
    ana: Workspace, remote: Path
) -> None:
    ana.remember("Ana's lesson")
    hook = remote / "hooks/update"
    hook.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    hook.chmod(0o755)
    with pytest.raises(GitFailed):
        push(ana)
    assert git(remote, "for-each-ref", REF) == ""
    assert statements(ana) == ["Ana's lesson"]


def test_a_remote_that_is_gone_is_an_error_and_memory_is_committed(
    ana: Workspace, remote: Path
) -> None:
    ana.remember("Ana's lesson")
    shutil.rmtree(remote)
    with pytest.raises(GitFailed):
        pull(ana)
    assert git(ana.layout.root, "log", "--format=%s", REF) == "memory: 1 fact added\n"


@pytest.mark.parametrize("name", ["--upload-pack=touch ran", "-h", "nowhere"])
def test_a_remote_is_a_name_and_never_an_option(ana: Workspace, remote: Path, name: str) -> None:
    with pytest.raises(GitFailed):
        pull(ana, name)
    assert not os.path.lexists(ana.layout.root / "ran")


def test_the_lock_of_a_git_that_was_killed_stops_nothing(ana: Workspace) -> None:
    ana.remember("Contract tests need the database")
    ana.history.commit()
    lock = ana.layout.root / ".git" / "loki-memory.index.lock"
    lock.write_bytes(b"")
    os.utime(lock, (1_700_000_000, 1_700_000_000))
    ana.remember("Releases wait for the migration")
    ana.history.commit()
    assert not lock.exists()
