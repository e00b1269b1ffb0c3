"""Bytes to records and back: canonical out, and nothing dangerous in."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_models import EPISODE, HANDOFF, LEDGER, PATTERN, SMALLEST, made

from loki_memory import Episode, Pattern
from loki_memory.errors import InvalidRecord
from loki_memory.files import codec
from loki_memory.files.layout import place
from loki_memory.files.scan import etag
from loki_memory.models import parse

PATH = "semantic/patterns/sem-001.json"


def refused(data: bytes, path: str = PATH) -> InvalidRecord:
    with pytest.raises(InvalidRecord) as caught:
        codec.decode(path, data)
    return caught.value


def pattern(inside: bytes) -> bytes:
    return b'{\n  "id": "sem-001",\n  "pattern": "P",\n  ' + inside + b"\n}\n"


# -- canonical bytes -----------------------------------------------------------------------------


def test_the_canonical_bytes_of_a_record() -> None:
    given_ = {
        "zebra": {"b": 1, "a": 2},
        "links": [
            {"to": "sem-9", "relation": "supersedes"},
            {"relation": "elaborates", "to": "sem-2"},
        ],
        "last_used": "2026-01-06T16:00:00+02:00",
        "source_episodes": ["ep-2", "ep-1", "ep-2"],
        "confidence": 0.8333333,
        "aardvark": None,
        "pattern": "Cafe\u0301s open at 8",
        "$schema": "pattern.schema.json",
        "tags": ["b", "a"],
        "id": "sem-001",
    }
    expected = """\
{
  "$schema": "pattern.schema.json",
  "id": "sem-001",
  "pattern": "Caf\u00e9s open at 8",
  "confidence": 0.83,
  "source_episodes": [
    "ep-1",
    "ep-2"
  ],
  "tags": [
    "a",
    "b"
  ],
  "last_used": "2026-01-06T14:00:00Z",
  "links": [
    {
      "to": "sem-2",
      "relation": "elaborates"
    },
    {
      "to": "sem-9",
      "relation": "supersedes"
    }
  ],
  "aardvark": null,
  "zebra": {
    "b": 1,
    "a": 2
  }
}
"""
    assert codec.encode(parse(Pattern, given_)).decode() == expected


@pytest.mark.parametrize(
    ("kind", "document"),
    [("episode", EPISODE), ("pattern", PATTERN), ("ledger", LEDGER), ("handoff", HANDOFF)],
)
def test_the_order_of_what_came_in_does_not_matter(kind: str, document: dict[str, Any]) -> None:
    names = [*document, "unknown_b", "unknown_a"]
    shuffled = random.Random(7).sample(names, len(names))  # noqa: S311 - any order will do
    one = {name: document.get(name, 1) for name in names}
    other = {name: document.get(name, 1) for name in shuffled}
    assert list(one) != list(other)
    assert codec.encode(made(kind, one)) == codec.encode(made(kind, other))


def test_canonical_bytes_are_utf_8_with_line_feeds_and_a_final_newline() -> None:
    data = codec.encode(parse(Pattern, {"pattern": "größer 🎉"}))
    assert "größer 🎉".encode() in data
    assert b"\r" not in data
    assert data.endswith(b"}\n")


def test_what_is_canonical_stays_as_it_is() -> None:
    for kind, document in SMALLEST.items():
        data = codec.encode(made(kind, document))
        assert codec.encode(made(kind, json.loads(data))) == data


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(-1e18, 1e18)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(extra=JSON, text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_what_is_read_again_is_what_was_written(extra: object, text: str) -> None:
    text = text.replace("\0", "") or "x"
    data = codec.encode(parse(Pattern, {"id": "sem-001", "pattern": text, "extra": extra}))
    assert codec.encode(codec.decode(PATH, data)) == data


# -- lenient about style -------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "document"), [
    ("episodic/2026-01-06/task-001.json", {k: v for k, v in EPISODE.items() if k != "id"}),
    ("semantic/patterns/x.json", {k: v for k, v in PATTERN.items() if k != "id"}),
    ("ledgers/eng-001.json", LEDGER),
    ("handoffs/h.json", {k: v for k, v in HANDOFF.items() if k != "id"}),
])  # fmt: skip
def test_copies_with_other_line_ends_are_the_same_record(
    path: str, document: dict[str, Any]
) -> None:
    plain = json.dumps({**document, "note": "größer"}, indent=2, ensure_ascii=False).encode()
    record = codec.decode(path, plain)
    crlf = plain.replace(b"\n", b"\r\n")
    for copy in (
        crlf,
        b"\xef\xbb\xbf" + plain,
        b"\xef\xbb\xbf" + crlf,
        plain.replace(b"\n", b"\r"),
    ):
        assert codec.decode(path, copy) == record
        assert codec.decode(path, copy).id == record.id
        assert codec.encode(codec.decode(path, copy)) == codec.encode(record)


def test_escaped_and_plain_text_are_the_same_record() -> None:
    plain = codec.decode(PATH, '{"pattern": "größer 🎉"}'.encode())
    escaped = codec.decode(PATH, rb'{"pattern": "gr\u00f6\u00dfer \ud83c\udf89"}')
    decomposed = codec.decode(PATH, '{"pattern": "gro\u0308ßer 🎉"}'.encode())
    assert plain == escaped == decomposed
    assert plain.id == escaped.id == decomposed.id


def test_a_path_dates_a_record_that_does_not_say_when() -> None:
    record = codec.decode("episodic/2026-01-06/task-001.json", b'{"goal": "G"}')
    assert isinstance(record, Episode)
    assert record.timestamp == "2026-01-06T00:00:00Z"


def test_keys_of_the_same_name_in_different_objects_are_fine() -> None:
    codec.decode(PATH, pattern(b'"a": {"x": 1}, "b": {"x": 1, "c": [{"x": 1}, {"x": ": x\\":"}]}'))


@pytest.mark.parametrize("number", [0, -1, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1, 0.1, 1e300])
def test_numbers_that_can_be_kept_are_kept(number: float) -> None:
    record = codec.decode(PATH, pattern(b'"n": ' + json.dumps(number).encode()))
    assert json.loads(codec.encode(record))["n"] == number


@pytest.mark.parametrize("digits", [20, 309, 400, 401, 5000])
def test_digits_in_a_text_are_no_number(digits: int) -> None:
    """A text of 400 digits once kept every command from reading any memory."""
    text = "9" * digits
    read = codec.decode(PATH, pattern(f'"x": "{text}"'.encode()))
    assert read.document()["x"] == text


def test_a_large_float_beside_a_long_whole_number_is_kept() -> None:
    record = codec.decode(PATH, pattern(b'"whole": 1000000000000000000, "large": 1e19'))
    written = json.loads(codec.encode(record))
    assert (written["whole"], written["large"]) == (10**18, 1e19)


# -- strict about danger -------------------------------------------------------------------------

DEEP = b'"x": ' + b"[" * 100 + b"]" * 100
VERY_DEEP = b'"x": ' + b"[" * 100_000 + b"]" * 100_000
HOSTILE = {
    "too large": (pattern(b'"x": "' + b"y" * (1 << 20) + b'"'), "bytes", "", 0),
    "nested 100 deep": (pattern(DEEP), "nested", "", 0),
    "objects nested 100 deep": (
        pattern(b'"x": ' + b'{"a":' * 100 + b"1" + b"}" * 100), "nested", "", 0),
    "nested 100,000 deep": (pattern(VERY_DEEP), "JSON|nested", "", 4),
    "key twice": (pattern(b'"a": 1,\n  "b": 2,\n  "a": 3'), "twice", "a", 4),
    "key twice, spaces before the colon": (pattern(b'"a" : 1, "a" : 2'), "twice", "a", 4),
    "key twice, one with a space": (pattern(b'"a": 1, "a" : 2'), "twice", "a", 4),
    "key twice, tab and line end": (pattern(b'"a"\t: 1, "a"\n: 2'), "twice", "a", 4),
    "key twice, one escaped": (pattern(rb'"a": 1, "\u0061": 2'), "twice", "a", 4),
    "key twice, in a list": (pattern(b'"x": [1, {"a": 1, "a": 1}]'), "twice", "a", 4),
    "key twice, with equal values": (pattern(b'"a": 1, "a": 1'), "twice", "a", 4),
    "key twice, composed and not": (
        pattern('"\u00e9": 1, "e\u0301": 2'.encode()), "twice", "\u00e9", 4),
    "key twice, hidden by an escaped quote": (
        pattern(rb'"a": 1, "a": 2, "b": "\u0022:"'), "twice", "a", 4),
    "key twice, hidden by an escaped colon": (
        pattern(rb'"a": 1, "a": 2, "b": "\"\u003a"'), "twice", "a", 4),
    "NaN": (pattern(b'"x": NaN'), "JSON", "", 4),
    "Infinity": (pattern(b'"x": -Infinity'), "JSON", "", 4),
    "1e999": (pattern(b'"x": 1e999'), "JSON", "", 4),
    "huge integer": (pattern(b'"x": 18446744073709551617'), "exactly", "", 0),
    "huge negative integer": (pattern(b'"x": -9223372036854775809'), "exactly", "", 0),
    "integer of 5,000 digits": (pattern(b'"x": ' + b"9" * 5000), "JSON", "", 4),
    "lone surrogate": (pattern(rb'"x": "\ud800"'), "JSON", "", 4),
    "lone surrogate in a key": (pattern(rb'"\udc00": 1'), "JSON", "", 4),
    "surrogates in bytes": (pattern(b'"x": "\xed\xa0\x80"'), "UTF-8", "", 4),
    "NUL byte": (pattern(b'"x": "a\0b"'), "NUL", "", 0),
    "NUL escaped": (pattern(rb'"x": "a\u0000b"'), "NUL", "", 0),
    "NUL escaped in a key": (pattern(rb'"a\u0000b": 1'), "NUL", "", 0),
    "invalid UTF-8": (pattern(b'"x": "\xff"'), "UTF-8", "", 4),
    "UTF-16": (pattern(b"").decode().encode("utf-16"), "NUL", "", 0),
    "conflict markers": (
        b'{\n<<<<<<< ours\n"pattern": "A"\n=======\n"pattern": "B"\n>>>>>>> theirs\n}',
        "conflict", "", 2),
    "empty": (b"", "empty", "", 0),
    "only space": (b" \n\t\n", "empty", "", 0),
    "only a byte order mark": (b"\xef\xbb\xbf", "empty", "", 0),
    "a list": (b"[]", "object", "", 0),
    "null": (b"null", "object", "", 0),
    "a text": (b'"pattern"', "object", "", 0),
    "two objects": (b'{"pattern": "A"}\n{"pattern": "B"}\n', "JSON", "", 2),
    "a comment": (b'// hello\n{"pattern": "A"}', "JSON", "", 1),
    "a trailing comma": (b'{\n"pattern": "A",\n}', "JSON", "", 2),
    "a wrong type": (pattern(b'"confidence": "high"'), "number", "confidence", 4),
    "a wrong type inside": (
        pattern(b'"links": [\n    {"to": "sem-2"},\n    {"to": 5.5, "relation": []}]'),
        "text|string", "links.1.relation", 6),
    "a missing field": (b'{"id": "sem-001"}', "missing", "pattern", 0),
    "a bad id": (b'{\n  "pattern": "P",\n  "id": "../x"\n}', "valid id", "id", 3),
    "a bad date": (pattern(b'"valid_from": "soon"'), "soon", "valid_from", 4),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input_is_refused_with_file_line_field_reason_and_advice(name: str) -> None:
    data, reason, field, line = HOSTILE[name]
    error = refused(data)
    assert error.path == PATH
    assert re.search(reason, error.reason)
    assert error.field == field
    assert error.line == line
    assert error.advice
    assert PATH in str(error)
    assert len(str(error)) < 500


def test_a_nesting_of_64_is_read_and_one_more_is_not() -> None:
    most = b'"x": ' + b"[" * 63 + b"]" * 63  # the record itself is the 64th
    assert codec.decode(PATH, pattern(most))
    assert "nested" in refused(pattern(b'"x": ' + b"[" * 64 + b"]" * 64)).reason


def test_brackets_in_text_do_not_count_as_nesting() -> None:
    assert codec.decode(PATH, pattern(b'"x": "' + b"[{" * 500 + b'"'))


def test_a_megabyte_is_read_and_one_more_byte_is_not() -> None:
    frame = len(pattern(b'"x": ""'))
    filled = pattern(b'"x": "' + b"y" * (codec.MAX_BYTES - frame) + b'"')
    assert len(filled) == codec.MAX_BYTES
    assert codec.decode(PATH, filled)
    assert "bytes" in refused(filled + b"\n").reason


@pytest.mark.parametrize("kind", SMALLEST)
def test_a_record_cut_off_anywhere_is_never_read(kind: str) -> None:
    record = made(kind, SMALLEST[kind])
    data = codec.encode(record)
    for length in range(len(data) - 1):
        assert refused(data[:length], place(record)).reason
    assert codec.decode(place(record), data[:-1]) == record


def test_a_file_that_is_no_record_is_refused() -> None:
    assert "not a record" in refused(b"{}", "semantic/patterns.json").reason
    assert "not a record" in refused(b"{}", "timeline.json").reason


def test_an_etag_tells_contents_apart() -> None:
    assert etag(b"a") == etag(b"a")
    assert etag(b"a") != etag(b"b")


# -- front matter --------------------------------------------------------------------------------

_ODD = [
    *["null", "No", "on", "1", "08", "0.92", "1e5", "2026-01-06", "1:30", "~", "", "---", "- a"],
    *["0b1", "0x1f", "0o7", "00w9", "7z7nap9a6y", "85eeaybvsd", "12e5", "1_0a", "0b1z", "1a-b"],
    *["a: b", "a #b", "a:", "it's: so", " lead: x", "x, y", "a  b", "two\nlines", "größer", "😀"],
]
_TEXTS = st.one_of(
    st.sampled_from(_ODD),
    st.text(st.sampled_from("abXY019 _./()+-,:#'\"\\"), max_size=16),
    st.text(st.characters(codec="utf-8"), max_size=10),
)


def test_front_matter_that_says_a_key_twice_is_refused() -> None:
    assert "twice" in refused(b"---\nname: x\nname: x\n---\n", "skills/x.md").reason
    inner = b"---\nmetadata:\n  a: x\n  a: x\n---\n"
    assert "twice" in refused(inner, "skills/x.md").reason
