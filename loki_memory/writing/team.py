"""Work among agents: checkpoints in ledgers, and handoffs from one agent to the next.

A handoff is open until somebody accepts it, and accepted until it is done or has expired; it never
goes back. Whoever accepts it has it in their ledger from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from loki_memory.errors import InvalidRecord
from loki_memory.models import Handoff, Ledger, parse
from loki_memory.models.team import is_role
from loki_memory.writing.checkpoints import put, take_over_checkpoints, told
from loki_memory.writing.remembering import advanced

if TYPE_CHECKING:
    from loki_memory.parts import Changing
    from loki_memory.workspace import Workspace


def checkpoint(workspace: Workspace, ledger: Ledger | Mapping[str, Any]) -> Ledger:
    """Write an agent's ledger, replacing its last one."""
    document = ledger.document() if isinstance(ledger, Ledger) else dict(ledger)
    document.setdefault("last_checkpoint", workspace.now())
    record = parse(Ledger, {**document, "origin": workspace.origin})
    workspace.before_write()
    take_over_checkpoints(workspace)
    workspace.know_strangers("ledgers")
    return workspace.store.write(record, workspace.place_of(record.id) or "")  # type: ignore[return-value]


def check_in(workspace: Workspace, agent: str, fields: Mapping[str, Any]) -> Ledger:
    """Write what is new of an agent into its ledger; what is not told stays as it was."""
    new = told(agent, fields, workspace.now(), workspace.origin)
    workspace.before_write()
    take_over_checkpoints(workspace)
    workspace.know_strangers("ledgers")
    with workspace.store.change() as change:
        return put(workspace, change, new)


def draft(
    workspace: Workspace,
    from_agent: str,
    to_agent: str,
    what_was_done: str | None,
    context: Mapping[str, Any],
) -> Handoff:
    """A handoff as it would be written: what is given, and what the record itself tells."""
    from loki_memory.writing.gathering import completed

    for name, text in (("from", from_agent), ("to", to_agent)):
        if not text.strip():
            raise InvalidRecord("is empty", field=name, advice="A handoff needs both agents.")
    given = {"what_was_done": what_was_done, **context}
    document = {
        "from_agent": from_agent,
        "to_agent": to_agent,
        "timestamp": workspace.now(),
        "context": completed(workspace, from_agent, given),
        "status": "open",
        "origin": workspace.origin,
    }
    return parse(Handoff, document)


def hand_off(
    workspace: Workspace,
    from_agent: str,
    to_agent: str,
    what_was_done: str | None,
    context: Mapping[str, Any],
) -> Handoff:
    """Pass work to another agent."""
    workspace.before_write()
    take_over_checkpoints(workspace)
    record = draft(workspace, from_agent, to_agent, what_was_done, context)
    with workspace.store.change() as change:
        return change.create(record)  # type: ignore[return-value]


def accept(workspace: Workspace, handoff: Changing, by: str | None) -> Handoff:
    """Take on a handoff that is open; the receiver's ledger refers to it in the same change."""
    take_over_checkpoints(workspace)
    workspace.know_strangers("ledgers")
    with handoff as (change, path, record):
        taken = advanced(record, "accepted", {"accepted_at": workspace.now(), "accepted_by": by})
        receiver = by or taken.to_agent or ""
        if by or not is_role(receiver):
            fields = {"context": {"handoffs": [taken.id]}}
            new = told(receiver, fields, workspace.now(), workspace.origin)
            put(workspace, change, new)
        return change.put(taken, path)  # type: ignore[return-value]


def close_handoff(
    workspace: Workspace, handoff: Changing, note: str | None, status: str
) -> Handoff:
    """Say that a handoff is `done`, or has `expired`."""
    take_over_checkpoints(workspace)
    with handoff as (change, path, record):
        closed = advanced(record, status, {"closed_at": workspace.now(), "note": note})
        return change.put(closed, path)  # type: ignore[return-value]
