"""Claude Code's own memory as a source: MEMORY.md and its topic files."""

from __future__ import annotations

import os
import re
from pathlib import Path

from loki_memory.interop.claude_memory import INDEX, files_in, statements
from loki_memory.interop.sources.source import FoundMemory, ImportRequest, SourceReading, filled

NAME = "claude-memory"


def detects(path: Path) -> bool:
    return path.name == INDEX or (path / INDEX).is_file() or (path / _INSIDE / INDEX).is_file()


_INSIDE = Path(".claude/memory")  # where some projects keep it in the repository


def usual_places(root: Path, home: Path) -> list[Path]:  # noqa: ARG001 - asked of Claude Code
    """One folder for each folder that Claude Code is started in."""
    from loki_memory.ingest.discover import places, tops

    projects = places(os.environ)[0]
    return [projects / re.sub(r"[^A-Za-z0-9]", "-", top) / "memory" for top in tops(root)]


def read(path: Path, request: ImportRequest) -> SourceReading:  # noqa: ARG001 - the protocol's signature
    reading = SourceReading.empty()
    inside = path / _INSIDE
    files = files_in(inside if (inside / INDEX).is_file() else path)
    reading.read_each(files, _read_file)
    return reading


def _read_file(path: Path, reading: SourceReading) -> None:
    for line in statements(path):
        fields = filled(
            statement=line.text,
            category=line.category,
            tags=list(line.tags),
            valid_from=line.since[:10],
        )
        reading.found.append(FoundMemory("fact", fields, line.where, private=line.private))
