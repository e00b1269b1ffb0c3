"""Questions that plain SQL answers: an id, the beginning of one, or `field:value`.

    sem-001                          that memory
    ep-2026-01-06*                   memories whose ids begin so
    since:yesterday                  also today, "last week", a day or a month
    category:testing flaky           the rest of the text is ranked within what the fields leave

A field is named as in the files. Anything else with a colon is text like any other.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import InvalidRecord
from loki_memory.index.search import FIELDS, PREFIX, rows_of, rows_with
from loki_memory.models.ids import ID
from loki_memory.models.kinds import KINDS, SCOPES, STATUSES

if TYPE_CHECKING:
    from loki_memory.index.index import Index

_CLOSED = {"kind": KINDS, "status": STATUSES, "scope": SCOPES}
_FIELD = r"(?<!\S)([a-z]+):(?:\"([^\"]+)\"|([^\s\":/][^\s\"]*))(?!\S)"
_DAYS = ("since", "until")
_A_DAY = 'Write a day or a month such as 2026-01-20 or 2026-01, today, yesterday or "last week".'
_AROUND = "[](),.;:'\"`"  # what stands around an id in a sentence
_PREFIX = r"(?<!\S)([A-Za-z]+-[\w.-]*)\*(?!\S)"


class Route(NamedTuple):
    """The exact part of a question, and the text that is left to rank by."""

    text: str
    rows: frozenset[int] | None  # the memories that the fields leave; None: all
    named: tuple[int, ...]  # memories that the question names by their ids, in its order
    status: str  # a status that was asked for by name
    said: tuple[str, ...]  # what was asked for exactly, in words

    @property
    def is_named(self) -> bool:
        """Check if only ids were asked for: who names a memory means it, whatever its status."""
        return self.rows is not None and self.rows == frozenset(self.named)


def route(query: str, index: Index, today: str = "", *, strict: bool = False) -> Route:
    """Take the exact parts out of a question.

    Words such as "yesterday" count from `today`. `strict` raises InvalidRecord for `since:` and
    `until:` without a day; otherwise they are text like any other.
    """
    fields: list[tuple[str, str]] = []
    status = ""
    said: list[str] = []
    text = query
    for found in re.finditer(_FIELD, query) if ":" in query else ():
        name, value = found[1], found[2] or found[3]
        value = _value(name, value, today, strict=strict)
        if not value:
            continue
        if name == "status":
            status = value
        if (name, value) != ("status", "all"):
            fields.append((name, value))
        said.append(f"{name} {value}")
        text = text[: found.start()] + " " * len(found[0]) + text[found.end() :]
    for found in re.finditer(_PREFIX, text) if "*" in text else ():
        if not index.ids_starting(found[1]):
            continue
        fields.append((PREFIX, found[1]))
        said.append(f"id {found[1]}*")
        text = text.replace(found[0], " ", 1)
    rows = rows_with(index, fields) if fields else None
    named = _named(text, index)
    if named and rows is None and not [w for w in text.split() if w.strip(_AROUND) not in named]:
        text, rows = "", frozenset(named.values())  # nothing but ids was asked for
    return Route(_tidy(text), rows, tuple(named.values()), status, tuple(said))


def _value(name: str, value: str, today: str, *, strict: bool) -> str:
    """The value that a field is compared with; empty if this is no field but text."""
    if name not in FIELDS or value not in _CLOSED.get(name, (value,)):
        return ""
    if name not in _DAYS:
        return value
    day = _day(name, value, today)
    if day is None and strict:
        raise InvalidRecord(f"{value!r} is not a day", field=name, advice=_A_DAY)
    return day or ""


def _day(field: str, value: str, today: str) -> str | None:
    """The first day of `since`, or the last day of `until`; None if the value names no day."""
    if re.fullmatch(r"\d{4}-\d\d(?:-\d\d)?", value):
        return value if field == "since" or len(value) > len("2026-01") else f"{value}-31"
    if not today:
        return None
    from loki_memory.recall.plain_questions import period

    limits = period(value.replace("-", " "), today)
    return limits[_DAYS.index(field)] if limits else None


def _tidy(text: str) -> str:
    """The text without needless space; lines stay lines."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def _named(text: str, index: Index) -> dict[str, int]:
    """Memories whose ids stand in the text, with their rows."""
    words = [word.strip(_AROUND) for word in text.split()[:64]]
    ids = [word for word in dict.fromkeys(words) if "-" in word and ID.fullmatch(word)]
    found = rows_of(index, ids)
    return {name: found[name] for name in ids if name in found}
