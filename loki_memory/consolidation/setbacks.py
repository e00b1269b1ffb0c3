"""What went wrong in an episode, as it is told: errors with what resolved them, steps that failed,
and what was done right after an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from loki_memory.consolidation.mishaps import key
from loki_memory.consolidation.sequences import Move, move
from loki_memory.consolidation.snapshot import Snapshot
from loki_memory.models import Action, Episode
from loki_memory.models.prompt_injection import pipes_download, without_instructions
from loki_memory.models.signature import salient

_LONGEST = 160
# `src/a.ts(12,5): error `, `7:48  error  `: where it was, which the next one is not.
_PLACE = re.compile(
    r"^(?:\S+?\(\d+,\d+\)|\S+?:\d+(?::\d+)?|\d+:\d+)[:\s-]+(?:error[:\s]+)?", re.IGNORECASE
)
_CHECK = re.compile(r"\b(?:tests?|lint|build|check|verify|tsc|mypy|ruff|\w*test|eslint|ci)\b")
_FAILED = {"fail", "failed", "failure", "error"}

_SETBACKS = "_setbacks"  # where an episode keeps its own

_salient = lru_cache(maxsize=16384)(salient)


class Setbacks(NamedTuple):
    """Nothing but texts and tuples of them: what `marshal` can keep."""

    resolved: tuple[tuple[str, ...], ...] = ()
    failed: tuple[str, ...] = ()
    responses: tuple[tuple[str, ...], ...] = ()


class Response(NamedTuple):
    """What was done right after an error; it has no name if that was just tried again."""

    head: str  # of the error's key
    template: str
    made: str
    place: str

    def move(self) -> Move:
        return Move(self.made, self.place)


NONE = Setbacks()


def setbacks(episode: Episode) -> Setbacks:
    """What went wrong in an episode; taken once."""
    known = _known(episode)
    if known is None:
        answers = tuple(map(tuple, _responses(episode)))
        known = Setbacks(resolved(episode), failed(episode), answers)
        with_setbacks(episode, known)
    return known


def resolved(episode: Episode) -> tuple[tuple[str, ...], ...]:
    """The errors that an episode got over, and what resolved them."""
    known = _known(episode)
    return known.resolved if known else tuple(_resolved(episode))


def failed(episode: Episode) -> tuple[str, ...]:
    """The steps that failed, each on a line; a check that fails did nothing wrong."""
    known = _known(episode)
    return known.failed if known else tuple(_failed(episode))


def _known(episode: Episode) -> Setbacks | None:
    known: Setbacks | None = episode.__dict__.get(_SETBACKS)
    return known


def with_setbacks(episode: Episode, known: Setbacks) -> None:
    """Give an episode what was taken from it before, or elsewhere."""
    episode.__dict__[_SETBACKS] = known


def hear(snapshot: Snapshot) -> None:
    """Give new episodes what was taken from them elsewhere."""
    for name, told in snapshot.ahead("setbacks").items():
        episode = snapshot.records.get(name)
        if isinstance(episode, Episode):
            with_setbacks(episode, Setbacks._make(told))


def _resolved(episode: Episode) -> Iterator[tuple[str, str]]:
    for error in episode.errors_encountered:
        met = without_instructions(error.message or error.type)
        if met and error.resolution and not pipes_download(error.resolution):
            yield (met, error.resolution)


def _failed(episode: Episode) -> Iterator[str]:
    for action in episode.action_log:
        is_failure = action.error or (action.result or "").lower() in _FAILED
        if is_failure and not _is_check(action):
            yield line(_step(action))


def _responses(episode: Episode) -> Iterator[Response]:
    """What was done after each error that has a key."""
    for action, then in pairwise(episode.action_log):
        found = action.error and key(action.error, action.action, action.target or "")
        if found:
            made = move(then) if move(then) != move(action) else Move("")
            yield Response(found.head, found.template, *made)


def _is_check(action: Action) -> bool:
    return bool(_CHECK.search(f"{action.action} {action.target or ''}".replace("_", " ").lower()))


def _step(action: Action) -> str:
    done = " ".join(filter(None, (action.action, action.target)))
    met = _salient(without_instructions(action.error or ""))
    return f"{done}: {met}" if met else done


@lru_cache(maxsize=16384)
def line(text: str) -> str:
    """The line that tells, without the place that it points to."""
    told = salient(text) if "\n" in text else text
    told = " ".join(_PLACE.sub("", told.strip()).split()).rstrip(".")
    return told if len(told) <= _LONGEST else f"{told[: _LONGEST - 1].rstrip()}…"
