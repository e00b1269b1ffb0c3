"""Where agents stand: their ledgers, checkpoints that wait included, and the handoffs to them.

Whoever puts this before an agent unasked names the ids that are withheld (`held`), and is given no
ledger that was imported or comes from outside; who asks names none and is given all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from loki_memory.models import Handoff, Ledger
from loki_memory.models.team import is_addressed
from loki_memory.parts import parsed
from loki_memory.recall.gate import TRUSTED
from loki_memory.writing.checkpoints import joined, waiting_checkpoints

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace


def ledgers(workspace: Workspace, held: Collection[str] | None = None) -> list[Ledger]:
    """Every agent's ledger with what waits to be written into it, newest first."""
    waiting = waiting_checkpoints(workspace)
    rows = workspace.index.ask(
        f"SELECT id, body, {TRUSTED} FROM live AS m WHERE kind = 'ledger' ORDER BY id"  # noqa: S608
    )
    if held is not None:
        rows = [row for row in rows if row[2] and row[0] not in held]
    known = (parsed("ledger", body) for _, body, _ in rows)
    found = [one for one in known if isinstance(one, Ledger)]
    told = [joined(one, waiting.pop(one.agent_id, one)) for one in found]
    told += waiting.values()
    return sorted(sorted(told, key=lambda one: one.id), key=Ledger.when, reverse=True)


def ledger_of(
    workspace: Workspace, agent: str, held: Collection[str] | None = None
) -> Ledger | None:
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
        "SELECT body FROM live AS m WHERE kind = 'handoff' "  # noqa: S608
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
