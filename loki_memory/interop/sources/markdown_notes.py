"""Markdown notes as statements: each bullet, row of a table or paragraph, and short commands.

Shell commands in a fence of up to six lines are a statement under their heading. Other code is
listed as not imported: an example is no fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from loki_memory.continuity.harvest import notes, outline
from loki_memory.errors import InvalidRecord
from loki_memory.files import front_matter
from loki_memory.install.edits import MARKDOWN, find
from loki_memory.interop.sources.source import FoundMemory, SourceReading, filled, text_of
from loki_memory.models.ids import slug

_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*([\w+-]*).*")
_HEADING = re.compile(r" {0,3}#{1,6}\s+(.*?)[\s#]*")
_SHELL = {"", "sh", "bash", "shell", "zsh", "console", "shellsession", "fish", "powershell"}
_SHORT = 6  # lines of commands that one statement can hold


class Page(NamedTuple):
    """A Markdown file: its front matter, and the text below without our own block."""

    about: dict[str, Any]
    body: str


class CodeBlock(NamedTuple):
    """A fenced block with the heading above it."""

    heading: str
    language: str
    lines: list[str]


def page_of(path: Path) -> Page:
    """Read a Markdown file; raises InvalidRecord where it is too large."""
    text = text_of(path).removeprefix("\ufeff")
    front = _FRONT.match(text)
    body = text[front.end() if front else 0 :]
    ours = find(body, MARKDOWN, str(path))
    body = ours.before + ours.after if ours else body
    return Page(front_of(front[1]) if front else {}, body)


def front_of(text: str) -> dict[str, Any]:
    """Front matter as values; where it is no YAML (`globs: *.ts`), each line by itself."""
    try:
        return front_matter.read(text)
    except InvalidRecord:
        pairs = (line.partition(":") for line in text.splitlines() if line[:1].isalpha())
        return {name.strip(): value.strip().strip("'\"") for name, _, value in pairs}


def read_page(
    path: Path,
    body: str,
    reading: SourceReading,
    fields: Mapping[str, Any],
    *,
    private: bool = False,
) -> None:
    """Add each statement of a page as a fact with these fields, its section as a tag."""
    for section, note in statements(body):
        tags = sorted({*fields.get("tags", ()), *filter(None, [slug(section, 64)])})
        found = {"category": slug(section, 40), **fields, "statement": note, "tags": tags}
        reading.found.append(FoundMemory("fact", filled(**found), path.name, private=private))
    for block in code_blocks(body):
        _read_code(path, block, reading, fields, private=private)


def statements(body: str) -> Iterator[tuple[str, str]]:
    """The statements of a text, each with the heading that it stands under."""
    for head in outline(body):
        yield from ((head.title, note) for note in notes(head, head.title))


def _read_code(
    path: Path,
    block: CodeBlock,
    reading: SourceReading,
    fields: Mapping[str, Any],
    *,
    private: bool,
) -> None:
    commands = [line.strip() for line in block.lines if line.strip()]
    if not commands:
        return
    if block.language not in _SHELL or len(commands) > _SHORT:
        length = f"{len(commands)} lines" if len(commands) > 1 else "a line"
        reading.refuse(path.name, commands[0], f"{length} of {block.language or 'code'} in a fence")
        return
    text = "; ".join(commands)
    found = {**fields, "statement": f"{block.heading}: {text}" if block.heading else text}
    reading.found.append(FoundMemory("fact", filled(**found), path.name, private=private))


def code_blocks(body: str) -> Iterator[CodeBlock]:
    """The fenced blocks of a text; a fence without an end is none."""
    heading, mark, language, lines = "", "", "", list[str]()
    for line in body.split("\n"):
        fence = _FENCE.fullmatch(line)
        if mark and fence and fence[1].startswith(mark) and not fence[2]:
            yield CodeBlock(heading, language, lines)
            mark = ""
        elif mark:
            lines.append(line)
        elif fence:
            mark, language, lines = fence[1], fence[2].lower(), []
        elif title := _HEADING.fullmatch(line):
            heading = title[1].strip("*_ ")


def topic_fields(path: Path, **fields: Any) -> dict[str, Any]:
    """The fields of all statements of a page: its name as a tag, and those that are given."""
    topic = slug(path.stem, 64)
    return filled(tags=[topic] if topic else [], **fields)
