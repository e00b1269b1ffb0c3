"""Files of `loki-mem export`: JSON lines, or a Markdown page with a record below each entry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loki_memory.errors import InvalidRecord
from loki_memory.interop.record_block import FORMAT, VERSION, RecordLine, record_of, records_in
from loki_memory.interop.sources.source import (
    MOST_JSON,
    FoundMemory,
    ImportRequest,
    SourceReading,
    json_lines,
    text_of,
)

NAME = "loki-export"
_HEAD = 200  # characters, in which the mark of the format stands


def detects(path: Path) -> bool:
    if not path.is_file() or path.suffix not in {".jsonl", ".md"}:
        return False
    with open(path, "rb") as file:
        return FORMAT.encode() in file.read(_HEAD)


def usual_places(root: Path, home: Path) -> list[Path]:  # noqa: ARG001 - the protocol's signature
    return []


def read(path: Path, request: ImportRequest) -> SourceReading:  # noqa: ARG001 - the protocol's signature
    reading = SourceReading.empty()
    reading.files.append(str(path))
    if path.suffix == ".md":
        reading.found.extend(
            _found(path.name, line) for line in records_in(text_of(path, MOST_JSON))
        )
        return reading
    for where, value in json_lines(path, reading):
        if isinstance(value, dict) and "format" in value:
            _check_version(value)
        elif (line := record_of(value)) is not None:
            reading.found.append(_found(where, line))
        else:
            reading.refuse(where, "the line", "it holds no record")
    return reading


def _found(where: str, line: RecordLine) -> FoundMemory:
    ref = str(line.document.get("id") or "")
    return FoundMemory(line.kind, line.document, where, ref, whole=True, path=line.path)


def _check_version(header: dict[str, Any]) -> None:
    if header.get("version") != VERSION:
        raise InvalidRecord("was written by a newer loki-mem", advice="Update loki-mem.")
