"""The branch of the remote whose memory counts as reviewed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from loki_memory.errors import GitFailed
from loki_memory.files.git_files import git_folders, remote_of

if TYPE_CHECKING:
    from loki_memory.git_repository import Repository
    from loki_memory.home import Home

_USUAL = ("main", "master")  # where the remote does not say which branch is its default


def trusted_branch(home: Home, repository: Repository) -> str:
    """The full name of the branch whose contents count as reviewed; empty if there is none."""
    folders = git_folders(home.layout.root)
    remote = remote_of(folders) if folders else None
    if remote is None:
        return ""
    branches = f"refs/remotes/{remote.name}"
    if repository.line != "HEAD":  # memory has a branch of its own
        return _existing(repository, [f"{branches}/{repository.line}"])
    chosen = home.config.text("trust.branch")
    if chosen:
        return _existing(repository, [f"{branches}/{chosen}", f"refs/remotes/{chosen}"])
    with suppress(GitFailed):
        return os.fsdecode(repository.run("symbolic-ref", "-q", f"{branches}/HEAD")).strip()
    return _existing(repository, [f"{branches}/{name}" for name in _USUAL])


def _existing(repository: Repository, names: Iterable[str]) -> str:
    return next((name for name in names if repository.resolve(name)), "")
