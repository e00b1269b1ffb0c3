"""Text to vectors: equal to model2vec, never raising, the same for both kinds of model."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import model2vec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from loki_memory.embedding import load, load_with_model2vec, tokenizer
from loki_memory.embedding.static_model import FOLDER, NAME, Embedding
from loki_memory.embedding.tokenizer import Vocabulary
from loki_memory.errors import InvalidConfig

TRACEBACK = """\
Traceback (most recent call last):
  File "/app/src/server.py", line 42, in <module>
    raise ValueError(f"todo {id!r} has no due_date")
ValueError: todo 'a-1' has no due_date
"""
TEXTS = [
    "",
    " \t\r\n ",
    "a",
    "Why does the build fail?",
    "The agent forgot to add the return type, so ESLint refused the route handler.",
    "export const todos = (req: Request, res: Response): void => { res.json([]); };",
    "def __init__(self, *args: Any, **kwargs: Any) -> None: ...",
    "getUserByEmailAddress snake_case_name SCREAMING_CASE kebab-case-name x86_64 utf8mb4",
    "SELECT id, title FROM todos WHERE due_at < datetime('now') ORDER BY due_at DESC;",
    TRACEBACK,
    "error TS2345: Argument of type 'string' is not assignable to parameter of type 'number'.",
    "npm ERR! code ERESOLVE\nnpm ERR! ERESOLVE unable to resolve dependency tree",
    "src/routes/todos.ts:17:5 ../../web/vite.config.ts C:\\Users\\me\\AppData ~/.ssh/config",
    "https://example.com/a/b?c=d&e=%20f#g me@example.com 10.0.0.1:8080 [::1] 1e-5 0xDEADBEEF",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "naïve café Ünïcödé façade Ångström Straße smørrebrød Łódź İstanbul ﬁle ǅ Kelvin: \u212a",
    "e\u0301 a\u0300\u0323 \u0301x o\u0302\u0301",
    "ΣΑΣ ὈΔΥΣΣΕΎΣ тест ёлка Й",
    "数据库迁移失败 メモリ キャッシュ 기억 漢字かな交じり文 \uf900\u2f80\U00020000\U0002b820",
    "x\U0002b820y x\U0002b920y x\u3400y x\uf900y x\U0002a6dfy",
    "שלום עולם مرحبا بالعالم हिन्दी ไทย",
    "🎉 done 👩‍👩‍👧‍👦 ok 👍🏽 :) → ← ≤ ≥ … “quoted” \u2018it\u2019s\u2019",
    "— \u2013 «x» ¿qué? § ° €5 ™ ½ x² №7",
    "zero\u200bwidth soft\u00adhyphen \ufeffbom \u2028line\u2029paragraph no\u00a0break",
    "nul\x00 bell\x07 esc\x1b[31mred\x1b[0m vt\x0bff\x0c fs\x1cgs\x1d nel\x85 del\x7f \ufffd",
    "[MASK] [CLS]start end[SEP] [PAD][UNK]x [mask] [[MASK]] [MA\x0bSK] [ ]",
    "private \ue000 use, noncharacter \ufffe \U0010ffff",
    "x" * 100,
    "x" * 101,
    f"short {'z' * 5000} short",
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis qqxzqqxz",
    "word " * 2000,
    "!@#$%^&*()_+-=[]{}|;':\",./<>?`~\\" * 3,
]
# As of Unicode 3.2, except four of which the category was changed since: the tables of the
# reference are about as old as Unicode 8, those of Python as young as Python.
RECLASSIFIED = "\u166d\u1734\u1885\u1886"
SETTLED = "".join(
    char
    for char in map(chr, range(0x20000))
    if unicodedata.ucd_3_2_0.category(char) not in {"Cn", "Cs"} and char not in RECLASSIFIED
)


BUNDLED = load()
REFERENCE = model2vec.StaticModel.from_pretrained(FOLDER, max_length=None)  # a text is never cut


@pytest.fixture(scope="module", params=["bundled", "by model2vec", "foreign"])
def either(request: pytest.FixtureRequest) -> Embedding:
    if request.param == "by model2vec":
        return load_with_model2vec()
    return load("" if request.param == "bundled" else FOLDER)


# -- equal to model2vec --------------------------------------------------------------------------


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text[:24]))
def test_token_ids_are_those_of_model2vec(either: Embedding, text: str) -> None:
    assert either.tokens(text) == REFERENCE.tokenize([text])[0]


def test_vectors_are_those_of_model2vec(either: Embedding) -> None:
    tokens, vectors = either.encode(TEXTS)
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, REFERENCE.encode(TEXTS), rtol=0, atol=1e-6)
    assert tokens == REFERENCE.tokenize(TEXTS)
    assert np.array_equal(vectors, either.embed(tokens))


def test_both_readers_of_the_shipped_model_give_the_same_bits() -> None:
    ours, theirs = load(), load_with_model2vec()
    assert (ours.name, ours.size, ours.vocabulary) == (theirs.name, theirs.size, theirs.vocabulary)
    assert ours.encode(TEXTS).tokens == theirs.encode(TEXTS).tokens
    assert ours.encode(TEXTS).vectors.tobytes() == theirs.encode(TEXTS).vectors.tobytes()


def test_rows_are_those_of_model2vec(either: Embedding) -> None:
    text = TEXTS[4]
    theirs = REFERENCE.encode_as_sequence(text)
    assert np.allclose(either.rows(either.tokens(text)), theirs, rtol=0, atol=1e-6)


def test_every_settled_character_is_treated_as_the_reference_does() -> None:
    texts = [f"foo{char}bar" for char in SETTLED]
    theirs = REFERENCE.tokenize(texts)
    ours = [BUNDLED.tokens(text) for text in texts]
    assert [ascii(t) for t, a, b in zip(texts, ours, theirs, strict=True) if a != b] == []


words = st.sampled_from([word for text in TEXTS for word in text.split()[:20]])
written = st.text(st.sampled_from(SETTLED)) | st.text(st.characters(max_codepoint=0x2FF))
mixed = st.lists(words | written | st.sampled_from([" ", "\n", "[MASK]", "##", "_"])).map("".join)


@settings(max_examples=300, deadline=None)
@given(mixed)
def test_any_text_gives_the_tokens_and_the_vector_of_model2vec(text: str) -> None:
    tokens = BUNDLED.tokens(text)
    assert tokens == REFERENCE.tokenize([text])[0]
    assert np.array_equal(BUNDLED.embed([tokens])[0], REFERENCE.encode(text))


def test_words_are_the_same_from_a_part_of_the_vocabulary_and_from_all_of_it() -> None:
    vocabulary = Vocabulary(f"{FOLDER}/vocab.txt")
    everything = vocabulary.all()
    assert len(everything) == load().vocabulary
    assert {token: vocabulary.find(token) for token in everything} == everything
    assert [vocabulary.find(none) for none in ("", "##", "qqxz", "##qqxz", "\n", "é")] == [None] * 6


def test_a_question_and_a_long_text_are_tokenised_alike() -> None:
    for text in TEXTS:  # each with a fresh vocabulary, of which most read only a part
        assert load().tokens(text) == REFERENCE.tokenize([text])[0]


def test_what_is_remembered_of_words_is_bounded_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tokenizer, "_KEPT", 100)
    small = tokenizer.WordPiece(Vocabulary(f"{FOLDER}/vocab.txt"))
    for number in range(2000):
        text = f"note{number} again{number}: build {number}"
        assert small.tokens(text) == BUNDLED.tokens(text)
    assert len(small._chunks) <= 100
    assert len(small._chunks._words) <= 100


# -- both kinds of model -------------------------------------------------------------------------


def test_vectors_have_length_one_and_a_text_of_nothing_is_zeros(either: Embedding) -> None:
    vectors = either.embed([either.tokens("return type"), [], either.tokens("\x00"), (5, 5, 9)])
    assert vectors.shape == (4, either.size)
    assert np.allclose(np.linalg.norm(vectors, axis=1), [1, 0, 0, 1], atol=1e-6)
    assert either.embed([]).shape == either.encode([]).vectors.shape == (0, either.size)
    assert either.rows([]).shape == (0, either.size)


def test_tokens_may_come_as_a_list_a_tuple_or_an_array(either: Embedding) -> None:
    tokens = either.tokens("the route handler has no return type")
    short = np.array(tokens, np.uint16)
    for given_as in (tuple(tokens), short):
        assert np.array_equal(either.rows(given_as), either.rows(tokens))
        assert np.array_equal(either.embed([given_as]), either.embed([tokens]))


def test_a_text_has_one_vector_whatever_it_is_embedded_with(either: Embedding) -> None:
    tokens = [either.tokens(text) for text in TEXTS]
    together = either.embed(tokens)
    assert all(np.array_equal(together[i], either.embed([t])[0]) for i, t in enumerate(tokens))
    assert all(np.array_equal(together[i], either.encode([t])[1][0]) for i, t in enumerate(TEXTS))


def test_every_token_id_is_in_the_vocabulary(either: Embedding) -> None:
    found = [token for text in TEXTS for token in either.tokens(text)]
    assert max(found) < either.vocabulary == 31861
    assert min(found) >= 0


def test_half_a_surrogate_pair_adds_nothing(either: Embedding) -> None:
    assert either.tokens("return\ud83d type\udc00") == either.tokens("return type")


def test_like_texts_are_nearer_than_unlike_ones(either: Embedding) -> None:
    ask, like, unlike = either.embed(
        [
            either.tokens(text)
            for text in (
                "the compiler complains about a missing type annotation",
                "TypeScript error: function lacks return type",
                "we had lunch at the harbour on Sunday",
            )
        ]
    )
    assert ask @ like > ask @ unlike + 0.2


# -- the model that is shipped -------------------------------------------------------------------


def test_its_name_is_the_hash_of_its_files() -> None:
    held = b"".join((Path(FOLDER) / n).read_bytes() for n in ("model.safetensors", "vocab.txt"))
    assert f"loki-256-{hashlib.sha256(held).hexdigest()[:12]}" == NAME == load().name


def test_its_two_vocabularies_are_one() -> None:
    theirs = json.loads((Path(FOLDER) / "tokenizer.json").read_text(encoding="utf-8"))
    assert theirs["model"]["vocab"] == Vocabulary(f"{FOLDER}/vocab.txt").all()


def test_it_comes_with_its_card_and_its_notices() -> None:
    assert "potion-base-8M" in (Path(FOLDER) / "README.md").read_text(encoding="utf-8")
    notice = (Path(FOLDER) / "NOTICE").read_text(encoding="utf-8")
    assert "Copyright (c) The Minish Lab, MIT" in notice
    assert "BAAI/bge-base-en-v1.5" in notice
    assert "Permission is hereby granted" in notice


IN_A_FRESH_PYTHON = """\
import os, sys
from loki_memory.embedding import load
assert "numpy" not in sys.modules
model = load()
model.embed([model.tokens("why does the build fail in src/routes/todos.ts?")])
print(os.environ["OPENBLAS_NUM_THREADS"], os.environ["OMP_NUM_THREADS"], *sys.modules)
"""


def test_embedding_a_question_loads_numpy_and_nothing_else_that_is_heavy() -> None:
    unset = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    environment = {**unset, "OMP_NUM_THREADS": "2", "PYTHONPATH": str(Path(__file__).parent.parent)}
    command = [sys.executable, "-c", IN_A_FRESH_PYTHON]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    blas, omp, *loaded = done.stdout.split()
    assert (blas, omp) == ("1", "2"), "one thread, unless someone decided otherwise"
    assert "numpy" in loaded
    heavy = {"json", "orjson", "pydantic", "click", "pathlib", "model2vec", "tokenizers", "hashlib"}
    assert not heavy & set(loaded)


# -- other models --------------------------------------------------------------------------------


def small_model(folder: Path, **options: object) -> str:
    """Three words and their vectors, in the format of model2vec."""
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "red": 1, "blue": 2, "dark": 3}, "[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    vectors = np.array([[9, 9], [3, 0], [0, 2], [1, 1]], np.float16)
    model2vec.StaticModel(
        **{"vectors": vectors, "tokenizer": tokenizer, **options}  # type: ignore[arg-type]
    ).save_pretrained(folder)
    return str(folder)


def test_a_model_of_another_format_is_read_with_its_own_tokeniser(tmp_path: Path) -> None:
    model = load(small_model(tmp_path / "m", normalize=False, max_length=2))
    assert (model.size, model.vocabulary) == (2, 4)
    assert model.tokens("red green blue dark red") == [1, 2, 3, 1], "unknown left out, nothing cut"
    assert model.rows([1, 2]).tolist() == [[3, 0], [0, 2]]
    expected = np.array([[4, 1], [0, 17**0.5]]) / 17**0.5
    assert np.allclose(model.embed([[1, 3], [2]]), expected)
    assert np.allclose(model.encode(["red dark", "green blue"]).vectors, expected)


def test_a_model_that_shares_vectors_and_weighs_tokens_is_read(tmp_path: Path) -> None:
    folder = small_model(
        tmp_path / "m",
        vectors=np.array([[1, 0], [0, 1]], np.float32),
        token_mapping=np.array([0, 1, 1, 0]),
        weights=np.array([1, 2, 3, 4], np.float32),
    )
    assert load(folder).rows([1, 2, 3]).tolist() == [[0, 2], [0, 3], [4, 0]]


def test_the_name_follows_the_content_not_the_place(tmp_path: Path) -> None:
    folder = small_model(tmp_path / "m")
    moved = shutil.copytree(folder, tmp_path / "elsewhere")
    other = small_model(tmp_path / "other", vectors=np.ones((4, 2), np.float32))
    assert load(folder).name == load(str(moved)).name
    assert load(folder).name != load(other).name


def test_a_folder_in_the_home_folder_may_be_named_shortly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    small_model(tmp_path / "m")
    assert load("~/m").size == 2


@pytest.mark.parametrize("folder", ["minishlab/potion-base-8M", "model", "."])
def test_a_path_that_is_not_whole_is_refused_and_nothing_is_downloaded(folder: str) -> None:
    with pytest.raises(InvalidConfig, match=r"embedding\.model.*not a whole path"):
        load(folder)


def test_a_folder_that_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"nowhere is not a folder"):
        load(str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("tokenizer.json", "{"),
        ("config.json", "not json"),
        ("model.safetensors", "not tensors"),
        ("model.safetensors", None),
    ],
)
def test_a_folder_that_cannot_be_read_is_said_with_its_reason(
    tmp_path: Path, file: str, text: str | None
) -> None:
    folder = small_model(tmp_path / "m")
    (tmp_path / "m" / file).unlink()
    if text is not None:
        (tmp_path / "m" / file).write_text(text, encoding="utf-8")
    with pytest.raises(InvalidConfig, match=r"is no model that model2vec reads \(.+\)") as refused:
        load(folder)
    assert folder in str(refused.value)
