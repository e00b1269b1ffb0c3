"""Answers of the tools: their types, which clients see as output schemas, and their pages.

A page is short enough to be shown without a warning.

Claude Code warns from 10,000 tokens on. A cursor says where the next page begins, and belongs to
one question: with another question it is refused, not misread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import orjson
from typing_extensions import TypedDict  # pydantic wants these before Python 3.12

from loki_memory.errors import InvalidRecord
from loki_memory.models.ids import digest
from loki_memory.models.text import BYTES_PER_TOKEN


class Answer(TypedDict, total=False):
    """Fields that every answer may have."""

    notices: list[str]


class Paged(Answer):
    """An answer that may continue on another page."""

    next_cursor: str | None


class HitLine(TypedDict):
    """A memory in one line, and why it was found."""

    id: str
    kind: str
    title: str
    remedy: str
    excerpt: str
    why: list[str]
    score: float
    confidence: float | None
    evidence: int
    age_days: int | None
    marks: list[str]
    tokens: int


class RecallAnswer(Paged):
    """Memories that were recalled, best first."""

    hits: list[HitLine]
    filtered: int
    task: str


class LinkEnd(TypedDict):
    """A link, seen from one of its ends."""

    relation: str
    id: str


class WholeRecord(Paged):
    """A memory, whole; or, if it is too long for a page, a part of its JSON as text."""

    id: str
    kind: str
    title: str
    path: str
    record: dict[str, Any] | None
    links: list[LinkEnd]
    referred_to_by: list[LinkEnd]
    text: str


class HandoffAnswer(WholeRecord):
    """A handoff that was accepted, and its brief."""

    brief: str


class WriteAnswer(Answer):
    """A memory that was written."""

    id: str
    kind: str
    title: str
    path: str
    status: str


class RemovalAnswer(Answer):
    """Ids of what was removed."""

    removed: list[str]


class ContextLine(TypedDict):
    """A memory as it is injected."""

    id: str
    kind: str
    text: str
    confidence: float | None
    evidence: int
    status: str


class ContextAnswer(Answer):
    """The brief for a task."""

    goal: str
    task: str
    avoid_these: list[ContextLine]
    relevant_patterns: list[ContextLine]
    applicable_skills: list[ContextLine]
    episodes: list[ContextLine]
    tokens: int
    filtered: int


class EvidenceItem(TypedDict):
    """An episode that speaks for or against a belief."""

    id: str
    speaks: str
    goal: str
    outcome: str
    agent: str
    commit: str
    at: str
    kept: str


class CommitLine(TypedDict):
    """A commit that changed a belief."""

    commit: str
    at: str
    by: str
    changes: list[str]


class BlameAnswer(Paged):
    """The origin of a belief: its episodes and commits."""

    id: str
    kind: str
    title: str
    status: str
    confidence: float | None
    stated_by: str
    origin: str
    sources: list[EvidenceItem]
    steps: list[CommitLine]


class NoteAnswer(Answer):
    """A memory that somebody judged."""

    id: str
    helpful: bool


class FindingLine(TypedDict):
    """A file that is not as it was written, or a belief that cites code which has changed."""

    what: str
    id: str
    path: str
    said: str


class CheckAnswer(Paged):
    """The result of verifying memory."""

    well: bool
    records: int
    findings: list[FindingLine]


class MemoryTitle(TypedDict):
    """A memory by its name."""

    id: str
    title: str


class TopicLine(TypedDict):
    """A topic, the number of its memories, and the tokens that reading them takes."""

    id: str
    title: str
    memories: int
    tokens: int


class MemoryStatus(Answer):
    """The state of memory, its topics and the open handoffs."""

    well: bool
    workspace: str
    counts: dict[str, int]
    problems: int
    next: list[str]
    topics: list[TopicLine]
    more_topics: int
    open_handoffs: list[MemoryTitle]


# -- pages -----------------------------------------------------------------------------------------


ANSWER_TOKENS = 10_000
_AROUND = 1_000  # tokens of an answer besides the items of a page
_BYTES = (ANSWER_TOKENS - _AROUND) * BYTES_PER_TOKEN

T = TypeVar("T")


class AnswerPage(NamedTuple, Generic[T]):
    """The items of a page, and the cursor of the next page if there is one."""

    items: Sequence[T]
    next: str | None


def page(items: Sequence[T], cursor: str | None, *asked: str) -> AnswerPage[T]:
    """Return the items from the cursor on that fit; at least one, so that paging ends."""
    start = _start(cursor, asked)
    end, size = start, 0
    while end < len(items):
        size += weight(items[end])
        if size > _BYTES and end > start:
            break
        end += 1
    return AnswerPage(items[start:end], _cursor(end, asked) if end < len(items) else None)


def piece(text: str, cursor: str | None, *asked: str) -> tuple[str, str | None]:
    """Return as much of a text from the cursor on as fits, and the cursor of the rest."""
    start = _start(cursor, asked)
    part = text[start : start + _BYTES]
    while (size := weight(part)) > _BYTES:
        part = part[: len(part) * _BYTES // (size + 1)]
    end = start + len(part)
    return part, _cursor(end, asked) if end < len(text) else None


def fits(value: Any) -> bool:
    """Check if a value fits on one page."""
    return weight(value) <= _BYTES


def weight(value: Any) -> int:
    """The size of a value in bytes of JSON, which is how a client receives it."""
    return len(orjson.dumps(value))


def _cursor(start: int, asked: Sequence[str]) -> str:
    return f"{start}-{digest('cursor', *asked)}"


def _start(cursor: str | None, asked: Sequence[str]) -> int:
    if cursor is None:
        return 0
    number = cursor.partition("-")[0]
    if not number.isdecimal() or cursor != _cursor(int(number), asked):
        raise InvalidRecord(
            "is not a cursor of this question",
            field="cursor",
            advice="Repeat the arguments of the call that gave it, or leave it out.",
        )
    return int(number)
