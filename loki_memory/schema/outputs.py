"""Output schemas (`--json`) of most commands."""

from __future__ import annotations

from typing import (
    Any,
    NotRequired,  # pydantic wants these before Python 3.12
)

from typing_extensions import TypedDict

from loki_memory.browse.doctor import Verdict


class Stored(TypedDict):
    """A record that a command wrote."""

    id: str
    kind: str
    title: str
    path: str
    record: dict[str, Any]


class RefusedLine(TypedDict):
    """A line of input that is not an episode."""

    line: int
    error: str


class StoredOutput(TypedDict):
    """Printed by every command that writes records."""

    stored: list[Stored]
    refused: NotRequired[list[RefusedLine]]


class OutLink(TypedDict):
    """A link that leaves a memory."""

    relation: str
    to: str


InLink = TypedDict("InLink", {"relation": str, "from": str})


class UsesOutput(TypedDict):
    """The uses of a memory in this machine's journal."""

    times: int
    last: str
    helpful: int
    unhelpful: int


class ShowOutput(Stored):
    """Printed by `show`."""

    links: list[OutLink]
    referred_to_by: list[InLink]
    uses: UsesOutput
    unverified: bool


class ListedMemory(TypedDict):
    """One line of a listing."""

    id: str
    kind: str
    title: str
    status: str
    scope: str
    at: str
    agent: str
    confidence: float | None
    pinned: bool


class ListOutput(TypedDict):
    """Printed by `list`, `learnings` and `skills`."""

    memories: list[ListedMemory]
    total: int


class LedgerOutput(TypedDict):
    """An agent's ledger."""

    id: str
    kind: str
    record: dict[str, Any]


class StandingOutput(LedgerOutput):
    """An agent's ledger, and whether a checkpoint waits to be written into it."""

    waiting: bool


class LedgersOutput(TypedDict):
    """Printed by `ledger`: all of them, or an agent's."""

    ledgers: list[StandingOutput]


class SectionOutput(TypedDict):
    """A part of a brief."""

    heading: str
    lines: list[str]


class BriefOutput(TypedDict):
    """The page that an agent needs to go on."""

    subject: str
    sections: list[SectionOutput]
    left_out: int
    more: str
    tokens: int
    text: str


class ResumeOutput(TypedDict):
    """Printed by `ledger AGENT --resume`."""

    brief: BriefOutput


class HandoffOutput(LedgerOutput):
    """A handoff and its state."""

    state: str


class PlannedHandoffOutput(TypedDict):
    """Printed by `handoff create --plan`."""

    planned: LedgerOutput


class AcceptedOutput(TypedDict):
    """Printed by `handoff accept`."""

    stored: list[Stored]
    brief: BriefOutput


class HandoffsOutput(TypedDict):
    """Printed by `handoff list`."""

    handoffs: list[HandoffOutput]


class StatusOutput(TypedDict):
    """Printed by `status`."""

    well: bool
    workspace: str
    git: bool
    counts: dict[str, int]
    private: dict[str, int]
    problems: int
    open_handoffs: int
    pending_views: list[str]
    index_bytes: int
    local: str
    capture: str
    next: list[str]


class FindingOutput(TypedDict):
    """One check of the doctor."""

    check: str
    verdict: Verdict
    said: str


class ProblemOutput(TypedDict):
    """A file that could not be read, or needs a person."""

    path: str
    reason: str
    field: str
    line: int
    advice: str


class DoctorOutput(TypedDict):
    """Printed by `doctor`."""

    well: bool
    findings: list[FindingOutput]
    problems: list[ProblemOutput]


class ChangesOutput(TypedDict):
    """Printed by `sync` and `rebuild`: paths relative to memory/."""

    added: list[str]
    modified: list[str]
    removed: list[str]


class StatsOutput(TypedDict):
    """Printed by `stats`."""

    kinds: dict[str, int]
    statuses: dict[str, int]
    scopes: dict[str, int]
    origins: dict[str, int]
    agents: dict[str, int]
    outcomes: dict[str, int]
    days: dict[str, int]
    edges: int
    words: int
    files: int
    memory_bytes: int
    index_bytes: int


class EconomicsOutput(TypedDict):
    """Printed by `stats --economics`: sums over the journal, in tokens (estimated as bytes / 4)."""

    recalls: int
    opens: int
    offered: int
    opened: int
    available: int
    whole: int
    saved: int
    ratio: float
    outcomes: dict[str, int]
    advice: list[str]


class TopicOutput(TypedDict):
    """A topic: a memory's id, `category:…` or `kind:…`."""

    id: str
    title: str
    memories: int
    kinds: dict[str, int]
    tokens: int
    last: str


class TopicsOutput(TypedDict):
    """Printed by `topics`."""

    topics: list[TopicOutput]
    more: int
    total_memories: int
    total_tokens: int


class ItemOutput(TypedDict):
    """One item of the timeline, and the memory that it comes from."""

    id: str
    at: str
    agent: str
    text: str
    outcome: str


class TimelineOutput(TypedDict):
    """Printed by `timeline`."""

    recent_actions: list[ItemOutput]
    key_decisions: list[ItemOutput]
    focus: list[ItemOutput]
    blockers: list[ItemOutput]
    next_up: list[ItemOutput]
    more: int


class NodeOutput(TypedDict):
    """A memory, a file (kind `file`) or a name that leads nowhere (kind `missing`)."""

    id: str
    kind: str
    title: str
    status: str
    distance: int


class EdgeOutput(TypedDict):
    """A link between two of the nodes."""

    source: str
    relation: str
    target: str


class GraphOutput(TypedDict):
    """Printed by `graph`."""

    root: str
    nodes: list[NodeOutput]
    edges: list[EdgeOutput]
    more: int


class FeedbackOutput(TypedDict):
    """Printed by `feedback`."""

    id: str
    helpful: bool
    episode: str | None


class GarbageOutput(TypedDict):
    """Printed by `gc`."""

    files: list[str]
    bytes: int
    untracked: list[str] | None
    completed: list[str] | None


class ForgetOutput(TypedDict):
    """Printed by `forget`: ids."""

    removed: list[str]
    changed: list[str]


class ArchiveOutput(TypedDict):
    """Printed by `archive`."""

    id: str
    path: str


class InitOutput(TypedDict):
    """Printed by `init`."""

    workspace: str
    memory: str
    local: str


class SettingOutput(TypedDict):
    """A setting and its present value."""

    name: str
    value: int | str
    default: int | str
    source: str
    variable: str
    meaning: str
    basis: str


class ConfigOutput(TypedDict):
    """Printed by `config`."""

    settings: list[SettingOutput]


class DemoStep(TypedDict):
    """A step of the demonstration."""

    why: str
    command: str
    output: str


class DemoOutput(TypedDict):
    """Printed by `demo`."""

    steps: list[DemoStep]
    folder: str


class CompletionOutput(TypedDict):
    """Printed by `completion`."""

    shell: str
    script: str


class HitOutput(TypedDict):
    """A memory that was recalled: its title, and the reasons."""

    id: str
    kind: str
    title: str
    score: float
    why: list[str]
    confidence: float | None
    at: str
    age_days: int | None
    evidence: int
    status: str
    scope: str
    stale: bool
    unverified: bool
    contradicts: list[str]
    tokens: int
    parts: NotRequired[dict[str, float]]


class RecallOutput(TypedDict):
    """Printed by `recall`."""

    hits: list[HitOutput]
    counts: str
    filtered: int
    certainty: float
    task: str
    took_ms: float


class ToldOutput(TypedDict):
    """A memory as it is injected."""

    id: str
    kind: str
    text: str
    confidence: float | None
    evidence: int
    score: float
    status: str


class ContextOutput(TypedDict):
    """Printed by `context`."""

    goal: str
    task: str
    relevant_patterns: list[ToldOutput]
    avoid_these: list[ToldOutput]
    applicable_skills: list[ToldOutput]
    episodes: list[ToldOutput]
    tokens: int
    filtered: int


class ContinuityOutput(TypedDict):
    """Printed by `continuity`: the path of the file, or with `--stdout` the block."""

    path: str
    block: str


class BranchOutput(TypedDict):
    """Printed by `explore`: a memory in a tree, and its children."""

    id: str
    kind: str
    title: str
    below: int
    children: list[BranchOutput]


class NamedMemory(TypedDict):
    """A memory by its name."""

    id: str
    kind: str
    title: str


class TraverseOutput(TypedDict):
    """Printed by `traverse`."""

    memories: list[NamedMemory]


class StepOutput(TypedDict):
    """One change of consolidation."""

    what: str
    id: str
    title: str
    evidence: list[str]
    why: str


class ConsolidateOutput(TypedDict):
    """Printed by `consolidate`."""

    day: str
    planned: bool
    episodes: int
    steps: list[StepOutput]
    written: int
    archived: int
    private: list[str]
    counts: dict[str, int]


class ClientEntry(TypedDict):
    """An entry of a client's configuration: a command, or an address."""

    command: NotRequired[str]
    args: NotRequired[list[str]]
    type: NotRequired[str]
    url: NotRequired[str]


class McpOutput(TypedDict):
    """Printed by `mcp`: an entry for the configuration of an MCP client."""

    mcpServers: dict[str, ClientEntry]


class ErrorDetail(TypedDict):
    """An error and its exit code."""

    type: str
    message: str
    exit_code: int


class ErrorOutput(TypedDict):
    """Printed on stderr by every command that fails."""

    error: ErrorDetail
