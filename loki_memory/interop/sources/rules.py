"""Rules for agents: CLAUDE.md, AGENTS.md, GEMINI.md, Cursor, Windsurf and Copilot instructions."""

from __future__ import annotations

from pathlib import Path

from loki_memory.interop.sources.markdown_notes import page_of, read_page, topic_fields
from loki_memory.interop.sources.source import (
    ImportRequest,
    SourceReading,
    count_left_out,
    files_below,
)

NAME = "rules"
_NAMES = {"claude.md", "claude.local.md", "agents.md", "gemini.md", ".cursorrules"}
_NAMES |= {".windsurfrules", ".clinerules", "copilot-instructions.md"}
_PATTERNS = (
    "*.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".claude/CLAUDE.md",
    ".cursor/rules/**/*.mdc",
    ".github/copilot-instructions.md",
    ".github/instructions/**/*.instructions.md",
)


def detects(path: Path) -> bool:
    return bool(_files(path))


def usual_places(root: Path, home: Path) -> list[Path]:  # noqa: ARG001 - the protocol's signature
    return [root]


def read(path: Path, request: ImportRequest) -> SourceReading:  # noqa: ARG001 - the protocol's signature
    reading = SourceReading.empty()
    files = [path] if path.is_file() else _files(path)  # a file that is named is meant
    reading.read_each(files, _read_file)
    return reading


def _files(path: Path) -> list[Path]:
    found = [path] if path.is_file() else files_below(path, *_PATTERNS)
    return [file for file in found if _is_rules(file)]


def _is_rules(path: Path) -> bool:
    return path.name.lower() in _NAMES or path.name.endswith((".mdc", ".instructions.md"))


def _read_file(path: Path, reading: SourceReading) -> None:
    page = page_of(path)
    count_left_out(reading, page.about, ("globs", "applyTo", "alwaysApply"))
    applies_to = page.about.get("globs") or page.about.get("applyTo") or ""
    fields = topic_fields(path, type="rule", category="rules", applies_to=applies_to)
    read_page(path, page.body, reading, fields, private="local" in path.stem.lower())
