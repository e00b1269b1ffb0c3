"""Choose among candidates: what is known of a memory besides its text, variety, room for each kind.

Relevance decides. Confidence, strength, freshness, status and the type of task only tilt it: each
factor is bounded, so that no memory is shown for being popular, and none hidden for being old.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from loki_memory.models.text import tokens
from loki_memory.recall.question import split_words
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
UNHELPFUL = -1.0  # the strength of a memory of which somebody here said that it did not help
UNHELPFUL_TILT = 0.5  # it is half as likely to help, and still found by who asks for it
RIVAL = 0.7  # of the best score, and of the best cover of the question, from which on two compete
_ABOUT = 0.4  # of the question's rarity: a sentence that covers less is about something else
_STEM = 5  # letters by which two forms of a word are one
_SENTENCE_END = r"(?<=[.!?;])\s+|\n+"
_VALUE = r"""(?<!\w)'[^'\s]+(?: [^'\s]+){0,2}'(?!\w)|"[^"\n]+"|`[^`\n]+`|(?<![\w.])\$?\d"""
_NORM = (
    r"(?i)\b(?:always|never|must|from now on|going forward|no longer|any ?more|prefer(?:s|red)?"
    r"|instead|convention|rule|standard)\b"
)


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


class DatedPassage(NamedTuple):
    """A candidate that may state a value: when, and in which words."""

    number: int
    at: str
    text: str


def newer_first(
    candidates: Sequence[Candidate],
    statements: Sequence[DatedPassage],
    rarity: Mapping[str, float],
) -> list[Candidate]:
    """Give the better scores to the newer of the statements that answer with a value.

    Two statements are of one thing if a sentence of each covers as much of the question, by the
    rarity of its words, and both state it if that sentence has a value (a number, something quoted)
    or a norm in it. A narrative has neither and keeps its order. Scores only change hands, so that
    no other candidate moves.
    """
    weights: dict[str, float] = {}
    for word, rare in rarity.items():
        weights[_stem(word)] = max(rare, weights.get(_stem(word), 0.0))
    answers = [(statement, *_answer(statement.text, weights)) for statement in statements]
    most = max((cover for _, cover, _ in answers), default=0.0)
    enough = max(RIVAL * most, _ABOUT * sum(weights.values()))
    rivals = [rival for rival, cover, states in answers if states and cover >= enough > 0]
    newest = sorted(rivals, key=lambda rival: rival.at, reverse=True)
    best = sorted((candidates[rival.number].relevance for rival in rivals), reverse=True)
    passed = {rival.number: score for rival, score in zip(newest, best, strict=True)}
    return [
        candidate._replace(relevance=passed.get(candidate.number, candidate.relevance))
        for candidate in candidates
    ]


def _answer(text: str, weights: Mapping[str, float]) -> tuple[float, bool]:
    """The share of a question that the best sentence covers, and if it states something."""
    return max(
        (_cover(sentence, weights), bool(re.search(_VALUE, sentence) or re.search(_NORM, sentence)))
        for sentence in re.split(_SENTENCE_END, text)
    )


def _cover(sentence: str, weights: Mapping[str, float]) -> float:
    stems = {_stem(word.lower()) for word in split_words(sentence)}
    return sum(weight for stem, weight in weights.items() if stem in stems)


def _stem(word: str) -> str:
    return word[:_STEM] if len(word) > _STEM else word.rstrip("s")


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
        * _use_tilt(candidate.strength)
        * _STATUS.get(candidate.status, 1.0)
        * (1.05 if prefers_success and candidate.outcome == "success" else 1.0)
        * weight(candidate.kind, task) ** _TASK_TILT
    )


def _use_tilt(strength: float) -> float:
    return UNHELPFUL_TILT if strength < 0 else 1 + 0.1 * strength / (1 + strength)


def choose(
    candidates: Sequence[Candidate],
    k: int,
    task: str,
    alike: Callable[[int, int], float],
) -> list[tuple[Candidate, float]]:
    """At most k candidates with their scores, best first."""
    scored = [(candidate, judged(candidate, task)) for candidate in candidates]
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
    if len(picked) < _MANY or any(FAMILIES.get(hit.kind) == family for hit, _ in picked):
        return picked
    best = next((pair for pair in scored if FAMILIES.get(pair[0].kind) == family), None)
    if best is None or best[1] < _ROOM * picked[0][1]:
        return picked
    others = [
        n
        for n, (hit, _) in enumerate(picked)
        if FAMILIES.get(hit.kind) not in {"warnings", "skills"}
    ]
    last = max(others[1:], default=None)
    return picked if last is None else [*picked[:last], *picked[last + 1 :], best]


def within(texts: Sequence[str], budget: int) -> int:
    """Count the lines that fit a budget of tokens, estimated as bytes / 4."""
    used = 0
    for number, text in enumerate(texts):
        used += tokens(text)
        if used > budget:
            return number
    return len(texts)
