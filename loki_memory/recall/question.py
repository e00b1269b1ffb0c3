"""Read a question from its text alone: words, a speaker, dates, a kind of answer.

Nothing here needs the store. English is understood best; a question in another language simply has
all of its words, no date and no kind of answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_MOST_TEXT = 10_000  # characters that are read: a pasted log must not take seconds
_MOST_WORDS = 200  # distinct ones that are looked up; the full text is asked for the rarest
_LONGEST_WORD = 100  # characters: beyond it stands a hash, or a line without spaces
# An issue or a log says what it is about in its title; the rest is detail, but says it again in
# other words. So a long text is read whole, and its title counts more.
_LONG = 60  # words from which on the first line of a text is its title
_TITLE = 25  # words of a title

# Words that say nothing about what is asked, and what is left of "don't" and "we'll".
_STOP = """
a about above after again against all am an and any are as at be because been before being below
between both but by can cannot could did do does doing down during each few for from further had
has have having he her here hers herself him himself his how i if in into is it its itself just let
many may me might more most much must my myself no nor not now of off on once only or other ought
our ours ourselves out over own same shall she should so some such than that the their theirs them
themselves then there these they this those through to too under until up very was we were what
when where which while who whom whose why will with would you your yours yourself yourselves
d ll m re s t ve ain aren couldn didn doesn don hadn hasn haven isn mustn shan shouldn wasn weren
won wouldn
"""
STOP_WORDS = frozenset(_STOP.split())
_OWN = frozenset({"i", "me", "my", "mine", "myself"})
_OWN_SPEAKERS = ("user", "human", "owner")  # how transcripts call the one who asks

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            ("january", "jan"),
            ("february", "feb"),
            ("march", "mar"),
            ("april", "apr"),
            ("may",),
            ("june", "jun"),
            ("july", "jul"),
            ("august", "aug"),
            ("september", "sept", "sep"),
            ("october", "oct"),
            ("november", "nov"),
            ("december", "dec"),
        ),
        start=1,
    )
    for name in names
}
_MONTH = "|".join(name.capitalize() for name in _MONTHS)
# Patterns are compiled when a question needs them: a command that recalls compiles few of them.
_DATE = (
    r"\b(?:"
    r"(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)(?:-(?P<day>\d\d))?"
    rf"|(?:(?P<before>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<name>{_MONTH})\b\.?"
    r"(?:\s+(?P<after>\d{1,2})(?:st|nd|rd|th)?\b(?!:))?(?:,?\s+(?P<of>(?:19|20)\d\d)\b)?"
    r")"
)
# "May I …", "March through the list": a verb where nothing around it speaks of time.
_VERB_TOO = frozenset({"May", "March", "Mar"})
_TIME_BEFORE = (
    r"(?i)\b(?:in|on|of|by|since|until|till|before|after|from|during|around|last|next|this|early|mid"
    r"|late|and|or|to|through|between)[\s-]+$"
)

_ASKS_WHEN = (
    r"(?i)^\W*(?:(?:and|so|since|until|by|from)\s+)?when\b"
    r"|\bwhen (?:did|do|does|was|were|is|are|will|has|have|had|would|should|can)\b"
    r"|\bhow (?:long|often|recently)\b"
    r"|\b(?:what|which) (?:date|day|month|year|week|time)\b"
)
_ASKS_HOW_MANY = r"(?i)\bhow (?:many|much|old|far|big|large|often|long)\b"
_ASKING = frozenset({"when", "how", "what", "which"})
_TIMES = """
yesterday today tomorrow tonight ago last next week weeks weekend month months year years day days
hour hours minutes morning evening recently since until monday tuesday wednesday thursday friday
saturday sunday january february march april june july august september october november december
"""
_AMOUNTS = """
one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty dozen
hundred thousand million half twice several couple 500 1000
"""
_SAYS_WHEN = tuple(_TIMES.split())
# Words of a question about what happened or was so; any other question means what holds now.
_PAST = frozenset(
    {"did", "was", "were", "had", "originally", "previously", "formerly", "initially"}
)
_SAYS_HOW_MANY = (*_AMOUNTS.split(), *map(str, range(101)))


class Date(NamedTuple):
    """A month, or a day of it; of any year where the question names none."""

    year: int  # 0: any
    month: int
    day: int  # 0: the whole month


class Question(NamedTuple):
    """A question, read: its words and what else it asks for."""

    text: str
    words: tuple[str, ...]  # that say what it is about, each once, in their order
    title: frozenset[str] = frozenset()  # the words of a long text's title
    speaker: int = -1  # the place, among the speakers given, of the one whose words are wanted
    dates: tuple[Date, ...] = ()
    expected: tuple[str, ...] = ()  # words of which an answer is likely to have one
    asks_past: bool = False  # whether it means what happened or was so, not what holds now


def ask(text: str, speakers: Sequence[str] = ()) -> Question:
    """Read a question. `speakers` are the names of those who speak in the store."""
    text = text[:_MOST_TEXT]
    written = list(split_words(text))
    lower = [word.lower() for word in written]
    named = _named(written, lower, speakers)
    names = {word for place in named for word in _name(speakers[place])}
    named_dates = list(_dates(text)) if _may_date(lower) else []
    words = _content([word.lower() for word in split_words(_without(text, named_dates))] or lower)
    dates = tuple(dict.fromkeys(date for date, _ in named_dates))
    return Question(
        text=text,
        # Whoever is named speaks in half of the turns: the name tells them apart as a speaker,
        # not as a word.
        words=tuple(word for word in words if word not in names) or tuple(words),
        title=_title(text),
        speaker=_wanted(named, lower, speakers),
        dates=dates,
        expected=() if _ASKING.isdisjoint(lower) else _expected(text),
        asks_past=bool(dates) or not _PAST.isdisjoint(lower),
    )


def split_words(text: str) -> Iterator[str]:
    """Yield the words as they are written; marks above and below letters are a part of them."""
    if not text.isascii():
        text = "".join(char if char.isalnum() or _is_mark(char) else " " for char in text)
        yield from text.split()
    else:
        yield from re.findall(r"[A-Za-z0-9]+", text)


def _is_mark(char: str) -> bool:
    import unicodedata

    return char > "\x7f" and unicodedata.category(char)[0] == "M"


def _title(text: str) -> frozenset[str]:
    """The words of a long text's first line, and of the next after a line that ends in a colon."""
    if len(text.split()) <= _LONG:
        return frozenset()
    words: list[str] = []
    for line in text.splitlines():
        found = [word.lower() for word in split_words(line)]
        words += found[:_TITLE]
        if found and not line.rstrip().endswith(":"):
            break
    return frozenset(words) - STOP_WORDS


def _content(lower: Sequence[str]) -> list[str]:
    """Distinct words without those that every question has; with them if there are no others."""
    distinct = dict.fromkeys(word for word in lower if len(word) <= _LONGEST_WORD)
    chosen = [word for word in distinct if word not in STOP_WORDS]
    return (chosen or list(distinct))[:_MOST_WORDS]


# -- who ------------------------------------------------------------------------------------------


def _named(written: Sequence[str], lower: Sequence[str], speakers: Sequence[str]) -> list[int]:
    """Places of the speakers that the question names.

    A name is written with a capital letter, or has a digit in it as agents' names do: who asks
    about "review" does not mean the agent of that name.
    """
    proper = {word.lower() for word in written if word[0].isupper() or any(map(str.isdigit, word))}
    if not proper:
        return []
    line = f" {' '.join(lower)} "
    return [
        place
        for place, speaker in enumerate(speakers)
        if (name := _name(speaker))
        and not proper.isdisjoint(name)
        and f" {' '.join(name)} " in line
    ]


def _name(speaker: str) -> tuple[str, ...]:
    words = tuple(word.lower() for word in split_words(speaker[:_LONGEST_WORD]))
    return () if all(word in STOP_WORDS for word in words) else words


def _wanted(named: Sequence[int], lower: Sequence[str], speakers: Sequence[str]) -> int:
    """The only speaker that is named; nobody if there are two; else the one who says "I"."""
    if named:
        return named[0] if len(named) == 1 else -1
    if _OWN.isdisjoint(lower):
        return -1
    return next((speakers.index(own) for own in _OWN_SPEAKERS if own in speakers), -1)


# -- when and how many ----------------------------------------------------------------------------


def _may_date(lower: Sequence[str]) -> bool:
    return any(word in _MONTHS or word[0].isdigit() for word in lower)


def _without(text: str, named: Sequence[tuple[Date, tuple[int, int]]]) -> str:
    """The text without its dates: they are compared as dates, not as words."""
    for _, (start, end) in named:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _dates(text: str) -> Iterator[tuple[Date, tuple[int, int]]]:
    """Dates that a text names, each with its place."""
    for found in re.finditer(_DATE, text):
        part = found.groupdict()
        if part["name"] is None:
            date = Date(int(part["year"]), int(part["month"]), int(part["day"] or 0))
        elif _is_verb(found, text):
            continue
        else:
            month = _MONTHS[part["name"].lower()]
            date = Date(int(part["of"] or 0), month, int(part["before"] or part["after"] or 0))
        if 1 <= date.month <= 12 and date.day <= 31:  # noqa: PLR2004 - a calendar
            yield date, found.span()


def _is_verb(found: re.Match[str], text: str) -> bool:
    if found["name"] not in _VERB_TOO or found["before"] or found["after"] or found["of"]:
        return False
    return not re.search(_TIME_BEFORE, text[max(0, found.start() - 20) : found.start()])


def _expected(text: str) -> tuple[str, ...]:
    if re.search(_ASKS_WHEN, text):
        return _SAYS_WHEN
    return _SAYS_HOW_MANY if re.search(_ASKS_HOW_MANY, text) else ()
