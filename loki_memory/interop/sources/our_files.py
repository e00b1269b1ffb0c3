"""Memory in our own formats: a `.loki` folder, of Loki Mode too, and files of `loki-mem export`.

Record files and lists of records (`semantic/patterns.json`) are taken over with their ids, skills
in JSON become Markdown, and notes of the agent in CONTINUITY.md become learnings and facts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loki_memory.continuity.harvest import harvest
from loki_memory.errors import InvalidRecord
from loki_memory.files.codec import MAX_BYTES, build, dated, decode, read_json
from loki_memory.files.layout import ARCHIVE, date_in, kind_of, view_kind
from loki_memory.files.views import list_in
from loki_memory.interop.export_memory import FORMAT, VERSION, RecordLine, record_of, records_in
from loki_memory.interop.sources.source import (
    MOST_JSON,
    FoundMemory,
    ImportSource,
    SourceReading,
    files_below,
    json_lines,
    text_of,
)
from loki_memory.models import Memory, Skill
from loki_memory.models.ids import slug

_MOST = 8 * MAX_BYTES  # bytes of a list of records
_CONTINUITY = "CONTINUITY.md"


def _read_loki(path: Path, reading: SourceReading) -> None:
    loki = _loki(path) or path
    for file in _files(loki / "memory"):
        reading.files.append(str(file))
        _read_file(file, file.relative_to(loki / "memory").as_posix(), reading)
    _read_notes(loki / _CONTINUITY, reading)


def _loki(path: Path) -> Path | None:
    """The folder of Loki that a path is, or that is in it."""
    if path.name == "memory" and path.parent.name == ".loki":
        path = path.parent
    for folder in (path / ".loki", path):
        is_named = folder.name == ".loki"
        if is_named and ((folder / "memory").is_dir() or (folder / _CONTINUITY).is_file()):
            return folder
    return None


def _files(memory: Path) -> list[Path]:
    found = files_below(memory, "**/*.json", "**/*.md", "**/*.jsonl")
    inside = ((file, file.relative_to(memory).as_posix()) for file in found)
    return [file for file, name in inside if not name.startswith(".") and "/." not in name]


def _read_file(path: Path, name: str, reading: SourceReading) -> None:
    try:
        records = list(_records(path, name, reading))
    except InvalidRecord as error:
        reading.refuse(name, "the file", str(error))
        return
    except OSError as error:
        reading.refuse(name, "the file", error.strerror or str(error))
        return
    reading.found.extend(
        FoundMemory(record.kind, record.document(), name, record.id, whole=True, path=place)
        for record, place in records
    )


def _records(path: Path, name: str, reading: SourceReading) -> Iterator[tuple[Memory, str]]:
    data = path.read_bytes()
    listed = view_kind(name)
    if name.startswith(ARCHIVE):
        reading.refuse(name, "the file", "archived there; `loki-mem restore` brings it back first")
    elif listed == "episode":
        reading.refuse(name, "the file", "an index, which is made again")
    elif listed is not None:
        yield from ((record, "") for record in _listed(name, data, reading))
    elif kind_of(name) is not None:
        yield decode(name, data), name
    elif name.startswith("skills/") and name.endswith(".json"):
        yield skill_in_json(name, read_json(data)), ""
    else:
        reading.refuse(name, "the file", "not a record")


def _listed(name: str, data: bytes, reading: SourceReading) -> Iterator[Memory]:
    """The records of a list; one that cannot be read does not hide the others."""
    kind = view_kind(name)
    if kind is None or not data.strip():
        return
    for number, entry in enumerate(list_in(kind, read_json(data, _MOST))):
        given = {"lesson": entry} if kind == "learning" and isinstance(entry, str) else entry
        try:
            yield build(kind, dated(kind, given, date_in(name)))
        except InvalidRecord as error:
            reading.refuse(f"{name}:{number}", "the entry", str(error))


def skill_in_json(name: str, given: Any) -> Skill:
    """A skill in JSON as Markdown with the same sections."""
    if not isinstance(given, dict):
        raise InvalidRecord("is not a JSON object", advice="A skill is one {…}.")
    title = str(given.get("name") or Path(name).stem)
    errors = [item for item in given.get("common_errors") or () if isinstance(item, dict)]
    return Skill.from_sections(
        slug(title, 64) or slug(Path(name).stem, 64),
        str(given.get("description") or title)[:1024],
        title=title,
        prerequisites=map(str, given.get("prerequisites") or ()),
        steps=map(str, given.get("steps") or ()),
        common_errors=[(str(item.get("error")), str(item.get("fix"))) for item in errors],
        exit_criteria=map(str, given.get("exit_criteria") or ()),
    )


def _read_notes(path: Path, reading: SourceReading) -> None:
    if not path.is_file() or path.is_symlink():
        return
    reading.files.append(str(path))
    try:
        noted = harvest(text_of(path).encode())
    except InvalidRecord as error:
        reading.refuse(path.name, "the file", str(error))
        return
    for note in noted:
        fields = {"category": slug(note.section, 40)}
        if note.kind == "learning":
            fields |= {"lesson": note.text, "timestamp": reading.request.now[:10]}
            reading.add("learning", path.name, fields)
        else:
            reading.add("fact", path.name, {**fields, "statement": note.text})


LOKI = ImportSource("loki", lambda path: _loki(path) is not None, _read_loki)


# -- Files of `loki-mem export`: JSON lines, or a Markdown page with a record below each entry -----

_HEAD = 200  # characters, in which the mark of the format stands


def whole_record(where: str, line: RecordLine) -> FoundMemory:
    """A record of our own format, which keeps its id and its place."""
    ref = str(line.document.get("id") or "")
    return FoundMemory(line.kind, line.document, where, ref, whole=True, path=line.path)


def _is_export(path: Path) -> bool:
    if not path.is_file() or path.suffix not in {".jsonl", ".md"}:
        return False
    with open(path, "rb") as file:
        return FORMAT.encode() in file.read(_HEAD)


def _read_export(path: Path, reading: SourceReading) -> None:
    reading.files.append(str(path))
    if path.suffix == ".md":
        lines = records_in(text_of(path, MOST_JSON))
        reading.found.extend(whole_record(path.name, line) for line in lines)
        return
    for where, value in json_lines(path, reading):
        if isinstance(value, dict) and "format" in value:
            if value.get("version") != VERSION:
                raise InvalidRecord("was written by a newer loki-mem", advice="Update loki-mem.")
        elif (line := record_of(value)) is not None:
            reading.found.append(whole_record(where, line))
        else:
            reading.refuse(where, "the line", "it holds no record")


EXPORT = ImportSource("loki-export", _is_export, _read_export)
