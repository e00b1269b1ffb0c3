"""Words of a question against the full text: any word, any script, any punctuation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loki_memory import Workspace
from loki_memory.recall import full_text as lexicon_module
from loki_memory.recall.full_text import Lexicon
from loki_memory.recall.signals import Word

STATEMENTS = {
    "server": "The contract tests need a running server",
    "schema": "The schema of the server is generated",
    "naive": "A naïve café résumé",
    "near": "Operators such as NEAR and OR are words, AND so is NOT",
    "japanese": "契約テストにはデータベースが必要です",
    "chinese": "部署之前必须运行数据库迁移",
    "thai": "ฐานข้อมูลต้องทำงานก่อน",
    "german": "Größenänderung der Straßenbahn",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A store that tests only ask; made once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOKI_HOME", str(tmp_path_factory.mktemp("nobody") / ".loki"))
        with Workspace.init(tmp_path_factory.mktemp("lexicon")) as workspace:
            for text in STATEMENTS.values():
                workspace.remember(text)
            workspace.list()
            workspace.home.retriever.prepare()
            yield workspace


@pytest.fixture
def lexicon(store: Workspace) -> Lexicon:
    return Lexicon(store.index, store.home.retriever.prepare())


def found(store: Workspace, word: Word) -> set[str]:
    """Names of the statements in which a word is found."""
    corpus = store.home.retriever.prepare().corpus
    rows = set(corpus.row[corpus.document[word.passages]].tolist())
    names = {text: name for name, text in STATEMENTS.items()}
    return {
        names[title]
        for row, title in store.index.ask("SELECT row, title FROM memories")
        if row in rows
    }


def named(store: Workspace, lexicon: Lexicon, *words: str) -> list[set[str]]:
    return [found(store, word) for word in lexicon.words(words)]


def test_a_word_is_found_in_all_its_forms(store: Workspace, lexicon: Lexicon) -> None:
    assert named(store, lexicon, "servers", "test", "cafe", "naive") == [
        {"server", "schema"},
        {"server"},
        {"naive"},
        {"naive"},
    ]


def test_the_words_come_in_the_order_of_the_question(lexicon: Lexicon) -> None:
    words = ["server", "schema", "contract", "server"]
    assert [word.word for word in lexicon.words(words)] == words


def test_a_rare_word_says_more_than_a_common_one(lexicon: Lexicon) -> None:
    common, rare = lexicon.words(["server", "schema"])
    assert rare.rarity > common.rarity > 0
    assert (common.scores > 0).all()
    assert rare.scores.min() > common.scores.min()


@pytest.mark.parametrize("word", ["near", "or", "and", "not"])
def test_operators_are_words(store: Workspace, lexicon: Lexicon, word: str) -> None:
    assert "near" in named(store, lexicon, word)[0]


HOSTILE = [
    '"', '""', "'", "*", "server*", "^server", "text:server", "{a}", "(", ")", "NEAR(", "a OR b",
    "-", "--", ";DROP TABLE memories", "\0", "ser\0ver", "🎉", "👩‍👩‍👧", "\u200b", "\ufeff", "…",
    "ﬁ", "İ", "ß", "a" * 100_000, "契" * 5000, "\u0301", "\u202e", "%", "_", "\\",
]  # fmt: skip


@pytest.mark.parametrize("word", HOSTILE, ids=ascii)
def test_no_word_is_an_error(lexicon: Lexicon, word: str) -> None:
    words = lexicon.words([word, "server", word])
    assert [one.word for one in words] == [word, "server", word]
    assert len(words[1].passages) == 2
    assert lexicon.near(words) is not None


@given(words=st.lists(st.text(max_size=12), min_size=1, max_size=6))
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_words_are_an_error(lexicon: Lexicon, words: list[str]) -> None:
    asked = lexicon.words(words)
    assert [one.word for one in asked] == words
    for one in asked:
        assert len(one.passages) == len(set(one.passages.tolist())) == len(one.scores)
        assert (one.scores > 0).all()
    lexicon.near(asked)


def test_ten_thousand_words_are_no_error(lexicon: Lexicon) -> None:
    words = lexicon.words(["server", *(f"word{n}" for n in range(10_000))])
    assert words[0].word == "server"
    assert len(words[0].passages) == 2


def test_no_words_find_nothing(lexicon: Lexicon) -> None:
    assert lexicon.words([]) == []
    assert lexicon.near([]) == []


def test_an_empty_store_has_no_word(ws: Workspace) -> None:
    ws.list()
    empty = Lexicon(ws.index, ws.home.retriever.prepare())
    assert [len(word.passages) for word in empty.words(["server", "schema"])] == [0, 0]


# -- words that stand together -------------------------------------------------------------------


def test_neighbours_in_the_question_that_are_neighbours_in_a_text(lexicon: Lexicon) -> None:
    """The words "contract tests" stand together in one memory; no memory has the others."""
    pairs = lexicon.near(lexicon.words(["contract", "tests"]))
    assert [len(pair.passages) for pair in pairs] == [1]
    assert pairs[0].weight > 0
    assert lexicon.near(lexicon.words(["contract", "schema"])) == []
    assert lexicon.near(lexicon.words(["server", "server"])) == []


# -- words that nobody wrote ---------------------------------------------------------------------


@pytest.mark.parametrize(("typo", "name"), [("contrct", "server"), ("schemma", "schema")])
def test_a_slip_of_the_pen_is_guessed(
    store: Workspace, lexicon: Lexicon, typo: str, name: str
) -> None:
    assert name in named(store, lexicon, typo)[0]


def test_a_guess_counts_less_than_the_word_itself(lexicon: Lexicon) -> None:
    (guess,) = lexicon.words(["contarct"])
    (word,) = lexicon.words(["contract"])
    assert set(guess.passages.tolist()) == set(word.passages.tolist())
    assert 0 < guess.scores.max() < word.scores.max()


def test_nothing_is_guessed_while_most_words_are_known(lexicon: Lexicon) -> None:
    words = lexicon.words(["server", "schema", "contrct"])
    assert len(words[2].passages) == 0


def test_no_word_is_guessed_to_be_one_that_every_text_has(lexicon: Lexicon) -> None:
    (theme,) = lexicon.words(["theme"])  # "the" shares half of its letters
    assert not len(theme.passages)


def test_what_is_like_nothing_is_not_guessed(lexicon: Lexicon) -> None:
    assert [len(word.passages) for word in lexicon.words(["zygomorphic", "xq"])] == [0, 0]


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("データベース", "japanese"),
        ("契約", "japanese"),
        ("数据库", "chinese"),
        ("迁移", "chinese"),
        ("运行数据库", "chinese"),
        pytest.param(
            "ข้อมูล",
            "thai",
        ),
    ],
)
def test_a_part_of_a_clause_is_found_where_words_have_no_spaces(
    store: Workspace, lexicon: Lexicon, word: str, name: str
) -> None:
    assert named(store, lexicon, word) == [{name}]
    assert named(store, lexicon, "server", "schema", word)[2] == {name}


# -- a large store -------------------------------------------------------------------------------


def asked_in_a_large_store(
    lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch, words: Sequence[str]
) -> list[str]:
    """Large is what has more matches than a question may weigh."""
    monkeypatch.setattr(lexicon_module, "_MOST_MATCHES", 2)
    return [word.word for word in lexicon.words(words)]


def test_a_common_word_is_left_out_where_there_is_too_much_of_it(
    lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked_in_a_large_store(lexicon, monkeypatch, ["server", "contract", "schema"]) == [
        "contract",
        "schema",
    ]


def test_the_rarest_word_is_asked_for_however_common_it_is(
    lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexicon_module, "_MOST_MATCHES", 0)
    assert [word.word for word in lexicon.words(["the", "server"])] == ["server"]


def test_the_weight_of_a_word_does_not_depend_on_who_else_is_in_the_index(ws: Workspace) -> None:
    """Links have a text too, and are nobody's answer: a word in half of all memories stays modest.

    FTS5 counts every passage when it weighs a word.
    """
    facts = [ws.remember(f"Fact {n} " + ("about engines" if n % 2 else "")) for n in range(20)]
    ws.list()
    before = Lexicon(ws.index, ws.home.retriever.prepare()).words(["engines"])[0].scores.max()
    for number, (a, b) in enumerate(pairwise(facts)):
        path = ws.layout.memory / "semantic" / "links" / f"l{number}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f'{{"from": "{a.id}", "to": "{b.id}", "note": "because they say so"}}',
            encoding="utf-8",
        )
    ws.list()
    after = Lexicon(ws.index, ws.home.retriever.prepare()).words(["engines"])[0].scores.max()
    assert after < 3 * before


def test_of_very_many_words_those_of_the_title_and_the_rarest_are_looked_for(
    lexicon: Lexicon,
) -> None:
    strangers = [f"stranger{n}" for n in range(60)]
    names = ["nobody", "the", "schema", *strangers]
    looked_for = [word.word for word in lexicon.words(names, {"nobody"})]
    assert looked_for == ["nobody", "the", "schema"]
