"""Scopes: what belongs to the project, to this machine, to one session, and to the user."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from loki_memory import Workspace
from loki_memory.errors import LiesAbove, NotFound, RejectedValue


def git(*arguments: str | Path, at: Path) -> str:
    who = ("-c", "user.name=ana", "-c", "user.email=ana@example.org")
    command = ["git", "-C", at, *who, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(project: Path) -> Workspace:
    git("init", "-q", "-b", "main", at=project)
    ws = Workspace.init(project)
    ws.remember("For everyone")
    git("add", "-A", at=project)
    git("commit", "-q", "-m", "memory", at=project)
    return ws


def titles(ws: Workspace, **filters: Any) -> list[str]:
    return sorted(memory.title() for memory in ws.list(**filters))


def home() -> Path:
    return Path(os.environ["LOKI_HOME"])


# -- where each scope lives ----------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["local", "session"])
def test_private_memories_stay_out_of_the_project(ws: Workspace, scope: str) -> None:
    memory = ws.remember("Mine", scope=scope)
    assert ws.browse.where(memory.id).is_relative_to(ws.layout.local)
    assert memory.document()["scope"] == scope
    assert titles(ws, scope=scope) == ["Mine"]
    ws.sync()
    assert not list(ws.layout.memory.rglob(f"{memory.id}*"))


def test_a_private_file_that_names_no_scope_is_local(ws: Workspace) -> None:
    ws.remember("By us", scope="local")
    path = ws.layout.local / "memory" / "semantic" / "facts" / "hand.json"
    path.write_text('{"id": "fact-hand", "statement": "By hand"}', encoding="utf-8")
    assert titles(ws, scope="local") == ["By hand", "By us"]
    assert titles(ws, scope="project") == []


@pytest.mark.parametrize(
    "scope",
    [
        "local",
        "session",
        "user",
    ],
)
def test_what_is_listed_is_listed_under_the_scope_that_it_shows(ws: Workspace, scope: str) -> None:
    path = ws.layout.memory / "semantic" / "facts" / "x.json"
    path.write_text(json.dumps({"statement": "By hand", "scope": scope}), encoding="utf-8")
    [summary] = ws.browse.summaries()
    assert ws.browse.summaries(scope=summary.scope) == [summary]


def test_an_episode_may_be_private(ws: Workspace) -> None:
    episode = ws.record({"goal": "Mine", "scope": "local"})
    assert ws.browse.where(episode.id).is_relative_to(ws.layout.local)
    assert titles(ws) == ["Mine"]


def test_the_same_statement_in_two_scopes_is_two_memories(ws: Workspace) -> None:
    scopes = ("project", "local", "session", "user")
    assert len({ws.remember("A", scope=scope).id for scope in scopes}) == 4
    assert len(ws.list()) == 4


def test_private_memories_can_be_corrected_pinned_archived_and_forgotten(ws: Workspace) -> None:
    ws.remember("Kept")
    memory = ws.remember("Mine", scope="local")
    ws.correct(memory.id, category="x")
    ws.pin(memory.id)
    assert ws.get(memory.id).document()["category"] == "x"
    assert ws.archive(memory.id).startswith("local/archive/")
    ws.restore(memory.id)
    ws.forget(memory.id)
    assert titles(ws) == ["Kept"]
    ws.restore(memory.id)
    assert ws.browse.where(memory.id).is_relative_to(ws.layout.local)


def test_a_project_without_git_keeps_everything_under_loki(ws: Workspace, project: Path) -> None:
    ws.remember("Mine", scope="local")
    ws.remember("Ours")
    assert ws.layout.local == project / ".loki" / "local"
    assert [path.name for path in project.iterdir()] == [".loki"]
    assert not ws.status().git
    assert titles(ws) == ["Mine", "Ours"]


# -- git -----------------------------------------------------------------------------------------


def test_in_git_private_memories_lie_in_the_git_folder(
    repository: Workspace, project: Path
) -> None:
    memory = repository.remember("Mine", scope="local")
    assert repository.browse.where(memory.id).is_relative_to(project / ".git")
    assert repository.status().git
    assert git("status", "--porcelain", at=project) == ""


def test_private_memories_survive_a_thorough_cleaning(repository: Workspace, project: Path) -> None:
    repository.remember("Mine", scope="local")
    repository.sync()
    repository.close()
    git("clean", "-fdxq", at=project)
    assert not (project / ".loki" / "cache").exists()
    assert titles(Workspace.open(project)) == ["For everyone", "Mine"]


def test_worktrees_share_what_is_private(
    repository: Workspace, project: Path, tmp_path: Path
) -> None:
    repository.remember("Mine", scope="local")
    git("worktree", "add", "-q", tmp_path / "side", "-b", "side", at=project)
    side = Workspace.open(tmp_path / "side")
    assert side.layout.root == tmp_path / "side"
    assert side.layout.local == repository.layout.local
    assert titles(side) == ["For everyone", "Mine"]
    side.remember("Also mine", scope="local")
    assert "Also mine" in titles(repository)


def test_private_memories_survive_the_removal_of_their_worktree(
    repository: Workspace, project: Path, tmp_path: Path
) -> None:
    git("worktree", "add", "-q", tmp_path / "side", "-b", "side", at=project)
    with Workspace.open(tmp_path / "side") as side:
        side.remember("Mine", scope="local")
    git("worktree", "remove", "--force", tmp_path / "side", at=project)
    assert titles(repository) == ["For everyone", "Mine"]


def test_a_clone_brings_no_private_memories(
    repository: Workspace, project: Path, tmp_path: Path
) -> None:
    repository.remember("Mine", scope="local")
    git("clone", "-q", project, tmp_path / "clone", at=tmp_path)
    assert titles(Workspace.open(tmp_path / "clone")) == ["For everyone"]


def test_a_clone_can_be_used_at_once(repository: Workspace, project: Path, tmp_path: Path) -> None:
    git("clone", "-q", project, tmp_path / "clone", at=tmp_path)
    clone = Workspace.open(tmp_path / "clone")
    clone.record({"goal": "In the clone"})
    assert titles(clone) == ["For everyone", "In the clone"]


def test_two_projects_of_one_repository_keep_to_themselves(project: Path) -> None:
    git("init", "-q", at=project)
    one, two = Workspace.init(project / "one"), Workspace.init(project / "two")
    one.remember("Of one", scope="local")
    two.remember("Of two", scope="local")
    assert titles(one) == ["Of one"]
    assert titles(two) == ["Of two"]


def test_private_memories_from_before_git_go_on_being_used_and_move_with_init(
    project: Path,
) -> None:
    ws = Workspace.init(project)
    ws.remember("Mine", scope="local")
    ws.remember("Ours")
    ws.close()
    git("init", "-q", at=project)
    assert titles(Workspace.open(project)) == ["Mine", "Ours"]
    moved = Workspace.init(project)
    assert moved.layout.local.is_relative_to(project / ".git")
    assert not (project / ".loki" / "local").exists()
    assert titles(moved) == ["Mine", "Ours"]
    assert titles(Workspace.open(project)) == ["Mine", "Ours"]


# -- the user scope ------------------------------------------------------------------------------


def test_the_users_memories_live_at_home_and_are_seen_everywhere(
    ws: Workspace, tmp_path: Path
) -> None:
    memory = ws.remember("I prefer tabs", scope="user")
    assert ws.browse.where(memory.id).is_relative_to(home() / "memory")
    other = Workspace.init(tmp_path / "other")
    for workspace in (ws, other, Workspace.open(ws.layout.root)):
        assert titles(workspace) == ["I prefer tabs"]
        assert titles(workspace, scope="user") == ["I prefer tabs"]
        assert workspace.get(memory.id).document()["scope"] == "user"
        assert workspace.browse.summaries()[0].scope == "user"


def test_the_users_memories_come_after_the_projects(ws: Workspace) -> None:
    ws.remember("Mine", scope="user", at="2026-02-01")
    ws.remember("Ours", at="2026-01-01")
    assert [memory.title() for memory in ws.list()] == ["Ours", "Mine"]


def test_a_file_at_home_that_names_no_scope_has_the_users(ws: Workspace) -> None:
    ws.remember("By us", scope="user")
    path = home() / "memory" / "semantic" / "facts" / "hand.json"
    path.write_text('{"id": "fact-hand", "statement": "By hand"}', encoding="utf-8")
    assert titles(ws, scope="user") == ["By hand", "By us"]
    assert titles(ws, scope="project") == []


def test_a_reader_does_not_create_the_users_home(ws: Workspace) -> None:
    ws.remember("A")
    ws.list()
    ws.sync()
    assert not home().exists()


def test_the_users_memories_can_be_corrected_pinned_and_linked(ws: Workspace) -> None:
    one, two = (ws.remember(text, scope="user") for text in ("A", "B"))
    ws.correct(one.id, category="x")
    ws.pin(one.id)
    ws.link(one.id, "related_to", two.id)
    stored = json.loads(ws.browse.where(one.id).read_text(encoding="utf-8"))
    assert (stored["category"], stored["pinned"]) == ("x", True)
    assert ws.browse.edges(one.id)[0] == [("related_to", two.id)]
    assert len(list((home() / "memory/semantic/links").iterdir())) == 1
    assert not list((ws.layout.memory / "semantic/links").iterdir())


@pytest.mark.parametrize("way_out", ["archive", "forget", "reject"])
def test_the_users_memories_can_be_taken_out_and_brought_back(ws: Workspace, way_out: str) -> None:
    ws.remember("Kept", scope="user")
    memory = ws.remember("Mine", scope="user")
    before = ws.browse.where(memory.id).read_bytes()
    getattr(ws, way_out)(memory.id)
    assert titles(ws) == ["Kept"]
    ws.restore(memory.id)
    assert titles(ws) == ["Kept", "Mine"]
    if way_out != "reject":
        assert ws.browse.where(memory.id).read_bytes() == before


def test_a_value_that_the_user_rejected_is_not_remembered_for_the_user(ws: Workspace) -> None:
    ws.remember("Kept", scope="user")
    ws.reject(ws.remember("I prefer spaces", scope="user").id)
    with pytest.raises(RejectedValue):
        ws.remember("i prefer spaces", scope="user")


def test_an_episode_may_be_the_users(ws: Workspace) -> None:
    episode = ws.record({"goal": "At home", "scope": "user"})
    assert ws.browse.where(episode.id).is_relative_to(home())


def test_many_episodes_go_to_their_scopes(ws: Workspace) -> None:
    scopes = ("project", "user", "local", "project")
    episodes = ws.record({"goal": str(n), "scope": scope} for n, scope in enumerate(scopes))
    assert [episode.scope for episode in episodes] == list(scopes)
    assert titles(ws) == ["0", "1", "2", "3"]


def test_the_users_workspace_can_be_opened_by_itself(ws: Workspace) -> None:
    ws.remember("Mine", scope="user")
    ws.remember("Ours")
    with Workspace.user() as user:
        assert titles(user) == ["Mine"]
        user.remember("More", scope="user")
    assert titles(ws) == ["Mine", "More", "Ours"]


def test_what_is_unknown_everywhere_is_not_found(ws: Workspace) -> None:
    ws.remember("Mine", scope="user")
    with pytest.raises(NotFound):
        ws.get("fact-none")


def test_the_users_memories_can_be_left_out(ws: Workspace) -> None:
    ws.remember("Answer in British English", scope="user")
    assert ws.recall("British English")
    ws.home.set_config("memory.include_user", "0")
    with Workspace.open(ws.layout.root) as again:
        assert not again.recall("British English")
        assert again.list() == []
        again.remember("Answer in short sentences", scope="user")
        assert again.list() == []


# -- workspaces above, in a monorepo --------------------------------------------------------------


def _monorepo(top: Path, *, git: bool = True) -> tuple[Workspace, Workspace]:
    """The workspace of a repository, and that of a package in it."""
    if git:
        subprocess.run(["git", "init", "-q", top], check=True)
    (top / "packages" / "web").mkdir(parents=True)
    return Workspace.init(top), Workspace.init(top / "packages" / "web")


def test_a_package_recalls_and_opens_what_its_repository_remembers(tmp_path: Path) -> None:
    whole, package = _monorepo(tmp_path / "shop")
    fact = whole.remember("Releases are cut by the release train on Tuesdays")
    package.remember("The web client is built by Vite")

    hits = package.recall("when are releases cut by the release train?")

    assert [(hit.id, hit.why[-1]) for hit in hits][:1] == [(fact.id, "from shop, above")]
    assert package.get(fact.id) == fact
    assert package.resolve(fact.id[:9]) == fact.id


def test_the_repository_does_not_see_what_a_package_remembers(tmp_path: Path) -> None:
    whole, package = _monorepo(tmp_path)
    package.remember("The web client is built by Vite")

    assert not whole.recall("what builds the web client?")


def test_memory_above_is_neither_listed_told_nor_changed_from_below(tmp_path: Path) -> None:
    whole, package = _monorepo(tmp_path)
    fact = whole.remember("Releases are cut by the release train on Tuesdays")

    assert package.list() == []
    assert fact.id not in package.context("Cut a release with the release train").text("compact")
    with pytest.raises(LiesAbove, match="-C"):
        package.correct(fact.id, statement="Releases are cut on Mondays")
    assert whole.get(fact.id) == fact


def test_memory_above_the_repository_is_not_read(tmp_path: Path) -> None:
    whole, package = _monorepo(tmp_path, git=False)
    whole.remember("Releases are cut by the release train on Tuesdays")
    subprocess.run(["git", "init", "-q", tmp_path / "packages" / "web"], check=True)

    assert not package.recall("when are releases cut by the release train?")


def test_memory_above_that_is_not_trusted_is_not_read(tmp_path: Path) -> None:
    whole, package = _monorepo(tmp_path)
    whole.remember("Releases are cut by the release train on Tuesdays")
    whole.home.note_trust(is_trusted=False)

    assert not Workspace.open(package.layout.root).recall("when are releases cut by the train?")


def test_what_both_remember_is_found_once(tmp_path: Path) -> None:
    whole, package = _monorepo(tmp_path)
    whole.remember("Releases are cut by the release train on Tuesdays")
    fact = package.remember("Releases are cut by the release train on Tuesdays")

    hits = package.recall("when are releases cut by the release train?")

    assert [hit.id for hit in hits] == [fact.id]
    assert "above" not in hits[0].why[-1]
