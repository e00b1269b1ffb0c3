"""Bundles of the Open Knowledge Format 0.2: a folder of Markdown pages, each with a `type`.

Pages that `loki-mem export --format okf` wrote hold their record and give it back as it was. Of
others, the description and each statement of the text is a fact; `index.md` and `log.md` are made
again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loki_memory.interop.record_block import record_in
from loki_memory.interop.sources.markdown_notes import Page, page_of, read_page, topic_fields
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

NAME = "okf"
_RESERVED = {"index.md", "log.md"}
_USED = ("type", "title", "description", "tags", "status", "stale_after", "generated", "timestamp")
_STATUS = {"draft": "candidate", "deprecated": "retired"}


def detects(path: Path) -> bool:
    index = path / "index.md"
    return index.is_file() and "okf_version" in page_of(index).about


def usual_places(root: Path, home: Path) -> list[Path]:  # noqa: ARG001 - the protocol's signature
    return []


def read(path: Path, request: ImportRequest) -> SourceReading:  # noqa: ARG001 - the protocol's signature
    reading = SourceReading.empty()
    files = [path] if path.is_file() else files_below(path, "**/*.md")
    reading.read_each(files, _read_page)
    return reading


def _read_page(path: Path, reading: SourceReading) -> None:
    if path.name in _RESERVED:
        reading.refuse(path.name, "the page", "a list, which is made again")
        return
    page = page_of(path)
    ours = record_in(page.body)
    if ours is not None:
        kind, document, place = ours
        reading.found.append(
            FoundMemory(
                kind,
                document,
                path.name,
                str(document.get("id") or ""),
                "",
                (),
                whole=True,
                path=place,
            )
        )
        return
    if not page.about.get("type"):
        reading.refuse(path.name, "the page", "it has no `type`")
        return
    _read_foreign(path, page, reading)


def _read_foreign(path: Path, page: Page, reading: SourceReading) -> None:
    about = page.about
    count_left_out(reading, about, _USED)
    title = str(about.get("title") or path.stem)
    fields = topic_fields(
        path,
        category=slug(str(about["type"]), 40),
        status=_STATUS.get(str(about.get("status"))),
        valid_from=_since(about)[:10],
        invalid_at=when(about.get("stale_after")),
    )
    tags = {slug(tag, 64) for tag in words(about.get("tags"))} - {""}
    fields["tags"] = sorted({*fields.get("tags", ()), *tags})
    if about.get("description"):
        said = filled(statement=f"{title}: {about['description']}", **fields)
        reading.found.append(FoundMemory("fact", said, path.name))
    read_page(path, page.body, reading, fields)


def _since(about: dict[str, Any]) -> str:
    generated = about.get("generated")
    at = generated.get("at") if isinstance(generated, dict) else None
    return when(at) or when(about.get("timestamp"))
