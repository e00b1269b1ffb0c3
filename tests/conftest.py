"""Every test has a home of its own: the user's memory is never touched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from loki_memory import Workspace
from loki_memory.resources import resource


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("LOKI_")]:
        monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LOKI_HOME", str(home / ".loki"))


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
    """A copy of the example workspace."""
    return Path(shutil.copytree(resource("example_workspace"), tmp_path / "example"))
