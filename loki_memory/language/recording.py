"""Recorded answers: a file of JSON lines that any backend can write and one backend replays.

    {"task": "lessons", "input": {"kind": "fact", "statement": "…"}, "answer": {"text": "…"}}

An answer is found by what was asked, not by an id. It passes the same gates as a fresh one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from loki_memory.language.model import ModelReply, ModelRequest, Unanswered


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
