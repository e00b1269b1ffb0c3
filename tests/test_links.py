"""Symbolic links that a clone brings: nothing below `.loki` is written through one.

A link is named, and everything that can work without the file in its place goes on working.
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest
from conftest import LATE, git, put_into_git
from test_cli import CALLS, run

from loki_memory import Workspace
from loki_memory.files import disk

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPlantedByABranch planted@example.org"
# Where links are planted, and whether they lead to a folder or to a file that is not there.
FOLDERS = ("cache", "continuity", "local", "local/view-bases", "memory/.txn", "memory/semantic")
FILES = (
    "cache/index.db",
    "cache/index.db-journal",
    "cache/index.db-wal",
    "cache/.gitignore",
    "CONTINUITY.md",
    "continuity/eng-001.md",
    ".gitignore",
    "config.toml",
    "memory/semantic/patterns.json",
)
SLOW = {"demo", "mcp", "completion"}  # they do not come near the workspace
HOOKS = ("SessionStart", "UserPromptSubmit", "PostToolUseFailure", "PreCompact", "SessionEnd")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "precious.txt").write_text("precious", encoding="utf-8")
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def plant(loki: Path, name: str, target: Path) -> None:
    """Put a link where a file or folder of ours stands, as `git pull` does."""
    place = loki / name
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir() and not place.is_symlink():
        place.rename(loki / f"was-{place.name}")
    else:
        place.unlink(missing_ok=True)
    place.symlink_to(target)


@pytest.mark.parametrize("kind", ["folders", "files"])
@pytest.mark.parametrize("in_git", [True, False], ids=["git", "plain"])
def test_no_command_writes_through_a_link(
    example: Path, outside: Path, kind: str, in_git: bool
) -> None:
    if in_git:
        put_into_git(example)
    (example / "episodes.jsonl").write_text('{"goal": "Add search"}\n', encoding="utf-8")
    loki = example / ".loki"
    Workspace.open(example).sync()
    for name in FOLDERS if kind == "folders" else FILES:
        target = outside if kind == "folders" else outside / f"made-{name.replace('/', '-')}"
        plant(loki, name, target)
    before = content(outside)
    calls = [
        call for name, call in CALLS.items() if name not in SLOW and (in_git or LATE not in call)
    ]
    for call in [*calls, "continuity --agent eng-001", "recall return", "ledger eng-001 --task t"]:
        said = run(example, *shlex.split(call))
        assert "Traceback" not in said.err, call
        assert "output cannot be written" not in said.err, call
        assert content(outside) == before, call


@pytest.mark.parametrize("name", [*FOLDERS, *FILES])
def test_hooks_work_on_and_write_nothing_through_a_link(
    example: Path, outside: Path, name: str
) -> None:
    put_into_git(example)
    plant(example / ".loki", name, outside if name in FOLDERS else outside / "made")
    before = content(outside)
    for event in HOOKS:
        given = {"session_id": "s", "cwd": str(example), "prompt": "Add an endpoint", "error": "E"}
        reading, writing = os.pipe()
        os.write(writing, json.dumps(given).encode())
        os.close(writing)
        said = run(example, "hook", event, "--wait", stdin=reading)
        os.close(reading)
        assert said.code == 0
        assert "Traceback" not in said.err
    assert content(outside) == before


def test_a_pulled_link_in_place_of_the_index_makes_no_file_at_its_target(
    project: Path, tmp_path: Path
) -> None:
    """With a key in a line of a memory, that file would be a valid `authorized_keys`."""
    target = tmp_path / "home" / ".ssh" / "authorized_keys"
    target.parent.mkdir(parents=True)
    theirs, ours = tmp_path / "theirs", project / "ours"
    git(tmp_path, "init", "-q", "-b", "main", str(theirs))
    Workspace.init(theirs).remember("Contract tests need the database")
    git(theirs, "add", "-A")
    git(theirs, "commit", "-qm", "memory")
    git(project, "clone", "-q", str(theirs), str(ours))
    assert Workspace.open(ours).recall("contract tests")
    Workspace.open(theirs).close()
    plant(theirs / ".loki", "cache/index.db", target)
    Workspace.open(theirs).remember(f"\n{KEY}\n")
    git(theirs, "add", "-Af")
    git(theirs, "commit", "-qm", "more memory")
    git(ours, "pull", "-q")
    assert (ours / ".loki/cache/index.db").is_symlink()
    said = run(ours, "recall", "contract tests")
    assert said.code == 0
    assert "Contract tests need the database" in said.out
    assert not target.exists()


def test_the_index_is_kept_in_memory_and_the_link_is_named(ws: Workspace, outside: Path) -> None:
    ws.remember("A")
    ws.close()
    plant(ws.layout.loki, "cache/index.db", outside / "made")
    with Workspace.open(ws.layout.root) as fresh:
        assert [memory.title() for memory in fresh.list()] == ["A"]
        link = f"{ws.layout.cache}/index.db is a symbolic link, which is not followed"
        assert fresh.notices == [f"the index cannot be written ({link}) and is kept in memory"]
        (problem,) = fresh.care.problems()
        assert str(problem) == (
            ".loki/cache/index.db: is a symbolic link, which is not followed. "
            "Delete the link, with `git rm` if git tracks it."
        )
        assert fresh.status().problems == 1
    assert list(outside.iterdir()) == [outside / "precious.txt"]


def test_an_error_names_the_link_and_says_what_to_do(ws: Workspace, outside: Path) -> None:
    plant(ws.layout.loki, "memory/semantic/facts", outside)
    said = run(ws.layout.root, "remember", "A")
    assert said.code == 9
    assert said.err == (
        f"error: {ws.layout.memory}/semantic/facts is a symbolic link, and nothing below .loki "
        "is written through links. Nothing was changed; delete the link (with `git rm` if git "
        "tracks it) and repeat.\n"
    )


@pytest.mark.parametrize("name", [*FOLDERS, *FILES])
def test_every_planted_link_is_a_problem(ws: Workspace, outside: Path, name: str) -> None:
    plant(ws.layout.loki, name, outside)
    found = [problem.path for problem in Workspace.open(ws.layout.root).care.problems()]
    assert [path for path in found if path.removeprefix(".loki/").removeprefix("memory/") in name]


# -- the door itself -------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_link_at_any_depth_below_loki_is_refused(tmp_path: Path, depth: int) -> None:
    names = [".loki", "a", "b", "c"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = tmp_path.joinpath(*names[:depth])
    folder.mkdir(parents=True)
    (folder / names[depth]).symlink_to(elsewhere)
    target = tmp_path.joinpath(*names, "file")
    for act in (
        lambda: disk.write_bytes(target, b"x"),
        lambda: disk.replace_plainly(target, b"x"),
        lambda: disk.make_folder(target),
        lambda: disk.open_to_change(target),
        lambda: disk.write_new(target, b"x", durable=False),
        lambda: disk.refuse_links(target),
    ):
        with pytest.raises(OSError, match="symbolic link"):
            act()
    assert list(elsewhere.iterdir()) == []


def test_a_link_above_loki_is_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with Workspace.init(tmp_path / "link") as ws:
        ws.remember("A")
    assert [memory.title() for memory in Workspace.open(tmp_path / "real").list()] == ["A"]


def test_the_users_own_memory_may_lie_behind_a_link(tmp_path: Path) -> None:
    """People keep such folders in a repository of their own, and link to it."""
    home = Path(os.environ["LOKI_HOME"])
    (tmp_path / "dotfiles").mkdir()
    home.symlink_to(tmp_path / "dotfiles")
    with Workspace.user() as ws:
        ws.remember("I like short functions")
    assert [memory.title() for memory in Workspace.user().list()] == ["I like short functions"]
