"""Weights of signals: words step back where the question shares few with any memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from loki_memory.recall.ranking import fused, total, weights
from loki_memory.recall.signals import share, spread

Floats = NDArray[np.float32]


class Found(NamedTuple):
    words: Floats
    cosine: Floats
    maxsim: Floats
    near: Floats
    cover: float
    sentence: Floats | None = None


def _floats(*values: float) -> Floats:
    return np.array(values, np.float32)


def _found(cover: float, sentence: Floats | None = None) -> Found:
    """The first memory shares a word with the question, the second is near to it in meaning."""
    zeros = _floats(0, 0)
    return Found(_floats(1, 0), _floats(0.1, 0.4), zeros, zeros, cover, sentence)


@pytest.mark.parametrize("with_sentences", [False, True])
def test_weights_add_up_to_1_however_much_is_covered(with_sentences: bool) -> None:
    for cover in (0.0, 0.3, 0.6, 1.0):
        assert sum(weights(cover, with_sentences=with_sentences)) == pytest.approx(1)


def test_a_chance_word_does_not_outweigh_the_meaning() -> None:
    assert total(fused(_found(cover=0.1))).argmax() == 1


def test_words_count_as_much_as_the_meaning_where_the_question_is_covered() -> None:
    parts = fused(_found(cover=0.9))
    assert parts["bm25"].max() == parts["cosine"].max()


def test_sentences_decide_most_where_no_word_is_shared() -> None:
    parts = fused(_found(0.0, _floats(0.2, 0.1)))
    assert parts["bm25"].max() == 0
    assert parts["sentence"].max() > parts["cosine"].max()
    assert total(parts).argmax() == 0


def test_without_a_sentence_model_there_is_no_part_of_it() -> None:
    assert "sentence" not in fused(_found(0.5))


def test_nothing_found_is_nothing() -> None:
    assert share(_floats(0, 0)).tolist() == spread(_floats(2, 2)).tolist() == [0, 0]
