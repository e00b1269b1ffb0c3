"""Questions that dates, agents and files answer: "what went wrong last week", "who worked on X".

Such a question has hardly a word to rank by. It is written again with the fields of
`field_filters`, and where it asks for people or files, a sentence counts them.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.index.search import agents_touching, touched_together

if TYPE_CHECKING:
    from loki_memory.index.index import Index

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
