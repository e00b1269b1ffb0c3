"""The uses of a workspace by feature: `ws.history`, `ws.team`, `ws.skills` and others.

Each is an object with the methods of one folder, which is imported when it is used first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from loki_memory.browse import Browse
    from loki_memory.browse.care import Care
    from loki_memory.history import History
    from loki_memory.homes import OpenWorkspace
    from loki_memory.ingest import Sessions
    from loki_memory.injection import Injector
    from loki_memory.interop import Interop, Skills
    from loki_memory.team import Team

W = TypeVar("W", bound="OpenWorkspace")


def history(workspace: W) -> History[W]:
    """Memory in git: commit, diff, review, blame and the like."""
    from loki_memory.history import History

    return History(workspace)


def team(workspace: OpenWorkspace) -> Team:
    """The work of several agents: ledgers, handoffs and briefs."""
    from loki_memory.team import Team

    return Team(workspace)


def skills(workspace: OpenWorkspace) -> Skills:
    """Skills, and their copies where agents look for them."""
    from loki_memory.interop import Skills

    return Skills(workspace)


def interop(workspace: OpenWorkspace) -> Interop:
    """Memory of other systems: import it, and list ours there."""
    from loki_memory.interop import Interop

    return Interop(workspace)


def browse(workspace: OpenWorkspace) -> Browse:
    """Lists, topics, timeline, graph, counts, and what was injected."""
    from loki_memory.browse import Browse

    return Browse(workspace)


def care(workspace: OpenWorkspace) -> Care:
    """Problems of files, the doctor, and clearing what is no longer needed."""
    from loki_memory.browse.care import Care

    return Care(workspace)


def sessions(workspace: OpenWorkspace) -> Sessions:
    """Sessions of agents: those that wait, verdicts of gates, pauses."""
    from loki_memory.ingest import Sessions

    return Sessions(workspace)


def injection(workspace: OpenWorkspace) -> Injector:
    """The lines that an agent is told unasked: brief, hints, lessons at an error."""
    from loki_memory.injection import Injector

    return Injector(workspace)
