"""Notes of basic-memory: Markdown with a permalink, observations and relations.

An observation is `- [category] text #tag (context)`, a relation `- verb [[Other note]]`, anywhere
in the text. Prose around them is read like any other Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from loki_memory.errors import InvalidRecord
from loki_memory.interop.sources.markdown_notes import page_of, read_page, topic_fields
from loki_memory.interop.sources.source import (
    FoundMemory,
    ImportRequest,
    SourceReading,
    count_left_out,
    files_below,
    filled,
    when,
    words,
)
from loki_memory.models.ids import slug

NAME = "basic-memory"
_OBSERVATION = re.compile(r"\s*[-*]\s+\[([^\[\]]{2,})\]\s+(?!\()(.+)")
_RELATION = re.compile(r"\s*[-*]\s+(?:([^\[\]]*?)\s+)?\[\[([^\[\]]+)\]\](.*)")
_TAG = re.compile(r"(?<!\S)#([\w-]+)")
_USED = ("title", "type", "tags", "permalink", "created", "modified")
_LOOKED_AT = 50  # notes of a folder, before it counts as somebody else's


class _Note(NamedTuple):
    """The note that observations and relations belong to."""

    path: Path
    title: str
    tags: list[str]
    since: str


def detects(path: Path) -> bool:
    return any(_has_permalink(file) for file in _files(path)[:_LOOKED_AT])


def usual_places(root: Path, home: Path) -> list[Path]:  # noqa: ARG001 - the protocol's signature
    return [home / "basic-memory"]


def read(path: Path, request: ImportRequest) -> SourceReading:  # noqa: ARG001 - the protocol's signature
    reading = SourceReading.empty()
    reading.read_each(_files(path), _read_note)
    return reading


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix == ".md" else []
    found = ((file, file.relative_to(path).as_posix()) for file in files_below(path, "**/*.md"))
    return [file for file, name in found if "/." not in f"/{name}"]


def _has_permalink(path: Path) -> bool:
    try:
        return "permalink" in page_of(path).about
    except (InvalidRecord, OSError):
        return False


def _read_note(path: Path, reading: SourceReading) -> None:
    page = page_of(path)
    count_left_out(reading, page.about, _USED)
    title = str(page.about.get("title") or path.stem)
    since = when(page.about.get("modified") or page.about.get("created"))[:10]
    note = _Note(path, title, [slug(tag, 64) for tag in words(page.about.get("tags"))], since)
    prose = _without_structure(page.body.split("\n"), note, reading)
    fields = topic_fields(path, valid_from=since)
    fields["tags"] = sorted({*fields.get("tags", ()), *filter(None, note.tags)})
    read_page(path, "\n".join(prose), reading, fields)


def _without_structure(lines: Iterable[str], note: _Note, reading: SourceReading) -> list[str]:
    """Add observations and relations to the reading; return the other lines."""
    prose: list[str] = []
    for line in lines:
        if relation := _RELATION.fullmatch(line):
            reading.found.append(_relation(note, relation[1] or "relates to", relation[2]))
        elif observation := _OBSERVATION.fullmatch(line):
            reading.found.append(_observation(note, observation[1], observation[2]))
        else:
            prose.append(line)
    return prose


def _observation(note: _Note, category: str, text: str) -> FoundMemory:
    tags = {slug(tag, 64) for tag in _TAG.findall(text)} | {slug(note.title, 64), *note.tags}
    fields = filled(
        statement=" ".join(_TAG.sub("", text).split()),
        subject=note.title,
        category=slug(category, 40),
        type=slug(category, 40),
        tags=sorted(filter(None, tags)),
        valid_from=note.since,
    )
    return FoundMemory("fact", fields, note.path.name)


def _relation(note: _Note, verb: str, target: str) -> FoundMemory:
    statement = f"{note.title} {verb.strip().replace('_', ' ')} {target.partition('|')[0].strip()}"
    fields = filled(
        statement=statement, subject=note.title, type="relationship", valid_from=note.since
    )
    return FoundMemory("fact", fields, note.path.name)
