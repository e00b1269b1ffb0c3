"""Recollections: what was recalled, each with the reasons for it."""

from __future__ import annotations

from collections.abc import Iterable
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
        self.certainty = certainty  # absolute: best similarity of words plus best of meaning
        self.in_few = in_few  # a word matched in a store too small for chances to mean much
        self.counts = counts  # people or files that were asked for, counted
        self.task = task  # the type of task that was asked for or detected

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
