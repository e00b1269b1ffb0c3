"""Blocks and files of ours are known again, and given up once somebody changed them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki_memory.errors import InvalidConfig
from loki_memory.install.edits import (
    HASH,
    MARKDOWN,
    PUBLISHED,
    Comment,
    find,
    is_sealed,
    sealed,
    with_block,
    without_block,
)

PLAIN = st.text(st.characters(exclude_characters="\r", exclude_categories=["Cs"]), max_size=40)


@given(PLAIN, st.sampled_from(["\n", "\r\n"]), st.sampled_from([MARKDOWN, HASH]))
def test_a_block_comes_and_goes_without_a_trace(text: str, line: str, comment: Comment) -> None:
    text = text.replace("\n", line)
    longer = with_block(text, "What we say", comment, "f")
    assert longer.startswith(text)
    assert with_block(longer, "What we say", comment, "f") == longer
    assert without_block(longer, comment, "f") == text


def test_a_block_is_renewed_where_it_stands() -> None:
    text = with_block("# Top\n", "Old", MARKDOWN, "f") + "\n## Below\n"
    new = with_block(text, "New", MARKDOWN, "f")
    assert "Old" not in new
    assert new.startswith("# Top\n")
    assert new.endswith("\n## Below\n")
    assert without_block(new, MARKDOWN, "f") == "# Top\n\n## Below\n"


def test_a_block_that_somebody_changed_stays() -> None:
    text = with_block("", "One\n\nTwo", MARKDOWN, "f").replace("Two", "Mine")
    assert with_block(text, "New", MARKDOWN, "f") == text
    assert without_block(text, MARKDOWN, "f") == text
    found = find(text, MARKDOWN, "f")
    assert found is not None
    assert not found.untouched


@pytest.mark.parametrize(
    "text",
    [
        "a\n<!-- loki-mem:begin -->\nb\n",
        "a\n<!-- loki-mem:end -->\n<!-- loki-mem:begin -->\n",
        "<!-- loki-mem:begin -->\n<!-- loki-mem:begin -->\n<!-- loki-mem:end -->\n",
    ],
)
def test_marks_that_are_no_pair_are_an_error_that_names_the_line(text: str) -> None:
    with pytest.raises(InvalidConfig, match=r"AGENTS\.md:\d: .* Nothing was written"):
        with_block(text, "New", MARKDOWN, "AGENTS.md")


def test_marks_inside_a_line_are_text() -> None:
    text = "Write `<!-- loki-mem:begin -->` to begin.\n"
    assert find(text, MARKDOWN, "f") is None


def test_a_file_of_ours_is_known_until_it_is_changed() -> None:
    text = sealed("# Recall\n\nHow.\n")
    assert is_sealed(text)
    assert is_sealed(text.replace("\n", "\r\n"))
    assert not is_sealed(text.replace("How", "Why"))
    assert not is_sealed(text + "More.\n")
    assert not is_sealed("# Recall\n")
    assert not is_sealed("")


def test_what_was_published_is_not_what_was_installed() -> None:
    assert is_sealed(sealed("A", PUBLISHED), PUBLISHED)
    assert not is_sealed(sealed("A", PUBLISHED), MARKDOWN)
