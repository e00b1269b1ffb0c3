"""A worktree may be about to be removed: copy its uncommitted memory."""

from __future__ import annotations

import os

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
    note = workspace.history.salvage(worktree).sentence()
    return Done(note=note, aloud=bool(note))


def is_linked(folder: str) -> bool:
    """Check if a folder is in a linked worktree, by the file that git has there for its folder."""
    place = os.path.abspath(folder)
    while not os.path.exists(f"{place}/.git"):
        above = os.path.dirname(place)
        if above == place:
            return False
        place = above
    return os.path.isfile(f"{place}/.git")


def keep(workspace: Workspace, folder: str) -> str:
    """Keep copies of what a worktree would lose; returns a note for the log."""
    number = workspace.history.keep_copies(folder)
    return f"{number} uncommitted records of the worktree copied" if number else ""


def returned(workspace: Workspace) -> str:
    """Bring back what worktrees that are gone had not committed; returns a note for the user."""
    return workspace.history.bring_back().sentence()
