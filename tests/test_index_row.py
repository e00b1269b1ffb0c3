"""Passages: a text cut into pieces in which it is found."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loki_memory import Workspace
from loki_memory.index.row import pieces

LONGEST = 160  # words
MOST = 400  # pieces


def words(text: str) -> list[str]:
    return text.split()


def prose(sentences: int, of_words: int = 20) -> str:
    return " ".join(" ".join(f"w{n}x{m}" for m in range(of_words)) + "." for n in range(sentences))


@pytest.mark.parametrize("text", ["", " ", "\n\t \n", "\u2003"])
def test_an_empty_text_has_no_piece(text: str) -> None:
    assert pieces(text) == []


@pytest.mark.parametrize("count", [1, 2, 119, 120])
def test_a_short_text_is_one_piece_as_it_is(count: int) -> None:
    text = "  \n".join(f"word{n}" for n in range(count))
    assert pieces(f" {text}\n") == [text]


def test_a_long_text_is_cut_at_the_ends_of_sentences() -> None:
    found = pieces(prose(sentences=30))
    assert len(found) == 8
    assert all(piece.endswith(".") for piece in found)
    assert [len(words(piece)) for piece in found] == [80] * 7 + [40]


@pytest.mark.parametrize("mark", ["!", "?", ":", "\u3002", "\uff01", "…", "\n"])
def test_any_end_of_a_sentence_is_one(mark: str) -> None:
    text = " ".join(["word"] * 89 + [f"end{mark}"] + ["word"] * 60)
    assert words(pieces(text)[0])[-1].startswith("end")


def test_a_text_without_sentences_is_cut_all_the_same() -> None:
    found = pieces("word " * 1000)
    assert [len(words(piece)) for piece in found] == [LONGEST] * 6 + [40]


def test_a_book_has_a_limit() -> None:
    found = pieces("word " * 200_000)
    assert len(found) == MOST
    assert all(len(words(piece)) <= LONGEST for piece in found)


@given(
    st.lists(
        st.sampled_from(["a", "b.", "c\n", "été", "一二三。", "🎉", "--x", "d:\n\n"]), max_size=900
    )
)
@settings(max_examples=40, deadline=None)
def test_no_word_is_lost_or_moved(given_words: list[str]) -> None:
    text = " ".join(given_words)
    found = pieces(text)
    assert [word for piece in found for word in words(piece)] == words(text)
    assert all(piece == piece.strip() and piece for piece in found)
    if len(words(text)) > 120:
        assert all(len(words(piece)) <= LONGEST for piece in found)
        assert all(len(words(piece)) >= 80 for piece in found[:-1])


@pytest.mark.parametrize(
    ("text", "most"), [("記憶は失われない。" * 2000, 4000), ("x" * 100_000, 16_000)]
)
def test_a_text_without_spaces_is_cut_too(text: str, most: int) -> None:
    found = pieces(text)
    assert "".join(found) == text
    assert max(map(len, found)) <= most


def test_every_part_of_a_long_memory_is_found_by_its_words(ws: Workspace) -> None:
    text = prose(sentences=60)
    fact = ws.remember(text)
    ws.list()
    for word in ("w0x0", "w30x7", "w59x19"):
        rows = ws.index.ask(
            "SELECT m.id FROM words JOIN passages AS p ON p.row = words.rowid "
            "JOIN memories AS m ON m.row = p.memory WHERE words MATCH ?",
            f'"{word}"',
        )
        assert rows == [(fact.id,)]


def test_equal_passages_have_one_key_and_detail_has_none(ws: Workspace) -> None:
    """Two episodes with one goal; their action logs are found by words only."""
    for task in ("a", "b"):
        ws.record(
            {
                "goal": "Fix the build",
                "task_id": task,
                "timestamp": "2026-01-06",
                "action_log": [{"action": "ran make"}],
            }
        )
    ws.list()
    keys = [row[0] for row in ws.index.ask("SELECT key FROM passages ORDER BY row")]
    assert len(set(keys) - {0}) == 1
    assert keys.count(0) == 2
    assert all(0 <= key < 2**63 for key in keys)
