"""A memory as a row of the index."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from loki_memory.models import Edge, Handoff, Link, Memory
from loki_memory.models.diagnostics import rule
from loki_memory.models.error_signature import signature
from loki_memory.models.kinds import Kind
from loki_memory.models.rejected import value_id
from loki_memory.models.text import symbols


class Row(NamedTuple):
    """The columns of `memories`, in order, without the row number."""

    id: str
    kind: Kind
    path: str
    etag: str
    status: str
    scope: str
    origin: str
    at: str
    until: str
    agent: str
    session: str
    category: str
    outcome: str
    confidence: float | None
    importance: float | None
    pinned: int
    parent: str
    tombstone: str
    title: str
    size: int
    body: str


class IndexEntry(NamedTuple):
    """A row with its edges, its passages and its marks."""

    row: Row
    source: str  # where its edges start: itself, or for a link record the memory it links from
    edges: list[Edge]
    passages: list[tuple[int, str]]  # key (0: detail), text
    marks: list[str]


def entry_of(
    record: Memory, path: str, document: dict[str, Any] | None = None, etag: str = ""
) -> IndexEntry:
    """The index entry of a record; `document` and `etag` are the file's, if it has one."""
    body = orjson.dumps(document or record.document())
    passage = record.passage()
    # Not getattr: pydantic is slow for a field that a kind does not have.
    given = {**(record.model_extra or {}), **record.__dict__}
    value = record.value()
    row = Row(
        id=record.id,
        kind=record.kind,
        path=path,
        etag=etag or _hash(body),
        status=_status(record, given),
        scope=_text(given, "scope") or "project",
        origin=_text(given, "origin") or _labelled(given, "origin"),
        at=record.when(),
        until=_text(given, "invalid_at"),
        agent=_text(given, "agent", "by", "agent_id", "from_agent"),
        session=_text(given, "session"),
        category=_text(given, "category"),
        outcome=_text(given, "outcome"),
        confidence=_number(given, "confidence") if record.kind != "skill" else _learned(given),
        importance=_number(given, "importance"),
        pinned=int(given.get("pinned") is True),
        parent=_text(given, "parent"),
        tombstone=value_id(record.title() if record.kind == "tombstone" else value)
        if value or record.kind == "tombstone"
        else "",
        title=_line(record.title()),
        size=len(body),
        body=body.decode(),
    )
    source = record.from_ if isinstance(record, Link) else record.id
    main = f"{passage.title}\n{passage.text}".strip()
    found = [(_key(text), text) for text in pieces(main)]
    found += [(0, text) for text in pieces(passage.detail)]
    return IndexEntry(row, source, list(record.edges()), found, _marks(record, main))


def _status(record: Memory, given: dict[str, Any]) -> str:
    if isinstance(record, Handoff):
        return record.state
    return _text(given, "status") or _labelled(given, "status") or "active"


def _labelled(given: dict[str, Any], name: str) -> str:
    """A value from the front matter of a skill, whose own format has no field for it."""
    metadata = given.get("metadata")
    return str(metadata.get(f"loki-{name}", "")) if isinstance(metadata, dict) else ""


def _marks(record: Memory, text: str) -> list[str]:
    marks = [f"symbol:{name}" for name in symbols(text)]
    for error in record.errors():
        found, named = signature(error), rule(error)
        if found:
            marks += [f"error:{found.exact}", f"errors:{found.broad}"]
        if named:
            marks.append(f"rule:{named}")
    return list(dict.fromkeys(marks))


def _key(text: str) -> int:
    """A key of 63 bits, since SQLite's integers are signed; 0 means that there is no vector."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1 or 1


def _text(given: dict[str, Any], *names: str) -> str:
    """The first of some fields that has a text."""
    for name in names:
        value = given.get(name)
        if value and isinstance(value, str):
            return value
    return ""


def _number(given: dict[str, Any], name: str) -> float | None:
    value = given.get(name)
    return float(value) if isinstance(value, (int, float)) else None


def _learned(given: dict[str, Any]) -> float | None:
    """The confidence of a skill that was learned; front matter is text."""
    try:
        return float(_labelled(given, "confidence"))
    except ValueError:
        return None


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _line(text: str) -> str:
    """A title on one line."""
    return " ".join(text.split())


# -- passages, the units of search -----------------------------------------------------------------

# Measured on long chat messages: shorter pieces lose their context, longer ones blur.
_WHOLE = 120  # words up to which a text is one piece
_PIECE = 80  # words of a piece, to the end of the sentence
_LONGEST = 160  # … but no longer than this
_MOST = 400  # pieces of one memory: some 32,000 words
# Where a script has no spaces, 20 characters count as a word; no word has more than 100.
_SPACELESS = "\u0e00-\u1fff\u3000-\uffff"
_WORD = re.compile(rf"[{_SPACELESS}]{{1,20}}\s*|[^\s{_SPACELESS}]{{1,100}}\s*")
_SENTENCE_ENDS = (".", "!", "?", ":", ";", "\u3002", "\uff01", "\uff1f", "\u2026")


def pieces(text: str) -> list[str]:
    """The passages of a text, in order; none if it is empty."""
    words = _WORD.findall(text)
    if len(words) <= _WHOLE:
        return [text.strip()] if words else []
    return list(_cut(words))[:_MOST]


def _cut(words: list[str]) -> Iterator[str]:
    piece: list[str] = []
    for word in words:
        piece.append(word)
        if len(piece) >= _PIECE and (len(piece) >= _LONGEST or _is_end(word)):
            yield "".join(piece).strip()
            piece = []
    if piece:
        yield "".join(piece).strip()


def _is_end(word: str) -> bool:
    """Check if a sentence or a line ends with this word."""
    return "\n" in word or word.rstrip().endswith(_SENTENCE_ENDS)
