"""The goal of an agent's work, kept between commands so that memory can be told for it again."""

from __future__ import annotations

import json  # not orjson, which takes longer to load: a session begins with this
from typing import TYPE_CHECKING

from loki_memory.files import disk
from loki_memory.files.redaction import redact

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace


def last_goal(workspace: OpenWorkspace, agent: str) -> str:
    """Read the last goal of an agent; empty if there was none."""
    return redact(_goals(workspace).get(agent, ""))


def note_goal(workspace: OpenWorkspace, agent: str, goal: str) -> None:
    """Keep the goal of an agent."""
    goals = _goals(workspace)
    if goals.get(agent, "") == goal or not goal:
        return
    from loki_memory.files.store import (
        failures_named,
    )  # with the models, which reading does without

    path = workspace.layout.local / "goals.json"
    with failures_named(path):
        disk.write_bytes(path, json.dumps({**goals, agent: goal}, sort_keys=True).encode())


def _goals(workspace: OpenWorkspace) -> dict[str, str]:
    data = disk.read_bytes(workspace.layout.local / "goals.json")
    try:
        found = json.loads(data) if data else {}
    except ValueError:
        return {}
    return {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}
