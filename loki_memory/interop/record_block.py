"""A record in a file of another format: as a JSON line, or as a block at the end of a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import orjson

from loki_memory.files.layout import ARCHIVE, PRIVATE, kind_of
from loki_memory.models import Memory
from loki_memory.models.kinds import KINDS, Kind

FORMAT = "loki-memory export"
VERSION = 1
_OPEN, _CLOSE = "<!-- loki-mem:record ", " -->"
_BLOCK = re.compile(rf"^{_OPEN}(.*){_CLOSE}$", re.MULTILINE)


class RecordLine(NamedTuple):
    """A record as it is written to an export."""

    kind: Kind
    document: dict[str, Any]
    path: str  # of its file, empty where that is not known


def header() -> dict[str, Any]:
    return {"format": FORMAT, "version": VERSION}


def line_of(record: Memory, path: str) -> bytes:
    """A record as a line of JSON."""
    return orjson.dumps({"kind": record.kind, "path": path, "record": record.document()}) + b"\n"


def block_of(record: Memory, path: str) -> str:
    """A record as a comment of Markdown, which no reader shows."""
    text = line_of(record, path).decode().rstrip("\n")
    return f"{_OPEN}{text.replace('>', chr(92) + 'u003e')}{_CLOSE}\n"


def record_of(value: Any) -> RecordLine | None:
    """The record in a value that was read from JSON; None if there is none."""
    if not isinstance(value, dict) or value.get("kind") not in KINDS:
        return None
    document, path = value.get("record"), value.get("path")
    if not isinstance(document, dict):
        return None
    kind = cast("Kind", value["kind"])
    return RecordLine(kind, document, str(path) if is_path_of(kind, path) else "")


def is_path_of(kind: Kind, path: Any) -> bool:
    """Check for a path at which records of a kind are stored, in memory or its archive."""
    if not isinstance(path, str) or "\\" in path or "\0" in path or path.startswith("/"):
        return False
    inside = path.removeprefix(PRIVATE).removeprefix(ARCHIVE)
    return all(part and part[0] != "." for part in path.split("/")) and kind_of(inside) == kind


def records_in(text: str) -> Iterator[RecordLine]:
    """The records in the comments of a page."""
    for found in _BLOCK.findall(text):
        try:
            line = record_of(orjson.loads(found))
        except ValueError:
            continue
        if line is not None:
            yield line


def record_in(text: str) -> RecordLine | None:
    """The first record of a page; None if there is none."""
    return next(records_in(text), None)
