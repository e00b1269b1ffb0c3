"""Beliefs: learned from episodes or stated by a person or agent, with their evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import AliasChoices, Field

from loki_memory.models.base import (
    Citation,
    Edge,
    Evidence,
    Importance,
    Links,
    Memory,
    Moment,
    Origin,
    Part,
    Passage,
    Scope,
    Score,
    Status,
    Text,
    Texts,
    TextSet,
)
from loki_memory.models.kinds import Kind
from loki_memory.models.text import normal


class Belief(Memory):
    """The common fields of patterns, anti-patterns and facts."""

    category: Text | None = None
    confidence: Score | None = None
    importance: Importance | None = None
    status: Status = "active"
    scope: Scope = "project"
    source_episodes: TextSet = Field(default_factory=list)
    evidence: Evidence = Field(default_factory=Evidence)
    parent: Text | None = None
    depth: int | None = Field(None, ge=0)
    tags: TextSet = Field(default_factory=list)
    pinned: bool = False
    by: Text | None = None
    session: Text | None = None
    at: Moment | None = None
    valid_from: Moment | None = None
    invalid_at: Moment | None = None
    origin: Origin | None = None
    citations: list[Citation] = Field(default_factory=list)
    usage_count: int | None = None
    last_used: Moment | None = None
    history: list[dict[str, Any]] = Field(default_factory=list)
    conflicts: list[dict[str, Any]] = Field(default_factory=list)
    links: Links = Field(default_factory=list)

    def title(self) -> str:
        return self.value()

    def key(self) -> tuple[str, ...]:
        return (self.scope, normal(self.value()))

    def episodes_for(self) -> list[str]:
        """The episodes that support this belief, from either of the two fields."""
        return sorted(self.rests_on())

    def rests_on(self) -> set[str]:
        """The same without order, which is faster for thousands of beliefs."""
        return {*self.source_episodes, *self.evidence.for_}

    def episodes_against(self) -> list[str]:
        """The episodes that speak against it."""
        return self.evidence.against

    def edges(self) -> Iterator[Edge]:
        yield from (
            Edge(link.to, link.relation, 1.0 if link.strength is None else link.strength)
            for link in self.links
        )
        yield from (Edge(episode, "derived_from") for episode in self.episodes_for())
        yield from (Edge(episode, "contradicted_by") for episode in self.episodes_against())
        yield from (Edge(f"file:{cited.path}", "cites") for cited in self.citations)
        if self.parent:
            yield Edge(self.parent, "part_of")

    def when(self) -> str:
        return self.at or self.valid_from or self.last_used or ""


class Pattern(Belief):
    """A way of doing things that episodes have confirmed."""

    kind: ClassVar[Kind] = "pattern"
    prefix: ClassVar[str] = "sem"

    pattern: Text = Field(min_length=1)
    category: Text | None = None
    conditions: Texts = Field(default_factory=list)
    correct_approach: Text | None = None
    incorrect_approach: Text | None = None

    def value(self) -> str:
        return self.pattern

    def passage(self) -> Passage:
        approaches = [self.correct_approach or "", self.incorrect_approach or ""]
        lines = [*self.conditions, *approaches, self.category or "", *self.tags]
        return Passage(self.pattern, "\n".join(filter(None, lines)), "")


class Resolution(Part):
    """A remedy for an error, with the episodes where it did and did not help."""

    do: Text
    for_: TextSet = Field(default_factory=list, alias="for")
    against: TextSet = Field(default_factory=list)


class AntiPattern(Belief):
    """An approach that fails, why, and what to do instead."""

    kind: ClassVar[Kind] = "anti-pattern"
    prefix: ClassVar[str] = "anti"

    what_fails: Text = Field(min_length=1)
    why: Text | None = None
    prevention: Text | None = None
    resolutions: list[Resolution] = Field(default_factory=list)
    source: Text | None = None

    def key(self) -> tuple[str, ...]:
        return (self.scope, normal(self.what_fails), normal(self.why or ""))

    def value(self) -> str:
        return f"{self.what_fails}: {self.why}" if self.why else self.what_fails

    def rests_on(self) -> set[str]:
        found = super().rests_on().union(*(resolution.for_ for resolution in self.resolutions))
        return {*found, self.source} if self.source else found

    def episodes_against(self) -> list[str]:
        failed = (episode for resolution in self.resolutions for episode in resolution.against)
        return sorted({*super().episodes_against(), *failed})

    def errors(self) -> Iterator[str]:
        yield self.what_fails
        if self.why:
            yield self.why

    def passage(self) -> Passage:
        lines = [self.prevention or "", *(resolution.do for resolution in self.resolutions)]
        lines += [self.category or "", *self.tags]
        return Passage(self.value(), "\n".join(filter(None, lines)), "")


class Surprise(Part):
    """The share of a statement that was news when it was made, and what it follows from."""

    score: Score
    novelty: Score
    contradiction: Score
    specificity: Score
    emphasis: Score
    context_switch: Score


class Fact(Belief):
    """A statement of a person or agent, or an observation.

    `subject` and `attribute` are its slot: two facts with one slot and different values
    contradict each other.
    """

    kind: ClassVar[Kind] = "fact"
    prefix: ClassVar[str] = "fact"

    statement: Text = Field(
        min_length=1,
        validation_alias=AliasChoices("statement", "fact", "content", "text"),
    )
    subject: Text | None = None
    attribute: Text | None = None
    type: Text | None = None  # preference, decision, convention, gotcha, fact, entity, …
    score: Score | None = None  # the chance that an extracted statement is worth keeping
    surprise: Surprise | None = None  # of an extracted statement

    def key(self) -> tuple[str, ...]:
        placed = (self.session or "", self.at or "")
        return (self.scope, normal(self.statement), *(placed if any(placed) else ()))

    def value(self) -> str:
        return self.statement

    def passage(self) -> Passage:
        """The statement after its speaker: a question names people."""
        statement = f"{self.by}: {self.statement}" if self.by else self.statement
        lines = [self.subject or "", self.attribute or "", self.category or "", *self.tags]
        return Passage(statement, "\n".join(filter(None, lines)), "")
