"""The workspaces of the projects that calls name, kept open between calls.

Each call may name a project, because one server may serve worktrees and several projects.
Calls to one workspace take turns; calls to different ones do not wait for each other.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import NotAWorkspace

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

_KEPT = 8  # workspaces; more than an agent works in at a time


class _Held(NamedTuple):
    workspace: Workspace
    settings: tuple[object, ...]  # stamps of files that are read once, to see if they changed
    turn: Lock


class Projects:
    """Finder of a project's workspace, as in every command: from its folder upwards."""

    def __init__(self, default: str | None = None) -> None:
        self._default = default  # for calls that name no project
        self._held: OrderedDict[object, _Held] = OrderedDict()
        self._lock = Lock()

    @contextmanager
    def at(self, project: str | None) -> Iterator[Workspace]:
        """Hold the workspace of a project for one call."""
        held = self._hold(project)
        with held.turn:
            held.workspace.notices.clear()
            yield held.workspace

    def _hold(self, project: str | None) -> _Held:
        workspace = _open(folder(project or self._default))
        settings = _settings(workspace)
        with self._lock:
            held = self._held.get(workspace.layout)
            if held is None or held.settings != settings:
                held = _Held(workspace, settings, Lock())
            self._held[workspace.layout] = held
            self._held.move_to_end(workspace.layout)
            if len(self._held) > _KEPT:
                self._held.popitem(last=False)  # closed when its last call is done with it
        return held


def _open(path: str | None) -> Workspace:
    from loki_memory.workspace import Workspace

    try:
        return Workspace.open(path)
    except NotAWorkspace as error:
        raise error.naming("the argument `project`") from None


def folder(project: str | None) -> str | None:
    """The folder of the named project, else the server's default.

    LOKI_WORKSPACE is ours, CLAUDE_PROJECT_DIR is set by Claude Code for every server; without
    either, None means the working directory.
    """
    if project:
        return os.path.expanduser(project)
    environment = os.environ
    return environment.get("LOKI_WORKSPACE") or environment.get("CLAUDE_PROJECT_DIR") or None


def _settings(workspace: Workspace) -> tuple[object, ...]:
    """Stamps of what a workspace reads once: its settings, the user's, and the user's memory."""
    from loki_memory.home import user_home

    files = (workspace.layout.loki / "config.toml", user_home() / "config.toml")
    return (*map(_stamp, files), (user_home() / "memory").is_dir())


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
