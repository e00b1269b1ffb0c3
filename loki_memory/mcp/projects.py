"""The workspaces of the projects that calls name, kept open between calls.

Each call may name a project, because one server may serve worktrees and several projects: those
in or below the folder that the server was started for, worktrees of its repository, and what the
person who started it named. A caller cannot reach the memory of any other project.
Calls to one workspace take turns; calls to different ones do not wait for each other.
"""

from __future__ import annotations

import os
import tempfile
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Protocol

from loki_memory.errors import InvalidRecord, NotAWorkspace

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from loki_memory.workspace import Workspace

_KEPT = 8  # workspaces; more than an agent works in at a time


class _Held(NamedTuple):
    workspace: Workspace
    settings: tuple[object, ...]  # stamps of files that are read once, to see if they changed
    turn: Lock


class ProjectFinder(Protocol):
    """Finder of the workspace that a call means: among folders here, or those of a team server."""

    def at(self, project: str | None) -> AbstractContextManager[Workspace]:
        """Hold the workspace of a project for one call."""


class Projects:
    """Finder of a project's workspace, as in every command: from its folder upwards."""

    def __init__(self, default: str | None = None, within: Sequence[str] = ()) -> None:
        self._default = default  # for calls that name no project
        self._within = [os.path.realpath(os.path.expanduser(folder)) for folder in within]
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
        if project and "\0" in project:
            raise InvalidRecord("is no path", field="project", advice="Name a folder.")
        workspace = _open(folder(project or self._default))
        if project and not self._may_reach(workspace, project):
            raise InvalidRecord(
                "lies outside the folders that this server was started for",
                field="project",
                advice="Whoever starts the server can add folders: loki-mem mcp --within DIR.",
            )
        settings = workspace.home.settings_stamp()
        with self._lock:
            held = self._held.get(workspace.layout)
            if held is None or held.settings != settings:
                held = _Held(workspace, settings, Lock())
            self._held[workspace.layout] = held
            self._held.move_to_end(workspace.layout)
            if len(self._held) > _KEPT:
                self._held.popitem(last=False)  # closed when its last call is done with it
        return held

    def _may_reach(self, workspace: Workspace, project: str) -> bool:
        """Check that both the named folder and the memory found for it are this server's."""
        root, named = (
            os.path.realpath(workspace.layout.root),
            os.path.realpath(folder(project) or ""),
        )
        start = os.path.realpath(folder(self._default) or ".")
        places = [*self._within, *([] if start in _anybodys() else [start])]
        if any(_is_within(root, place) and _is_within(named, place) for place in places):
            return True
        return self._is_same_repository(workspace, start)

    def _is_same_repository(self, workspace: Workspace, start: str) -> bool:
        """Check for the server's own project, and worktrees of it: they share the local zone."""
        try:
            own = _open(start)
        except NotAWorkspace:
            return False
        return own.layout.local == workspace.layout.local


def _anybodys() -> set[str]:
    """Folders that hold every project: a server that was started there was started for none."""
    return {
        os.path.realpath(place) for place in ("/", os.path.expanduser("~"), tempfile.gettempdir())
    }


def _is_within(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place.rstrip('/')}/")


def _open(path: str | None) -> Workspace:
    from loki_memory.workspace import Workspace

    try:
        workspace = Workspace.open(path)
    except NotAWorkspace as error:
        raise error.naming("the argument `project`") from None
    workspace.home.is_long_lived = True
    return workspace


def folder(project: str | None) -> str | None:
    """The folder of the named project, else the server's default.

    LOKI_WORKSPACE is ours, CLAUDE_PROJECT_DIR is set by Claude Code for every server; without
    either, None means the working directory.
    """
    if project:
        return os.path.expanduser(project)
    environment = os.environ
    return environment.get("LOKI_WORKSPACE") or environment.get("CLAUDE_PROJECT_DIR") or None
