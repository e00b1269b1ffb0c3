"""Recollections: what was recalled, with the reasons for it and the chance that it is relevant.

The score that orders memories compares them with each other: the best of a store that knows nothing
about a question has a high one. The chance is absolute. It is what a reader is shown, what brings
the memories of a project and of its user to one scale, and what a line needs to be told unasked.

Certainty is the chance that a store knows anything about a question at all: below the setting
`recall.floor`, nothing is shown.

`benchmarks/recall/calibrate.py` fits the weights of both: logistic regressions over several kinds
of questions, some of which belong to another store. It prints how far chances are from what is
true, each kind left out in turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import exp, log1p
from typing import Any, NamedTuple

FEW = 10  # memories: among fewer nothing is rare, so a word that matches is reason to answer


class Recollection(NamedTuple):
    """One memory that was found: a line about it, and why it is there."""

    id: str
    kind: str
    title: str
    score: float = 0.0  # the chance that it is relevant
    why: tuple[str, ...] = ()
    confidence: float | None = None
    at: str = ""  # the moment it speaks of; empty if it does not say
    age_days: int | None = None
    evidence: int = 0  # episodes that it rests on
    status: str = "active"
    scope: str = "project"
    stale: bool = False  # code that it cites has changed since
    unverified: bool = False  # `verify` found that nobody vouches for what it says
    unreviewed: bool = False  # nobody here answers for what it says: it is not told unasked
    contradicts: tuple[str, ...] = ()  # ids among these hits that say something else
    tokens: int = 0  # what reading all of it costs, estimated as bytes / 4
    remedy: str = ""  # what to do instead, if it is about a mistake or a right way
    excerpt: str = ""  # of an episode, the sentence that answers best


class ExplainedRecollection(Recollection):
    """A memory that was found, and the parts of its score."""

    parts: dict[str, float]

    def _asdict(self) -> dict[str, Any]:
        return {**super()._asdict(), "parts": self.parts}


class Recollections(list[Recollection]):
    """Hits, best first, and what is to be known about them all."""

    def __init__(
        self,
        hits: Iterable[Recollection] = (),
        *,
        filtered: int = 0,
        took: float = 0.0,
        certainty: float = 0.0,
        task: str = "",
        counts: str = "",
        in_few: bool = False,
        cut: int = 0,
    ) -> None:
        super().__init__(hits)
        self.cut = cut  # left out, for they did not fit in the budget
        self.filtered = filtered  # found, and withheld because nothing was near enough
        self.took = took  # seconds
        self.certainty = certainty  # the chance that memory knows anything about the question
        self.in_few = in_few  # a word matched in a store too small for chances to mean much
        self.counts = counts  # people or files that were asked for, counted
        self.task = task  # the type of task that was asked for or detected

    @property
    def doubt(self) -> str:
        """Say that the hits are only the nearest, where probably nothing is about the question."""
        if not self or self.in_few or self.certainty >= DOUBT or self[0].score > DOUBT:
            return ""
        return "probably nothing is about that; these are the nearest"

    def explained(self, parts: Iterable[dict[str, float]]) -> list[Recollection]:
        """The hits, with the parts of their scores as far as there are any."""
        hits = list(self)
        for rank, made_of in enumerate(parts):
            if rank < len(hits):
                explained = ExplainedRecollection(*hits[rank])
                explained.parts = {name: round(value, 4) for name, value in made_of.items()}
                hits[rank] = explained
        return hits


class Query(NamedTuple):
    """A question as it is put to the memory."""

    query: str
    k: int = 5
    kinds: tuple[str, ...] = ()
    task: str = ""
    files: tuple[str, ...] = ()
    error: str = ""
    deep: bool = False
    scope: str = ""
    session: str = ""
    status: str = ""
    under: str = ""  # a topic: only what stands below it
    now: str = ""  # the present moment, for age and freshness
    injected: bool = False  # put into a context: only what this project's own work gave
    unasked: bool = False  # and nobody asked for one: only what is proven


# -- chances ---------------------------------------------------------------------------------------


class LogisticWeights(NamedTuple):
    """A logistic regression: a bias, and a weight for each signal."""

    bias: float
    each: Mapping[str, float]

    def chance(self, signals: Mapping[str, float]) -> float:
        """The chance that what has these signals is so."""
        return 1 / (1 + exp(-self.bias - sum(w * signals[name] for name, w in self.each.items())))


HIT = LogisticWeights(
    -3.7, {"alike": 3.4, "cosine": 2.4, "stored": -0.12, "asked": 0.5, "place": -0.7}
)
# Fitted to conversations, chats and small parts of both, so that the size of a store varies; issues
# and questions in other words were left out.
STORE = LogisticWeights(-4.3, {"near": 9.3, "stored": -0.54, "asked": 0.91})
DOUBT = 0.2  # chance below which the best hits of a store are probably about something else
_EXACT = 0.95  # an id, a field, an error or a file that was asked for


class Nearness(NamedTuple):
    """The nearness of a memory, or of the nearest of a store, to a question."""

    alike: float  # MaxSim: how like the question's words are to its words, 0 to 1
    cosine: float  # of the two texts, after what all memories have in common is taken off
    stored: int  # tokens of all memories: the best of many is near to any question by chance
    asked: int  # tokens of the question: a long one has its words together less by chance
    is_exact: bool = False  # an id, a field, an error or a file led to it

    def signals(self, place: int = 0) -> dict[str, float]:
        """The values that weights belong to; `place` counts the better hits."""
        return {
            "alike": self.alike,
            "cosine": self.cosine,
            "near": self.alike + self.cosine,
            "stored": log1p(self.stored),
            "asked": log1p(self.asked),
            "place": log1p(place),
        }


def certainty(best: Nearness) -> float:
    """The chance that a store knows anything about a question, by the nearest that it has.

    >>> certainty(Nearness(0.5, 0.3, 500, 8)) > certainty(Nearness(0.5, 0.3, 50_000, 8))
    True
    """
    return STORE.chance(best.signals())


def chance(near: Nearness, place: int) -> float:
    """The chance that a memory is relevant; `place` counts the better ones.

    >>> chance(Nearness(0.9, 0.6, 900, 8), 0) > 0.5 > 0.2 > chance(Nearness(0.3, 0.1, 900, 8), 0)
    True
    """
    return _EXACT if near.is_exact else HIT.chance(near.signals(place))


def chances(hits: Iterable[Nearness | None]) -> list[float]:
    """The chances of hits in their order, none above the one before it.

    A hit without a nearness was found through the one before it, by a link, and shares its chance;
    the first was named.
    """
    found: list[float] = []
    for place, near in enumerate(hits):
        above = found[-1] if found else 1.0
        found.append(above if near is None else min(above, chance(near, place)))
    return found
