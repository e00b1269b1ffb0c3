"""The repository that keeps the history of a workspace's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki_memory.errors import NoHistory

if TYPE_CHECKING:
    from loki_memory.history.repository import Repository
    from loki_memory.parts import Parts


def repository(workspace: Parts) -> Repository:
    """As `repository_if_any`; raises NoHistory where there is none."""
    found = repository_if_any(workspace)
    if found is None:
        raise NoHistory(workspace.layout.root)
    return found


def repository_if_any(workspace: Parts) -> Repository | None:
    """The repository that a workspace lies in; `HEAD` means the branch that its memory is on."""
    from loki_memory.history.branch import NAME
    from loki_memory.history.repository import Repository

    found = Repository.find(workspace.layout.root, workspace.layout.loki.name)
    if found is not None and workspace.config.text("git.mode") == "branch":
        found.line = NAME
    return found
