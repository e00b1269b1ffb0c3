"""A worktree may be about to be removed: keep what was remembered in it and is in no commit."""

from __future__ import annotations

from loki_memory.history.worktree_rescue import salvage
from loki_memory.hooks.event import Event
from loki_memory.hooks.response import Done
from loki_memory.workspace import Workspace


def pretooluse(workspace: Workspace, event: Event) -> Done:
    """The agent leaves its worktree: copy what would be lost, unless the worktree stays."""
    given = event.fields.get("tool_input")
    if isinstance(given, dict) and given.get("action") == "keep":
        return Done()
    return _salvaged(workspace, event.folder)


def worktreeremove(workspace: Workspace, event: Event) -> Done:
    """Somebody else has to remove the worktree: copy what would be lost."""
    return _salvaged(workspace, event.text("worktree_path") or event.folder)


def _salvaged(workspace: Workspace, worktree: str) -> Done:
    told = salvage(workspace, worktree).sentence()
    return Done(told=told, aloud=bool(told))
