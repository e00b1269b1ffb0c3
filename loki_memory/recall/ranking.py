"""Order memories by how well they answer a question: a pure function over plain arrays.

A quick look at everything (words + cosine) chooses some candidates. `signals` looks closely at them
and their neighbours. Each signal is brought to 0 … 1 over the candidates, so the best of them has 1
however poor it is. For words that is wrong where a question is put in other words than its answer:
the memory that shares a chance word with it would win. So words count by how much of the question
the best memory covers, and what they lose goes to the meaning.

To the sum of signals come the scores of the two neighbours, length, who speaks, when, what kind of
answer is wanted, a question and its answer, and the session's best. The weights were measured on
long conversations between people, between people and assistants, and on sessions of coding agents;
they are round because the optimum is flat.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from loki_memory.models.kinds import KINDS
from loki_memory.recall.catalogue import UNKNOWN_DAY
from loki_memory.recall.signals import (
    CandidateSignals,
    Region,
    Tokens,
    around,
    look_closely,
    share,
    spread,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loki_memory.recall.catalogue import Corpus, Floats, Ints
    from loki_memory.recall.question import Date, Question
    from loki_memory.recall.signals import Mask, Signals

    Parts = dict[str, Floats]

_SEEDS = 100  # candidates of the quick look; three times as many changed nothing
_BESIDE = 0.1  # of the score of the turn before and of the turn after
_LENGTH = 0.07  # for each factor e in length beyond _LONG: long texts have a bit of everything
_SPEAKER = 0.15
_EXPECTED = 0.15  # has a time for "when", a number for "how many"
_ASKS = 0.05  # taken from a short text that asks, given to the answer that follows
_SHORT, _LONG = 40, 60  # tokens
_SESSION = 0.2  # of the best score in the session

_EPISODE = KINDS.index("episode")


class Ranked(NamedTuple):
    """Documents, best first, with what their scores are made of."""

    documents: Ints
    scores: Floats
    parts: Parts  # aligned; they add up to the scores
    passage: Ints  # the best passage of each
    alike: Floats  # MaxSim of each document's best passage, without lending: absolute
    cosine: Floats  # of each document's best passage: absolute


def rank(corpus: Corpus, question: Question, signals: Signals, limit: int = 200) -> Ranked:
    """The best documents for a question; equal ones in the order of the corpus."""
    hopes = _hopes(corpus, question)
    quick = _quick(corpus, signals)
    region = around(corpus, signals.allowed, _seeds(corpus, signals, quick, hopes), quick)
    if not len(region.documents):
        return _nothing()
    found = look_closely(corpus, signals, region)
    if question.title:  # no memory has most of a long text, and many words are no chance
        found = found._replace(cover=1.0)
    parts = _fused(region, found)
    parts["length"] = _length(corpus, region.documents)
    parts["bonus"] = _bonus(corpus, signals, region, found.tokens)
    if hopes is not None:
        parts["bonus"] += hopes[region.documents]
    scores = total(parts)
    parts["session"] = np.float32(_SESSION) * _best_of_session(corpus, region, scores)
    if signals.boost is not None:  # last: an error's signature speaks for one memory of a session
        parts["boost"] = signals.boost[region.documents].astype(np.float32)
    return _ordered(region, found, parts, limit)


# -- the quick look -------------------------------------------------------------------------------


def _hopes(corpus: Corpus, question: Question) -> Floats | None:
    """The worth of speaker and date for every document; None if the question names neither."""
    if question.speaker < 0 and not question.dates:
        return None
    hopes = np.zeros(len(corpus.row), np.float32)
    if question.speaker >= 0:
        hopes += np.float32(_SPEAKER) * (corpus.speaker == question.speaker)
    if question.dates and len(hopes):
        hopes += timely(corpus.day, question.dates)
    return hopes


def _quick(corpus: Corpus, signals: Signals) -> Floats:
    """Words + cosines of every passage, each 0 to 1; -1 for what is not allowed."""
    score = np.zeros(len(corpus.document), np.float32)
    for word in signals.words:
        score[word.passages] += word.scores
    if signals.allowed is None or signals.allowed.all():
        return _promise(signals, score, slice(None))
    here = np.flatnonzero(signals.allowed[corpus.document])
    quick = np.full(len(score), -1, np.float32)
    quick[here] = _promise(signals, score[here], here)
    return quick


def _promise(signals: Signals, words: Floats, here: slice | NDArray[np.intp]) -> Floats:
    promise = share(words) + spread(signals.cosine[here])
    return promise if signals.sentence is None else promise + spread(signals.sentence[here])


def _seeds(corpus: Corpus, signals: Signals, quick: Floats, hopes: Floats | None) -> Ints:
    """The most promising documents, by position."""
    if not len(quick):
        return np.zeros(0, np.int32)
    score = quick
    if len(quick) > len(corpus.row):
        score = np.maximum.reduceat(quick, corpus.first[:-1])
    banned = score < 0
    if hopes is not None:
        score = score + hopes
    if signals.boost is not None:
        score = score + signals.boost
    if banned.any():
        score = np.where(banned, np.float32(-1), score)
    if len(score) > _SEEDS:
        floor = np.partition(score, -_SEEDS)[-_SEEDS]
        above = np.flatnonzero(score > floor)
        equal = np.flatnonzero(score == floor)[: _SEEDS - len(above)]
        return np.sort(np.concatenate([above, equal])).astype(np.int32)
    return np.arange(len(score), dtype=np.int32)


# -- the sum --------------------------------------------------------------------------------------


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


def _fused(region: Region, found: CandidateSignals) -> Parts:
    """The parts that speak of the text, with a little of the neighbours' scores."""
    parts = fused(found)
    whole = np.float32(1 / (1 + 2 * _BESIDE))
    parts = {name: part * whole for name, part in parts.items()}
    tall = np.zeros(region.height + 2, np.float32)
    tall[region.place + 1] = total(parts)
    parts["beside"] = np.float32(_BESIDE) * (tall[region.place] + tall[region.place + 2])
    return parts


def _length(corpus: Corpus, documents: Ints) -> Floats:
    """The loss of a text for its length; the account of a session is long by nature."""
    longer = np.maximum(corpus.length[documents].astype(np.float32) + 1, _LONG)
    loss: Floats = np.float32(-_LENGTH) * np.log(longer / np.float32(_LONG))
    loss[corpus.kind[documents] == _EPISODE] = 0
    return loss


def _bonus(corpus: Corpus, signals: Signals, region: Region, tokens: Tokens) -> Floats:
    bonus = np.zeros(len(region.documents), np.float32)
    if signals.expected is not None and len(signals.expected):
        bonus[_having(corpus, region, tokens, signals.expected)] += _EXPECTED
    if signals.asking is not None and len(signals.asking):
        asks = _having(corpus, region, tokens, signals.asking)
        asks &= corpus.length[region.documents] <= _SHORT
        bonus[asks] -= _ASKS
        bonus[_answers(corpus, region, asks)] += _ASKS
    return bonus


def _answers(corpus: Corpus, region: Region, asks: Mask) -> Mask:
    """Mark turns that ask nothing and follow a question of somebody else."""
    asked = np.zeros(region.height + 1, np.bool_)
    asked[region.place + 1] = asks
    before = np.maximum(region.documents - 1, 0)
    other = corpus.speaker[before] != corpus.speaker[region.documents]
    answers: Mask = asked[region.place] & other & ~asks
    return answers


def _having(corpus: Corpus, region: Region, tokens: Tokens, wanted: Ints) -> Mask:
    """Mark documents that have one of the tokens."""
    is_wanted = np.zeros(len(corpus.rarity), np.bool_)
    is_wanted[wanted] = True
    have = np.zeros(len(region.documents), np.bool_)
    have[tokens.owner[is_wanted[tokens.ids]]] = True
    return have


def _best_of_session(corpus: Corpus, region: Region, scores: Floats) -> Floats:
    """The best score of each document's session; without a session, its own."""
    session = corpus.session[region.documents]
    opens = np.concatenate([[True], (session[1:] != session[:-1]) | (session[1:] < 0)])
    highest: Floats = np.maximum.reduceat(scores, np.flatnonzero(opens))
    spread: Floats = highest[np.cumsum(opens) - 1]
    return spread


def _ordered(region: Region, found: CandidateSignals, parts: Parts, limit: int) -> Ranked:
    scores = total(parts)
    order = np.argsort(-scores, kind="stable")[: max(limit, 0)]
    return Ranked(
        documents=region.documents[order],
        scores=scores[order],
        parts={name: part[order] for name, part in parts.items()},
        passage=found.passage[order],
        alike=found.alike[order],
        cosine=found.closest[order],
    )


def _nothing() -> Ranked:
    none = np.zeros(0, np.int32)
    nothing = np.zeros(0, np.float32)
    return Ranked(none, nothing, {}, none, nothing, nothing)


# -- dates -----------------------------------------------------------------------------------------


_DATE = 0.5  # on the day, or in the month, that the question names
_YEARS = 100  # that a month without a year is looked for in
_EPOCH = date(1970, 1, 1).toordinal()


def is_dated(corpus: Corpus, question: Question) -> bool:
    """Check if there is a memory of a day that the question names."""
    days = tuple(date for date in question.dates if date.day)
    return bool(days) and bool(timely(corpus.day, days).max(initial=0) >= np.float32(_DATE))


def timely(days: Ints, dates: Sequence[Date]) -> Floats:
    """The worth of each day: that of a date that is named, or nothing."""
    known = days[days != UNKNOWN_DAY]
    if not len(known):
        return np.zeros(len(days), np.float32)
    best = np.zeros(len(days), np.float32)
    for begin, end in _spans(dates, int(known.min()), int(known.max())):
        best[(days >= begin) & (days <= end)] = _DATE
    return best


def _spans(dates: Sequence[Date], oldest: int, newest: int) -> Iterator[tuple[int, int]]:
    """First and last day, since 1970, of each date; of every year of the store if it has none."""
    years = [_year(day) for day in (oldest, newest)]
    for year, month, day in dates:
        possible = [year] if year else range(max(years[0], years[1] - _YEARS), years[1] + 1)
        for candidate in possible:
            try:
                begin = date(candidate, month, day or 1)
                after = begin.replace(day=1, month=month % 12 + 1, year=candidate + month // 12)
            except ValueError:  # 31 April
                continue
            end = begin if day else after.fromordinal(after.toordinal() - 1)
            yield begin.toordinal() - _EPOCH, end.toordinal() - _EPOCH


def _year(day: int) -> int:
    return date.fromordinal(min(max(day + _EPOCH, 1), date.max.toordinal())).year
