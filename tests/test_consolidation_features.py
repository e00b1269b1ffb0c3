"""The gist of a belief: what its words are compared by, taken once and kept."""

from __future__ import annotations

import marshal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki_memory.consolidation.features import StatementFeatures, gist, known_gist, with_gist
from loki_memory.consolidation.links import relate
from loki_memory.consolidation.merge import merge
from loki_memory.consolidation.pipeline import Phase
from loki_memory.consolidation.similarity import content, marks
from loki_memory.consolidation.snapshot import Snapshot
from loki_memory.models import Fact, Pattern, parse

WORDS = 'never close open `pool` POOL_SIZE 18 20 first last only per both "a" don\'t Kyle the'
TEXTS = st.lists(st.sampled_from(WORDS.split()), min_size=1, max_size=5).map(" ".join)


def said(text: str) -> StatementFeatures:
    return gist(Fact(statement=text))


@given(TEXTS, TEXTS)
def test_two_gists_agree_where_the_marks_of_their_texts_do(one: str, other: str) -> None:
    first, second = said(one), said(other)
    is_same = (first.is_negated, first.marks) == (second.is_negated, second.marks)
    assert is_same == (marks(one) == marks(other))


@given(TEXTS)
def test_a_gist_has_each_word_of_content_once_in_their_order(text: str) -> None:
    assert said(text).words == tuple(sorted(set(content(text))))


@given(TEXTS)
def test_a_gist_can_be_kept(text: str) -> None:
    kept = marshal.dumps(tuple(said(text)))
    assert StatementFeatures._make(marshal.loads(kept)) == said(text)  # noqa: S302 - made here


def test_a_belief_that_says_something_else_has_another_gist() -> None:
    one = Pattern(pattern="Close the connection after a query")
    assert not gist(one).is_negated
    other = one.changed(pattern="Never close the connection after a query")
    assert known_gist(other) is None
    assert gist(other).is_negated


def test_a_gist_is_no_part_of_the_record() -> None:
    plain, known = Fact(id="fact-a", statement="It is so"), Fact(id="fact-a", statement="It is so")
    gist(known)
    assert known == plain
    assert known.document() == plain.document()
    assert known.model_dump_json() == plain.model_dump_json()


@pytest.mark.parametrize("phase", [merge, relate])
def test_with_what_was_kept_a_phase_comes_to_the_same(phase: Phase) -> None:
    texts = {
        "a": "Wrap every migration in a transaction",
        "b": "Wrap all migrations in transactions",
        "c": "The deploy script needs a clean checkout",
        "d": "The deploy script needs a clean checkout because generated files are compared",
    }
    given = [{"id": f"sem-{name}", "pattern": text} for name, text in texts.items()]
    plain, known = ([parse(Pattern, one) for one in given] for _ in range(2))
    for one in known:
        with_gist(one, said(one.pattern))
    assert phase(Snapshot(plain), None).put
    assert phase(Snapshot(known), None) == phase(Snapshot(plain), None)
