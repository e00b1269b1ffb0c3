"""Confidence of a belief from its evidence, and the status that follows from it.

Confidence is the mean of a Beta(2, 1) distribution over observations: two that confirm and none
that contradicts make 0.80. A stated confidence replaces this prior, and is worth two
observations. The caller decides what counts as an observation.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

from loki_memory.models.belief import AntiPattern, Belief

# Of six formulas the best predictor of whether a stored remedy works the next time, measured on 902
# events; benchmarks/consolidation/confidence.py measures it again.
PRIOR = (2.0, 1.0)
CONFIDENT = 0.80  # from here on a belief is active
# Evidence does not bring these back.
SETTLED = frozenset({"superseded", "rejected", "retired", "resolved"})
UNSURE = 0.5  # the weight of an episode that met a belief without a clear success
_ASSERTED = 2.0  # observations that a stated confidence is worth
_DISPUTED = 0.60
_HOPELESS = (0.20, 5.0)  # certainty below which, and observations from which on, it is retired
_SUPPORT = 2.0  # observations that make a belief active


class Claim(NamedTuple):
    """A stated confidence, and the evidence that was known when it was stated."""

    stated: float | None
    knowing: frozenset[str] = frozenset()

    def prior(self) -> tuple[float, float]:
        if self.stated is None:
            return PRIOR
        return (_ASSERTED * self.stated, _ASSERTED * (1 - self.stated))

    def fields(self, weighed: float) -> dict[str, Any]:
        """The fields that let a later weighing start from the claim again."""
        known = {"asserted_knowing": sorted(self.knowing)} if self.knowing else {}
        return {"asserted": self.stated, "weighed": weighed, **known}


def confidence(support: float, against: float, prior: tuple[float, float] = PRIOR) -> float:
    """The expected share of cases in which a belief holds."""
    a, b = prior[0] + support, prior[1] + against
    return round(a / (a + b), 2)


def lower_bound(support: float, against: float) -> float:
    """Confidence less one standard deviation: a rank that little evidence does not lift."""
    a, b = PRIOR[0] + support, PRIOR[1] + against
    return a / (a + b) - sqrt(a * b / ((a + b) ** 2 * (a + b + 1)))


def status(
    support: float,
    against: float,
    sure: float,
    confident: float = CONFIDENT,
    least: float = _SUPPORT,
) -> str:
    """The status of a belief with this much evidence."""
    certainty, observations = _HOPELESS
    if support + against >= observations and lower_bound(support, against) < certainty:
        return "retired"
    if against >= 1 and sure < _DISPUTED:
        return "disputed"
    return "active" if support >= least and sure >= confident else "candidate"


def is_produced(belief: Belief) -> bool:
    """Check if consolidation made a belief: then it has the key of its cluster."""
    return "key" in (belief.model_extra or {})


def is_weighed(belief: Belief) -> bool:
    """Check if evidence has changed the confidence of a stated belief."""
    return "asserted" in (belief.model_extra or {})


def claim(belief: Belief) -> Claim:
    """The claim behind a belief; empty where consolidation made it.

    A confidence that differs from the weighed one was written since: it is a new claim, made in
    view of the evidence at that time.
    """
    if is_produced(belief):
        return Claim(None)
    if not is_weighed(belief):
        return Claim(belief.confidence)
    extra, sure = belief.model_extra or {}, belief.confidence
    if sure is not None and extra.get("weighed", sure) != sure:
        return Claim(sure, frozenset(cited(belief)))
    given, knowing = extra["asserted"], extra.get("asserted_knowing")
    is_score = isinstance(given, (int, float)) and 0 <= given <= 1
    known = frozenset(map(str, knowing)) if isinstance(knowing, list) else frozenset()
    return Claim(float(given) if is_score else None, known)


def overcame(error: AntiPattern) -> tuple[frozenset[str], frozenset[str]]:
    """The episodes that overcame an error by its first resolution, and those by other means.

    The first resolution is the advice for the next time. An error alone says nothing about its
    remedy; an episode where another remedy helped speaks against it.
    """
    helped = [frozenset(resolution.for_) for resolution in error.resolutions]
    advised, *others = helped or [frozenset()]
    return advised, otherwise(error).union(*others) - advised


def otherwise(error: AntiPattern) -> frozenset[str]:
    """The episodes that overcame an error by none of its stored resolutions."""
    listed = (error.model_extra or {}).get("otherwise")
    return frozenset(map(str, listed)) if isinstance(listed, list) else frozenset()


def cited(belief: Belief) -> set[str]:
    """The episodes that a belief names as evidence."""
    return {*belief.source_episodes, *belief.evidence.for_, *belief.evidence.against}
