"""`install git` writes two places, says so, and `uninstall git` takes out exactly that."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from loki_memory import Workspace
from loki_memory.install.git import install_git, uninstall_git


def git(folder: Path, *args: str) -> str:
    command = ["git", *args]
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(ws: Workspace, project: Path) -> Path:
    git(project, "init", "-q")
    return project


def test_the_driver_is_named_in_the_clone_and_in_attributes(
    ws: Workspace, repository: Path
) -> None:
    deeds = install_git(ws)
    assert all(deed.did for deed in deeds)
    driver = git(repository, "config", "--local", "merge.loki.driver")
    assert driver.endswith("loki-mem merge-driver %O %A %B %P")
    record, skill = ".loki/memory/semantic/facts/fact-1.json", ".loki/memory/skills/a/SKILL.md"
    for path in (record, skill):
        assert git(repository, "check-attr", "merge", path).endswith("merge: loki")
    for path in ("package.json", ".loki/memory/README.md", ".loki/config.toml"):
        assert git(repository, "check-attr", "merge", path).endswith("unspecified")


def test_forges_fold_what_is_reviewed_as_beliefs(ws: Workspace, repository: Path) -> None:
    install_git(ws)
    folded = [
        f".loki/memory/{name}/x.json" for name in ("archive", "episodic/2026-01-06", "witness")
    ]
    read = [f".loki/memory/{name}/x.json" for name in ("semantic/facts", "handoffs")]
    for paths, expected in ((folded, "set"), (read, "unspecified")):
        for path in paths:
            found = git(repository, "check-attr", "linguist-generated", path)
            assert found.endswith(f"linguist-generated: {expected}")


def test_installing_again_changes_nothing(ws: Workspace, repository: Path) -> None:
    install_git(ws)
    before = [(repository / name).read_bytes() for name in (".git/config", ".loki/.gitattributes")]
    assert not any(deed.did for deed in install_git(ws))
    after = [(repository / name).read_bytes() for name in (".git/config", ".loki/.gitattributes")]
    assert before == after


def test_uninstalling_leaves_everything_as_it_was(ws: Workspace, repository: Path) -> None:
    attributes, config = repository / ".loki/.gitattributes", repository / ".git/config"
    attributes.write_text("*.png binary")
    git(repository, "config", "merge.other.driver", "true")
    before = config.read_text()
    install_git(ws)
    assert all(deed.did for deed in uninstall_git(ws))
    assert attributes.read_text().rstrip("\n") == "*.png binary"
    assert config.read_text() == before
    assert not any(deed.did for deed in uninstall_git(ws))


def test_attributes_that_only_we_wrote_go_with_the_file(ws: Workspace, repository: Path) -> None:
    install_git(ws)
    uninstall_git(ws)
    assert not (repository / ".loki/.gitattributes").exists()


def test_a_driver_that_somebody_else_named_stays(ws: Workspace, repository: Path) -> None:
    install_git(ws)
    git(repository, "config", "merge.loki.driver", "my-own %A")
    uninstall_git(ws)
    assert git(repository, "config", "merge.loki.driver") == "my-own %A"


def test_without_a_repository_it_says_what_is_missing(ws: Workspace, project: Path) -> None:
    driver, attributes = install_git(ws)
    assert "no git repository" in driver.what
    assert (driver.did, attributes.did) == (False, True)
    assert [deed.did for deed in uninstall_git(ws)] == [True]
    assert not (project / ".loki/.gitattributes").exists()
