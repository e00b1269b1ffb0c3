"""Questions that plain SQL answers: ids, `field:value`, or dates and people in plain words.

    sem-001                          that memory
    ep-2026-01-06*                   memories whose ids begin so
    since:yesterday                  also today, "last week", a day or a month
    category:testing flaky           the rest of the text is ranked within what the fields leave
    what went wrong last week        is written again with fields, and so is "who worked on X"

A field is named as in the files. Anything else with a colon is text like any other.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import InvalidRecord
from loki_memory.index.search import (
    FIELDS,
    PREFIX,
    agents_touching,
    rows_of,
    rows_with,
    touched_together,
)
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


# -- dates, agents and files in plain words --------------------------------------------------------


_MOST = 5  # people or files that are named
_DAY = r"\d{4}-\d\d-\d\d"
_PERIOD = (
    rf"\b(?:yesterday|today|(?:this|last) (?:week|month)|(?:since|on|until) {_DAY}"
    r"|(?:in|over|during) the (?:last|past) (?P<count>\d{1,3}) (?P<unit>day|week|month)s?)\b"
)
_WE = r"(?:we|i|you|they|agents?)"
_FORMS = {
    "went": (
        rf"what (?:went wrong|failed|broke|(?:errors|problems) (?:did {_WE} (?:meet|have|hit)"
        r"|were there))\b"
    ),
    "done": (
        r"what (?:happened|changed|was (?:done|changed|learned)"
        rf"|did {_WE} (?:do|change|work on))\b"
    ),
    "who": (
        r"who (?:has )?(?:last )?(?:worked on|works on|changed|touched|edited|wrote"
        r"|knows(?: about)?)\s+(?P<path>\S+)"
    ),
    "with": (
        r"(?:what|which files?)(?: else| files?)? (?:is |are )?(?:usually )?chang(?:es?|ed)"
        r"(?: together)? with\s+(?P<path>\S+)"
    ),
}
_LEFT = r"[\s?.!,]+"


class PlainQuestion(NamedTuple):
    """A question in terms of fields; `path` is the file that people or files are asked about."""

    form: str
    query: str
    path: str = ""


def translate(query: str, today: str) -> PlainQuestion | None:
    """Write a question about dates, people or files with fields; None if it is another one.

    >>> translate("What went wrong last week?", "2026-11-17")
    PlainQuestion(form='went', query='went:wrong since:2026-11-09 until:2026-11-15', path='')
    >>> translate("who worked on src/app.py?", "2026-11-17")
    PlainQuestion(form='who', query='kind:episode touches:src/app.py', path='src/app.py')
    """
    text = query.strip()
    for form, pattern in _FORMS.items():
        found = re.match(pattern, text, re.IGNORECASE)
        if found:
            return _with_fields(form, found.groupdict(), text[found.end() :], today)
    return None


def _with_fields(
    form: str, named: dict[str, str | None], rest: str, today: str
) -> PlainQuestion | None:
    fields = ["went:wrong" if form == "went" else "kind:episode"]
    path = (named.get("path") or "").rstrip("?.,!`'\"").lstrip("`'\"").removeprefix("./")
    if path:
        fields.append(f"touches:{path}")
    time = re.search(_PERIOD, rest, re.IGNORECASE)
    if time and today:
        fields += _limits(time, date.fromisoformat(today[:10]))
        rest = rest.replace(time[0], " ", 1)
    elif form == "done":
        return None  # without a time it asks for a subject, like any other question
    words = re.sub(_LEFT, " ", rest).strip()
    return PlainQuestion(form, " ".join(filter(None, [*fields, words])), path)


def _limits(found: re.Match[str], today: date) -> list[str]:
    """The first and the last day of a period, as fields."""
    said = found[0].lower()
    if found["count"]:
        days = int(found["count"]) * {"day": 1, "week": 7, "month": 30}[found["unit"].lower()]
        return [f"since:{today - timedelta(days)}", f"until:{today}"]
    named = period(said, str(today))
    if named:
        return [f"since:{named[0]}", f"until:{named[1]}"]
    word, day = said.split()
    return [f"{name}:{day}" for name in ("since", "until") if word in {name, "on"}]


def period(said: str, today: str) -> tuple[str, str] | None:
    """The first and the last day of a period in words; None if the words are no period.

    >>> period("last week", "2026-11-17")
    ('2026-11-09', '2026-11-15')
    """
    day = date.fromisoformat(today[:10])
    monday, first = day - timedelta(day.weekday()), day.replace(day=1)
    named = {
        "today": (day, day),
        "yesterday": (day - timedelta(1), day - timedelta(1)),
        "this week": (monday, day),
        "last week": (monday - timedelta(7), monday - timedelta(1)),
        "this month": (first, day),
        "last month": ((first - timedelta(1)).replace(day=1), first - timedelta(1)),
    }
    found = named.get(said.lower())
    return (str(found[0]), str(found[1])) if found else None


def counted(question: PlainQuestion, index: Index) -> str:
    """The people or files that a question asks for, in one line; empty if it asks for neither."""
    if question.form == "who":
        people = agents_touching(index, question.path)[:_MOST]
        return ", ".join(f"{name} ({_times(count)}, last {day})" for name, count, day in people)
    if question.form == "with":
        total, files = touched_together(index, question.path, _MOST)
        return ", ".join(f"{path} ({count} of {_times(total)})" for path, count in files)
    return ""


def _times(count: int) -> str:
    return f"{count} episode{'' if count == 1 else 's'}"
