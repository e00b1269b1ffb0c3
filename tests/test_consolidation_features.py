"""Features of statements: the values by which what beliefs say is compared."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loki_memory.consolidation.features import StatementFeatures, statement_features
from loki_memory.consolidation.similarity import content, marks
from loki_memory.models import Fact

WORDS = 'never close open `pool` POOL_SIZE 18 20 first last only per both "a" don\'t Kyle the'
TEXTS = st.lists(st.sampled_from(WORDS.split()), min_size=1, max_size=5).map(" ".join)


def said(text: str) -> StatementFeatures:
    return statement_features(Fact(statement=text))


@given(TEXTS, TEXTS)
def test_two_statements_agree_where_the_marks_of_their_texts_do(one: str, other: str) -> None:
    first, second = said(one), said(other)
    is_same = (first.is_negated, first.marks) == (second.is_negated, second.marks)
    assert is_same == (marks(one) == marks(other))


@given(TEXTS)
def test_a_statement_has_each_word_of_content_once_in_their_order(text: str) -> None:
    assert said(text).words == tuple(sorted(set(content(text))))
