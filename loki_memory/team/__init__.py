"""The team: ledgers, handoffs and briefs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace
    from loki_memory.injection.told import ToldLine
    from loki_memory.models import Handoff, Ledger
    from loki_memory.team.brief import Brief

BUDGET = 800  # tokens of a brief, as `context` has


class Team:
    """The work of several agents, as `ws.team`: ledgers, handoffs and briefs."""

    def __init__(self, workspace: OpenWorkspace) -> None:
        self._workspace = workspace

    def checkpoint(self, ledger: Ledger | Mapping[str, Any]) -> Ledger:
        """Write an agent's ledger, replacing its last one.

        >>> ws.team.checkpoint({"agent_id": "qa-001", "current_task": "task-7"})  # doctest: +SKIP
        """
        from loki_memory.team.handoffs import checkpoint

        return checkpoint(self._workspace, ledger)

    def check_in(self, agent: str, **fields: Any) -> Ledger:
        """Write what is new of an agent into its ledger; what is not told stays as it was.

        >>> ws.team.check_in("qa-001", current_task="task-7")  # doctest: +SKIP
        """
        from loki_memory.team.handoffs import check_in

        return check_in(self._workspace, agent, fields)

    def note_checkpoint(self, agent: str, **fields: Any) -> Ledger:
        """The same from background work: it waits on this machine until a command writes it."""
        from loki_memory.team.ledgers import note_checkpoint

        return note_checkpoint(self._workspace, agent, fields)

    def waiting_checkpoints(self) -> dict[str, Ledger]:
        """The checkpoints that wait to be written, joined by agent."""
        from loki_memory.team.ledgers import waiting_checkpoints

        return waiting_checkpoints(self._workspace.home)

    def ledgers(self) -> list[Ledger]:
        """Every agent's ledger, joined with its waiting checkpoint, newest first."""
        from loki_memory.team.ledgers import ledgers

        self._workspace.home.ensure("read")
        return self._workspace.home.answer(lambda: ledgers(self._workspace))

    def ledger_of(self, agent: str) -> Ledger | None:
        """The ledger of an agent, also by its short name; None if it has not checked in."""
        from loki_memory.team.ledgers import ledger_of

        self._workspace.home.ensure("read")
        return self._workspace.home.answer(lambda: ledger_of(self._workspace, agent))

    def known_fields(self, agent: str) -> dict[str, Any]:
        """An agent's ledger, joined with the checkpoints that wait; looks at no other file."""
        from loki_memory.team.ledgers import known_fields

        return known_fields(self._workspace, agent)

    def open_handoffs_to(self, agent: str) -> list[Handoff]:
        """Open handoffs to an agent or its role that it may be told of unasked, newest first."""
        from loki_memory.index.gate import standing_handoffs

        if not standing_handoffs(self._workspace.index):  # the models take 100 ms to load
            return []
        from loki_memory.injection.gate import withheld
        from loki_memory.team.ledgers import handoffs_to

        found = handoffs_to(self._workspace, agent, withheld(self._workspace.home))
        return [handoff for handoff in found if handoff.state == "open"]

    def take_over_checkpoints(self) -> list[Ledger]:
        """Write the checkpoints that wait into the ledgers, and say which those are."""
        from loki_memory.team.ledgers import take_over_checkpoints

        return take_over_checkpoints(self._workspace)

    def hand_off(
        self, from_agent: str, to_agent: str, what_was_done: str | None = None, **context: Any
    ) -> Handoff:
        """Pass work to another agent; `context` takes artifacts, needs_testing, known_issues, …

        What is not given, and what is recorded besides, is taken from the sender's episodes and
        ledger since its last handoff, from gates and from git.

        >>> ws.team.hand_off("eng-1", "qa-1", "Added search")  # doctest: +SKIP
        """
        from loki_memory.team.handoffs import hand_off

        return hand_off(self._workspace, from_agent, to_agent, what_was_done, context)

    def draft_handoff(
        self, from_agent: str, to_agent: str, what_was_done: str | None = None, **context: Any
    ) -> Handoff:
        """The handoff that `hand_off` would write; nothing is written."""
        from loki_memory.team.handoffs import draft

        return draft(self._workspace, from_agent, to_agent, what_was_done, context)

    def accept(self, handoff_id: str, by: str | None = None) -> Handoff:
        """Take on a handoff that is open; the receiver's ledger refers to it."""
        from loki_memory.team.handoffs import accept

        return accept(self._workspace, self._workspace.homes.changing(handoff_id), by)

    def close_handoff(
        self, handoff_id: str, note: str | None = None, status: str = "done"
    ) -> Handoff:
        """Say that a handoff is `done`, or has `expired`."""
        from loki_memory.team.handoffs import close_handoff

        changing = self._workspace.homes.changing(handoff_id)
        return close_handoff(self._workspace, changing, note, status)

    def resume_brief(self, agent: str, budget: int = BUDGET) -> Brief:
        """Write the brief that an agent needs to go on, within a budget of tokens.

        >>> print(ws.team.resume_brief("eng-001-backend").text())  # doctest: +SKIP
        """
        from loki_memory.team.brief import resume_brief

        return resume_brief(self._workspace, agent, budget)

    def session_brief(self, goal: str | None = None, agent: str = "") -> list[ToldLine]:
        """Preview what a session is told at its start, for the last goal; nothing is noted."""
        from loki_memory.injection.brief import brief_lines
        from loki_memory.injection.gate import withheld
        from loki_memory.injection.session_state import last_goal
        from loki_memory.team.ledgers import handoffs_to

        workspace = self._workspace
        found = handoffs_to(workspace, agent, withheld(workspace.home))
        handoffs = (handoff for handoff in found if handoff.state == "open")
        goal = last_goal(workspace, agent) if goal is None else goal
        return brief_lines(workspace, goal, handoffs)

    def handoff_brief(self, handoff: Handoff, budget: int = BUDGET) -> Brief:
        """Write the brief for the agent that takes on a handoff, within a budget of tokens."""
        from loki_memory.team.brief import handoff_brief

        return handoff_brief(self._workspace, handoff, budget)


def headline(text: str) -> str:
    """The first line of an agent's message, redacted and short enough for a ledger."""
    from loki_memory.team.ledgers import headline

    return headline(text)
