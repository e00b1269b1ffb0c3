"""Episodes: the work of an agent on one goal. Every learned belief comes from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from loki_memory.models.base import (
    Edge,
    Importance,
    Links,
    Memory,
    Moment,
    Origin,
    Part,
    Passage,
    Scope,
    Score,
    Text,
    Texts,
    TextSet,
)
from loki_memory.models.ids import digest
from loki_memory.models.kinds import Kind

_OUTCOMES = {
    **dict.fromkeys(("succeeded", "passed", "pass", "ok", "completed", "done"), "success"),
    **dict.fromkeys(("failed", "fail", "error", "errored"), "failure"),
}


def _outcome(value: Any) -> Any:
    """Normalise an outcome: agents write `failed` as often as `failure`."""
    if not isinstance(value, str):
        return value
    return _OUTCOMES.get(value.lower(), value.lower())


Outcome = Annotated[Literal["success", "failure", "partial", "unknown"], BeforeValidator(_outcome)]


def _error(value: Any) -> Any:
    """Turn an error that is bare text into its message."""
    return {"message": value} if isinstance(value, str) else value


def _statement(value: Any) -> Any:
    """A statement given as bare text is a fact."""
    return {"text": value} if isinstance(value, str) else value


class Action(Part):
    """One step: `t` is seconds since the start."""

    t: int | float | Text | None = None
    action: Text = ""
    target: Text | None = None
    result: Text | None = None
    error: Text | None = None


class ErrorMet(Part):
    """An error, and its resolution if it has one."""

    type: Text = ""
    message: Text = ""
    resolution: Text | None = None  # what to do about it, in words
    hunk: Text | None = None  # the change that mended it, in one line
    command: Text | None = None  # the command that mended it, or worked in the end


class Statement(Part):
    """A sentence of the session that is worth keeping, and what it is about."""

    text: Text = Field(min_length=1)
    type: Text = "fact"
    source: Text | None = None  # say, written, user or compact
    score: Score | None = None  # the chance that it is worth keeping
    resolved: bool = False  # it tells of a defect that the session mended afterwards
    quoted: bool = False  # it repeats what the user had written


class Context(Part):
    """The goal of the work and its circumstances."""

    phase: Text | None = None
    goal: Text = Field(min_length=1)
    constraints: Texts = Field(default_factory=list)
    files_involved: Texts = Field(default_factory=list)


class Recalled(Part):
    """A memory that was shown during the episode, and whether it helped."""

    id: Text
    helpful: bool | None = None


class Episode(Memory):
    """The work of an agent on one goal."""

    kind: ClassVar[Kind] = "episode"
    prefix: ClassVar[str] = "ep"

    task_id: Text | None = None
    timestamp: Moment
    duration_seconds: int | float | None = None
    agent: Text | None = None
    session: Text | None = None
    context: Context
    summary: Text | None = None  # the closing message
    statements: list[Annotated[Statement, BeforeValidator(_statement)]] = Field(
        default_factory=list
    )
    action_log: list[Action] = Field(default_factory=list)
    outcome: Outcome = "unknown"
    errors_encountered: list[Annotated[ErrorMet, BeforeValidator(_error)]] = Field(
        default_factory=list
    )
    artifacts_produced: Texts = Field(default_factory=list)
    git_commit: Text | None = None
    git_branch: Text | None = None  # that was checked out when the work ended
    tokens_used: int | None = None
    files_read: Texts = Field(default_factory=list)
    files_modified: Texts = Field(default_factory=list)
    recalled: list[Recalled] = Field(default_factory=list)
    importance: Importance | None = None
    scope: Scope = "project"
    tags: TextSet = Field(default_factory=list)
    prompt_hashes: list[Text] = Field(
        default_factory=list
    )  # of every eight words in a row that its user wrote: what is published repeats none of them
    captured: bool = False  # made from a transcript: the goal is a user's prompt, word for word
    pinned: bool = False
    origin: Origin | None = None
    links: Links = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _goal_inside_context(cls, data: Any) -> Any:
        """Move a goal from the top level to `context.goal`."""
        if not isinstance(data, dict) or "goal" not in data:
            return data
        context = data.get("context") or {}
        if not isinstance(context, dict) or "goal" in context:
            return data
        rest = {name: value for name, value in data.items() if name != "goal"}
        return {**rest, "context": {"goal": data["goal"], **context}}

    @property
    def goal(self) -> str:
        return self.context.goal

    @property
    def date(self) -> str:
        return self.timestamp[:10]

    def key(self) -> tuple[str, ...]:
        return (self.agent or "", self.task_id or "", self.timestamp, self.goal)

    def mint(self) -> str:
        """The date stays readable: `ep-2026-01-06-k7f3q2m9ab`."""
        return f"{self.date}-{digest(self.kind, *self.key())}"

    def title(self) -> str:
        return self.goal

    def passage(self) -> Passage:
        """Index goal, closing message, statements, errors and files above the log of actions."""
        errors = [f"{e.type} {e.message} {e.resolution or ''}" for e in self.errors_encountered]
        stated = [statement.text for statement in self.statements]
        lines = [
            *filter(None, [self.summary]),
            *stated,
            *errors,
            *self.context.constraints,
            *sorted(self.files()),
            *self.tags,
        ]
        log = [
            " ".join(filter(None, (a.action, a.target, a.result, a.error))) for a in self.action_log
        ]
        return Passage(self.goal, "\n".join(lines), "\n".join(log))

    def files(self) -> set[str]:
        """All files that the episode names as its own."""
        return {
            *self.context.files_involved,
            *self.artifacts_produced,
            *self.files_read,
            *self.files_modified,
        }

    def edges(self) -> Iterator[Edge]:
        yield from (Edge(link.to, link.relation, _weight(link.strength)) for link in self.links)
        # A memory that was only shown is not linked; one that helped or misled is.
        judged = (memory for memory in self.recalled if memory.helpful is not None)
        yield from (Edge(memory.id, "recalled") for memory in judged)
        yield from (Edge(f"file:{path}", "touches") for path in sorted(self.files()))

    def errors(self) -> Iterator[str]:
        yield from (met.message or met.type for met in self.errors_encountered)

    def when(self) -> str:
        return self.timestamp


def _weight(strength: float | None) -> float:
    return 1.0 if strength is None else strength
