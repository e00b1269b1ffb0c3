"""Serena's notes: `.serena/memories/**/*.md`, plain Markdown without front matter."""

from __future__ import annotations

from pathlib import Path

from loki_memory.interop.sources.markdown_notes import page_of, read_page, topic_fields
from loki_memory.interop.sources.source import ImportRequest, SourceReading, files_below

NAME = "serena"


def detects(path: Path) -> bool:
    return bool(_files(path))


def usual_places(root: Path, home: Path) -> list[Path]:  # noqa: ARG001 - the protocol's signature
    return [root / ".serena"]


def read(path: Path, request: ImportRequest) -> SourceReading:  # noqa: ARG001 - the protocol's signature
    reading = SourceReading.empty()
    files = [path] if path.is_file() else _files(path)  # a file that is named is meant
    reading.read_each(files, _read_note)
    return reading


def _read_note(path: Path, reading: SourceReading) -> None:
    read_page(path, page_of(path).body, reading, topic_fields(path))


def _files(path: Path) -> list[Path]:
    if path.is_file():
        is_note = path.suffix == ".md" and path.parent.parts[-2:] == (".serena", "memories")
        return [path] if is_note else []
    folders = [path / ".serena" / "memories"]
    if ".serena" in path.absolute().parts[-2:]:
        folders.append(path if path.name == "memories" else path / "memories")
    return [file for folder in folders for file in files_below(folder, "**/*.md")]
