"""Replay: what was done in an episode, step by step, and what became of the files it touched.

A file is missing, or changed since (by a commit after the episode's own, or not yet committed), or
unchanged. Where git cannot tell, it is unknown.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple

from loki_memory.errors import GitFailed, NotFound
from loki_memory.models import Episode

if TYPE_CHECKING:
    from loki_memory.git_repository import Repository
    from loki_memory.homes import OpenWorkspace
    from loki_memory.models.episode import Action


FileState = Literal["missing", "changed", "unchanged", "unknown"]


class Played(NamedTuple):
    """One action: when it was done, and how it ended."""

    at: str  # minutes and seconds since the start
    action: str
    told: str


class ReplayedFile(NamedTuple):
    """A file that the episode touched, and what became of it."""

    path: str
    state: FileState


class Replay(NamedTuple):
    """An episode as it went."""

    id: str
    goal: str
    outcome: str
    begun: str
    actions: list[Played]
    files: list[ReplayedFile]


def replay(workspace: OpenWorkspace, memory_id: str) -> Replay:
    """The actions of an episode in time; raises NotFound if the id names no episode."""
    from loki_memory.git_repository import Repository

    episode = workspace.get(memory_id)
    if not isinstance(episode, Episode):
        raise NotFound(f"{memory_id} that is an episode")
    repository = Repository.find(workspace.layout.root)
    files = [
        ReplayedFile(path, _state(workspace, repository, path, _end(episode)))
        for path in sorted(episode.files())
    ]
    actions = [_played(action) for action in episode.action_log]
    return Replay(episode.id, episode.goal, episode.outcome, episode.timestamp, actions, files)


def _played(action: Action) -> Played:
    seconds = int(action.t) if isinstance(action.t, (int, float)) else 0
    ended = action.error or action.result
    told = " -> ".join(filter(None, (action.target, ended)))
    return Played(f"{seconds // 60:>3}:{seconds % 60:02}", action.action, told)


def _end(episode: Episode) -> str:
    """When it was over, rounded up: git counts in seconds."""
    begun = datetime.fromisoformat(episode.timestamp)
    return (begun + timedelta(seconds=int(episode.duration_seconds or 0) + 1)).isoformat()


def _state(
    workspace: OpenWorkspace, repository: Repository | None, path: str, end: str
) -> FileState:
    place = workspace.layout.root / path
    if not place.exists():
        return "missing"
    if repository is None:
        return "unknown"
    try:
        edited = repository.run("status", "--porcelain", "--", str(place)).strip()
        since = repository.run("log", "-1", "--format=%H", f"--since={end}", "--", str(place))
    except GitFailed:  # before the first commit, or a path that lies outside
        return "unknown"
    if edited.startswith(b"??"):
        return "unknown"
    return "changed" if edited or since.strip() else "unchanged"
