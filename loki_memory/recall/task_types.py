"""Task types: what kind of work a question is asked for, and which kinds of memory that needs.

The weights are those of Loki Mode's documents, except that what went wrong before is never weighted
0: the agent that implements is the one that repeats a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Weights(NamedTuple):
    """Weights of each family of memories for a type of task."""

    episodic: float
    semantic: float
    skills: float
    warnings: float


_NEVER_NOTHING = 0.15  # what anti-patterns and skills weigh where Loki Mode says 0
TASKS: Mapping[str, Weights] = {
    "exploration": Weights(0.6, 0.3, 0.1, _NEVER_NOTHING),
    "implementation": Weights(0.15, 0.5, 0.35, _NEVER_NOTHING),
    "debugging": Weights(0.4, 0.2, 0.05, 0.4),
    "review": Weights(0.3, 0.5, 0.05, 0.2),
    "refactoring": Weights(0.25, 0.45, 0.3, _NEVER_NOTHING),
}
UNKNOWN = Weights(0.3, 0.5, 0.2, _NEVER_NOTHING)
FAMILIES: Mapping[str, str] = {
    "episode": "episodic",
    "handoff": "episodic",
    "ledger": "episodic",
    "pattern": "semantic",
    "fact": "semantic",
    "skill": "skills",
    "anti-pattern": "warnings",
    "learning": "warnings",
}

# Whole words and phrases; "refactor*" also stands for what begins so. "prefix" is no fix, and
# "address" adds nothing.
_CUES: Mapping[str, str] = {
    "exploration": "explor*, investigat*, understand, research, survey, find out, look in, "
    "look into, look at, look for, look around, how do, how does, where is, where are, where do, "
    "where does, what is, what are, what does, why is, why are, why do, why does, overview, "
    "learn about, read up, map out",
    "implementation": "implement*, build, builds, building, add, adds, adding, create, creates, "
    "creating, write, writing, develop*, introduc*, support, integrat*, feature, endpoint, set up, "
    "setup, wire up, scaffold",
    "debugging": "debug*, fix, fixes, fixing, fixed, bug, bugs, error, errors, fail, fails, "
    "failing, failed, failure, failures, broken, breaks, crash*, exception, exceptions, traceback, "
    "stack trace, stacktrace, regress*, flaky, hang, hangs, leak, leaks, troubleshoot*, wrong, "
    "not working, doesn't work, does not work, root cause",
    "review": "review*, audit*, inspect*, check over, assess*, evaluat*, critique, approve, "
    "pull request, code quality, lint, security check, sign off",
    "refactoring": "refactor*, clean up, cleanup, restructur*, renam*, extract*, simplif*, "
    "dedup*, reorganis*, reorganiz*, modernis*, moderniz*, migrat*, decoupl*, inline",
}
_PHASES: Mapping[str, str] = {
    "exploration": "exploration",
    "discovery": "exploration",
    "bootstrap": "exploration",
    "research": "exploration",
    "planning": "exploration",
    "architecture": "exploration",
    "development": "implementation",
    "implementation": "implementation",
    "coding": "implementation",
    "testing": "debugging",
    "qa": "debugging",
    "debugging": "debugging",
    "verification": "review",
    "review": "review",
    "refactoring": "refactoring",
    "cleanup": "refactoring",
    "maintenance": "refactoring",
}
_AROUND = ".,;:!?()[]{}'\"`"
_LONGEST = 4000  # characters of a question that are looked at
_WORD_COUNTS, _ERROR_COUNTS, _PHASE_COUNTS = 2, 3, 4  # Loki Mode's: keyword, action, phase


def detect(text: str, *, phase: str = "", error: bool = False) -> str:
    """The type of task that a question is asked for; empty if nothing tells."""
    words = [word.strip(_AROUND) for word in text[:_LONGEST].lower().split()]
    votes = {task: _WORD_COUNTS * _heard(cues, words) for task, cues in _CUES.items()}
    if error:
        votes["debugging"] += _ERROR_COUNTS
    known = _PHASES.get(phase.strip().lower(), "")
    if known:
        votes[known] += _PHASE_COUNTS
    best = max(votes, key=lambda task: (votes[task], task == known))
    alone = list(votes.values()).count(votes[best]) == 1
    return best if votes[best] and (alone or known == best) else ""


def _heard(cues: str, words: list[str]) -> int:
    """Count the cues that a text has."""
    line = f" {' '.join(words)} "
    heard = 0
    for cue in cues.split(", "):
        begins = cue.endswith("*")
        heard += f" {cue[:-1]}" in line if begins else f" {cue} " in line
    return heard


def weight(kind: str, task: str) -> float:
    """The weight of a kind of memory for a task, as a share of the greatest."""
    weights = TASKS.get(task, UNKNOWN)
    own: float = getattr(weights, FAMILIES.get(kind, "semantic"))
    return own / max(weights)
