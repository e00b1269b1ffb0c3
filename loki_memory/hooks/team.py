"""Agents that work for others: a brief when they start, a checkpoint when they are done.

Ledgers are kept for agents with a role: a member of a team, one that has a ledger already, or one
whose name has the prefix of a role (`eng-…`, `qa-…`, `ops-…`, `review-…`). Short-lived subagents
of a harness get none.
"""

from __future__ import annotations

from typing import Any

from loki_memory.hooks.event import Event
from loki_memory.hooks.response import Done
from loki_memory.models.ids import file_stem
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
    from loki_memory.team.ledgers import headline

    report = headline(event.text("last_assistant_message"))
    return _checkpoint(workspace, agent, event, {"last_report": report} if report else {})


def taskcompleted(workspace: Workspace, event: Event) -> Done:
    """Note that a member of a team has done a task."""
    agent, task = event.text("teammate_name"), event.text("task_subject")
    if not agent or not task:
        return Done()
    from loki_memory.team.ledgers import headline

    number = _ledger_fields(workspace, agent).get("tasks_completed") or 0
    fields = {"tasks_completed": number + 1, "last_task": headline(task)}
    return _checkpoint(workspace, agent, event, fields)


def _checkpoint(workspace: Workspace, agent: str, event: Event, fields: dict[str, Any]) -> Done:
    from loki_memory.team.ledgers import note_checkpoint

    if not fields:
        return Done()
    session = {"session": event.session} if event.session else {}
    note_checkpoint(workspace, agent, {**fields, **session})
    return Done(note=f"a checkpoint of {agent} waits")


def _has_role(workspace: Workspace, agent: str) -> bool:
    return agent.startswith(_ROLES) or bool(_ledger_fields(workspace, agent))


def _ledger_fields(workspace: Workspace, agent: str) -> dict[str, Any]:
    """An agent's ledger, joined with the checkpoints that wait to be written into it."""
    from loki_memory.team.ledgers import joined, waiting_checkpoints

    waiting = waiting_checkpoints(workspace.home).get(agent)
    found = workspace.home.look_up(f"ledger-{file_stem(agent)}")
    ledger = _ledger(found[1]) if found else None
    both = joined(ledger, waiting) if waiting else ledger
    return both.document() if both else {}


def _ledger(body: str) -> Any:
    import orjson

    from loki_memory.models import Ledger, parse

    return parse(Ledger, orjson.loads(body))
