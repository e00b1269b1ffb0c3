"""A worktree may be about to be removed: copy its uncommitted memory."""

from __future__ import annotations

from loki_memory.history.worktree_rescue import salvage
from loki_memory.hooks.event import Event
from loki_memory.hooks.response import Done
from loki_memory.workspace import Workspace


def pretooluse(workspace: Workspace, event: Event) -> Done:
    """Copy what would be lost when the agent leaves its worktree, unless the worktree stays."""
    given = event.fields.get("tool_input")
    if isinstance(given, dict) and given.get("action") == "keep":
        return Done()
    return _salvaged(workspace, event.folder)


def worktreeremove(workspace: Workspace, event: Event) -> Done:
    """Copy what would be lost with the worktree, which this hook does not remove."""
    return _salvaged(workspace, event.text("worktree_path") or event.folder)


def _salvaged(workspace: Workspace, worktree: str) -> Done:
    note = salvage(workspace, worktree).sentence()
    return Done(note=note, aloud=bool(note))
