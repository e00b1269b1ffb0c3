"""The region of a question: candidates with their neighbours, which may lend them words."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loki_memory.recall.catalogue import Corpus, Floats, Ints

    Mask = NDArray[np.bool_]

_REACH = 4  # turns that a word is lent over
_FADE = 70.0  # tokens of distance after which it counts 1/e
_FAR = 210.0  # … and after which it counts nothing
_LATER = 0.5  # what a word counts that is only said later: answers follow questions
_MOST_PASSAGES = 3000  # of the region that are looked at closely
_STEPS = np.array([step for step in range(-_REACH, _REACH + 1) if step], np.int32)


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
