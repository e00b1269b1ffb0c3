"""Our block in somebody else's file: found, replaced, and not a byte of theirs lost."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from loki_memory.continuity.block import Now, outside, place, render, sealed
from loki_memory.injection.line import BulletLine

BEGIN = "<!-- loki-memory:begin"
END = "<!-- loki-memory:end -->"
BOM = b"\xef\xbb\xbf"


def block(*texts: str, goal: str = "") -> str:
    memories = [BulletLine(f"sem-{n}", "pattern", text) for n, text in enumerate(texts)]
    return render(Now(goal, memories, []), 1000)


OLD = block("Handlers need return types", "Run the contract tests", goal="add an endpoint")
NEW = block("Dates are stored as UTC")


def around(text: bytes) -> tuple[bytes, bytes]:
    """What stands before and after the block."""
    before, _, rest = text.partition(BEGIN.encode())
    after = rest.partition(END.encode())[2]
    return before, after.removeprefix(b"\r").removeprefix(b"\n")


def wrapped(before: str, middle: str, after: str) -> bytes:
    return f"{before}{middle}{after}".encode()


def edited(old: str, new: str) -> str:
    assert OLD.count(old) == 1
    return OLD.replace(old, new)


# Files that people have: any bytes, with line ends, marks and markers more often than by chance.
pieces = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [
            b"\n",
            b"\r\n",
            b"\r",
            b"\x00",
            b"\xff\xfe",
            BOM,
            b"# Title\n",
            b"---\n",
            b"## Mistakes & Learnings\r\n- never push on Friday\r\n",
            "\u2028\u0085".encode(),
            b"```\n",
        ]
    ),
)
files = st.lists(pieces, max_size=12).map(b"".join)
marker_lines = st.sampled_from(
    [
        OLD.encode(),
        NEW.encode(),
        OLD.splitlines(keepends=True)[0].encode(),
        NEW.splitlines(keepends=True)[0].encode(),
        f"{END}\n".encode(),
        f"{END}\r\n".encode(),
        f"{BEGIN} -->\n".encode(),
        f"{BEGIN} with a word of mine -->\n".encode(),
        END.encode(),
        b"- [sem-9] in our form, not by us\n",
        b"\\\n",
    ]
)
damaged = st.lists(st.one_of(pieces, marker_lines), max_size=14).map(b"".join)


def foreign_lines(text: bytes) -> Counter[bytes]:
    """Lines that are neither empty, nor markers, nor lines of one of the two blocks."""
    ours = {line.strip() for line in (OLD + NEW).encode().split(b"\n")}
    lines = (line.strip() for line in text.removeprefix(BOM).split(b"\n"))
    return Counter(line for line in lines if line not in ours and b"loki-memory:" not in line)


@given(files)
@settings(deadline=None)
def test_a_block_is_added_and_nothing_else_but_empty_lines_around_it(text: bytes) -> None:
    if text.removeprefix(BOM):
        before, after = around(place(text, OLD))
        gaps = (b"", b"\n", b"\r\n", b"\n\n", b"\r\n\r\n")
        assert any(
            before.removesuffix(above) + after.removeprefix(below) == text
            for above in gaps
            for below in gaps
        )


@given(files)
@settings(deadline=None)
def test_what_stands_around_the_block_survives_byte_for_byte(text: bytes) -> None:
    first = place(text, OLD)
    assert around(place(first, NEW)) == around(first)


@given(damaged)
@settings(max_examples=400, deadline=None)
@example(OLD.encode() + b"mine\n" + OLD.encode())
@example(OLD.encode() * 2 + f"{END}\n".encode())
@example(f"{BEGIN} -->\r\n{END}".encode())
def test_placing_twice_is_placing_once(text: bytes) -> None:
    once = place(text, NEW)
    assert place(once, NEW) == once
    assert place(place(once, OLD), NEW) == once


@given(damaged)
@settings(max_examples=400, deadline=None)
@example(b"a\n" + OLD.encode().replace(b"\n", b"\nmine\n", 3) + b"z")
def test_no_line_of_others_is_lost_however_damaged_the_markers_are(text: bytes) -> None:
    kept, had = foreign_lines(place(text, NEW)), foreign_lines(text)
    assert not had - kept


@given(damaged)
@settings(deadline=None)
def test_there_is_always_a_whole_new_block(text: bytes) -> None:
    result = place(text, NEW).replace(b"\r\n", b"\n")
    assert NEW.encode() in result


@pytest.mark.parametrize("nothing", [None, b""])
def test_a_new_file_has_a_title_the_block_and_the_sections_that_are_harvested(
    nothing: bytes | None,
) -> None:
    text = place(nothing, NEW).decode()
    assert text.startswith(f"# Continuity\n\n{NEW}")
    assert re.findall(r"^#+ .*", text.split(END)[1], re.MULTILINE) == [
        "## Mistakes & Learnings",
        "## Key Decisions",
    ]
    assert place(text.encode(), NEW) == text.encode()


def test_a_byte_order_mark_stays_in_front() -> None:
    assert place(BOM, NEW).startswith(BOM + b"# Continuity\n")
    assert place(BOM + b"hello\n", NEW) == BOM + NEW.encode() + b"\nhello\n"


def test_a_block_is_added_below_the_title() -> None:
    text = place(b"# Session\nUpdated: today\n", NEW).decode()
    assert text == f"# Session\n\n{NEW}\nUpdated: today\n"


def test_front_matter_stays_on_top() -> None:
    text = place(b"---\nagent: qa\n---\n# QA\n\nnotes\n", NEW).decode()
    assert text == f"---\nagent: qa\n---\n# QA\n\n{NEW}\nnotes\n"


def test_a_title_without_line_end_gets_one() -> None:
    assert place(b"# Session", NEW) == f"# Session\n\n{NEW}".encode()


def test_a_file_without_title_has_the_block_on_top() -> None:
    assert place(b"notes", NEW) == f"{NEW}\nnotes".encode()


def test_a_file_with_windows_line_ends_keeps_them_throughout() -> None:
    first = place(b"# Session\r\n\r\nnotes\r\n", OLD)
    assert first.count(b"\n") == first.count(b"\r\n")
    second = place(first, NEW)
    assert second.count(b"\n") == second.count(b"\r\n")
    assert second.endswith(b"-->\r\n\r\nnotes\r\n")


def test_a_file_of_nothing_but_our_block_keeps_its_line_ends() -> None:
    assert place(OLD.replace("\n", "\r\n").encode(), NEW) == NEW.replace("\n", "\r\n").encode()
    assert place(OLD.encode(), NEW) == NEW.encode()


def test_a_file_with_mixed_line_ends_keeps_each() -> None:
    text = b"one\r\ntwo\nthree\rfour"
    assert place(text, NEW) == NEW.encode() + b"\n" + text


def test_a_huge_file_of_any_bytes_is_kept() -> None:
    text = b"# Log\n" + bytes(range(256)) * 1000
    assert place(place(text, OLD), NEW).endswith(text.removeprefix(b"# Log\n"))


def test_unchanged_memory_gives_identical_bytes() -> None:
    text = wrapped("# A\n\n", OLD, "rest")
    assert place(text, OLD) == text


def test_a_line_written_into_the_block_is_moved_below_it() -> None:
    middle = edited("- [sem-1]", "- remember to  rebase\r\n\n\tand to push\n- [sem-1]")
    assert place(wrapped("a\n", middle, "z\n"), NEW).decode() == (
        f"a\n{NEW}- remember to  rebase\r\n\n\tand to push\nz\n"
    )


def test_old_lines_of_ours_are_not_taken_for_notes_when_somebody_wrote_beside_them() -> None:
    middle = edited(END, f"* my own\n{END}")
    assert place(middle.encode(), NEW).decode() == f"{NEW}* my own\n"


def test_a_line_of_ours_that_somebody_changed_is_kept() -> None:
    middle = edited("Run the contract tests", "Run the contract tests TWICE")
    result = place(middle.encode(), NEW).decode()
    assert result.startswith(NEW)
    assert "- [sem-1] Run the contract tests TWICE\n" in result


def test_a_line_of_ours_that_somebody_removed_is_no_reason_to_move_what_is_still_recalled() -> None:
    middle = edited("- [sem-1] Run the contract tests\n", "")
    assert place(middle.encode(), OLD).decode() == OLD


def test_a_formatter_that_changes_bullets_and_spacing_has_written_nothing() -> None:
    middle = OLD.replace("- [", "*   [").replace("## ", "\n## ").replace("contract", "\\contract")
    assert middle != OLD
    assert place(middle.encode(), NEW).decode() == NEW


def test_a_line_of_nothing_but_an_escape_is_somebody_s_too() -> None:
    assert place(edited(END, f"\\\n{END}").encode(), NEW).decode() == f"{NEW}\\\n"


def test_a_begin_without_end_is_text_and_a_new_block_is_added() -> None:
    start = OLD.removesuffix(f"{END}\n")
    result = place(wrapped("# A\n", start, "notes\n"), NEW).decode()
    assert result == f"# A\n\n{NEW}\n{start}notes\n"


def test_an_end_without_begin_is_text_and_a_new_block_is_added() -> None:
    result = place(f"notes\n{END}\nmore\n".encode(), NEW).decode()
    assert result == f"{NEW}\nnotes\n{END}\nmore\n"


def test_a_marker_with_words_of_somebody_is_text() -> None:
    middle = edited("(generated;", "(generated; I like this part;")
    assert place(middle.encode(), NEW).decode() == f"{NEW}\n{middle}"


def test_an_abridged_marker_is_still_ours() -> None:
    middle = re.sub(r"begin .* -->", "begin -->", OLD)
    result = place(wrapped("a\n", middle, "z\n"), OLD).decode()
    assert result == f"a\n{OLD}z\n"


def test_a_second_block_as_we_wrote_it_is_removed() -> None:
    assert place(wrapped("a\n", OLD + "mine\n" + OLD, "z\n"), NEW).decode() == f"a\n{NEW}mine\nz\n"


def test_a_second_block_that_somebody_changed_is_text() -> None:
    second = edited("Run the contract tests", "Never mind")
    result = place(wrapped("", OLD, second), NEW).decode()
    assert result == NEW + second


def test_of_nested_markers_the_inner_ones_are_the_block() -> None:
    begin = OLD.splitlines(keepends=True)[0]
    result = place(f"{begin}outer\n{OLD}outer\n{END}\n".encode(), NEW).decode()
    assert result == f"{begin}outer\n{NEW}outer\n{END}\n"


def test_a_merge_conflict_inside_the_block_leaves_its_marks_below() -> None:
    middle = edited("- [sem-1]", "<<<<<<< HEAD\n=======\n>>>>>>> other\n- [sem-1]")
    result = place(middle.encode(), NEW).decode()
    assert result == f"{NEW}<<<<<<< HEAD\n=======\n>>>>>>> other\n"


def test_an_empty_block_can_be_replaced_too() -> None:
    assert place(sealed("").encode(), NEW).decode() == NEW
    assert place(f"{NEW}mine\n".encode(), sealed("")).decode() == f"{sealed('')}mine\n"


def test_outside_is_what_is_not_ours() -> None:
    assert outside(wrapped("a\n", OLD + "b\n" + NEW, "c")) == b"a\nb\nc"
