"""Compare the dates that a question names with the days of memories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING

import numpy as np

from loki_memory.recall.catalogue import UNKNOWN_DAY

if TYPE_CHECKING:
    from loki_memory.recall.catalogue import Corpus, Floats, Ints
    from loki_memory.recall.question import Date, Question

_DATE = 0.5  # on the day, or in the month, that the question names
_SOON = 0.25  # up to a week later: people tell what happened
_WEEK = 7
_YEARS = 100  # that a month without a year is looked for in
_EPOCH = date(1970, 1, 1).toordinal()


def is_dated(corpus: Corpus, question: Question) -> bool:
    """Check if there is a memory of a day that the question names."""
    days = tuple(date for date in question.dates if date.day)
    return bool(days) and bool(timely(corpus.day, days).max(initial=0) >= np.float32(_DATE))


def timely(days: Ints, dates: Sequence[Date]) -> Floats:
    """The worth of each day: most on a date that is named, half in the week after it."""
    known = days[days != UNKNOWN_DAY]
    if not len(known):
        return np.zeros(len(days), np.float32)
    best = np.zeros(len(days), np.float32)
    for begin, end in _spans(dates, int(known.min()), int(known.max())):
        inside = (days >= begin) & (days <= end)
        soon = (days > end) & (days <= end + _WEEK)
        np.maximum(best, _DATE * inside + _SOON * soon, out=best, casting="same_kind")
    return best


def _spans(dates: Sequence[Date], oldest: int, newest: int) -> Iterator[tuple[int, int]]:
    """First and last day, since 1970, of each date; of every year of the store if it has none."""
    years = [_year(day) for day in (oldest, newest)]
    for year, month, day in dates:
        possible = [year] if year else range(max(years[0], years[1] - _YEARS), years[1] + 1)
        for candidate in possible:
            try:
                begin = date(candidate, month, day or 1)
                after = begin.replace(day=1, month=month % 12 + 1, year=candidate + month // 12)
            except ValueError:  # 31 April
                continue
            end = begin if day else after.fromordinal(after.toordinal() - 1)
            yield begin.toordinal() - _EPOCH, end.toordinal() - _EPOCH


def _year(day: int) -> int:
    return date.fromordinal(min(max(day + _EPOCH, 1), date.max.toordinal())).year
