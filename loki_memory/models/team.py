"""Ledgers and handoffs: the state of each agent, and the work it passes to the next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from loki_memory.models.base import (
    Citation,
    Edge,
    Memory,
    Moment,
    Origin,
    Part,
    Passage,
    Text,
    Texts,
    TextSet,
)
from loki_memory.models.ids import file_stem
from loki_memory.models.kinds import Kind

HandoffStatus = Literal["open", "accepted", "done", "expired"]


def is_addressed(to_agent: str, agent: str) -> bool:
    """Check if a name addresses an agent.

    Names are a role, a number and a speciality (`qa-001-testing`), and go from the general to the
    particular: `qa` or `qa-` addresses every agent whose name begins with `qa-`. Loki Mode also
    calls the agent `eng-001-backend` `eng-001`: a name without the speciality is that agent, a bare
    role is no agent in particular.
    """
    address = to_agent.rstrip("-")
    if not address or not agent:
        return False
    is_short = "-" in agent and f"{address}-".startswith(f"{agent}-")
    return is_short or f"{agent}-".startswith(f"{address}-")


def is_role(name: str) -> bool:
    """Check if a name means all agents of a role: `qa`, `qa-`."""
    return "-" not in name.rstrip("-")


class LedgerState(Part):
    """The working tree as the agent left it."""

    files_modified: Texts = Field(default_factory=list)
    uncommitted_changes: bool | None = None
    last_git_commit: Text | None = None


class LedgerContext(Part):
    """The knowledge and goal of an agent."""

    tech_stack: Texts = Field(default_factory=list)
    patterns_learned: TextSet = Field(default_factory=list)
    handoffs: TextSet = Field(default_factory=list)  # accepted ones
    current_goal: Text | None = None


class Ledger(Memory):
    """An agent's checkpoint: one file per agent, replaced at each checkpoint."""

    kind: ClassVar[Kind] = "ledger"
    prefix: ClassVar[str] = "ledger"
    keeps_id: ClassVar[bool] = False

    agent_id: Text = Field(min_length=1)
    last_checkpoint: Moment | None = None
    tasks_completed: int | None = Field(None, ge=0)
    current_task: Text | None = None
    state: LedgerState = Field(default_factory=LedgerState)
    context: LedgerContext = Field(default_factory=LedgerContext)
    origin: Origin | None = None

    def key(self) -> tuple[str, ...]:
        return (self.agent_id,)

    def mint(self) -> str:
        return file_stem(self.agent_id)

    def title(self) -> str:
        goal = self.context.current_goal or self.current_task
        return f"{self.agent_id}: {goal}" if goal else self.agent_id

    def passage(self) -> Passage:
        lines = [self.current_task or "", *self.state.files_modified, *self.context.tech_stack]
        return Passage(self.title(), "\n".join(filter(None, lines)), "")

    def edges(self) -> Iterator[Edge]:
        yield from (Edge(pattern, "learned") for pattern in self.context.patterns_learned)
        yield from (Edge(handoff, "refers_to") for handoff in self.context.handoffs)
        yield from (Edge(f"file:{path}", "touches") for path in self.state.files_modified)

    def when(self) -> str:
        return self.last_checkpoint or ""


class HandoffContext(Part):
    """The information for the next agent."""

    what_was_done: Text | None = None
    artifacts: Texts = Field(default_factory=list)
    git_state: Text | None = None
    needs_testing: Texts = Field(default_factory=list)
    known_issues: Texts = Field(default_factory=list)
    relevant_patterns: TextSet = Field(default_factory=list)
    citations: list[Citation] = Field(default_factory=list)  # artifacts as they were handed over


class Handoff(Memory):
    """Work that one agent passes to another."""

    kind: ClassVar[Kind] = "handoff"
    prefix: ClassVar[str] = "handoff"

    from_agent: Text | None = None
    to_agent: Text | None = None
    timestamp: Moment
    context: HandoffContext = Field(default_factory=HandoffContext)
    status: HandoffStatus | None = None
    accepted_by: Text | None = None
    accepted_at: Moment | None = None
    closed_at: Moment | None = None
    note: Text | None = None
    origin: Origin | None = None

    @property
    def state(self) -> HandoffStatus:
        """The status; without one, open if it has a receiver, else done."""
        return self.status or ("open" if self.to_agent else "done")

    def key(self) -> tuple[str, ...]:
        return (
            self.from_agent or "",
            self.to_agent or "",
            self.timestamp,
            self.context.what_was_done or "",
        )

    def title(self) -> str:
        work = self.context.what_was_done or (self.model_extra or {}).get("reason") or "handoff"
        if not self.to_agent:
            return str(work)
        return f"{self.from_agent or '?'} -> {self.to_agent}: {work}"

    def passage(self) -> Passage:
        context = self.context
        lines = [*context.needs_testing, *context.known_issues, *context.artifacts]
        return Passage(self.title(), "\n".join(lines), context.git_state or "")

    def edges(self) -> Iterator[Edge]:
        yield from (Edge(pattern, "refers_to") for pattern in self.context.relevant_patterns)
        yield from (Edge(f"file:{path}", "touches") for path in self.context.artifacts)

    def when(self) -> str:
        return self.timestamp
