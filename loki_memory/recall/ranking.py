"""Order memories by how well they answer a question: a pure function over plain arrays.

A quick look at everything (words + cosine) chooses some candidates. They and their neighbours in
the session, the region, are then looked at closely:

1. *Words.* Each word of the question counts by BM25 where it stands, and less where a neighbour in
   the same session says it: a turn of talk leaves out what was said just before. A word that a
   memory has itself gains nothing. What comes later lends half as much as what came before.
   A memory of several passages counts half by its best one, half as a whole.
2. *Cosine* of the question with the memory's best passage, and a little with all of them.
3. *MaxSim.* Each token of the question finds its nearest token in the passage, with the same
   lending; rare tokens count more.
4. *Sentence.* Cosine with the sentence model's vectors, where there are any, and a part of that of
   the turns on either side.
5. Words that stand together, the scores of the two neighbours, length, who speaks, when, what kind
   of answer is wanted, the opening of a session, a question and its answer, the session's best.

The weights were measured on long conversations between people, between people and assistants, and
on sessions of coding agents; they are round because the optimum is flat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from loki_memory.models.kinds import KINDS
from loki_memory.recall.dates import timely
from loki_memory.recall.fusion import fused, share, spread, total
from loki_memory.recall.region import Region, around, best, lent, ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loki_memory.recall.catalogue import Corpus, Floats, Ints
    from loki_memory.recall.question import Question
    from loki_memory.recall.region import Mask

    Parts = dict[str, Floats]

_SEEDS = 100  # candidates of the quick look; three times as many changed nothing
_MOST_TOKENS = 24  # of the question, the rarest: a pasted log is no better described by more
_WHOLE_QUESTION = 33.0  # of rarity, some six rare words: no memory says all of a long prompt
_WHOLE = 0.3  # of a likeness comes from all passages: one stray passage is not the memory
_K1, _B = 1.2, 0.75  # of BM25, as FTS5 has them
_BESIDE = 0.1  # of the score of the turn before and of the turn after
_BEFORE, _AFTER = 0.3, 0.15  # of the sentence likeness of the turn before and of the turn after
_ALONE = 0.5  # of its own, where there is no such turn
_LENGTH = 0.07  # for each factor e in length beyond _LONG: long texts have a bit of everything
_SPEAKER = 0.15
_EXPECTED = 0.15  # has a time for "when", a number for "how many"
_OPENING = 0.1  # the first of a session says what the session is about
_ASKS = 0.05  # taken from a short text that asks, given to the answer that follows
_SHORT, _LONG = 40, 60  # tokens
_SESSION = 0.2  # of the best score in the session

_EPISODE = KINDS.index("episode")


class Word(NamedTuple):
    """One word of the question, and the passages that have it, each once."""

    word: str
    rarity: float  # ln(1 + (N - n + .5) / (n + .5)), of a word that nobody wrote too
    passages: Ints  # positions in the corpus
    scores: Floats  # BM25 of this word alone, with that rarity


class Near(NamedTuple):
    """Two neighbouring words of the question, and the passages that have them close together."""

    weight: float  # the smaller rarity
    passages: Ints


class Signals(NamedTuple):
    """Evidence of the index and the embedding about a question."""

    words: Sequence[Word]
    near: Sequence[Near]
    cosine: Floats  # per passage, centred
    tokens: Ints  # of the question, without stop words
    weights: Floats  # their rarity
    similar: Callable[[Ints], Floats]  # distinct token ids -> [tokens, ids] cosines
    allowed: Mask | None = None  # per document: others do not appear and lend nothing
    boost: Floats | None = None  # per document: what other signals add to its score
    expected: Ints | None = None  # token ids of which an answer is likely to have one
    asking: Ints | None = None  # token ids that mark a question
    sentence: Floats | None = None  # per passage: cosine by the sentence model


class Ranked(NamedTuple):
    """Documents, best first, with what their scores are made of."""

    documents: Ints
    scores: Floats
    parts: Parts  # aligned; they add up to the scores
    passage: Ints  # the best passage of each
    certainty: float  # best MaxSim without lending + best cosine: absolute, about 0 to 2
    alike: Floats  # MaxSim of each document's best passage, without lending: absolute
    cosine: Floats  # of each document's best passage: absolute


def rank(corpus: Corpus, question: Question, signals: Signals, limit: int = 200) -> Ranked:
    """The best documents for a question; equal ones in the order of the corpus."""
    hopes = _hopes(corpus, question)
    quick = _quick(corpus, signals)
    region = around(corpus, signals.allowed, _seeds(corpus, signals, quick, hopes), quick)
    if not len(region.documents):
        return _nothing()
    found = _closely(corpus, signals, region)
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


# -- the close look -------------------------------------------------------------------------------


class _Tokens(NamedTuple):
    """The tokens of the region's passages."""

    ids: NDArray[np.intp]  # one after the other
    owner: Ints  # per token: its document in the region


class _Found(NamedTuple):
    """Results of the close look, per document of the region."""

    words: Floats
    cosine: Floats
    maxsim: Floats
    near: Floats
    passage: Ints  # the best one
    tokens: _Tokens
    certainty: float
    alike: Floats
    closest: Floats
    cover: float  # of the question's rarity, by the document that has most of its words
    sentence: Floats | None


def _closely(corpus: Corpus, signals: Signals, region: Region) -> _Found:
    starts = corpus.starts[region.passages]
    counts = corpus.starts[region.passages + 1] - starts
    tokens = corpus.tokens[ranges(starts, counts)].astype(np.intp)
    words = _matches(corpus, signals.words, region.passages)
    likes = _likeness(corpus, signals, tokens, counts)
    cosine = signals.cosine[region.passages]
    loans = lent(region, np.hstack([words, likes]))
    width = words.shape[1]
    each_word = np.maximum(words, loans[:, :width])
    each_token = np.maximum(likes, loans[:, width:])
    by_word, by_token = each_word.sum(axis=1), each_token.sum(axis=1)
    return _Found(
        words=_worded(region, words, each_word, signals.words, _relative(corpus, region.documents)),
        cosine=_about(region, cosine, counts),
        maxsim=_summed(region, each_token),
        near=best(region, _together(corpus, signals.near, region.passages)),
        passage=_best_passage(region, share(by_word) + spread(cosine) + spread(by_token)),
        tokens=_Tokens(tokens, np.repeat(region.owner, counts)),
        certainty=float(likes.sum(axis=1).max()) + float(cosine.max()),
        alike=best(region, likes.sum(axis=1)),
        closest=best(region, cosine),
        cover=_cover(words, signals.words),
        sentence=_sentence(signals, region, counts),
    )


def _cover(own: Floats, words: Sequence[Word]) -> float:
    """The share of the question's rarity that the passage with most of it has."""
    rarity = np.array([word.rarity for word in words], np.float32)
    whole = min(float(rarity.sum()), _WHOLE_QUESTION)
    return float(((own > 0) @ rarity).max()) / whole if whole > 0 else 0.0


def _sentence(signals: Signals, region: Region, counts: NDArray[np.int64]) -> Floats | None:
    """Each document's likeness to the sentence model, with a part of its neighbours'."""
    if signals.sentence is None:
        return None
    own = _about(region, signals.sentence[region.passages], counts)
    tall = np.full(region.height + 2, np.nan, np.float32)
    tall[region.place + 1] = own
    before, after = tall[region.place], tall[region.place + 2]
    alone = np.float32(_ALONE) * own
    before, after = (np.where(np.isnan(turn), alone, turn) for turn in (before, after))
    joined: Floats = own + np.float32(_BEFORE) * before + np.float32(_AFTER) * after
    return joined.astype(np.float32)


def _matches(corpus: Corpus, words: Sequence[Word], passages: Ints) -> Floats:
    """[passages, words]: what each word says about each passage."""
    matches = np.zeros((len(passages), len(words)), np.float32)
    everywhere = np.zeros(len(corpus.document), np.float32)
    for column, word in enumerate(words):
        everywhere[word.passages] = word.scores
        matches[:, column] = everywhere[passages]
        everywhere[word.passages] = 0
    return matches


def _together(corpus: Corpus, near: Sequence[Near], passages: Ints) -> Floats:
    together = np.zeros(len(corpus.document), np.float32)
    for pair in near:
        together[pair.passages] += np.float32(pair.weight)
    return together[passages]


def _likeness(
    corpus: Corpus, signals: Signals, tokens: NDArray[np.intp], counts: NDArray[np.int64]
) -> Floats:
    """[passages, tokens of the question]: the nearest token of each, by weight."""
    chosen = _weightiest(signals.weights)
    total = float(signals.weights[chosen].sum())
    likes = np.zeros((len(counts), len(chosen)), np.float32)
    filled = np.flatnonzero(counts)
    if total <= 0 or not len(filled):
        return likes
    is_used = np.zeros(len(corpus.rarity), np.bool_)
    is_used[tokens] = True
    distinct = np.flatnonzero(is_used)
    row = np.zeros(len(is_used), np.intp)
    row[distinct] = np.arange(len(distinct))
    similar = np.maximum(signals.similar(distinct.astype(np.int32))[chosen], 0)
    similar *= (signals.weights[chosen] / total)[:, None]
    nearest = np.ascontiguousarray(similar.T).take(row[tokens], axis=0)
    likes[filled] = np.maximum.reduceat(nearest, (np.cumsum(counts) - counts)[filled], axis=0)
    return likes


def _weightiest(weights: Floats) -> Ints:
    if len(weights) <= _MOST_TOKENS:
        return np.arange(len(weights), dtype=np.int32)
    order = np.argsort(-weights, kind="stable")[:_MOST_TOKENS]
    return np.sort(order).astype(np.int32)


def _relative(corpus: Corpus, documents: Ints) -> Floats:
    """The length of documents as a multiple of what is usual for their kind."""
    lengths = corpus.length.astype(np.float32) + 1
    usual = np.bincount(corpus.kind, lengths) / np.maximum(np.bincount(corpus.kind), 1)
    relative: Floats = (lengths[documents] / usual[corpus.kind[documents]]).astype(np.float32)
    return relative


def _worded(
    region: Region, own: Floats, each: Floats, words: Sequence[Word], relative: Floats
) -> Floats:
    """Half the words of each document's best passage, half BM25 of the document as a whole.

    A passage's BM25 tells how often it has a word, for its length; the sum over the passages is
    how often the document has it.
    """
    nearest = best(region, each.sum(axis=1))
    if len(nearest) == len(each) or not words:
        return nearest
    rarity = np.maximum(np.array([word.rarity for word in words], np.float32), 1e-6)
    full = np.float32(_K1 + 1)
    parts = np.minimum(own / rarity, full - np.float32(0.05))
    uses: Floats = np.add.reduceat(parts / (full - parts), region.first)
    beyond = (1 - _B + _B * relative)[:, None].astype(np.float32)
    whole: Floats = (rarity * full * uses / (uses + beyond)).sum(axis=1)
    half = np.float32(0.5)
    return half * nearest + half * whole


def _summed(region: Region, columns: Floats) -> Floats:
    """Each document's best passage, and a part of what all of its passages have together."""
    nearest = best(region, columns.sum(axis=1))
    if len(nearest) == len(columns):
        return nearest
    together: Floats = best(region, columns).sum(axis=1)
    return np.float32(1 - _WHOLE) * nearest + np.float32(_WHOLE) * together


def _about(region: Region, cosine: Floats, counts: NDArray[np.int64]) -> Floats:
    """Each document's cosine; passages that were not embedded say nothing about the whole."""
    if len(region.passages) == len(region.documents):
        return cosine
    embedded = (counts > 0).astype(np.float32)
    known: Floats = np.add.reduceat(embedded, region.first)
    total: Floats = np.add.reduceat(cosine * embedded, region.first)
    mean = (total / np.maximum(known, 1)).astype(np.float32)
    return np.float32(1 - _WHOLE) * best(region, cosine) + np.float32(_WHOLE) * mean


def _best_passage(region: Region, score: Floats) -> Ints:
    if len(region.passages) == len(region.documents):
        return region.passages
    is_best = np.flatnonzero(score == best(region, score)[region.owner])
    return region.passages[is_best[np.searchsorted(is_best, region.first)]]


# -- the sum --------------------------------------------------------------------------------------


def _fused(region: Region, found: _Found) -> Parts:
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


def _bonus(corpus: Corpus, signals: Signals, region: Region, tokens: _Tokens) -> Floats:
    bonus = np.zeros(len(region.documents), np.float32)
    bonus[_opens(corpus, region.documents)] = _OPENING
    if signals.expected is not None and len(signals.expected):
        bonus[_having(corpus, region, tokens, signals.expected)] += _EXPECTED
    if signals.asking is not None and len(signals.asking):
        asks = _having(corpus, region, tokens, signals.asking)
        asks &= corpus.length[region.documents] <= _SHORT
        bonus[asks] -= _ASKS
        bonus[_answers(corpus, region, asks)] += _ASKS
    return bonus


def _opens(corpus: Corpus, documents: Ints) -> Mask:
    """Mark documents that open a session of several."""
    session = corpus.session
    before, after = np.maximum(documents - 1, 0), np.minimum(documents + 1, len(session) - 1)
    first = (session[before] != session[documents]) | (documents == 0)
    more = (session[after] == session[documents]) & (after > documents)
    opens: Mask = (session[documents] >= 0) & first & more
    return opens


def _answers(corpus: Corpus, region: Region, asks: Mask) -> Mask:
    """Mark turns that ask nothing and follow a question of somebody else."""
    asked = np.zeros(region.height + 1, np.bool_)
    asked[region.place + 1] = asks
    before = np.maximum(region.documents - 1, 0)
    other = corpus.speaker[before] != corpus.speaker[region.documents]
    answers: Mask = asked[region.place] & other & ~asks
    return answers


def _having(corpus: Corpus, region: Region, tokens: _Tokens, wanted: Ints) -> Mask:
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


def _ordered(region: Region, found: _Found, parts: Parts, limit: int) -> Ranked:
    scores = total(parts)
    order = np.argsort(-scores, kind="stable")[: max(limit, 0)]
    return Ranked(
        documents=region.documents[order],
        scores=scores[order],
        parts={name: part[order] for name, part in parts.items()},
        passage=found.passage[order],
        certainty=found.certainty,
        alike=found.alike[order],
        cosine=found.closest[order],
    )


def _nothing() -> Ranked:
    none = np.zeros(0, np.int32)
    nothing = np.zeros(0, np.float32)
    return Ranked(none, nothing, {}, none, 0.0, nothing, nothing)
