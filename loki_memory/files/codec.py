"""Bytes to records and back.

Reading is lenient about style (order, spacing, CRLF, a byte order mark) and strict about danger:
size, nesting, repeated keys, NaN, lone surrogates, NUL bytes, YAML aliases and tags. Writing is
canonical: UTF-8, NFC, LF, two spaces, the schema's field order, a final newline.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import orjson

from loki_memory.errors import InvalidRecord
from loki_memory.files import layout
from loki_memory.models import MODELS, Memory, Skill, parse
from loki_memory.models.ids import slug
from loki_memory.models.kinds import Kind
from loki_memory.models.normal import nfc

MAX_BYTES = 1 << 20  # a record is a page or two; a megabyte is a log that went astray
MAX_DEPTH = 64
MAX_FRONT_MATTER = 1 << 16
_ETAG_BYTES = 16
_NUL = b"\\u0000"
_DIGITS, _MANY_DIGITS = bytes.maketrans(b"123456789", b"0" * 9), b"0" * 19
_WHOLE_NUMBER = re.compile(rb"(?<![\d.eE+-])-?\d{19,400}(?![\d.eE])")
_BEFORE_COLON = (b" :", b"\t:", b"\n:", b"\r:")
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
# Texts that YAML writes as they are, and such that it quotes since they look like something else.
_PLAIN_YAML = re.compile(r"[A-Za-z][\w./()+-]*(?:,? \w[\w./()+-]*)*", re.ASCII)
_LONGEST_NAME = 64  # beyond 128 characters a key is written in another way
_LIKE_BOOLEAN = {"true", "false", "yes", "no", "on", "off", "null"}
_LIKE_NUMBER = re.compile(r"0|[1-9]\d*|\d+\.\d+|\d{4}-\d\d-\d\d", re.ASCII)
_CONFLICT = re.compile(rb"^(<{7} |>{7} )", re.MULTILINE)


def etag(data: bytes) -> str:
    """A hash of the bytes: what a writer shows to prove which version it saw."""
    return hashlib.blake2b(data, digest_size=_ETAG_BYTES).hexdigest()


def encode(record: Memory) -> bytes:
    """The record's canonical bytes."""
    return _composed(_as_given(record))


def encode_checked(record: Memory) -> tuple[bytes, bool]:
    """The same if they can be read again; and whether they say the record letter by letter."""
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
    """JSON values as canonical bytes."""
    return _composed(_dumped(document))


def _dumped(document: Any) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def decode(path: str, data: bytes) -> Memory:
    """The record in a file; raises InvalidRecord, which names file, line, field and reason."""
    return decode_with_document(path, data)[0]


def decode_with_document(path: str, data: bytes) -> tuple[Memory, dict[str, Any]]:
    """The record, and the JSON values that it was read from."""
    kind = layout.kind_of(path)
    if kind is None:
        raise InvalidRecord("is not a record file", path=path)
    try:
        document = read_skill(path, data) if kind == "skill" else read_json(data)
        document = dated(kind, document, layout.date_in(path))
        if path.startswith(layout.PRIVATE) and "scope" in MODELS[kind].model_fields:
            document = {"scope": "local", **document} if isinstance(document, dict) else document
        return build(kind, document), document
    except InvalidRecord as error:
        raise error.at(path, error.line or _line_of(error.field, data)) from None


def build(kind: Kind, document: Any) -> Memory:
    """A record from JSON values."""
    if not isinstance(document, dict):
        raise InvalidRecord("is not a JSON object", advice="One file holds one {…} record.")
    return parse(MODELS[kind], document)


def dated(kind: Kind, document: Any, date: str) -> Any:
    """The document with the date of its folder, if it has to have one and does not say."""
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
    """Cheap looks at the whole text first; most records give no cause for an exact one."""
    huge = _huge_numbers(text) if _MANY_DIGITS in text.translate(_DIGITS) else frozenset()
    if _may_be_deep(text) or huge or _NUL in text:
        _check(value, 0, huge)
    # A quote may be spelled as an escape, and keys stand apart from their colons.
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
    """The text without a byte order mark, if it is text that we dare to parse."""
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
    try:
        return text if text.isascii() else nfc(text.decode()).encode()
    except UnicodeDecodeError as error:
        line = text[: error.start].count(b"\n") + 1
        raise InvalidRecord("is not UTF-8", line=line, advice="Save it as UTF-8.") from None


def _huge_numbers(text: bytes) -> frozenset[float]:
    """Whole numbers that do not fit into 64 bits, as the floats that they are read as."""
    found = (int(digits) for digits in _WHOLE_NUMBER.findall(text))
    return frozenset(float(n) for n in found if not -(2**63) <= n < 2**64)


def _check(value: Any, depth: int, huge: frozenset[float]) -> None:
    """Walk a value that gave cause for doubt, and refuse what could not be kept as it is."""
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
    """Slow and exact: for texts that have more keys than what was read from them."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        seen = dict(items)
        if len(seen) < len(items):
            names = [name for name, _ in items]
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidRecord(
                "stands twice in one object", field=twice, advice="Keep one of the two."
            )
        return seen

    json.loads(text, object_pairs_hook=pairs)


def _line_of(field: str, data: bytes) -> int:
    """The line on which a field is first named: a help for the eye, not a parser."""
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
    document = _front_matter(front[1]) if front else {}
    if "body" in document:
        raise InvalidRecord("front matter has a `body`", advice="The body is what follows it.")
    document.setdefault("name", slug(layout.stem_in(path), 64))
    document["body"] = text[front.end() if front else 0 :]
    return document


def _front_matter(text: str) -> dict[str, Any]:
    """YAML in which every scalar is text (`no` is "no"), without aliases, anchors and tags."""
    import yaml

    def refuse(reason: str, mark: Any) -> NoReturn:
        line = mark.line + 2 if mark else 0
        raise InvalidRecord(f"front matter {reason}", line=line, advice="Use plain `key: value`.")

    if len(text) > MAX_FRONT_MATTER:
        refuse(f"has {len(text):,} bytes, and {MAX_FRONT_MATTER:,} is the most", None)
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # in C where there is libyaml
    try:
        _check_events(yaml.parse(text, Loader=loader), refuse)
        value = yaml.load(text, Loader=loader)  # noqa: S506 - makes only text
    except yaml.YAMLError as error:
        refuse(f"is not valid YAML ({getattr(error, 'problem', error)})", _mark(error))
    except (ValueError, OverflowError) as error:
        refuse(f"is not valid YAML ({error})", None)
    except RecursionError:
        refuse("is nested too deeply", None)
    if not isinstance(value, dict):
        refuse("is not a list of `key: value` lines", None)
    return value


def _check_events(events: Iterable[Any], refuse: Callable[[str, Any], NoReturn]) -> None:
    """Bounded nesting, no aliases, no tags, no key twice."""
    import yaml

    open_ones: list[_Opened] = []
    for event in events:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            refuse("uses an alias or anchor", event.start_mark)
        if getattr(event, "tag", None):
            refuse("uses a tag", event.start_mark)
        if isinstance(event, yaml.CollectionEndEvent):
            open_ones.pop()
        elif isinstance(event, yaml.NodeEvent):
            if open_ones and open_ones[-1].has_twice(getattr(event, "value", None)):
                refuse(f"has {event.value!r} twice", event.start_mark)  # type: ignore[attr-defined]
            if isinstance(event, yaml.CollectionStartEvent):
                open_ones.append(_Opened(isinstance(event, yaml.MappingStartEvent)))
        if len(open_ones) > MAX_DEPTH:
            refuse("is nested too deeply", event.start_mark)


class _Opened:
    """A list or mapping of YAML while it is read: every other node of a mapping is a key."""

    def __init__(self, is_mapping: bool) -> None:
        self._keys: set[str] | None = set() if is_mapping else None
        self._at_key = True

    def has_twice(self, node: str | None) -> bool:
        if self._keys is None:
            return False
        at_key, self._at_key = self._at_key, not self._at_key
        if not at_key or node is None:
            return False
        if node in self._keys:
            return True
        self._keys.add(node)
        return False


def _mark(error: Exception) -> Any:
    return getattr(error, "problem_mark", None)


def _encode_skill(document: dict[str, Any]) -> str:
    body = document.pop("body", "")
    # YAML takes these for line breaks, unless they are escaped.
    shown = dump(document).decode()
    plain = not any(mark in shown for mark in "\x85\u2028\u2029\ufeff")
    front = "".join(_yaml(name, value, plain=plain) for name, value in document.items())
    return f"---\n{front}---\n\n{body}"


def _yaml(name: str, value: Any, *, plain: bool) -> str:
    """One key of front matter. What needs no thought is written here: PyYAML thinks for long."""
    lines = _yaml_lines(name, value, "")
    if lines is not None:
        return lines
    import yaml

    return yaml.safe_dump(
        {name: value}, sort_keys=False, allow_unicode=plain, width=10**6, default_flow_style=False
    )


def _yaml_lines(name: str, value: Any, indent: str) -> str | None:
    """The lines that YAML has for a text or a mapping of texts; None where that is not certain."""
    if not _is_plain(name) or len(name) > _LONGEST_NAME:
        return None
    if isinstance(value, dict) and value:
        inner = [_yaml_lines(key, one, indent + "  ") for key, one in value.items()]
        told = [lines for lines in inner if lines is not None]
        return f"{indent}{name}:\n" + "".join(told) if len(told) == len(inner) else None
    text = _yaml_text(value) if isinstance(value, str) else None
    return None if text is None else f"{indent}{name}: {text}\n"


def _yaml_text(text: str) -> str | None:
    if _is_plain(text):
        return text
    printable = text.isascii() and text.isprintable()
    if printable and (": " in text or " #" in text or _LIKE_NUMBER.fullmatch(text)):
        return "'" + text.replace("'", "''") + "'"
    return None


def _is_plain(text: str) -> bool:
    return bool(_PLAIN_YAML.fullmatch(text)) and text.lower() not in _LIKE_BOOLEAN
