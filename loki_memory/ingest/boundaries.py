"""Boundaries: where in a session one piece of work ends and the next begins.

The user's prompt is the boundary: measured on real logs, structure finds borders (F1 .91 to .94)
where likeness of words does not (.36 to .48). A prompt that states a goal begins an episode. One
that only says "yes", "go on" or "commit and push", or that asks memory itself, belongs to the work
before it. Where an agent works on for long without being asked anything, a commit ends the episode.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from loki_memory.ingest.turns import CALL, END, PROMPT, RESULT, Turn

_MUCH = 40  # calls on one goal, after which a commit is a boundary
_EARLIER = "(asked before this transcript begins)"
_MOST = 2000  # turns of an episode: it is held in memory
COMMITS = re.compile(r"\bgit\b[^|;&\n]*\bcommit\b")


class Stretch(NamedTuple):
    """The turns of one episode."""

    turns: list[Turn]
    goal: str
    home: str  # the folder in which the session began
    following: str = ""  # what the user said next

    def replies(self) -> list[str]:
        """Return what the user said about the work, in order; the prompt that began it is none."""
        prompts = [turn.text for turn in self.turns[1:] if turn.kind == PROMPT]
        return [*prompts, *filter(None, [self.following])]


class _Running:
    """The state of a session while its turns go by."""

    def __init__(self) -> None:
        self.home = ""
        self.turns: list[Turn] = []
        self.goal = ""
        self.calls = 0
        self.open: set[str] = set()  # calls of this stretch that were not answered yet
        self.committing = ""  # the call that makes a commit
        self.committed = False  # and nothing was done since

    def begins(self, turn: Turn) -> bool:
        """Check whether a turn is the first of an episode."""
        if not self.turns:
            return turn.kind in {PROMPT, CALL}
        if turn.kind == PROMPT:
            return states_goal(turn.text)
        if turn.kind != CALL:
            return False
        return len(self.turns) >= _MOST or (self.committed and self.calls >= _MUCH)

    def begin(self, turn: Turn) -> None:
        states = turn.kind == PROMPT and (states_goal(turn.text) or not self.goal)
        self.goal = turn.text if states else _continued(self.goal or _EARLIER)
        self.turns, self.calls, self.open = [], 0, set()

    def take(self, turn: Turn) -> None:
        self.home = self.home or turn.cwd
        if self.turns or turn.kind in {PROMPT, CALL}:
            self.turns.append(turn)
        if turn.kind == CALL:
            self.calls += 1
            self.open.add(turn.call)
            self.committed = False
            self.committing = turn.call if COMMITS.search(turn.text) else self.committing
        elif turn.kind == RESULT:
            self.open.discard(turn.call)
            if turn.call and turn.call == self.committing:
                self.committed = not turn.failed

    def stretch(self, following: str = "") -> Stretch:
        return Stretch(self.turns, self.goal, self.home, following)


def stretches(turns: Iterable[Turn]) -> Iterator[Stretch]:
    """Turns in the order of time, one stretch per episode.

    A user who types while a tool runs begins an episode before the one under way has its last
    answers: these still go to it.
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
    yield from (stretch for stretch in (before, running.stretch()) if stretch and stretch.turns)


def _continued(goal: str) -> str:
    return goal if goal.endswith(" (continued)") else f"{goal} (continued)"


# -- prompts that state a goal, told from assent, orders without content, and commands of memory ---

_ASSENT = re.compile(
    r"(?:(?:yes|yeah|yep|yup|y|ok|okay|k|sure|right|correct|agreed|perfect|great|nice|good|cool|"
    r"thanks|thank you|continue|go on|go ahead|go for it|proceed|carry on|keep going|do it|"
    r"do that|do so|please|please do|sounds good|looks good|lgtm|next|resume|retry|try again|"
    r"again|no|nope|\d+|[a-d]|both|all|let'?s do (?:it|that|this)|it|that|now)\b[\s.,!;:)-]*)+",
    re.IGNORECASE,
)
_POLITE = (
    r"(?:(?:please|now|yes|ok(?:ay)?|then|and|also|just|let'?s|can you|go ahead and|you can)\b"
    r"[\s,]*)*"
)
_WHAT = (
    r"(?:\s+(?:it|this|that|them|these|those|all|everything|(?:the |your |my )?changes?"
    r"|(?:a |the )?pr|to (?:main|master|origin|remote)|again|too|please|now|up))*"
)
_STEP = (
    r"(?:commit|push|merge|stage|rebase|pull"
    rf"|(?:create|open|make|update) (?:a |the )?(?:draft )?(?:pr|pull request)){_WHAT}"
)
_ORDER = re.compile(
    rf"{_POLITE}{_STEP}(?:[\s,&+]*(?:and|then|&)?\s*{_POLITE}{_STEP})*[\s.!]*", re.IGNORECASE
)
_OURS = re.compile(
    r"/(?:loki|recall|remember|memory|compact|context|handoff|clear|resume|model)\b", re.IGNORECASE
)
_RESUMES = re.compile(
    r"(?:continue|go on|resume|carry on|keep going|pick up)\b.{0,60}"
    r"\b(?:left off|compact\w*|where|before|stopped|session)\b.{0,40}",
    re.IGNORECASE,
)


def states_goal(text: str) -> bool:
    """Check whether a prompt says what to do, not only that it shall be done."""
    said = text.strip()
    forms = (_ASSENT, _ORDER, _RESUMES)
    return bool(said) and not _OURS.match(said) and not any(form.fullmatch(said) for form in forms)
