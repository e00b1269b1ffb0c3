"""Pull with uncommitted memory in the worktree: nothing is refused, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from test_consolidation_publish import session

from loki_memory import Workspace
from loki_memory.errors import GitFailed, PullStopped
from loki_memory.git_repository import Repository
from loki_memory.history import pull as pull_module
from loki_memory.history.refusals import would_be_refused
from loki_memory.models import Belief, Fact
from tests.conftest import git


class Clone:
    """One of two clones of a bare repository, with its workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root
        git(root, "config", "user.name", root.name)
        git(root, "config", "user.email", f"{root.name}@example.org")
        self.ws = Workspace.init(root)

    def publish(self, *numbers: int) -> Belief:
        """Meet the same lesson in sessions of this clone, and publish it."""
        self.ws.record([session(number) for number in numbers])
        self.ws.consolidate()
        (belief,) = [m for m in self.ws.list(kind="fact") if m.id == self.ids()[0]]
        assert isinstance(belief, Belief)
        return belief

    def ids(self) -> list[str]:
        folder = self.ws.layout.memory / "semantic" / "facts"
        return sorted(path.stem for path in folder.glob("fact-*.json"))

    def path(self) -> Path:
        return self.ws.layout.memory / "semantic" / "facts" / f"{self.ids()[0]}.json"

    def share(self) -> None:
        """Commit everything and push it."""
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", "memory")
        git(self.root, "push", "-q", "origin", "HEAD")


@pytest.fixture
def clones(tmp_path: Path) -> Iterator[tuple[Clone, Clone]]:
    hub = tmp_path / "hub.git"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(hub))
    git(tmp_path, "clone", "-q", str(hub), "ana")
    ana = Clone(tmp_path / "ana")
    (ana.root / "app.py").write_text("one\ntwo\nthree\n")
    git(ana.root, "switch", "-q", "-C", "main")
    ana.share()
    git(ana.root, "branch", "-q", "--set-upstream-to=origin/main")
    git(tmp_path, "clone", "-q", str(hub), "ben")
    ben = Clone(tmp_path / "ben")
    yield ana, ben
    ana.ws.close()
    ben.ws.close()


def test_two_clones_that_publish_the_same_lesson_have_it_once_with_all_evidence(
    clones: tuple[Clone, Clone],
) -> None:
    ana, ben = clones
    first, second = ana.publish(1, 2), ben.publish(3, 4)
    assert first.id == second.id
    ana.share()
    git(ben.root, "fetch", "-q")
    assert would_be_refused(ben.root) == [f".loki/memory/semantic/facts/{first.id}.json"]
    assert "loki-mem pull" in " ".join(ben.ws.status().next)
    assert [f.verdict for f in ben.ws.care.doctor().findings if f.check == "pull"] == ["warning"]
    done = ben.ws.history.pull()
    assert done.merged == (f"semantic/facts/{first.id}.json",)
    assert not done.kept
    joined = ben.ws.get(first.id)
    assert isinstance(joined, Belief)
    assert joined.rests_on() == first.rests_on() | second.rests_on()
    assert would_be_refused(ben.root) == []
    assert git(ben.root, "status", "--porcelain").splitlines() == [
        f"M .loki/memory/semantic/facts/{first.id}.json"
    ]


def test_the_users_other_changes_stay_as_they_are(clones: tuple[Clone, Clone]) -> None:
    ana, ben = clones
    ana.publish(1, 2)
    ana.share()
    ben.publish(3, 4)
    (ben.root / "app.py").write_text("one\ntwo\nthree\nfour\n")
    (ben.root / "notes.txt").write_text("mine\n")
    (ben.root / "staged.txt").write_text("staged\n")
    git(ben.root, "add", "staged.txt")
    ben.ws.history.pull()
    changed = {line.strip() for line in git(ben.root, "status", "--porcelain").splitlines()}
    assert {"M app.py", "?? notes.txt", "A  staged.txt"} <= changed


def test_memory_that_nobody_else_changed_comes_back_byte_for_byte(
    clones: tuple[Clone, Clone],
) -> None:
    ana, ben = clones
    fact = ben.ws.remember("The staging port is 8081")
    ben.share()
    git(ana.root, "pull", "-q")
    (ana.root / "app.py").write_text("other\n")
    ana.share()
    ben.ws.correct(fact.id, category="ports")
    new = ben.ws.remember("Prices are kept in cents")
    before = {name: ben.ws.browse.where(name).read_bytes() for name in (fact.id, new.id)}
    done = ben.ws.history.pull()
    assert (done.merged, done.kept) == ((), ())
    assert done.what == "pulled: nothing new in memory"
    assert {name: ben.ws.browse.where(name).read_bytes() for name in before} == before
    assert (ben.root / "app.py").read_text() == "other\n"


def test_both_changes_of_a_committed_record_are_in(clones: tuple[Clone, Clone]) -> None:
    ana, ben = clones
    fact = ana.ws.remember("The staging port is 8081")
    ana.share()
    git(ben.root, "pull", "-q")
    ana.ws.correct(fact.id, category="ports")
    ana.share()
    ben.ws.correct(fact.id, importance=0.9)
    done = ben.ws.history.pull()
    found = ben.ws.get(fact.id)
    assert isinstance(found, Fact)
    assert (found.category, found.importance) == ("ports", 0.9)
    assert done.what.startswith("pulled: ")
    assert len(done.merged) == 1


def test_a_staged_record_is_staged_again(clones: tuple[Clone, Clone]) -> None:
    ana, ben = clones
    ana.publish(1, 2)
    ana.share()
    ben.publish(3, 4)
    git(ben.root, "add", ".loki/memory")
    ben.ws.history.pull()
    (line,) = git(ben.root, "status", "--porcelain").splitlines()
    assert line.startswith("M  .loki/memory/semantic/facts/")


def test_a_refusal_of_git_leaves_memory_as_it_was(clones: tuple[Clone, Clone]) -> None:
    ana, ben = clones
    (ana.root / "app.py").write_text("theirs\n")
    ana.share()
    ben.publish(3, 4)
    before = ben.path().read_bytes()
    (ben.root / "app.py").write_text("mine\n")
    with pytest.raises(PullStopped, match="nothing is lost"):
        ben.ws.history.pull()
    assert ben.path().read_bytes() == before
    assert (ben.root / "app.py").read_text() == "mine\n"
    assert not pull_module.waiting(ben.ws.layout.local)


def test_what_comes_and_is_no_memory_changes_nothing_and_is_said(
    clones: tuple[Clone, Clone],
) -> None:
    ana, ben = clones
    mine = ben.ws.remember("Mine alone").id
    folder = ana.ws.layout.memory / "semantic" / "facts"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fact-up.json").write_text('{"id": "../up", "statement": "Up"}')
    (folder / "fact-link.json").symlink_to("/etc/passwd")
    ana.share()
    before = sorted(memory.id for memory in ben.ws.list())
    ben.ws.history.pull()
    assert sorted(memory.id for memory in ben.ws.list()) == before
    assert mine in before
    (said,) = [notice for notice in ben.ws.notices if "cannot be used as memory" in notice]
    assert "semantic/facts/fact-link.json, semantic/facts/fact-up.json" in said
    ben.ws.notices.clear()
    ana.ws.remember("Shared")
    ana.share()
    ben.ws.history.pull()
    assert not [notice for notice in ben.ws.notices if "cannot be used as memory" in notice]


def test_a_conflict_in_the_code_does_not_keep_memory_away(clones: tuple[Clone, Clone]) -> None:
    ana, ben = clones
    first = ana.publish(1, 2)
    (ana.root / "app.py").write_text("theirs\n")
    ana.share()
    (ben.root / "app.py").write_text("mine\n")
    git(ben.root, "commit", "-qam", "mine")
    git(ben.root, "config", "pull.rebase", "false")
    second = ben.publish(3, 4)
    with pytest.raises(PullStopped):
        ben.ws.history.pull()
    assert "<<<<<<<" in (ben.root / "app.py").read_text()
    joined = ben.ws.get(first.id)
    assert isinstance(joined, Belief)
    assert joined.rests_on() == first.rests_on() | second.rests_on()
    with pytest.raises(GitFailed, match="merge is under way"):
        ben.ws.history.pull()


def test_with_rebase_memory_is_set_aside_too(clones: tuple[Clone, Clone]) -> None:
    ana, ben = clones
    first = ana.publish(1, 2)
    ana.share()
    (ben.root / "other.py").write_text("mine\n")
    git(ben.root, "add", "other.py")
    git(ben.root, "commit", "-qm", "mine")
    git(ben.root, "config", "pull.rebase", "true")
    second = ben.publish(3, 4)
    assert ben.ws.history.pull().merged
    joined = ben.ws.get(first.id)
    assert isinstance(joined, Belief)
    assert joined.rests_on() == first.rests_on() | second.rests_on()


def test_what_a_killed_pull_set_aside_comes_back_with_the_next(
    clones: tuple[Clone, Clone],
) -> None:
    _, ben = clones
    ben.publish(3, 4)
    before = ben.path().read_bytes()
    path = ben.path()
    repository = Repository.open(ben.root)
    assert pull_module.set_aside(ben.ws, repository)
    assert not path.exists()
    assert [f.verdict for f in ben.ws.care.doctor().findings if f.check == "pull"] == ["warning"]
    ben.ws.history.pull()
    assert path.read_bytes() == before


def test_a_file_that_cannot_be_merged_is_kept_beside(clones: tuple[Clone, Clone]) -> None:
    ana, ben = clones
    fact = ana.ws.remember("The staging port is 8081")
    ana.share()
    mine = ben.ws.layout.memory / "semantic" / "facts" / f"{fact.id}.json"
    mine.write_text("{ not JSON at all")
    done = ben.ws.history.pull()
    assert done.kept == (f"semantic/facts/{fact.id}.json",)
    (kept,) = ben.ws.layout.local.rglob(f"salvaged/*/semantic/facts/{fact.id}.json")
    assert kept.read_text() == "{ not JSON at all"
    assert ben.ws.get(fact.id).title() == "The staging port is 8081"


def test_a_deletion_that_others_did_not_touch_stays_one(clones: tuple[Clone, Clone]) -> None:
    ana, ben = clones
    fact = ana.ws.remember("The staging port is 8081")
    ana.share()
    git(ben.root, "pull", "-q")
    (ana.root / "app.py").write_text("other\n")
    ana.share()
    ben.ws.browse.where(fact.id).unlink()
    ben.ws.history.pull()
    assert not ben.ids()


def test_without_a_repository_git_s_reason_is_told(ws: Workspace) -> None:
    with pytest.raises(GitFailed, match="no git repository"):
        ws.history.pull()
