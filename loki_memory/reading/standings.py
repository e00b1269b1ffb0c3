"""Where agents stand: their ledgers, checkpoints that wait included, and the handoffs to them.

Whoever puts this before an agent unasked names the ids that are withheld.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from loki_memory.models import Handoff, Ledger
from loki_memory.models.team import is_addressed
from loki_memory.parts import parsed
from loki_memory.reading.mistakes import TRUSTED
from loki_memory.writing.checkpoints import joined, waiting_checkpoints

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace


def ledgers(workspace: Workspace, held: Collection[str] = ()) -> list[Ledger]:
    """Every agent's ledger with what waits to be written into it, newest first."""
    waiting = waiting_checkpoints(workspace)
    rows = workspace.index.ask("SELECT id, body FROM live WHERE kind = 'ledger' ORDER BY id")
    known = (parsed("ledger", body) for name, body in rows if name not in held)
    found = [one for one in known if isinstance(one, Ledger)]
    told = [joined(one, waiting.pop(one.agent_id, one)) for one in found]
    told += waiting.values()
    return sorted(sorted(told, key=lambda one: one.id), key=Ledger.when, reverse=True)


def ledger_of(workspace: Workspace, agent: str, held: Collection[str] = ()) -> Ledger | None:
    """The ledger of an agent, also by its short name; None if it has not checked in."""
    found = ledgers(workspace, held)
    same = [one for one in found if one.agent_id == agent]
    near = [one for one in found if "-" in agent and is_addressed(agent, one.agent_id)]
    return next(iter([*same, *near]), None)


def handoffs_to(workspace: Workspace, agent: str, held: Collection[str] = ()) -> list[Handoff]:
    """Open handoffs to an agent or its role, and what it has taken on, newest first.

    For nobody in particular: all that are open. What was imported or comes from outside waits
    until it is asked for.
    """
    return [one for one in _standing(workspace) if one.id not in held and _concerns(one, agent)]


def _standing(workspace: Workspace) -> Iterator[Handoff]:
    rows = workspace.index.ask(
        "SELECT body FROM live WHERE kind = 'handoff' "  # noqa: S608
        f"AND status IN ('open', 'accepted') AND {TRUSTED} ORDER BY at DESC, id"
    )
    for (body,) in rows:
        record = parsed("handoff", body)
        if isinstance(record, Handoff):
            yield record


def _concerns(handoff: Handoff, agent: str) -> bool:
    if handoff.state == "open":
        return not agent or is_addressed(handoff.to_agent or "", agent)
    return bool(agent) and is_addressed(handoff.accepted_by or handoff.to_agent or "", agent)
