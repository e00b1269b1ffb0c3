"""Answers in pages, each short enough for a client to show it without a warning.

Claude Code warns from 10,000 tokens on. A cursor says where the next page begins, and belongs to
one question: with another question it is refused, not misread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import orjson

from loki_memory.errors import InvalidRecord
from loki_memory.models.ids import digest
from loki_memory.models.text import BYTES_PER_TOKEN

ANSWER_TOKENS = 10_000
_AROUND = 1_000  # tokens of an answer besides the items of a page
_BYTES = (ANSWER_TOKENS - _AROUND) * BYTES_PER_TOKEN

T = TypeVar("T")


class Page(NamedTuple, Generic[T]):
    """The items of a page, and the cursor of the next page if there is one."""

    items: Sequence[T]
    next: str | None


def page(items: Sequence[T], cursor: str | None, *asked: str) -> Page[T]:
    """Return the items from the cursor on that fit; at least one, so that paging ends."""
    start = _start(cursor, asked)
    end, size = start, 0
    while end < len(items):
        size += weight(items[end])
        if size > _BYTES and end > start:
            break
        end += 1
    return Page(items[start:end], _cursor(end, asked) if end < len(items) else None)


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
