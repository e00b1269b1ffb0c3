"""Every test has a home of its own: the user's memory is never touched."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from loki_memory import Workspace
from loki_memory.resources import resource

# The same examples at every run: a change is judged by itself. LOKI_TEST_LONG looks further.
# Neither fails because a machine is busy: no example has a deadline.
_BUSY = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("long", deadline=None, suppress_health_check=_BUSY)
settings.register_profile("fixed", settings.get_profile("long"), derandomize=True)
settings.load_profile("long" if os.environ.get("LOKI_TEST_LONG") else "fixed")


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("LOKI_")]:
        monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LOKI_HOME", str(home / ".loki"))
    monkeypatch.setenv("LOKI_HOOK_SECONDS", "600")  # a busy machine is no reason to give up
    # Whether the extra `minilm` is installed changes nothing here; its own tests ask for it.
    monkeypatch.setenv("LOKI_EMBEDDING_MODEL", "bundled")
    monkeypatch.setenv("CI", "1")  # sessions of tests start no daemon, which would outlive them


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def ws(project: Path) -> Iterator[Workspace]:
    with Workspace.init(project) as workspace:
        yield workspace


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A copy of the example workspace, which its user trusts."""
    copy = Path(shutil.copytree(resource("example_workspace"), tmp_path / "example"))
    Workspace.open(copy).home.note_trust(is_trusted=True)
    return copy


# In the second commit only of what `put_into_git` makes.
LATE = ".loki/memory/semantic/facts/fact-2f61dyj12e.json"


def put_into_git(example: Path) -> None:
    """Two commits of the example's memory, and a remote repository beside it."""
    remote = example.parent / "remote"
    git(example, "init", "-q", "-b", "main")
    git(example, "init", "-q", "--bare", str(remote))
    git(example, "remote", "add", "origin", str(remote))
    (example / LATE).rename(example / "late.json")
    Workspace.open(example).history.commit()
    (example / "late.json").rename(example / LATE)
    Workspace.open(example).history.commit()


def git(folder: Path, *arguments: str) -> str:
    """What git says, as somebody with a name."""
    who = ("-c", "user.name=ana", "-c", "user.email=ana@example.org")
    said = subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return said.stdout.strip()
