"""The small records around beliefs: links, learnings and tombstones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import AliasChoices, Field, model_validator

from loki_memory.models.base import (
    Edge,
    Importance,
    Memory,
    Moment,
    Origin,
    Passage,
    Scope,
    Score,
    Text,
    TextSet,
)
from loki_memory.models.ids import digest
from loki_memory.models.kinds import Kind
from loki_memory.models.text import normal


class Link(Memory):
    """A link that a person or agent stated between two memories."""

    kind: ClassVar[Kind] = "link"
    prefix: ClassVar[str] = "link"

    from_: Text = Field(
        min_length=1,
        validation_alias=AliasChoices("from", "from_", "source"),
        serialization_alias="from",
    )
    relation: Text = "related_to"
    to: Text = Field(min_length=1, validation_alias=AliasChoices("to", "target"))
    strength: Score | None = None
    note: Text | None = None
    origin: Origin | None = None

    def key(self) -> tuple[str, ...]:
        return (self.from_, self.relation, self.to)

    def title(self) -> str:
        return f"{self.from_} {self.relation} {self.to}"

    def passage(self) -> Passage:
        return Passage(self.note or "", "", "")

    def edges(self) -> Iterator[Edge]:
        yield Edge(self.to, self.relation, 1.0 if self.strength is None else self.strength)


class Learning(Memory):
    """A lesson of one day: from an agent's own notes, or the entry of an anti-pattern in a view."""

    kind: ClassVar[Kind] = "learning"
    prefix: ClassVar[str] = "learn"

    timestamp: Moment
    lesson: Text = Field(
        min_length=1,
        validation_alias=AliasChoices("lesson", "learning", "text", "content", "message"),
    )
    error: Text | None = None
    resolution: Text | None = None
    source: Text | None = None
    agent: Text | None = None
    category: Text | None = None
    importance: Importance | None = None
    scope: Scope = "project"
    tags: TextSet = Field(default_factory=list)
    pinned: bool = False
    origin: Origin | None = None

    @classmethod
    def taught_by(cls, source: str, day: str, error: str, resolution: str) -> Learning:
        """The entry of an anti-pattern among the learnings of a day; no file holds it."""
        lesson = f"{error}: {resolution}"
        name = f"{cls.prefix}-{_view_digest(source, day, lesson)}"
        found = cls(
            id=name,
            timestamp=day,
            lesson=lesson,
            error=error,
            resolution=resolution,
            source=source,
        )
        return cls.model_validate(found.document())

    @property
    def is_view_entry(self) -> bool:
        """Check if it is, word for word, the entry of an anti-pattern: nobody has edited it."""
        lesson = f"{self.error}: {self.resolution}"
        name = f"{self.prefix}-{_view_digest(self.source or '', self.date, lesson)}"
        return (self.id, self.lesson) == (name, lesson)

    @property
    def date(self) -> str:
        return self.timestamp[:10]

    def key(self) -> tuple[str, ...]:
        return (self.scope, self.date, normal(self.lesson), self.source or "")

    def value(self) -> str:
        return self.lesson

    def title(self) -> str:
        return self.lesson

    def passage(self) -> Passage:
        lines = [self.error or "", self.resolution or "", self.category or "", *self.tags]
        return Passage(self.lesson, "\n".join(filter(None, lines)), "")

    def errors(self) -> Iterator[str]:
        if self.error:
            yield self.error

    def edges(self) -> Iterator[Edge]:
        if self.source:
            yield Edge(self.source, "derived_from")

    def when(self) -> str:
        return self.timestamp


def _view_digest(source: str, day: str, lesson: str) -> str:
    """The unique part of a view entry's id, made of all that it says: edited, it does not fit."""
    return digest("taught", source, day, lesson)


class Tombstone(Memory):
    """A value that a person rejected: the store refuses it from then on."""

    kind: ClassVar[Kind] = "tombstone"
    prefix: ClassVar[str] = "tomb"

    value_: Text = Field(min_length=1, alias="value")
    why: Text | None = None
    rejected: Text | None = None
    scope: Scope = "project"
    at: Moment | None = None
    origin: Origin | None = None

    @model_validator(mode="before")
    @classmethod
    def _id_follows_value(cls, data: Any) -> Any:
        """Derive the id from the value: a tombstone with another id would refuse nothing."""
        if isinstance(data, dict) and isinstance(data.get("value"), str):
            return {**data, "id": tombstone_id(data["value"])}
        return data

    def key(self) -> tuple[str, ...]:
        return (normal(self.value_),)

    def title(self) -> str:
        return self.value_

    def passage(self) -> Passage:
        return Passage("", "", "")

    def when(self) -> str:
        return self.at or ""


def tombstone_id(value: str) -> str:
    """The id of a value's tombstone, whether or not there is one."""
    return f"{Tombstone.prefix}-{digest(Tombstone.kind, normal(value))}"
