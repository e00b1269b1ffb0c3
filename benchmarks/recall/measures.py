"""How well a ranking answers a question whose answers are known. Pure."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import NamedTuple


class Score(NamedTuple):
    """One ranking against its gold, or the mean of many."""

    r1: float  # share of the gold among the first …
    r5: float
    r10: float
    ndcg: float  # at 10; every piece of gold weighs the same
    mrr: float  # 1 / rank of the first gold, within what was returned
    hit1: float  # is any gold among the first …
    hit3: float
    hit5: float


def score(ranked: Sequence[Hashable], gold: Collection[Hashable]) -> Score:
    """Measure one ranking, best first. There must be gold."""
    ranks = [rank for rank, one in enumerate(ranked, 1) if one in gold]
    found = {k: sum(rank <= k for rank in ranks) for k in (1, 3, 5, 10)}
    return Score(
        r1=found[1] / len(gold),
        r5=found[5] / len(gold),
        r10=found[10] / len(gold),
        ndcg=_gain(r for r in ranks if r <= 10) / _gain(range(1, min(10, len(gold)) + 1)),
        mrr=1 / ranks[0] if ranks else 0.0,
        hit1=float(found[1] > 0),
        hit3=float(found[3] > 0),
        hit5=float(found[5] > 0),
    )


def _gain(ranks: Iterable[int]) -> float:
    return sum(1 / math.log2(rank + 1) for rank in ranks)


def mean(scores: Sequence[Score]) -> Score:
    return Score(*(sum(column) / len(scores) for column in zip(*scores, strict=True)))


def grouped(results: Iterable[tuple[str, Score]]) -> dict[str, list[Score]]:
    """Scores by the name of their group, in the order of the names."""
    groups: dict[str, list[Score]] = defaultdict(list)
    for name, one in results:
        groups[name].append(one)
    return dict(sorted(groups.items()))


def tokens(texts: Iterable[str]) -> int:
    """The usual estimate: bytes / 4, every text rounded up."""
    return sum(-(-len(text.encode()) // 4) for text in texts)


def auc(low: Sequence[float], high: Sequence[float]) -> float:
    """How often a value of `high` is larger than one of `low`; ties count half."""
    wins, ordered = 0.0, sorted([(value, 0) for value in low] + [(value, 1) for value in high])
    below, start = 0, 0
    while start < len(ordered):
        end = start
        while end < len(ordered) and ordered[end][0] == ordered[start][0]:
            end += 1
        ones = sum(which for _, which in ordered[start:end])
        zeros = end - start - ones
        wins += ones * (below + zeros / 2)
        below, start = below + zeros, end
    return wins / (len(low) * len(high))


def below(values: Sequence[float], floor: float) -> float:
    """The share of values under a floor."""
    return sum(value < floor for value in values) / len(values)


def as_json(one: Score) -> dict[str, float]:
    return {name: round(value, 4) for name, value in one._asdict().items()}


# -- words -----------------------------------------------------------------------------------------


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FUNCTION_WORDS = _listed(
    "about after again all also although always among and another any are back because been "
    "before being both but can could did does down during each else enough ever every everything "
    "for from gave get gets give gives had has have her here him his how if into its just many "
    "may merely might more most must never new next not nothing now off once one only onto other "
    "our out over own please same she should since some somebody still such than that the their "
    "them then there these they this those through together too two under until use used was way "
    "were what when where whether which while who why will with without would yet you your"
)


def content_words(text: str) -> set[str]:
    """What a text is about: its words of three letters or more, camelCase taken apart."""
    apart = re.sub(r"([a-z])([A-Z])", r"\1 \2", text)
    return {word for word in re.findall(r"[a-z]{3,}", apart.lower()) if word not in _FUNCTION_WORDS}


def shared(one: Iterable[str], other: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of words with a common stem, by a crude rule that errs towards "common": the same
    first five letters, or the whole of the shorter word if it has four.
    """
    others = list(other)
    return [(a, b) for a in one for b in others if _akin(a, b)]


def _akin(a: str, b: str) -> bool:
    if a == b or (len(a) >= 5 and a[:5] == b[:5]):
        return True
    a, b = sorted((a.removesuffix("s"), b.removesuffix("s")), key=len)
    return a == b or (len(a) == 4 and b.startswith(a))
