"""The message of a commit of memory: its changes in terms of belief.

Such as `memory: 2 patterns learned, 1 superseded (from 6 episodes)`, and below it one line per
belief.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from loki_memory.history.belief_diff import Shift
from loki_memory.models.text import shorten

WIDTH = 72  # git's own advice for a subject
_TITLE = 100
_BESIDE = {"learning", "link"}  # they come with a belief, and are not the subject
_LINES = 100  # enough for a reader; `loki-mem diff` has all


def message(shifts: Sequence[Shift], episodes: int = 0) -> tuple[str, str]:
    """Compose subject and body. `episodes` is the number of episodes that caused the change."""
    return subject(shifts, episodes), "\n".join(_body(shifts))


def subject(shifts: Sequence[Shift], episodes: int = 0) -> str:
    """Compose one line that fits where git shows it; the body has the rest."""
    beliefs = [shift for shift in shifts if shift.what != "recorded"]
    weighty = [shift for shift in beliefs if shift.kind not in _BESIDE]
    parts = list(phrases(weighty or beliefs or shifts)) or ["no belief changed"]
    source = f" (from {count(episodes, 'episode')})" if episodes and beliefs else ""
    line = f"memory: {', '.join(parts)}{source}"
    while len(line) > WIDTH and len(parts) > 1:
        parts.pop()
        line = f"memory: {', '.join(parts)}, …{source}"
    return line


def phrases(shifts: Iterable[Shift]) -> Iterator[str]:
    """`2 patterns learned`, `1 superseded`: the noun only where it changes."""
    last = ""
    for (word, kind), group in groupby(shifts, lambda shift: (shift.what, shift.kind)):
        number = sum(1 for _ in group)
        yield f"{number:,} {word}" if kind == last else f"{count(number, kind)} {word}"
        last = kind


def count(number: int, noun: str) -> str:
    """`1 fact`, `2 facts`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _body(shifts: Sequence[Shift]) -> Iterator[str]:
    beliefs = [shift for shift in shifts if shift.what != "recorded"]
    yield from (f"- {line(shift)}" for shift in beliefs[:_LINES])
    if len(beliefs) > _LINES:
        yield f"- and {len(beliefs) - _LINES:,} more"
    if len(beliefs) < len(shifts):
        yield f"- recorded {count(len(shifts) - len(beliefs), 'episode')}"


def line(shift: Shift) -> str:
    """One shift on one line."""
    text = f"{shift.what} {shift.id}: {plain(shift.title, _TITLE)}"
    weight = ", ".join(filter(None, (shift.weight(), _sources(shift))))
    return f"{text} ({weight})" if weight else text


def _sources(shift: Shift) -> str:
    return count(len(shift.caused_by), "episode") if shift.caused_by else ""


def plain(text: str, width: int = 0) -> str:
    """Put stored text on one line, without characters that a terminal could obey."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    shown = " ".join(shown.split())
    return shorten(shown, width) if width else shown
