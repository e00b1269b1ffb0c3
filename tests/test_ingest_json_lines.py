"""Reading lines: nothing is lost, nothing is read twice, what is no JSON says why."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki_memory.ingest import json_lines
from loki_memory.ingest.json_lines import Piece, opened, pieces


def read(text: str | bytes, start: int = 0, line: int = 0) -> list[Piece]:
    data = text.encode() if isinstance(text, str) else text
    return list(pieces(io.BytesIO(data), start, line))


def values(found: list[Piece]) -> list[dict[str, object]]:
    return [value for piece in found for value in piece.values]


def test_a_value_is_a_line() -> None:
    found = read('{"a": 1}\n\n{"a": 2}\n')
    assert values(found) == [{"a": 1}, {"a": 2}]
    assert [piece.line for piece in found] == [1, 3]


def test_values_glued_on_one_line_are_all_read() -> None:
    (found,) = read('{"a": 1}{"a": 2} {"a": 3}\n')
    assert found.values == ({"a": 1}, {"a": 2}, {"a": 3})
    assert (found.lines, found.refused) == (1, "")


def test_a_value_over_many_lines_is_read_and_its_lines_counted() -> None:
    text = json.dumps({"type": "user", "deep": {"list": [1, {"b": 2}]}}, indent=2)
    found = read(f'{{"a": 1}}\n{text}\n{{"a": 3}}\n')
    assert values(found)[1]["deep"] == {"list": [1, {"b": 2}]}
    assert sum(piece.lines for piece in found) == 2 + text.count("\n") + 1


def test_an_opening_bracket_that_nothing_closes_does_not_swallow_what_follows() -> None:
    found = read('{\n{"a": 1}\n{"a": 2}\n')
    assert values(found) == [{"a": 1}, {"a": 2}]
    assert found[0].refused


def test_a_broken_line_is_refused_with_its_number_and_the_next_one_is_read() -> None:
    found = read('{"a": 1}\n{"a": tru\n{"a": 3}\n')
    assert values(found) == [{"a": 1}, {"a": 3}]
    assert [(piece.line, piece.refused[:11]) for piece in found if piece.refused] == [
        (2, "is not JSON")
    ]


def test_bytes_that_are_no_text_are_refused() -> None:
    (found,) = read(b'{"a": "\xff\xfe"}\n')
    assert found.refused == "is not UTF-8"


def test_a_number_is_no_event() -> None:
    (found,) = read("42\n")
    assert found.refused == "is no JSON object"


@pytest.mark.parametrize(
    ("spelled", "text"),
    [
        (r"\ud83d", "\ufffd"),
        (r"\uDE00 x", "\ufffd x"),
        (r"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (r"\\ud83d", "\\ud83d"),
        (r"\\\ud83d", "\\\ufffd"),
    ],
)
def test_half_a_surrogate_pair_is_read_as_one_character(spelled: str, text: str) -> None:
    (found,) = read(f'{{"{spelled}": "\\ud800 {spelled}"}}\n')
    assert found.values == ({text: f"\ufffd {text}"},)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_what_is_nested_too_deeply_is_refused(opening: str) -> None:
    first, second = read(opening * 3000 + '\n{"a": 1}\n')
    assert first.refused == "is nested too deeply"
    assert second.values == ({"a": 1},)


@pytest.mark.parametrize("number", ["1e400", "NaN", "1" + "0" * 400, "-Infinity"])
def test_a_number_that_nobody_can_hold_keeps_nothing_else_out(number: str) -> None:
    pieces = read(f'{{"a": {number}}}\n{{"a": 1}}\n')
    assert pieces[1].values == ({"a": 1},)


@pytest.mark.parametrize("unit", ["{}", "{} ", '{"\\ud800":1}'])
def test_a_line_of_very_many_values_is_read_in_time(unit: str) -> None:
    (found,) = read(unit * 100_000 + "\n")
    assert len(found.values) == 100_000


def test_a_value_over_very_many_lines_is_read_in_time() -> None:
    (found,) = read("[\n{}\n" + ",{}\n" * 100_000 + "]\n")
    assert len(found.values) == 100_001


def test_the_last_line_waits_until_it_is_complete() -> None:
    text = '{"a": 1}\n{"a": 2'
    first, waiting = read(text)
    assert waiting.waits
    assert waiting.end == first.end == len('{"a": 1}\n')
    assert values(read(f"{text}}}\n", first.end, first.line)) == [{"a": 2}]


def test_a_complete_value_needs_no_line_end() -> None:
    (found,) = read('{"a": 1}')
    assert (found.values, found.waits) == (({"a": 1},), False)


def test_a_value_that_is_still_being_spread_over_lines_waits() -> None:
    (found,) = read('{\n  "a": 1,\n')
    assert (found.waits, found.end, found.lines) == (True, 0, 2)


def test_a_line_that_is_too_long_is_refused_and_passed_over() -> None:
    long = json.dumps({"a": "x" * json_lines.LONGEST})
    refused, kept = read(f'{long}\n{{"a": 2}}\n')
    assert "longer than" in refused.refused
    assert (refused.lines, kept.values) == (1, ({"a": 2},))


def test_a_mark_of_the_byte_order_is_no_part_of_the_value() -> None:
    (found,) = read(b'\xef\xbb\xbf{"a": 1}\n')
    assert found.values == ({"a": 1},)


def test_a_compressed_transcript_reads_like_a_plain_one(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a": 1}\n{"a": 2}\n'))
    with opened(path) as stream:
        assert values(list(pieces(stream, len(b'{"a": 1}\n'), 1))) == [{"a": 2}]


LINES = st.lists(
    st.one_of(
        st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3).map(json.dumps),
        st.sampled_from(["", "{", "}", "[", "nonsense", '{"a": 1}{"b": 2}', '{"cut', "  "]),
    ),
    max_size=12,
)


@given(LINES, st.integers(0, 400))
def test_every_line_is_read_refused_or_waits_wherever_reading_stopped(
    some: list[str], cut: int
) -> None:
    data = "".join(f"{line}\n" for line in some).encode()
    whole = read(data)
    assert sum(piece.lines for piece in whole) == sum(1 for line in some if line.strip())
    first = [piece for piece in read(data[:cut]) if not piece.waits]
    end, line = (first[-1].end, first[-1].line) if first else (0, 0)
    rest = read(data, end, line)
    assert values([*first, *rest]) == values(whole)
