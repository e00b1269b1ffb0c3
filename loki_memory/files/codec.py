"""Bytes to records and back.

Reading is lenient about style (order, spacing, CRLF, a byte order mark) and strict about danger:
size, nesting, repeated keys, NaN, lone surrogates, NUL bytes, YAML aliases and tags. Writing is
canonical: UTF-8, NFC, LF, two spaces, the schema's field order, a final newline.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from loki_memory.errors import InvalidRecord
from loki_memory.files import front_matter, layout
from loki_memory.models import MODELS, Memory, Skill, parse
from loki_memory.models.field_slips import misread_kind, nearest
from loki_memory.models.ids import slug
from loki_memory.models.kinds import Kind, article
from loki_memory.models.text import nfc

MAX_BYTES = 1 << 20  # a record is a page or two; a megabyte is a stray log
MAX_DEPTH = 64
_NUL = b"\\u0000"
_DIGITS, _MANY_DIGITS = bytes.maketrans(b"123456789", b"0" * 9), b"0" * 19
_WHOLE_NUMBER = re.compile(rb"(?<![\d.eE+-])-?\d{19,400}(?![\d.eE])")
_BEFORE_COLON = (b" :", b"\t:", b"\n:", b"\r:")
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_CONFLICT = re.compile(rb"^(<{7} |>{7} )", re.MULTILINE)


def encode(record: Memory) -> bytes:
    """The record's canonical bytes."""
    return _composed(_as_given(record))


def encode_checked(record: Memory) -> tuple[bytes, bool]:
    """The same if they can be read again; and whether they are the record without normalisation."""
    given = _as_given(record)
    data = _composed(given)
    if isinstance(record, Skill):
        decode(layout.place(record), data)
    elif data != given:
        read_json(data)  # two keys may have become one
    else:
        _refuse_large(data, MAX_BYTES)
        if _may_be_deep(data) or _NUL in data:
            _check(record.document(), 0, frozenset())
    return data, data == given


def _as_given(record: Memory) -> bytes:
    document = record.document()
    return _encode_skill(document).encode() if isinstance(record, Skill) else _dumped(document)


def dump(document: Any) -> bytes:
    """Encode JSON values as canonical bytes."""
    return _composed(_dumped(document))


def _dumped(document: Any) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def decode(path: str, data: bytes) -> Memory:
    """Decode a file; raises InvalidRecord with file, line, field and reason."""
    return decode_with_document(path, data)[0]


def decode_with_document(path: str, data: bytes) -> tuple[Memory, dict[str, Any]]:
    """The record, and the JSON values that it was parsed from."""
    kind = layout.kind_of(path)
    if kind is None:
        raise InvalidRecord("is not a record file", path=path)
    try:
        document = read_skill(path, data) if kind == "skill" else read_json(data)
        document = dated(kind, document, layout.date_in(path))
        if path.startswith(layout.PRIVATE) and "scope" in MODELS[kind].model_fields:
            document = {"scope": "local", **document} if isinstance(document, dict) else document
    except InvalidRecord as error:
        raise error.at(path, error.line or _line_of(error.field, data)) from None
    try:
        return build(kind, document), document
    except InvalidRecord as error:
        told = _told_apart(error, kind, document)
        raise told.at(path, _line_of(error.field, data)) from None


def _told_apart(error: InvalidRecord, kind: Kind, document: Any) -> InvalidRecord:
    """The same error; where the main field is missing, with what was meant instead."""
    if error.reason != "is missing" or not isinstance(document, dict):
        return error
    other = misread_kind(document, kind)
    meant = next((name for name in document if nearest(name, (error.field,))), "")
    if other is not None:
        advice = f"It reads like {article(other)}; those belong in {layout.folder_of(other)}."
    elif meant:
        advice = f"Did you mean it by {meant!r}?"
    else:
        return error
    return InvalidRecord(error.reason, field=error.field, advice=advice)


def build(kind: Kind, document: Any) -> Memory:
    """Build a record from JSON values."""
    if not isinstance(document, dict):
        raise InvalidRecord("is not a JSON object", advice="One file holds one {…} record.")
    return parse(MODELS[kind], document)


def dated(kind: Kind, document: Any, date: str) -> Any:
    """The document with the date of its folder, if it needs one and has none."""
    if kind not in {"episode", "learning"} or not date or not isinstance(document, dict):
        return document
    if document.get("timestamp"):
        return document
    return {**document, "timestamp": f"{date}T00:00:00Z"}


def read_json(data: bytes, limit: int = MAX_BYTES) -> Any:
    """Parse JSON within bounds. Raises InvalidRecord."""
    text = _plain(data, limit)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidRecord(
            f"is not valid JSON ({error.msg})",
            line=error.lineno,
            advice="Mend it in an editor; it is left as it is.",
        ) from None
    _check_if_in_doubt(text, value)
    return value


def _check_if_in_doubt(text: bytes, value: Any) -> None:
    """Look at the whole text cheaply first; most records need no exact check."""
    huge = _huge_numbers(text) if _MANY_DIGITS in text.translate(_DIGITS) else frozenset()
    if _may_be_deep(text) or huge or _NUL in text:
        _check(value, 0, huge)
    # A quote may be spelled as an escape, and keys may be apart from their colons.
    unclear = b"\\u" in text or any(mark in text for mark in _BEFORE_COLON)
    if unclear or text.count(b'":') != orjson.dumps(value).count(b'":'):
        _refuse_repeated_keys(text)


def _may_be_deep(text: bytes) -> bool:
    return text.count(b"[") + text.count(b"{") > MAX_DEPTH


def _refuse_large(data: bytes, limit: int) -> None:
    if len(data) > limit:
        raise InvalidRecord(
            f"has {len(data):,} bytes, and {limit:,} is the most",
            advice="Split it, or keep the bulk in a file of its own and name that file.",
        )


def _plain(data: bytes, limit: int) -> bytes:
    """The text without a byte order mark, if it is safe to parse."""
    _refuse_large(data, limit)
    marker = _CONFLICT.search(data) if b"<<<<<<< " in data or b">>>>>>> " in data else None
    if marker:
        raise InvalidRecord(
            "holds git conflict markers",
            line=data[: marker.start()].count(b"\n") + 1,
            advice="`loki-mem resolve` merges both sides.",
        )
    if b"\0" in data:
        raise InvalidRecord("holds NUL bytes", advice="Write it again as plain UTF-8 text.")
    text = data.removeprefix(b"\xef\xbb\xbf").strip()
    if not text:
        raise InvalidRecord("is empty", advice="Delete it, or write the record into it.")
    return _composed(text)


def _composed(text: bytes) -> bytes:
    if text.isascii():
        return text
    try:
        given = text.decode()
    except UnicodeDecodeError as error:
        line = text[: error.start].count(b"\n") + 1
        raise InvalidRecord("is not UTF-8", line=line, advice="Save it as UTF-8.") from None
    composed = nfc(given)
    return text if composed == given else composed.encode()  # slow for a large view


def _huge_numbers(text: bytes) -> frozenset[float]:
    """Whole numbers that do not fit into 64 bits, as the floats that the parser makes of them.

    Digits may stand in a text too, where more of them than a float can hold are no number at all.
    """
    found = _WHOLE_NUMBER.findall(text)
    return frozenset(float(digits) for digits in found if not -(2**63) <= int(digits) < 2**64)


def _check(value: Any, depth: int, huge: frozenset[float]) -> None:
    """Walk a doubtful value, and refuse whatever could not be kept exactly."""
    if isinstance(value, str) and "\0" in value:
        raise InvalidRecord("holds a NUL character")
    if isinstance(value, float) and value in huge:
        raise InvalidRecord(
            f"holds the number {value:g}, which cannot be kept exactly", advice="Write it as text."
        )
    if isinstance(value, (dict, list)):
        _check_depth(depth)
        for item in (*value, *value.values()) if isinstance(value, dict) else value:
            _check(item, depth + 1, huge)


def _check_depth(depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise InvalidRecord(f"is nested deeper than {MAX_DEPTH} levels")


def _refuse_repeated_keys(text: bytes) -> None:
    """Find the repeated key, slowly and exactly; for texts with more keys than their value has."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        seen = dict(items)
        if len(seen) < len(items):
            names = [name for name, _ in items]
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidRecord(
                "occurs twice in one object", field=twice, advice="Keep one of the two."
            )
        return seen

    json.loads(text, object_pairs_hook=pairs)


def _line_of(field: str, data: bytes) -> int:
    """The line on which a field is first named: a hint for the reader, not a parser."""
    names = [part for part in field.split(".") if part and not part.isdigit()]
    at = 0
    for name in names:
        found = data.find(f'"{name}"'.encode(), at)
        if found < 0:
            break
        at = found
    return data[:at].count(b"\n") + 1 if at else 0


def read_skill(path: str, data: bytes) -> dict[str, Any]:
    """A skill's front matter and body as one document."""
    text = _plain(data, MAX_BYTES).decode()
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    front = _FRONT.match(text)
    document = front_matter.read(front[1]) if front else {}
    if "body" in document:
        raise InvalidRecord("front matter has a `body`", advice="The body is what follows it.")
    document.setdefault("name", slug(layout.stem_in(path), 64))
    document["body"] = text[front.end() if front else 0 :]
    return document


def _encode_skill(document: dict[str, Any]) -> str:
    body = document.pop("body", "")
    return f"---\n{front_matter.written(document)}---\n\n{body}"
