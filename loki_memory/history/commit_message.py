"""The message of a commit of memory: what changed, in terms of belief.

Such as `memory: 2 patterns learned, 1 superseded (from 6 episodes)`, and below it one line per
belief.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from loki_memory.history.belief_diff import Shift

WIDTH = 72  # git's own advice for a subject
_TITLE = 100
_BESIDE = {"learning", "link"}  # what comes with a belief is not what the commit is about
_LINES = 100  # a message of a thousand lines is read by nobody; `loki-mem diff` has all


def message(shifts: Sequence[Shift], episodes: int = 0) -> tuple[str, str]:
    """Subject and body. `episodes` is how many episodes it was learned from."""
    return subject(shifts, episodes), "\n".join(_body(shifts))


def subject(shifts: Sequence[Shift], episodes: int = 0) -> str:
    """One line that fits where git shows it; what does not fit is in the body."""
    beliefs = [one for one in shifts if one.what != "recorded"]
    weighty = [one for one in beliefs if one.kind not in _BESIDE]
    told = list(phrases(weighty or beliefs or shifts)) or ["no belief changed"]
    source = f" (from {count(episodes, 'episode')})" if episodes and beliefs else ""
    line = f"memory: {', '.join(told)}{source}"
    while len(line) > WIDTH and len(told) > 1:
        told.pop()
        line = f"memory: {', '.join(told)}, …{source}"
    return line


def phrases(shifts: Iterable[Shift]) -> Iterator[str]:
    """`2 patterns learned`, `1 superseded`: the noun only where it changes."""
    last = ""
    for (what, kind), group in groupby(shifts, lambda one: (one.what, one.kind)):
        number = sum(1 for _ in group)
        yield f"{number:,} {what}" if kind == last else f"{count(number, kind)} {what}"
        last = kind


def count(number: int, noun: str) -> str:
    """`1 fact`, `2 facts`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _body(shifts: Sequence[Shift]) -> Iterator[str]:
    beliefs = [one for one in shifts if one.what != "recorded"]
    yield from (f"- {line(one)}" for one in beliefs[:_LINES])
    if len(beliefs) > _LINES:
        yield f"- and {len(beliefs) - _LINES:,} more"
    if len(beliefs) < len(shifts):
        yield f"- recorded {count(len(shifts) - len(beliefs), 'episode')}"


def line(shift: Shift) -> str:
    """One shift on one line."""
    told = f"{shift.what} {shift.id}: {plain(shift.title, _TITLE)}"
    weight = ", ".join(filter(None, (shift.weight(), _sources(shift))))
    return f"{told} ({weight})" if weight else told


def _sources(shift: Shift) -> str:
    return count(len(shift.caused_by), "episode") if shift.caused_by else ""


def plain(text: str, width: int = 0) -> str:
    """Stored text on one line, without what a terminal could take for a command."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    shown = " ".join(shown.split())
    return shown if not width or len(shown) <= width else shown[: width - 1] + "…"
