"""Boundaries: where in a session one piece of work ends and the next begins.

The user's prompt is the boundary: measured on real logs, structure finds borders (F1 .91 to .94)
where likeness of words does not (.36 to .48). A prompt that states a goal begins an episode. One
that only says "yes" or "go on" belongs to what is under way, unless other signs speak against it
(a long pause, another folder or branch, a commit just made). Who works on for long without being
asked anything is cut after a commit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from loki_memory.ingest.turns import CALL, END, PROMPT, RESULT, Turn

_CUT = 1.0  # the score at which one episode ends; the parts of it are below
_STATES_GOAL, _LONG_GAP, _GAP, _MOVED, _COMMITTED = 1.0, 1.0, 0.5, 0.7, 0.3
_LONG_PAUSE, _PAUSE = 30 * 60, 10 * 60  # seconds
_MUCH = 40  # calls on one goal, after which a commit is a boundary
_EARLIER = "(asked before this transcript begins)"
_MOST = 2000  # turns of an episode: it is held in memory
_ASSENT = re.compile(
    r"(?:(?:yes|yeah|yep|yup|y|ok|okay|k|sure|right|correct|agreed|perfect|great|nice|good|cool|"
    r"thanks|thank you|continue|go on|go ahead|go for it|proceed|carry on|keep going|do it|"
    r"do that|do so|please|please do|sounds good|looks good|lgtm|next|resume|retry|try again|"
    r"again|no|nope|\d+|[a-d]|both|all|let'?s do (?:it|that|this)|it|that|now)\b[\s.,!;:)-]*)+",
    re.IGNORECASE,
)
_COMMITS = re.compile(r"\bgit\b[^|;&\n]*\bcommit\b")


class Stretch(NamedTuple):
    """The turns of one episode."""

    turns: list[Turn]
    goal: str
    home: str  # the folder in which the session began
    following: str = ""  # what the user said next


class _Running:
    """What is known of a session while its turns go by."""

    def __init__(self) -> None:
        self.home = ""
        self.last: Turn | None = None
        self.turns: list[Turn] = []
        self.goal = ""
        self.calls = 0
        self.open: set[str] = set()  # calls of this stretch that were not answered yet
        self.committing = ""  # the call that makes a commit
        self.committed = False  # and nothing was done since

    def begins(self, turn: Turn) -> bool:
        """Whether a turn is the first of an episode."""
        if turn.kind == PROMPT:
            return not self.turns or self._score(turn) >= _CUT
        if turn.kind != CALL:
            return False
        return (
            not self.turns or len(self.turns) >= _MOST or (self.committed and self.calls >= _MUCH)
        )

    def _score(self, turn: Turn) -> float:
        last = self.last or turn
        pause = _seconds(last.at, turn.at)
        moved = (last.cwd, last.branch) != (turn.cwd, turn.branch)
        return (
            _STATES_GOAL * states_goal(turn.text)
            + (_LONG_GAP if pause > _LONG_PAUSE else _GAP if pause > _PAUSE else 0)
            + _MOVED * moved
            + _COMMITTED * self.committed
        )

    def begin(self, turn: Turn) -> None:
        states = turn.kind == PROMPT and (states_goal(turn.text) or not self.goal)
        self.goal = turn.text if states else _continued(self.goal or _EARLIER)
        self.turns, self.calls, self.open = [], 0, set()

    def take(self, turn: Turn) -> None:
        self.home = self.home or turn.cwd
        self.last = turn
        if self.turns or turn.kind in {PROMPT, CALL}:
            self.turns.append(turn)
        if turn.kind == CALL:
            self.calls += 1
            self.open.add(turn.call)
            self.committed = False
            self.committing = turn.call if _COMMITS.search(turn.text) else self.committing
        elif turn.kind == RESULT:
            self.open.discard(turn.call)
            if turn.call and turn.call == self.committing:
                self.committed = not turn.failed

    def stretch(self, following: str = "") -> Stretch:
        return Stretch(self.turns, self.goal, self.home, following)


def stretches(turns: Iterable[Turn]) -> Iterator[Stretch]:
    """Turns in the order of time, one stretch per episode.

    Who types while a tool runs begins an episode before the one under way has its last answers:
    these still go to it.
    """
    running = _Running()
    before: Stretch | None = None  # not given out yet: some of its calls are `late`
    late: set[str] = set()
    for turn in turns:
        if turn.kind == END:
            continue
        if before and turn.kind == RESULT and turn.call in late:
            before.turns.append(turn)
            continue
        if running.begins(turn):
            if before:
                yield before
            late = running.open
            said = turn.text if turn.kind == PROMPT else ""
            before = running.stretch(said) if running.turns else None
            running.begin(turn)
        running.take(turn)
    yield from (one for one in (before, running.stretch()) if one and one.turns)


def states_goal(text: str) -> bool:
    """Whether a prompt says what to do, not only that it shall be done."""
    return bool(text.strip()) and _ASSENT.fullmatch(text.strip()) is None


def _continued(goal: str) -> str:
    return goal if goal.endswith(" (continued)") else f"{goal} (continued)"


def _seconds(begin: str, end: str) -> float:
    try:
        return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()
    except (ValueError, TypeError):
        return 0.0
