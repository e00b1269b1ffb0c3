"""Answers of the tools: the types that clients see as output schemas."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict  # pydantic wants these before Python 3.12


class Answer(TypedDict, total=False):
    """Fields that every answer may have."""

    notices: list[str]


class Paged(Answer):
    """An answer that may continue on another page."""

    next_cursor: str | None


class Hit(TypedDict):
    """A memory in one line, and why it was found."""

    id: str
    kind: str
    title: str
    remedy: str
    why: list[str]
    score: float
    confidence: float | None
    evidence: int
    age_days: int | None
    marks: list[str]
    tokens: int


class Recalled(Paged):
    """Memories that were recalled, best first."""

    hits: list[Hit]
    filtered: int
    task: str


class Linked(TypedDict):
    """A link, seen from one of its ends."""

    relation: str
    id: str


class Opened(Paged):
    """A memory, whole; or, if it is too long for a page, a part of its JSON as text."""

    id: str
    kind: str
    title: str
    path: str
    record: dict[str, Any] | None
    links: list[Linked]
    referred_to_by: list[Linked]
    text: str


class TakenOn(Opened):
    """A handoff that was accepted, and its brief."""

    brief: str


class Stored(Answer):
    """A memory that was written."""

    id: str
    kind: str
    title: str
    path: str
    status: str


class Removed(Answer):
    """Ids of what was removed."""

    removed: list[str]


class Told(TypedDict):
    """A memory as it is injected."""

    id: str
    kind: str
    text: str
    confidence: float | None
    evidence: int
    status: str


class Briefing(Answer):
    """The brief for a task."""

    goal: str
    task: str
    avoid_these: list[Told]
    relevant_patterns: list[Told]
    applicable_skills: list[Told]
    episodes: list[Told]
    tokens: int
    filtered: int


class Source(TypedDict):
    """An episode that speaks for or against a belief."""

    id: str
    speaks: str
    goal: str
    outcome: str
    agent: str
    commit: str
    at: str
    kept: str


class Step(TypedDict):
    """A commit that changed a belief."""

    commit: str
    at: str
    by: str
    changes: list[str]


class Blamed(Paged):
    """The origin of a belief: its episodes and commits."""

    id: str
    kind: str
    title: str
    status: str
    confidence: float | None
    stated_by: str
    origin: str
    sources: list[Source]
    steps: list[Step]


class Noted(Answer):
    """A memory that somebody judged."""

    id: str
    helpful: bool


class Finding(TypedDict):
    """A file that is not as it was written, or a belief that cites code which has changed."""

    what: str
    id: str
    path: str
    said: str


class Checked(Paged):
    """The result of verifying memory."""

    well: bool
    records: int
    findings: list[Finding]


class Named(TypedDict):
    """A memory by its name."""

    id: str
    title: str


class TopicLine(TypedDict):
    """A topic, the number of its memories, and the tokens that reading them takes."""

    id: str
    title: str
    memories: int
    tokens: int


class State(Answer):
    """The state of memory, its topics and the open handoffs."""

    well: bool
    workspace: str
    counts: dict[str, int]
    problems: int
    next: list[str]
    topics: list[TopicLine]
    more_topics: int
    open_handoffs: list[Named]
