"""Each rule of the ranking, on corpora small enough to follow by eye."""

from __future__ import annotations

from collections.abc import Sequence
from math import log1p

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from loki_memory.models.kinds import KINDS
from loki_memory.recall.catalogue import UNKNOWN_DAY, Corpus
from loki_memory.recall.question import Question, ask
from loki_memory.recall.ranking import Ranked, rank
from loki_memory.recall.signals import Near, Signals, Word

pytestmark = pytest.mark.filterwarnings("error")  # no division by nothing, no overflow


class Store:
    """Documents in the order given: text, session, speaker, date. " | " parts passages.

    Two tokens are alike if they are the same word, or synonyms.
    """

    def __init__(
        self,
        documents: Sequence[str],
        sessions: Sequence[int] | None = None,
        speakers: Sequence[str] | None = None,
        dates: Sequence[str] | None = None,
        synonyms: Sequence[tuple[str, str]] = (),
        kinds: Sequence[str] | None = None,
    ) -> None:
        total = len(documents)
        self.synonyms = {*synonyms, *((b, a) for a, b in synonyms)}
        parts = [text.split(" | ") for text in documents]
        self.passages = [passage.split() for passages in parts for passage in passages]
        self.vocabulary = sorted({word for words in self.passages for word in words})
        self.speakers = list(dict.fromkeys(speakers or ()))
        lengths = np.array([len(text.replace("|", "").split()) for text in documents], np.int32)
        session = np.array(sessions or [-1] * total, np.int32)
        begins = np.cumsum(lengths) - lengths
        opens = np.array([begins[session == one].min() for one in session], np.int32)
        tokens = [sorted({self.vocabulary.index(word) for word in p}) for p in self.passages]
        self.corpus = Corpus(
            row=np.arange(total, dtype=np.int32),
            kind=np.array([KINDS.index(kind) for kind in kinds or ["fact"] * total], np.uint8),
            session=session,
            length=lengths,
            centre=(begins - opens + lengths / 2).astype(np.float32),
            day=_days(dates or [""] * total),
            speaker=np.array(
                [self.speakers.index(s) for s in speakers or ()] or [-1] * total, "i4"
            ),
            first=np.cumsum([0, *map(len, parts)], dtype=np.int32),
            document=np.repeat(np.arange(total, dtype=np.int32), [*map(len, parts)]),
            tokens=np.array([token for one in tokens for token in one], np.uint32),
            starts=np.cumsum([0, *map(len, tokens)], dtype=np.int64),
            rarity=np.array([self._rarity(word) for word in self.vocabulary], np.float32),
        )

    def ask(
        self,
        text: str,
        *,
        cosine: Sequence[float] | None = None,
        hidden: Sequence[int] | None = None,
        boost: dict[int, float] | None = None,
        expected: Sequence[str] = (),
        limit: int = 200,
    ) -> Ranked:
        question = ask(text, self.speakers)
        return rank(
            self.corpus,
            question,
            self._signals(question, cosine, hidden, boost, expected),
            limit,
        )

    def _signals(
        self,
        question: Question,
        cosine: Sequence[float] | None,
        hidden: Sequence[int] | None,
        boost: dict[int, float] | None,
        expected: Sequence[str],
    ) -> Signals:
        total = len(self.corpus.row)
        words = [self._word(word) for word in question.words]
        known = [word for word in question.words if word in self.vocabulary]
        like = np.array([[self._like(a, b) for b in self.vocabulary] for a in question.words], "f4")
        added = np.zeros(total, np.float32)
        for document, worth in (boost or {}).items():
            added[document] = worth
        return Signals(
            words=words,
            near=[
                self._near(a, b) for a, b in zip(question.words, question.words[1:], strict=False)
            ],
            cosine=np.array(cosine or [0.0] * len(self.passages), np.float32),
            tokens=self._ids(known),
            weights=np.array([self._rarity(word) for word in question.words], np.float32),
            similar=lambda ids: like[:, ids],
            allowed=None if hidden is None else ~np.isin(np.arange(total), hidden),
            boost=added if boost else None,
            expected=self._ids([word for word in expected if word in self.vocabulary]),
            asking=self._ids([word for word in "?" if word in self.vocabulary]),
        )

    def _rarity(self, word: str) -> float:
        uses = sum(word in passage for passage in self.passages)
        return log1p((len(self.passages) - uses + 0.5) / (uses + 0.5))

    def _word(self, word: str) -> Word:
        places = self._ids_of([word in passage for passage in self.passages])
        return Word(
            word, self._rarity(word), places, np.full(len(places), self._rarity(word), np.float32)
        )

    def _near(self, a: str, b: str) -> Near:
        together = [f" {a} {b} " in f" {' '.join(passage)} " for passage in self.passages]
        return Near(min(self._rarity(a), self._rarity(b)), self._ids_of(together))

    def _like(self, a: str, b: str) -> float:
        return 1.0 if a == b else 0.8 if (a, b) in self.synonyms else 0.0

    def _ids(self, words: Sequence[str]) -> NDArray[np.int32]:
        return np.array([self.vocabulary.index(word) for word in words], np.int32)

    @staticmethod
    def _ids_of(flags: Sequence[bool]) -> NDArray[np.int32]:
        return np.flatnonzero(np.array(flags, bool)).astype(np.int32)


def _days(dates: Sequence[str]) -> NDArray[np.int32]:
    return np.array(
        [int(np.datetime64(d).astype(np.int64)) if d else UNKNOWN_DAY for d in dates], np.int32
    )


def _of(ranked: Ranked, part: str) -> dict[int, float]:
    """One part of the score by document."""
    return dict(zip(ranked.documents.tolist(), ranked.parts[part].tolist(), strict=True))


# -- words ----------------------------------------------------------------------------------------


def test_the_document_with_the_words_comes_first() -> None:
    store = Store(["tea is ready", "the cache is stale", "a stale bun"])
    assert store.ask("stale cache").documents.tolist() == [1, 2, 0]


def test_the_words_of_a_long_text_count_though_no_memory_has_most_of_them() -> None:
    store = Store(["tea is ready", "the cache is stale", "a stale bun"])
    rest = " ".join(f"word{n}" for n in range(60))
    short, long = store.ask("stale cache tin"), store.ask(f"stale cache\n{rest}")
    assert long.documents[0] == 1
    assert _of(long, "bm25")[1] >= _of(short, "bm25")[1]


def test_a_missing_word_is_lent_by_a_neighbour_of_the_same_session() -> None:
    store = Store(["about the cache", "it was stale", "it was stale"], sessions=[0, 0, 1])
    words = _of(store.ask("stale cache"), "bm25")
    assert words[1] > words[2]


def test_documents_without_a_session_lend_nothing() -> None:
    store = Store(["about the cache", "it was stale", "it was stale"])
    words = _of(store.ask("stale cache"), "bm25")
    assert words[1] == words[2]


def test_a_word_already_there_gains_nothing_from_a_neighbour() -> None:
    store = Store(["the cache", "the cache", "the cache"], sessions=[0, 0, 1])
    words = _of(store.ask("cache"), "bm25")
    assert words[0] == words[1] == words[2]


def test_a_word_said_before_counts_more_than_one_said_after() -> None:
    store = Store(["it was red", "the cache", "it was red"], sessions=[0, 0, 0])
    words = _of(store.ask("cache"), "bm25")
    assert words[1] > words[2] > words[0] > 0


def test_a_word_is_lent_over_four_turns_and_no_further() -> None:
    store = Store(["the cache", *["so it was"] * 5], sessions=[0] * 6)
    words = _of(store.ask("cache"), "bm25")
    assert words[1] > words[4] > 0 == words[5]


def test_a_long_turn_between_two_keeps_them_apart() -> None:
    store = Store(["the cache", "and so on " * 100, "it was"], sessions=[0, 0, 0])
    assert _of(store.ask("cache"), "bm25")[2] == 0


def test_a_token_like_the_one_asked_for_counts_and_is_lent_too() -> None:
    store = Store(
        ["nothing here", "the car", "it broke", "other words"],
        sessions=[0, 1, 1, 2],
        synonyms=[("auto", "car")],
    )
    likeness = _of(store.ask("auto"), "maxsim")
    assert likeness[1] > likeness[2] > likeness[0] == likeness[3]


def test_words_that_stand_together_beat_the_same_words_apart() -> None:
    store = Store(["return of a type", "a return type of"])
    ranked = store.ask("return type")
    assert ranked.documents.tolist() == [1, 0]
    assert _of(ranked, "near")[0] == 0


def test_a_good_match_lifts_the_turns_beside_it_a_little() -> None:
    store = Store(["so", "stale cache", "so", "so"], sessions=[0, 0, 0, 1])
    beside = _of(store.ask("stale cache"), "beside")
    assert beside[0] == beside[2] > beside[3] == 0


# -- passages -------------------------------------------------------------------------------------


def test_a_long_document_counts_by_its_best_passage() -> None:
    store = Store(["stale | cache", "the stale cache"])
    ranked = store.ask("stale cache")
    assert ranked.documents.tolist() == [1, 0]


def test_the_best_passage_is_told() -> None:
    store = Store(["tea | the stale cache | bun", "other"])
    assert store.ask("stale cache").passage.tolist()[0] == 1


def test_one_stray_passage_is_not_the_whole_memory() -> None:
    store = Store(["a | b", "c | d", "e | f"])
    cosine = _of(store.ask("?", cosine=[0.9, 0.1, 0.9, 0.5, 0, 0]), "cosine")
    assert cosine[1] > cosine[0] > cosine[2]


def test_words_in_other_passages_of_a_memory_count_too() -> None:
    store = Store(["stale cache | mad bun", "stale cache | late tea"])
    ranked = store.ask("stale cache late tea")
    words, alike = _of(ranked, "bm25"), _of(ranked, "maxsim")
    assert words[1] > words[0]
    assert alike[1] > alike[0]


def test_a_memory_that_says_a_word_in_many_passages_is_more_about_it() -> None:
    store = Store(["stale cache | mad bun | sad bun", "stale cache | stale tea | stale bun"])
    words = _of(store.ask("stale cache"), "bm25")
    assert words[1] > words[0]


def test_a_memory_that_is_long_for_its_kind_needs_a_word_more_often() -> None:
    long = "stale cache | " + " | ".join(["mad bun"] * 8)
    words = _of(Store(["stale cache | mad bun", long]).ask("stale cache"), "bm25")
    assert words[0] > words[1]


def test_an_episode_may_be_long() -> None:
    store = Store(["cache " + "so " * 300] * 2, kinds=["fact", "episode"])
    cost = _of(store.ask("cache"), "length")
    assert cost[1] == 0 > cost[0]


def test_length_beyond_some_sentences_costs() -> None:
    store = Store(["cache", "cache " + "so " * 58, "cache " + "so " * 300])
    cost = _of(store.ask("cache"), "length")
    assert cost[0] == cost[1] == 0 > cost[2]


# -- who, when, what ------------------------------------------------------------------------------


def test_the_speaker_who_is_named_comes_before_the_one_who_is_not() -> None:
    store = Store(["I paint", "I paint"], speakers=["Mel", "Ann"])
    assert store.ask("What does Ann paint").documents.tolist() == [1, 0]


def test_the_day_that_is_named_comes_first() -> None:
    days = ["2023-07-01", "2023-07-24", "2023-07-28", "2022-07-24", ""]
    store = Store(["we met"] * 5, dates=days)
    assert store.ask("met on July 24, 2023").documents.tolist() == [1, 0, 2, 3, 4]


def test_a_month_without_a_year_is_that_month_of_any_year() -> None:
    store = Store(["we met"] * 3, dates=["2023-08-31", "2023-12-05", "2021-12-31"])
    assert store.ask("met in December").documents.tolist() == [1, 2, 0]


@pytest.mark.parametrize("text", ["met on February 30, 2023", "met on 31 April"])
def test_a_day_that_never_was_changes_nothing(text: str) -> None:
    store = Store(["we met"] * 2, dates=["2023-02-28", "2023-04-30"])
    assert store.ask(text).documents.tolist() == [0, 1]


def test_an_answer_of_the_expected_kind_is_preferred() -> None:
    store = Store(["it broke badly", "it broke yesterday"])
    assert store.ask("broke", expected=["yesterday"]).documents.tolist() == [1, 0]


def test_the_answer_comes_before_the_question_that_it_answers() -> None:
    store = Store(["is it stale ?", "it is stale"], [0, 0], speakers=["a", "b"])
    bonus = _of(store.ask("stale"), "bonus")
    alone = _of(Store(["it is stale", "it is stale"], [0, 0], ["a", "b"]).ask("stale"), "bonus")
    assert bonus[0] < alone[0]
    assert bonus[1] > alone[1]


def test_nobody_answers_their_own_question() -> None:
    store = Store(["is it stale ?", "it is stale"], [0, 0], speakers=["a", "a"])
    assert _of(store.ask("stale"), "bonus")[1] == 0


def test_a_session_that_has_the_best_match_lifts_its_others() -> None:
    store = Store(["stale cache", *["so"] * 9, "tea", "tea"], sessions=[0] * 11 + [1])
    lift = _of(store.ask("stale cache tea"), "session")
    assert lift[10] == lift[0] > lift[11]


# -- what others add ------------------------------------------------------------------------------


def test_a_boost_finds_what_shares_no_word() -> None:
    store = Store([*["stale cache"] * 300, "tea"])
    ranked = store.ask("stale cache", boost={300: 2.0})
    assert ranked.documents.tolist()[0] == 300


def test_a_boost_lifts_one_memory_and_not_its_session() -> None:
    store = Store(["a cache", "b cache", "c cache"], sessions=[0, 0, 1])
    plain, boosted = store.ask("cache"), store.ask("cache", boost={0: 5.0})
    assert boosted.documents[0] == 0
    assert _of(boosted, "session") == _of(plain, "session")


def test_what_is_hidden_does_not_appear() -> None:
    store = Store(["stale cache", "stale", "tea"])
    assert store.ask("stale cache", hidden=[0]).documents.tolist() == [1, 2]


def test_what_is_hidden_lends_nothing() -> None:
    store = Store(["so it was", "stale cache", "red tea"], sessions=[0, 0, 0])
    assert set(_of(store.ask("stale cache", hidden=[1]), "bm25").values()) == {0.0}
    assert set(_of(store.ask("stale cache", hidden=[1]), "maxsim").values()) == {0.0}


def test_what_is_hidden_asks_nothing() -> None:
    store = Store(["so", "is it stale ?", "it is stale"], [0, 0, 0], speakers=["a", "a", "b"])
    assert _of(store.ask("stale"), "bonus")[2] > _of(store.ask("stale", hidden=[1]), "bonus")[2]


def test_what_is_hidden_sets_no_measure_for_the_others() -> None:
    store = Store(["stale cache", "stale stone", "cold tea"], sessions=[0, 0, 0])
    weak = store.ask("stale cache", cosine=[-0.9, 0.2, 0.1], hidden=[0])
    strong = store.ask("stale cache", cosine=[0.9, 0.2, 0.1], hidden=[0], boost={0: 5.0})
    assert weak.scores.tolist() == strong.scores.tolist()
    assert weak.alike.tolist() == strong.alike.tolist()


# -- all of it ------------------------------------------------------------------------------------


def test_equal_documents_stay_in_the_order_of_the_corpus() -> None:
    store = Store(["cache"] * 250)
    assert store.ask("cache", limit=100).documents.tolist() == list(range(100))


def test_the_limit_is_kept() -> None:
    store = Store(["cache", "stale cache", "tea"])
    assert store.ask("stale cache", limit=1).documents.tolist() == [1]
    assert store.ask("stale cache", limit=0).documents.tolist() == []


def test_parts_add_up_to_the_score() -> None:
    store = Store(
        ["is the cache stale ?", "stale since monday | tea", "tea"],
        sessions=[0, 0, 1],
        speakers=["Mel", "Ann", "Ann"],
        dates=["2023-07-24", "2023-07-24", ""],
    )
    ranked = store.ask("When did Ann see a stale cache on July 24?", boost={2: 0.3})
    total = np.sum(list(ranked.parts.values()), axis=0)
    assert total.tolist() == pytest.approx(ranked.scores.tolist())
    assert ranked.scores.tolist() == sorted(ranked.scores.tolist(), reverse=True)


def test_likeness_is_absolute() -> None:
    store = Store(["stale cache", "tea"])
    near, far = store.ask("stale cache", cosine=[0.5, 0]), store.ask("dragons fly", cosine=[0.1, 0])
    assert (near.alike.max(), near.cosine.max()) == pytest.approx((1.0, 0.5))
    assert (far.alike.max(), far.cosine.max()) == pytest.approx((0.0, 0.1))


def test_likeness_owes_nothing_to_lent_words() -> None:
    together = Store(["stale", "cache"], sessions=[0, 0])
    assert together.ask("stale cache").alike.max() == pytest.approx(0.5)


@pytest.mark.parametrize("text", ["", "?", "unknown words only", "the"])
def test_a_question_that_matches_nothing_is_no_error(text: str) -> None:
    store = Store(["cache", "tea"], sessions=[0, 0])
    ranked = store.ask(text)
    assert ranked.alike.max() == 0
    assert ranked.documents.tolist() == [0, 1]


def test_all_hidden_is_no_answer() -> None:
    ranked = Store(["cache", "tea"], sessions=[0, 0]).ask("cache", hidden=[0, 1])
    assert (len(ranked.documents), len(ranked.scores), len(ranked.alike)) == (0, 0, 0)


def test_a_store_of_nothing_has_no_answer() -> None:
    ranked = Store([]).ask("cache in May by Ann", hidden=[])
    assert (len(ranked.documents), len(ranked.alike)) == (0, 0)


def test_very_many_passages_keep_the_best_of_each_document() -> None:
    filler = " | ".join(["so it was"] * 60)
    store = Store([f"{filler} | stale cache" if n == 70 else filler for n in range(90)])
    ranked = store.ask("stale cache")
    assert ranked.documents[0] == 70
    assert ranked.passage[0] == 70 * 60 + 60
    assert len(ranked.documents) == 90


_TEXTS = st.lists(
    st.lists(st.sampled_from(["cache", "stale", "tea", "?", "|"]), max_size=6).map(" ".join),
    max_size=8,
)


@given(_TEXTS, st.data())
def test_ranking_is_a_function_of_its_input(texts: list[str], data: st.DataObject) -> None:
    sessions = sorted(data.draw(st.lists(st.integers(-1, 2), min_size=8, max_size=8)))[: len(texts)]
    hidden = data.draw(st.lists(st.integers(0, 7)))
    store = Store(texts, sessions)
    first, second = (store.ask("stale cache tea", hidden=hidden) for _ in range(2))
    assert first.documents.tolist() == second.documents.tolist()
    assert set(first.documents.tolist()) == set(range(len(texts))) - set(hidden)
    assert np.isfinite(first.scores).all()
