"""The contract of a backend: a request goes in, a reply or the reason for none comes out.

One backend asks nobody: it replays a file of JSON lines that any backend can write.

    {"task": "lessons", "input": {"kind": "fact", "statement": "…"}, "answer": {"text": "…"}}

An answer is found by what was asked, not by an id. It passes the same gates as a fresh one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
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


# -- recorded answers ------------------------------------------------------------------------------


class Recorded(NamedTuple):
    """A backend that knows the answers of a file and asks nobody."""

    path: str

    def ask(self, request: ModelRequest) -> ModelReply:
        """Replay the answers to those items that were recorded."""
        known = self._answers(request.task)
        found = [
            {**known[_key(item)], "id": item["id"]} for item in request.items if _key(item) in known
        ]
        return ModelReply({"items": found}, model="recorded")

    def _answers(self, task: str) -> dict[str, dict[str, Any]]:
        if not self.path:
            raise Unanswered("`language.recording` names no file to replay")
        try:
            text = Path(self.path).read_text(encoding="utf-8")
            lines = [json.loads(line) for line in text.splitlines() if line.strip()]
            return {
                _key(dict(line["input"])): dict(line["answer"])
                for line in lines
                if line["task"] == task
            }
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Unanswered(f"{self.path} is no recording ({error})") from error


def recorded_lines(
    task: str, items: Iterable[Mapping[str, Any]], answers: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """The lines by which answers can be replayed; `answers` are by the id of their item."""
    for item in items:
        answer = answers.get(item["id"])
        if answer is not None:
            line = {"task": task, "input": _without_id(item), "answer": _without_id(answer)}
            yield json.dumps(line, ensure_ascii=False) + "\n"


def _key(item: Mapping[str, Any]) -> str:
    return json.dumps(_without_id(item), sort_keys=True)


def _without_id(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "id"}
