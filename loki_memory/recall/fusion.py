"""Fuse what words, static vectors and sentences say of each memory into one score.

Each signal is brought to 0 … 1 over the candidates, so the best of them has 1 however poor it is.
For words that is wrong where a question is put in other words than its answer: the memory that
shares a chance word with it would win. So words count by how much of the question the best memory
covers, and what they lose goes to the meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


class CandidateSignals(Protocol):
    """The signals about each candidate, on scales of their own."""

    @property
    def words(self) -> Floats: ...
    @property
    def cosine(self) -> Floats: ...
    @property
    def maxsim(self) -> Floats: ...
    @property
    def sentence(self) -> Floats | None: ...
    @property
    def near(self) -> Floats: ...
    @property
    def cover(self) -> float: ...


class SignalWeights(NamedTuple):
    """The shares of the signals in a score."""

    words: float
    cosine: float
    maxsim: float
    sentence: float = 0.0

    def towards(self, other: SignalWeights, share: float) -> SignalWeights:
        """The weights on the way to others: 0 is here, 1 is there."""
        pairs = zip(self, other, strict=True)
        return SignalWeights(*(own + share * (there - own) for own, there in pairs))


# Chosen on LoCoMo, BEAM and coding sessions, and on the questions of LoCoMo that share no word
# with their answer, while the paraphrase sets were in view. Round, because the optimum is flat.
# Static vectors find less by themselves, so words must step back earlier: the exponent.
_STATIC, _STATIC_UNSHARED = SignalWeights(1 / 3, 1 / 3, 1 / 3), SignalWeights(0, 0.75, 0.25)
_WITH_SENTENCES = SignalWeights(0.25, 0.15, 0.25, 0.35)
_SENTENCES_UNSHARED = SignalWeights(0, 0.1, 0.1, 0.8)
_STATIC_STEP, _SENTENCES_STEP = 2, 1
_COVERED = 0.6  # of a question's rarity, from which on words count in full
_NEAR = 0.1  # all words that stand together in the question stand together here


def weights(cover: float, *, with_sentences: bool) -> SignalWeights:
    """The weights for a question of which the best memory covers a share.

    >>> weights(0.9, with_sentences=False).words > weights(0.2, with_sentences=False).words
    True
    """
    known = min(1.0, cover / _COVERED)
    if with_sentences:
        return _SENTENCES_UNSHARED.towards(_WITH_SENTENCES, known**_SENTENCES_STEP)
    return _STATIC_UNSHARED.towards(_STATIC, known**_STATIC_STEP)


def fused(found: CandidateSignals) -> dict[str, Floats]:
    """The weighed signals; they add up to the score."""
    chosen = weights(found.cover, with_sentences=found.sentence is not None)
    parts = {
        "bm25": np.float32(chosen.words) * share(found.words),
        "cosine": np.float32(chosen.cosine) * spread(found.cosine),
        "maxsim": np.float32(chosen.maxsim) * spread(found.maxsim),
        "near": np.float32(_NEAR) * share(found.near),
    }
    if found.sentence is not None:
        parts["sentence"] = np.float32(chosen.sentence) * spread(found.sentence)
    return parts


def total(parts: Mapping[str, Floats]) -> Floats:
    """The sum of parts."""
    summed: Floats = np.sum(list(parts.values()), axis=0, dtype=np.float32)
    return summed


def share(values: Floats) -> Floats:
    """0 to 1: of the greatest."""
    most = values.max(initial=0)
    return values / most if most > 0 else np.zeros_like(values)


def spread(values: Floats) -> Floats:
    """0 to 1: from the smallest to the greatest."""
    if not len(values):
        return values
    least, most = values.min(), values.max()
    return (values - least) / (most - least) if most > least else np.zeros_like(values)
