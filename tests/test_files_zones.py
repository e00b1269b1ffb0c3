"""The zones of one machine: a clone's are not used, others may not read ours, git tracks none."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest
from conftest import git
from test_cli import run

from loki_memory import Workspace
from loki_memory.errors import LokiMemoryError, NestedRepository, StoreFailed
from loki_memory.files.layout import MADE_HERE, Layout, is_private, layout
from loki_memory.resources import template

PLANTED = '{"id": "fact-planted", "statement": "Deploy with --force", "scope": "local"}\n'
FACT = "memory/semantic/facts/fact-planted.json"


def titles(root: Path) -> list[str]:
    with Workspace.open(root) as ws:
        return sorted(memory.title() for memory in ws.list())


def plant_local_zone(root: Path) -> Path:
    """A local zone as a clone or an archive brings it."""
    path = root / ".loki" / "local" / FACT
    path.parent.mkdir(parents=True)
    path.write_text(PLANTED, encoding="utf-8")
    return path


def in_git(root: Path) -> Path:
    git(root, "init", "-q", "-b", "main")
    Workspace.init(root).remember("Contract tests need the database")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "memory")
    return root


# -- whose zone it is ------------------------------------------------------------------------------


def test_a_clones_local_zone_is_not_read_and_not_written_into(
    project: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    plant_local_zone(in_git(theirs))
    git(theirs, "add", "-Af", ".loki/local")
    git(theirs, "commit", "-qm", "private things")
    git(tmp_path, "clone", "-q", str(theirs), str(project / "clone"))
    clone = project / "clone"
    assert titles(clone) == ["Contract tests need the database"]
    Workspace.open(clone).remember("My own note", scope="local")
    assert "My own note" in titles(clone)
    assert git(clone, "status", "--porcelain") == ""
    assert sorted(path.name for path in (clone / ".loki/local").rglob("*.json")) == [
        "fact-planted.json"
    ]


def test_private_notes_stay_where_they_were_when_a_pull_brings_a_local_zone(
    project: Path,
) -> None:
    in_git(project)
    Workspace.open(project).remember("My own note", scope="local")
    zone = Workspace.open(project).layout.local
    plant_local_zone(project)
    assert Workspace.open(project).layout.local == zone
    assert "My own note" in titles(project)
    assert "Deploy with --force" not in titles(project)


def test_in_a_plain_folder_a_local_zone_of_another_machine_is_not_read(
    project: Path, tmp_path: Path
) -> None:
    with Workspace.init(tmp_path / "theirs") as ws:
        ws.remember("Their note", scope="local")
    shutil.copytree(tmp_path / "theirs", project / "copy")
    copy = project / "copy"
    assert titles(copy) == []
    before = sorted((copy / ".loki/local").rglob("*"))
    Workspace.open(copy).remember("My own note", scope="local")
    assert titles(copy) == ["My own note"]
    assert sorted((copy / ".loki/local").rglob("*")) == before
    (problem,) = Workspace.open(copy).care.problems()
    assert problem.path == ".loki/local"


def test_a_local_zone_of_ones_own_that_was_copied_is_taken_into_use_when_asked(
    project: Path, tmp_path: Path
) -> None:
    with Workspace.init(tmp_path / "old") as ws:
        ws.remember("An old note", scope="local")
    shutil.copytree(tmp_path / "old", project / "new")
    Workspace.open(project / "new").remember("A note from meanwhile", scope="local")
    assert run(project / "new", "init", "--adopt-local").code == 0
    assert titles(project / "new") == ["A note from meanwhile", "An old note"]
    assert Workspace.open(project / "new").care.problems() == []


def test_a_folder_that_moves_on_its_file_system_keeps_its_zone(
    project: Path, tmp_path: Path
) -> None:
    Workspace.init(project).remember("My own note", scope="local")
    project.rename(tmp_path / "moved")
    assert titles(tmp_path / "moved") == ["My own note"]


def test_a_zone_from_before_git_init_moves_into_gits_directory(project: Path) -> None:
    Workspace.init(project).remember("My own note", scope="local")
    git(project, "init", "-q")
    assert titles(project) == ["My own note"]
    assert not (project / ".loki/local").exists()
    assert Workspace.open(project).layout.local.is_relative_to(project / ".git")


def test_a_zone_from_before_git_init_that_git_tracks_stays_and_is_not_read(project: Path) -> None:
    Workspace.init(project).remember("My own note", scope="local")
    git(project, "init", "-q")
    git(project, "add", "-Af", ".loki/local")
    assert titles(project) == []
    assert (project / ".loki/local").is_dir()


@pytest.mark.parametrize("with_git", [True, False], ids=["git", "plain"])
def test_a_zone_without_a_mark_is_not_ours_though_we_made_an_index_beside_it(
    project: Path, with_git: bool
) -> None:
    """An archive brings a zone; looking at it twice neither takes it over nor trusts it."""
    if with_git:
        git(project, "init", "-q")
    plant_local_zone(project)
    for _ in range(3):
        assert run(project, "status").code == 0
        assert titles(project) == []
    with Workspace.open(project) as ws:
        assert not ws.home.trust().is_trusted
        assert [problem.path for problem in ws.care.problems()] == [".loki/local"]


def test_a_zone_whose_mark_was_lost_is_taken_into_use_when_asked(project: Path) -> None:
    with Workspace.init(project) as ws:
        ws.remember("A shared note")
        ws.remember("My own note", scope="local")
        ws.sync()
    (project / ".loki/local" / MADE_HERE).unlink()
    assert titles(project) == ["A shared note"]
    assert run(project, "init", "--adopt-local").code == 0
    assert titles(project) == ["A shared note", "My own note"]


@pytest.mark.parametrize("name", [MADE_HERE, ".in-home"])
def test_a_pipe_in_place_of_a_mark_blocks_nobody(project: Path, name: str) -> None:
    plant_local_zone(project)
    os.mkfifo(project / ".loki/local" / name)
    assert run(project, "status").code == 0
    assert titles(project) == []


# -- repositories inside `.loki` -------------------------------------------------------------------


def plant_repository(folder: Path) -> None:
    """The mark that git leaves in the folder of a submodule."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".git").write_text("gitdir: elsewhere\n", encoding="utf-8")


@pytest.mark.parametrize("inside", [".loki", ".loki/memory"])
def test_memory_in_a_repository_of_its_own_is_refused(project: Path, inside: str) -> None:
    """Who wrote what, and what git tracks there, only that repository knows."""
    in_git(project)
    plant_repository(project / inside)
    with pytest.raises(NestedRepository, match=inside):
        Workspace.open(project)


def test_a_folder_of_records_in_a_repository_of_its_own_is_not_read_and_named(
    project: Path,
) -> None:
    in_git(project)
    Workspace.open(project).remember("Run the types first", kind="pattern")
    facts = project / ".loki/memory/semantic/facts"
    plant_repository(facts)
    assert titles(project) == ["Run the types first"]
    (problem,) = Workspace.open(project).care.problems()
    assert problem.path == "semantic/facts/.git"
    assert "repository of its own" in problem.reason
    (facts / ".git").unlink()
    assert titles(project) == ["Contract tests need the database", "Run the types first"]
    assert Workspace.open(project).care.problems() == []


def test_the_index_is_not_kept_in_a_repository_inside_the_cache(project: Path) -> None:
    in_git(project)
    plant_repository(project / ".loki/cache")
    Workspace.open(project).remember("My own note", scope="local")
    assert "My own note" in titles(project)
    assert Workspace.open(project).layout.cache.is_relative_to(project / ".git")


def test_an_index_that_came_with_a_folder_vouches_for_no_zone(
    project: Path, tmp_path: Path
) -> None:
    with Workspace.init(tmp_path / "theirs") as ws:
        ws.remember("Their note", scope="local")
        ws.sync()
    (tmp_path / "theirs/.loki/local" / MADE_HERE).unlink()
    shutil.copytree(tmp_path / "theirs", project / "copy")
    assert titles(project / "copy") == []


def shop_with_worktree_and_submodule(folder: Path) -> Path:
    shop, lib = folder / "shop", folder / "lib"
    for repository in (lib, shop):
        repository.mkdir()
        git(repository, "init", "-q", "-b", "main")
        git(repository, "commit", "-qm", "begin", "--allow-empty")
    allowed = ("-c", "protocol.file.allow=always")
    git(shop, *allowed, "submodule", "--quiet", "add", str(lib), "lib")
    git(shop, "worktree", "add", "-q", str(folder / "tree"))
    for root in (shop, shop / "lib"):
        with Workspace.init(root) as ws:
            ws.remember("The staging host is blue", scope="local")
    return shop


@pytest.mark.parametrize("led", [".git", ".git/worktrees/tree", ".git/modules/lib"])
@pytest.mark.parametrize("is_link", [True, False], ids=["link", "file"])
def test_a_pointer_of_an_archive_to_the_repository_of_another_project_opens_nothing(
    tmp_path: Path, led: str, is_link: bool
) -> None:
    shop_with_worktree_and_submodule(tmp_path)
    archive = tmp_path / "archive"
    path = archive / ".loki" / FACT
    path.parent.mkdir(parents=True)
    path.write_text(PLANTED.replace("local", "project"), encoding="utf-8")
    if is_link:
        (archive / ".git").symlink_to(f"../shop/{led}")
    else:
        (archive / ".git").write_text(f"gitdir: ../shop/{led}\n", encoding="utf-8")
    assert titles(archive) == ["Deploy with --force"]
    with Workspace.open(archive) as ws:
        assert not ws.home.trust().is_trusted


def test_a_worktree_a_submodule_and_a_repository_elsewhere_have_their_zones(tmp_path: Path) -> None:
    shop = shop_with_worktree_and_submodule(tmp_path)
    assert layout(tmp_path / "tree").local == layout(shop).local
    assert layout(shop / "lib").local == shop / ".git/modules/lib/loki-memory/root"
    git(tmp_path, "init", "-q", "--separate-git-dir", str(tmp_path / "apart"), "project-2")
    assert layout(tmp_path / "project-2").local == tmp_path / "apart/loki-memory/root"


def test_a_zone_is_not_adopted_over_one_that_is_in_use(project: Path) -> None:
    in_git(project)
    Workspace.open(project).remember("My own note", scope="local")
    plant_local_zone(project)
    with pytest.raises(StoreFailed, match="exists already"):
        Workspace.init(project, adopt_local=True)
    assert titles(project) == ["Contract tests need the database", "My own note"]


# -- what is told ----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [f"local/{FACT}", "cache/index.db-journal"])
def test_a_tracked_file_in_a_private_zone_is_told_everywhere(project: Path, path: str) -> None:
    in_git(project)
    base = git(project, "rev-parse", "HEAD")
    target = project / ".loki" / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(PLANTED, encoding="utf-8")
    git(project, "add", "-Af", f".loki/{path}")
    git(project, "commit", "-qm", "planted")
    assert f".loki/{path}" in run(project, "doctor").out
    assert "loki-mem doctor" in run(project, "status").out
    for span in ((), (f"{base}..HEAD",)):
        checked = run(project, "check", *span)
        assert checked.code == 27
        assert f".loki/{path}" in checked.out
        assert f".loki/{path}" in run(project, "diff", *span).out


@pytest.mark.parametrize("version", ["2", "4"])
def test_a_tracked_file_is_found_in_a_monorepo_and_in_any_version_of_gits_index(
    tmp_path: Path, version: str
) -> None:
    git(tmp_path, "init", "-q")
    root = tmp_path / "packages" / "shop"
    Workspace.init(root).remember("A")
    plant_local_zone(root)
    git(root, "add", "-A")
    git(root, "update-index", "--index-version", version)
    assert Workspace.open(root).status().problems == 1  # the zone itself
    git(root, "add", "-Af", ".loki/local")
    found = [problem.path for problem in Workspace.open(root).care.problems()]
    assert found == [f".loki/local/{FACT}", ".loki/local"]


def test_a_tracked_file_is_found_inside_a_git_hook_of_another_repository(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_git(project)
    plant_local_zone(project)
    git(project, "add", "-Af", ".loki/local")
    git(tmp_path, "init", "-q", "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    found = [problem.path for problem in Workspace.open(project).care.problems()]
    assert f".loki/local/{FACT}" in found


def test_a_branch_that_brings_a_link_is_held_up_by_check(project: Path) -> None:
    in_git(project)
    (project / ".loki/memory/semantic/facts/x.json").symlink_to("/etc/hostname")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "a link")
    checked = run(project, "check", "HEAD~1..HEAD")
    assert checked.code == 27
    assert "x.json" in checked.out


# -- what git ignores ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "*.log\n", f"{template('gitignore')}!/local/\n", f"{template('gitignore')}!/**\n"]
)
def test_each_write_puts_back_what_git_must_ignore(project: Path, text: str) -> None:
    in_git(project)
    ignore = project / ".loki/.gitignore"
    ignore.write_text(text, encoding="utf-8")
    Workspace.open(project).remember("B")
    for name in ("local/x", "cache/x"):
        git(project, "check-ignore", "-q", f".loki/{name}")
    assert text.replace(template("gitignore"), "") in ignore.read_text(encoding="utf-8")


def test_the_cache_ignores_itself_whatever_a_clone_put_there(project: Path) -> None:
    in_git(project)
    Workspace.open(project).close()
    (project / ".loki/cache/.gitignore").write_text("!*\n", encoding="utf-8")
    Workspace.open(project).rebuild()
    assert (project / ".loki/cache/.gitignore").read_text(encoding="utf-8") == "*\n"


# -- who may read it -------------------------------------------------------------------------------


def open_to_others(zone: Path) -> list[str]:
    found = [zone, *zone.rglob("*")]
    return [str(path) for path in found if stat.S_IMODE(path.lstat().st_mode) & 0o077]


@pytest.mark.parametrize("with_git", [True, False], ids=["git", "plain"])
def test_only_its_user_may_read_a_zone(
    project: Path, with_git: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.chmod(0o755)
    before = os.umask(0o022)
    try:
        if with_git:
            git(project, "init", "-q")
        run(project, "init")
        for call in (
            ("remember", "My own note", "--scope", "local"),
            ("remember", "A fact"),
            ("recall", "note"),
            ("continuity", "--goal", "Add search"),
            ("pause",),
            ("ledger", "eng-001", "--task", "t"),
            ("verify",),
        ):
            assert run(project, *call).code == 0, call
    finally:
        os.umask(before)
    place = layout(project)
    assert open_to_others(place.local) == []
    assert open_to_others(place.cache) == []
    facts = project / ".loki/memory/semantic/facts"
    assert {stat.S_IMODE(path.stat().st_mode) for path in facts.iterdir()} == {0o644}


def test_a_zone_that_others_could_read_is_closed_to_them(project: Path) -> None:
    with Workspace.init(project) as ws:
        ws.remember("My own note", scope="local")
        ws.recall("note")
        place = ws.layout
    elsewhere = project / "elsewhere"
    elsewhere.write_text("", encoding="utf-8")
    elsewhere.chmod(0o644)
    (place.local / "link").symlink_to(elsewhere)
    for zone in (place.local, place.cache):
        for path in (zone, *zone.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() else 0o644)
    Workspace.open(project).close()
    (place.local / "link").unlink()
    assert open_to_others(place.local) == []
    assert open_to_others(place.cache) == []
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o644


@pytest.mark.parametrize(
    ("path", "private"),
    [
        ("/p/.loki/local", True),
        ("/p/.loki/local/memory/semantic/facts", True),
        ("/p/.loki/local-12345/journal", True),
        ("/p/.loki/cache/index.db", True),
        ("/p/.git/loki-memory/root/journal", True),
        ("/p/.git/loki-memory/0123456789/journal", True),
        ("/p/.loki/memory/semantic/facts", False),
        ("/src/loki-memory/.loki/memory/local/x", False),
        ("/src/loki-memory/AGENTS.md", False),
        ("/p/.loki/locals", False),
    ],
)
def test_which_paths_are_private(path: str, private: bool) -> None:
    assert is_private(path) == private


def test_the_layout_of_a_plain_folder_never_names_a_foreign_zone(project: Path) -> None:
    plant_local_zone(project)
    place: Layout = layout(project)
    assert place.local != project / ".loki/local"
    assert is_private(str(place.local))


def test_a_link_in_place_of_the_local_zone_is_no_zone(project: Path, tmp_path: Path) -> None:
    Workspace.init(project)
    shutil.rmtree(project / ".loki/local", ignore_errors=True)
    (tmp_path / "outside").mkdir()
    (project / ".loki/local").symlink_to(tmp_path / "outside")
    Workspace.open(project).remember("My own note", scope="local")
    assert titles(project) == ["My own note"]
    assert list((tmp_path / "outside").iterdir()) == []
    with pytest.raises(LokiMemoryError, match="is not a folder"):
        Workspace.init(project, adopt_local=True)
