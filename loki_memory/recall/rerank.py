"""Choose among candidates: what is known of a memory besides its text, variety, room for each kind.

Relevance decides. Confidence, strength, freshness, status and the type of task only tilt it: each
factor is bounded, so that no memory is shown for being popular, and none hidden for being old.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from loki_memory.models.text import tokens
from loki_memory.recall.task_types import FAMILIES, weight

FRESH_DAYS = 180  # after which a memory counts half as fresh
_MMR = 0.9  # share of relevance against novelty; measured best among near copies
_ROOM = 0.4  # of the best score, above which the best warning and the best skill have a place
_MANY = 5  # hits from which on a place is kept
_STATUS = {
    "candidate": 0.95,
    "disputed": 0.85,
    "superseded": 0.8,
    "retired": 0.8,
    "resolved": 0.8,
    "rejected": 0.7,
}
_SUPPOSED = 0.8  # confidence of a memory that states none
_TASK_TILT = 0.15  # exponent: a kind that weighs a third is pushed back by 15 %


class Candidate(NamedTuple):
    """A memory that may be shown."""

    number: int  # its place among the candidates: what `alike` is asked with
    relevance: float
    kind: str
    status: str = "active"
    scope: str = "project"
    outcome: str = ""
    confidence: float | None = None
    importance: float | None = None
    strength: float = 0.0
    age_days: int | None = None


def judged(candidate: Candidate, task: str) -> float:
    """Relevance, tilted by what else is known."""
    sure = _SUPPOSED if candidate.confidence is None else candidate.confidence
    matters = 0.5 if candidate.importance is None else candidate.importance
    age = FRESH_DAYS if candidate.age_days is None else max(0, candidate.age_days)
    prefers_success = candidate.kind == "episode" and task != "debugging"
    return float(
        candidate.relevance
        * (0.85 + 0.15 * sure)
        * (0.95 + 0.1 * matters)
        * (0.9 + 0.1 * 0.5 ** (age / FRESH_DAYS))
        * (1 + 0.1 * candidate.strength / (1 + candidate.strength))
        * _STATUS.get(candidate.status, 1.0)
        * (1.05 if prefers_success and candidate.outcome == "success" else 1.0)
        * weight(candidate.kind, task) ** _TASK_TILT
    )


def choose(
    candidates: Sequence[Candidate],
    k: int,
    task: str,
    alike: Callable[[int, int], float],
) -> list[tuple[Candidate, float]]:
    """At most k candidates with their scores, best first."""
    scored = [(one, judged(one, task)) for one in candidates]
    scored.sort(key=lambda pair: (-pair[1], pair[0].number))
    picked = _varied(scored, k, alike)
    for family in ("warnings", "skills"):
        picked = _with_room(picked, scored, family)
    picked.sort(key=lambda pair: (-pair[1], pair[0].number))
    return picked


def _varied(
    scored: Sequence[tuple[Candidate, float]], k: int, alike: Callable[[int, int], float]
) -> list[tuple[Candidate, float]]:
    """Maximal marginal relevance: near copies of what is there already wait."""
    waiting = list(scored)
    picked: list[tuple[Candidate, float]] = []
    nearest = [0.0] * len(waiting)
    while waiting and len(picked) < k:
        worth = [
            _MMR * pair[1] - (1 - _MMR) * near for pair, near in zip(waiting, nearest, strict=True)
        ]
        best = max(range(len(waiting)), key=lambda n: (worth[n], -n))
        chosen = waiting.pop(best)
        nearest.pop(best)
        picked.append(chosen)
        for n, (other, _) in enumerate(waiting):
            nearest[n] = max(nearest[n], alike(chosen[0].number, other.number))
    return picked


def _with_room(
    picked: list[tuple[Candidate, float]], scored: Sequence[tuple[Candidate, float]], family: str
) -> list[tuple[Candidate, float]]:
    """The best of a family takes the last place if none of it was chosen and it is good enough."""
    if len(picked) < _MANY or any(FAMILIES.get(one.kind) == family for one, _ in picked):
        return picked
    best = next((pair for pair in scored if FAMILIES.get(pair[0].kind) == family), None)
    if best is None or best[1] < _ROOM * picked[0][1]:
        return picked
    others = [
        n
        for n, (one, _) in enumerate(picked)
        if FAMILIES.get(one.kind) not in {"warnings", "skills"}
    ]
    last = max(others[1:], default=None)
    return picked if last is None else [*picked[:last], *picked[last + 1 :], best]


def within(texts: Sequence[str], budget: int) -> int:
    """How many of some lines fit a budget of tokens, estimated as bytes / 4."""
    used = 0
    for number, text in enumerate(texts):
        used += tokens(text)
        if used > budget:
            return number
    return len(texts)
