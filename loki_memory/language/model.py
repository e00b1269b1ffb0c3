"""The contract of a backend: a request goes in, a reply or the reason for none comes out."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol


class ModelRequest(NamedTuple):
    """One question to a language model."""

    task: str  # the name of its prompt
    system: str  # what it shall do
    prompt: str  # what it shall do it with: data in a fence
    schema: dict[str, Any]  # JSON Schema of the answer
    items: tuple[dict[str, Any], ...]  # the same data, for a backend that replays


class ModelReply(NamedTuple):
    """An answer, not looked at yet, and its cost."""

    answer: str | dict[str, Any]
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None  # US dollars, where the backend says so
    model: str = ""


class Unanswered(Exception):
    """A backend has no answer: its message says why."""

    def __init__(self, why: str, *, is_over: bool = True) -> None:
        super().__init__(why)
        self.is_over = is_over  # the next question would fare no better


def fields(value: object) -> dict[str, Any]:
    """The fields of a part of an answer; none if it is no object."""
    return value if isinstance(value, dict) else {}


def first(value: object) -> object:
    """The first item of a part of an answer; None if it is no list, or an empty one."""
    return value[0] if isinstance(value, list) and value else None


def count(value: object) -> int:
    """A number of tokens in an answer; 0 if it is none, so that none buys back a budget."""
    return value if type(value) is int and value > 0 else 0


class LanguageModel(Protocol):
    """A backend."""

    def ask(self, request: ModelRequest) -> ModelReply:
        """Answer a request; raises Unanswered."""
        ...
