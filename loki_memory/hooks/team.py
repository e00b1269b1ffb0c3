"""Agents that work for others: a brief when they start, a checkpoint when they are done.

Ledgers are kept for agents with a role: a member of a team, one that has a ledger already, or one
whose name has the prefix of a role (`eng-…`, `qa-…`, `ops-…`, `review-…`). Short-lived subagents
of a harness get none.
"""

from __future__ import annotations

from typing import Any

from loki_memory.hooks.response import Done, Event
from loki_memory.workspace import Workspace

_ROLES = ("eng-", "qa-", "ops-", "review-")


def subagentstart(workspace: Workspace, event: Event) -> Done:
    """Brief the agent: its ledger, handoffs to it, mistakes to avoid."""
    agent = event.text("agent_type")
    is_trusted = workspace.home.trust().is_trusted
    if not agent or not is_trusted or not _has_role(workspace, agent):
        return Done()
    surface = f"hook:{event.name}"
    return Done(
        workspace.browse.continuity_block(agent=agent, session=event.session, surface=surface)
    )


def subagentstop(workspace: Workspace, event: Event) -> Done:
    """Note a checkpoint with the first words of the agent's last message.

    A worktree that the agent worked in may be removed after this: its memory is copied.
    """
    from loki_memory.hooks.session import kept_copies

    copied = kept_copies(workspace, event)
    agent = event.text("agent_type")
    if not agent or not _has_role(workspace, agent):
        return Done(note=copied)
    from loki_memory.team import headline

    report = headline(event.text("last_assistant_message"))
    return _checkpoint(workspace, agent, event, {"last_report": report} if report else {})


def taskcompleted(workspace: Workspace, event: Event) -> Done:
    """Note that a member of a team has done a task."""
    agent, task = event.text("teammate_name"), event.text("task_subject")
    if not agent or not task:
        return Done()
    from loki_memory.team import headline

    number = workspace.team.known_fields(agent).get("tasks_completed") or 0
    fields = {"tasks_completed": number + 1, "last_task": headline(task)}
    return _checkpoint(workspace, agent, event, fields)


def _checkpoint(workspace: Workspace, agent: str, event: Event, fields: dict[str, Any]) -> Done:
    if not fields:
        return Done()
    session = {"session": event.session} if event.session else {}
    workspace.team.note_checkpoint(agent, **fields, **session)
    return Done(note=f"a checkpoint of {agent} waits")


def _has_role(workspace: Workspace, agent: str) -> bool:
    return agent.startswith(_ROLES) or bool(workspace.team.known_fields(agent))
