"""`local.place = home`: what is private to this machine outlives the clone that captured it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from test_consolidation_publish import session

from loki_memory import Workspace
from loki_memory.files import zones
from loki_memory.files.layout import IN_HOME, is_private, key_in_home, layout
from loki_memory.files.zones import project_key
from loki_memory.home import user_home
from tests.conftest import git


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """A remote repository with a workspace in it."""
    hub, first = tmp_path / "hub.git", tmp_path / "first"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(hub))
    git(tmp_path, "clone", "-q", str(hub), str(first))
    git(first, "switch", "-q", "-C", "main")
    Workspace.init(first).close()
    git(first, "add", "-A")
    git(first, "commit", "-qm", "begin")
    git(first, "push", "-q", "origin", "main")
    shutil.rmtree(first)
    return hub


def clone(hub: Path, name: str) -> Path:
    git(hub.parent, "clone", "-q", str(hub), name)
    return hub.parent / name


def wish(place: str) -> None:
    """Set `local.place` in the user's own config."""
    user_home().mkdir(parents=True, exist_ok=True)
    (user_home() / "config.toml").write_text(f'[local]\nplace = "{place}"\n')


def private(root: Path) -> set[str]:
    with Workspace.open(root) as ws:
        return {memory.id for memory in ws.list(scope="local")}


def captured(root: Path, number: int = 1) -> str:
    with Workspace.open(root) as ws:
        return ws.record(session(number)).id


def test_sessions_outlive_a_deleted_clone(hub: Path) -> None:
    wish("home")
    first = clone(hub, "one")
    episode = captured(first)
    assert user_home() in Workspace.open(first).layout.local.parents
    shutil.rmtree(first)
    assert episode in private(clone(hub, "two"))


def test_switching_moves_what_is_there_and_back(hub: Path) -> None:
    root = clone(hub, "one")
    episode = captured(root)
    before = Workspace.open(root).layout.local
    wish("home")
    assert episode in private(root)
    place = Workspace.open(root)
    assert place.layout.local == user_home() / "projects" / project_key(root)
    assert not (before / "memory").exists()
    assert str(place.layout.local) in next(
        finding.said for finding in place.care.doctor().findings if finding.check == "places"
    )
    wish("here")
    assert episode in private(root)
    assert Workspace.open(root).layout.local == before


def test_a_clones_own_config_moves_nothing_until_it_is_confirmed(hub: Path) -> None:
    root = clone(hub, "one")
    before = Workspace.open(root).layout.local
    with (root / ".loki/config.toml").open("a") as config:
        config.write('\n[local]\nplace = "home"\n')
    with Workspace.open(root) as ws:
        assert ws.layout.local == before
        assert any("local.place" in ignored for ignored in ws.config.ignored)
        ws.home.set_config("local.place", "home")
    with Workspace.open(root) as ws:
        assert user_home() in ws.layout.local.parents
        assert not ws.config.ignored


def test_worktrees_share_it(hub: Path) -> None:
    wish("home")
    root = clone(hub, "one")
    episode = captured(root)
    git(root, "worktree", "add", "-q", "../tree")
    assert episode in private(root.parent / "tree")


def test_a_plain_folder_is_kept_by_its_path(project: Path) -> None:
    Workspace.init(project).close()
    episode = captured(project)
    wish("home")
    assert episode in private(project)
    with Workspace.open(project) as ws:
        assert user_home() in ws.layout.local.parents
        assert not ws.care.problems()
        assert not ws.status().git
    shutil.rmtree(project / ".loki" / "local")
    assert episode in private(project)


def test_a_remote_that_is_added_later_takes_it_along(project: Path) -> None:
    wish("home")
    git(project, "init", "-q")
    Workspace.init(project).close()
    episode = captured(project)
    git(project, "remote", "add", "origin", "https://example.org/ana/shop.git")
    assert episode in private(project)
    assert Workspace.open(project).layout.local.name.startswith("shop-")


def test_two_clones_share_it_and_lose_nothing(hub: Path) -> None:
    one, two = clone(hub, "one"), clone(hub, "two")
    ids = {captured(one, 1), captured(two, 2)}
    wish("home")
    assert Workspace.open(one).layout.local == Workspace.open(two).layout.local
    assert ids <= private(one)
    assert ids <= private(two)


def test_a_file_that_differs_is_kept_beside(hub: Path) -> None:
    one, two = clone(hub, "one"), clone(hub, "two")
    for root, text in ((one, "ana's"), (two, "ben's")):
        local = Workspace.open(root).layout.local
        local.mkdir(parents=True, exist_ok=True)
        (local / "note.txt").write_text(text)
    wish("home")
    for root in (one, two):
        Workspace.open(root).close()
    zone = Workspace.open(one).layout.local
    assert {path.read_text() for path in zone.rglob("note.txt")} == {"ana's", "ben's"}


def test_a_move_that_was_interrupted_is_completed(
    hub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = clone(hub, "one")
    episode = captured(root)
    wish("home")
    for step in ("_switch", "_discard"):
        with monkeypatch.context() as broken:
            broken.setattr(zones, step, _killed)
            with pytest.raises(KeyboardInterrupt):
                Workspace.open(root)
    default = root / ".git" / "loki-memory" / "root"
    assert episode in private(root)
    assert not (default / "memory").exists()


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_mark_that_came_with_a_copy_counts_for_nothing(hub: Path) -> None:
    wish("home")
    root = clone(hub, "one")
    captured(root)
    copy = root.parent / "copy"
    shutil.copytree(root, copy, symlinks=True)
    wish("here")
    zone = copy / ".git" / "loki-memory" / "root"
    assert (zone / IN_HOME).exists()
    assert key_in_home(zone) == ""
    assert layout(copy).local == zone


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/ana/shop.git",
        "https://mara@example.org/ana/shop",
        "git@example.org:ana/shop.git",
        "ssh://git@example.org/ana/shop.git/",
    ],
)
def test_the_key_of_a_remote_is_the_same_for_every_protocol(project: Path, url: str) -> None:
    git(project, "init", "-q")
    git(project, "remote", "add", "origin", url)
    assert project_key(project) == "shop-kajbawgnf8"


def test_only_its_user_can_read_it(hub: Path) -> None:
    wish("home")
    root = clone(hub, "one")
    captured(root)
    zone = Workspace.open(root).layout.local
    assert is_private(str(zone))
    assert os.stat(zone).st_mode & 0o077 == 0
