"""Handoffs: the work that agents pass to each other, by receiver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response

from loki_memory.models import Handoff, Ledger
from loki_memory.ui.page import Visit, back, page, render, write

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

_STATES = ("open", "accepted", "done", "expired")
_NOBODY = "nobody in particular"


class HandoffCard(NamedTuple):
    """A handoff as the board shows it."""

    id: str
    state: str
    from_agent: str
    to_agent: str
    at: str
    done: str  # what was done
    needs_testing: list[str]
    known_issues: list[str]
    artifacts: list[str]
    accepted_by: str
    note: str


class BoardRow(NamedTuple):
    """The handoffs to one agent or role, open ones first."""

    receiver: str
    waiting: list[HandoffCard]  # open or accepted
    closed: list[HandoffCard]


class AgentState(NamedTuple):
    """The last checkpoint of an agent."""

    id: str
    agent: str
    task: str
    at: str


class HandoffsPage(NamedTuple):
    """The data of the page Handoffs."""

    rows: list[BoardRow]
    agents: list[AgentState]


def handoffs_page(workspace: Workspace) -> HandoffsPage:
    cards = [
        _card(record) for record in workspace.list(kind="handoff") if isinstance(record, Handoff)
    ]
    ledgers = [record for record in workspace.list(kind="ledger") if isinstance(record, Ledger)]
    return HandoffsPage(board(cards), [_agent(ledger) for ledger in ledgers])


def board(cards: list[HandoffCard]) -> list[BoardRow]:
    """The rows of the board; receivers with something that waits come first."""
    receivers = sorted({card.to_agent for card in cards})
    rows = [_row(receiver, cards) for receiver in receivers]
    return sorted(rows, key=lambda row: (not row.waiting, row.receiver))


def _row(receiver: str, cards: list[HandoffCard]) -> BoardRow:
    own = [card for card in cards if card.to_agent == receiver]
    own.sort(key=lambda card: _STATES.index(card.state))
    return BoardRow(
        receiver,
        waiting=[card for card in own if card.state in _STATES[:2]],
        closed=[card for card in own if card.state not in _STATES[:2]],
    )


def _card(handoff: Handoff) -> HandoffCard:
    context = handoff.context
    return HandoffCard(
        id=handoff.id,
        state=handoff.state,
        from_agent=handoff.from_agent or "somebody",
        to_agent=handoff.to_agent or _NOBODY,
        at=handoff.timestamp,
        done=context.what_was_done or handoff.title(),
        needs_testing=context.needs_testing,
        known_issues=context.known_issues,
        artifacts=context.artifacts,
        accepted_by=handoff.accepted_by or "",
        note=handoff.note or "",
    )


def _agent(ledger: Ledger) -> AgentState:
    task = ledger.context.current_goal or ledger.current_task or ""
    return AgentState(ledger.id, ledger.agent_id, task, ledger.last_checkpoint or "")


def handoffs(visit: Visit) -> Response:
    return render(visit, "handoffs.html", handoffs_page(visit.workspace))


def accept(visit: Visit) -> Response:
    done = visit.workspace.team.accept(visit.parameter("id"), visit.form.get("by") or None)
    return _told(visit, f"Accepted: {done.title()}")


def close(visit: Visit) -> Response:
    status = "expired" if visit.form.get("status") == "expired" else "done"
    note = visit.form.get("note") or None
    done = visit.workspace.team.close_handoff(visit.parameter("id"), note, status)
    return _told(visit, f"Closed: {done.title()}")


def _told(visit: Visit, words: str) -> Response:
    visit.site.broadcast.notify()
    return back(visit, "/handoffs", visit.site.undo.push(words))


routes = [
    *page("/handoffs", handoffs),
    *write("/handoffs/{id}/accept", accept),
    *write("/handoffs/{id}/close", close),
]
shapes: dict[str, Any] = {"handoffs": HandoffsPage}
