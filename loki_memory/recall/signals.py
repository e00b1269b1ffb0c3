"""Look closely at the candidates for a question: what words, vectors and neighbours say of each.

The candidates and their neighbours in the session are the region of a question.

1. *Words.* Each word of the question counts by BM25 where it stands, and less where a neighbour in
   the same session says it: a turn of talk leaves out what was said just before. A word that a
   memory has itself gains nothing. What comes later lends half as much as what came before.
   A memory of several passages counts half by its best one, half as a whole.
2. *Cosine* of the question with the memory's best passage, and a little with all of them.
3. *MaxSim.* Each token of the question finds its nearest token in the passage, with the same
   lending; rare tokens count more.
4. *Sentence.* Cosine with the sentence model's vectors, where there are any, and a part of that of
   the turns on either side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loki_memory.recall.catalogue import Corpus, Floats, Ints

    Mask = NDArray[np.bool_]

_MOST_TOKENS = 24  # of the question, the rarest: a pasted log is no better described by more
_WHOLE_QUESTION = 33.0  # of rarity, some six rare words: no memory says all of a long prompt
_WHOLE = 0.3  # of a likeness comes from all passages: one stray passage is not the memory
_K1, _B = 1.2, 0.75  # of BM25, as FTS5 has them
_BEFORE, _AFTER = 0.3, 0.15  # of the sentence likeness of the turn before and of the turn after
_ALONE = 0.5  # of its own, where there is no such turn
_REACH = 4  # turns that a word is lent over
_FADE = 70.0  # tokens of distance after which it counts 1/e
_LATER = 0.5  # what a word counts that is only said later: answers follow questions
_FAR = 210.0  # … and after which it counts nothing
_MOST_PASSAGES = 3000  # of the region that are looked at closely
_STEPS = np.array([step for step in range(-_REACH, _REACH + 1) if step], np.int32)


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


# -- the region ------------------------------------------------------------------------------------


class Region(NamedTuple):
    """Candidates with their neighbours.

    For the lending, documents lie in a tall array in which two of one session are as many rows
    apart as in the corpus, and those of different sessions too far apart to reach each other: then
    "the turn before" is one slice of the whole array, not a search for each document.
    """

    documents: Ints  # ascending
    place: Ints  # per document: its row in the tall array
    height: int
    centre: Floats  # per row; infinitely far where there is no document
    passages: Ints  # of all documents, one after the other
    first: Ints  # per document: its first passage among them
    owner: Ints  # per passage: its document, as a number in the region


def around(corpus: Corpus, allowed: Mask | None, seeds: Ints, quick: Floats) -> Region:
    """The seeds with their neighbours, without what is not allowed."""
    documents = _with_neighbours(corpus, seeds)
    if allowed is not None:
        documents = documents[allowed[documents]]
    passages, owner = _passages(corpus, documents, quick)
    session = corpus.session[documents]
    apart = np.diff(documents)
    apart[(session[1:] != session[:-1]) | (session[1:] < 0)] = _REACH + 1
    place = np.zeros(len(documents), np.int32)
    np.cumsum(np.minimum(apart, _REACH + 1), out=place[1:])
    height = int(place[-1]) + 1 if len(place) else 0
    centre = np.full(height, np.inf, np.float32)
    centre[place] = corpus.centre[documents]
    first = np.searchsorted(owner, np.arange(len(documents), dtype=np.int32)).astype(np.int32)
    return Region(documents, place, height, centre, passages, first, owner)


def _with_neighbours(corpus: Corpus, seeds: Ints) -> Ints:
    """The seeds, the turn on either side, and turns further off that can still lend a word."""
    chosen = np.zeros(len(corpus.row), np.bool_)
    chosen[seeds] = True
    others = seeds[:, None] + _STEPS
    inside = np.clip(others, 0, len(chosen) - 1)
    session, centre = corpus.session[seeds][:, None], corpus.centre[seeds][:, None]
    joined = (others == inside) & (corpus.session[inside] == session) & (session >= 0)
    joined &= (np.abs(_STEPS) == 1) | (np.abs(corpus.centre[inside] - centre) <= _FAR)
    chosen[inside[joined]] = True
    return np.flatnonzero(chosen).astype(np.int32)


def _passages(corpus: Corpus, documents: Ints, quick: Floats) -> tuple[Ints, Ints]:
    """The documents' passages and their owners; only the better ones where there are very many."""
    begins = corpus.first[documents]
    counts = corpus.first[documents + 1] - begins
    owner = np.repeat(np.arange(len(documents), dtype=np.int32), counts)
    passages = ranges(begins, counts).astype(np.int32)
    if len(passages) <= _MOST_PASSAGES:
        return passages, owner
    score = quick[passages]
    best = np.maximum.reduceat(score, np.cumsum(counts) - counts)
    floor = np.partition(score, -_MOST_PASSAGES)[-_MOST_PASSAGES]
    kept = score >= np.minimum(best[owner], floor)
    return passages[kept], owner[kept]


def ranges(begins: NDArray[np.integer], counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """begins[0], begins[0] + 1, … counts[0] of them, then those of begins[1], …"""
    ends = np.cumsum(counts, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(begins - (ends - counts), counts)


def lent(region: Region, own: Floats) -> Floats:
    """Words and tokens that neighbours lend each passage, by column."""
    tall = np.zeros((region.height, own.shape[1]), np.float32)
    tall[region.place] = best(region, own)
    loans = np.zeros_like(tall)
    for step in range(1, min(_REACH, region.height - 1) + 1):
        with np.errstate(invalid="ignore"):  # between two rows without a document
            far = np.abs(region.centre[step:] - region.centre[:-step])
        near = np.where(far <= _FAR, np.exp(-far / np.float32(_FADE)), 0).astype(np.float32)
        near = near[:, None]
        np.maximum(loans[step:], tall[:-step] * near, out=loans[step:])
        np.maximum(loans[:-step], tall[step:] * (near * np.float32(_LATER)), out=loans[:-step])
    return loans[region.place][region.owner]


def best(region: Region, values: Floats) -> Floats:
    """Each document's best over its passages."""
    if len(region.passages) == len(region.documents):
        return values
    most: Floats = np.maximum.reduceat(values, region.first, axis=0)
    return most


# -- the signals -----------------------------------------------------------------------------------


class Tokens(NamedTuple):
    """The tokens of the region's passages."""

    ids: NDArray[np.intp]  # one after the other
    owner: Ints  # per token: its document in the region


class CandidateSignals(NamedTuple):
    """Results of the close look, per document of the region."""

    words: Floats
    cosine: Floats
    maxsim: Floats
    near: Floats
    passage: Ints  # the best one
    tokens: Tokens
    alike: Floats
    closest: Floats
    cover: float  # of the question's rarity, by the document that has most of its words
    sentence: Floats | None


def look_closely(corpus: Corpus, signals: Signals, region: Region) -> CandidateSignals:
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
    return CandidateSignals(
        words=_worded(region, words, each_word, signals.words, _relative(corpus, region.documents)),
        cosine=_about(region, cosine, counts),
        maxsim=_summed(region, each_token),
        near=best(region, _together(corpus, signals.near, region.passages)),
        passage=_best_passage(region, share(by_word) + spread(cosine) + spread(by_token)),
        tokens=Tokens(tokens, np.repeat(region.owner, counts)),
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
