"""A worktree is about to be removed: what was remembered in it and is in no commit is kept."""

from __future__ import annotations

from loki_memory.hooks.event import Event
from loki_memory.hooks.response import Done
from loki_memory.versioning.salvaging import salvage
from loki_memory.workspace import Workspace


def worktreeremove(workspace: Workspace, event: Event) -> Done:
    """Copy it to where it stays, and say so."""
    told = salvage(workspace, event.text("worktree_path") or event.folder).sentence()
    return Done(told=told, aloud=bool(told))
