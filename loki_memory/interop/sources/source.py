"""Entries of other systems in our terms, and the reading of files of strangers.

A source reads and maps, and writes nothing: an entry of the other system becomes a `FoundMemory`,
or is listed with the reason why it does not. Where fields only have other names, a table says which
(`mapped`). Fields of an entry for which memory has no place are counted by name.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from loki_memory.errors import InvalidRecord, LokiMemoryError
from loki_memory.models.ids import slug
from loki_memory.models.kinds import Kind
from loki_memory.models.text import moment

MOST_TEXT = 1_000_000  # bytes of a Markdown file: a page has some thousand
MOST_JSON = 1 << 26  # bytes; 100,000 entries have some 50 MB
_MILLISECONDS = 1e11  # seconds up to the year 5138: a larger number is in milliseconds
_EMPTY: tuple[Any, ...] = (None, "", [], {})


class FoundMemory(NamedTuple):
    """An entry of another system in our terms; `ref` is its id there."""

    kind: Kind
    fields: Mapping[str, Any]
    where: str
    ref: str = ""
    parent: str = ""  # a ref
    links: tuple[tuple[str, str], ...] = ()  # relation and ref
    private: bool = False  # stays on this machine, whatever scope is asked for
    whole: bool = False  # a record in our own format, which keeps its id
    path: str = ""  # of a whole record: where its file was


class RefusedMemory(NamedTuple):
    """An entry, or several at one place, that is not imported, and why."""

    where: str
    what: str
    why: str
    entries: int = 1


class ImportRequest(NamedTuple):
    """The circumstances of an import."""

    project: str = (
        ""  # the name of the project's folder: shared databases tell projects apart by it
    )
    now: str = ""
    every_project: bool = False


class SourceReading(NamedTuple):
    """The content of a source, as it is collected."""

    request: ImportRequest
    files: list[str]
    found: list[FoundMemory]
    refused: list[RefusedMemory]
    left_out: Counter[str]  # names of fields that have no place here

    @classmethod
    def empty(cls, request: ImportRequest | None = None) -> SourceReading:
        return cls(request or ImportRequest(), [], [], [], Counter())

    def refuse(self, where: str, what: str, why: str, entries: int = 1) -> None:
        self.refused.append(RefusedMemory(where, what, why, entries))

    def add(self, kind: Kind, where: str, fields: Mapping[str, Any], ref: Any = "") -> None:
        """Add a record of which the fields without a value are left out."""
        self.found.append(FoundMemory(kind, filled(**fields), where, str(ref or "")))

    def count_left_out(self, entry: Mapping[str, Any], used: Iterable[str]) -> None:
        """Count the fields of an entry that hold something and were not used."""
        rest = entry.keys() - set(used)
        self.left_out.update(name for name in rest if entry[name] not in _EMPTY)

    def read_each(self, files: Iterable[Path], read: Callable[[Path, SourceReading], None]) -> None:
        """Read files one by one; one that cannot be read is refused, and the others go on."""
        for file in files:
            self.files.append(str(file))
            try:
                read(file, self)
            except LokiMemoryError as error:
                self.refuse(file.name, "the file", str(error))
            except OSError as error:
                self.refuse(file.name, "the file", error.strerror or str(error))


def _nowhere(root: Path, home: Path) -> list[Path]:  # noqa: ARG001 - the places of other sources
    return []


class ImportSource(NamedTuple):
    """A system whose memory can be imported."""

    name: str
    detects: Callable[[Path], bool]  # whether a file or folder holds memory of this system
    read: Callable[[Path, SourceReading], None]  # InvalidRecord or OSError: nothing can be read
    # The places to look at when none is named, from the project's folder and the user's.
    usual_places: Callable[[Path, Path], list[Path]] = _nowhere


# -- fields under other names ----------------------------------------------------------------------


def mapped(entry: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The fields of ours that an entry has under names of its own.

    >>> mapped({"text": "Use pnpm", "created": 1700000000}, {"statement": "memory text",
    ...     "valid_from": "updated created"})
    {'statement': 'Use pnpm', 'valid_from': '2023-11-14'}
    """
    found = {field: first_of(entry, *theirs.split()) for field, theirs in names.items()}
    return filled(**{field: _CONVERTED.get(field, _as_is)(value) for field, value in found.items()})


def names_in(names: Mapping[str, str], others: str = "") -> set[str]:
    """The names of an entry that a table uses, and others that have no need of a place."""
    return {name for theirs in (*names.values(), others) for name in theirs.split()}


def first_of(entry: Mapping[str, Any], *names: str) -> Any:
    """The first of some fields that holds something."""
    return next((entry[name] for name in names if entry.get(name) not in _EMPTY), None)


def _as_is(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def day(value: Any) -> str:
    return when(value)[:10]


def when(value: Any) -> str:
    """A moment from text or from seconds or milliseconds since 1970; empty if it is none."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            seconds = value / 1000 if value > _MILLISECONDS else value
            return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
        return moment(value) if isinstance(value, str) and value else ""
    except (ValueError, OverflowError, OSError):
        return ""


def score(value: Any) -> float | None:
    """A number from 0 to 1, or None."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= 1 else None


def words(value: Any) -> list[str]:
    """Words from a list, a JSON list or a text with commas."""
    if isinstance(value, str) and value.startswith("["):
        value = decoded(value)
    if isinstance(value, str):
        value = value.split(",")
    return [str(item).strip() for item in value if str(item).strip()] if is_list(value) else []


def tags(*values: Any) -> list[str]:
    """Words of lists and texts as tags."""
    return sorted({slug(word, 64) for value in values for word in words(value)} - {""})


def category(value: Any) -> str:
    return slug(str(value or ""), 40)


_CONVERTED: dict[str, Callable[[Any], Any]] = {
    "importance": score,
    "valid_from": day,
    "timestamp": when,
    "tags": tags,
    "category": category,
    "files_read": words,
    "files_modified": words,
}


def decoded(text: Any) -> Any:
    """The value of JSON in a column of a database; None where there is none."""
    import orjson

    try:
        return orjson.loads(text) if isinstance(text, str | bytes) else None
    except ValueError:
        return None


def is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def filled(**fields: Any) -> dict[str, Any]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value not in _EMPTY}


# -- files -----------------------------------------------------------------------------------------


def text_of(path: Path, most: int = MOST_TEXT) -> str:
    """The text of a Markdown file with LF; raises InvalidRecord where it is too large."""
    return _data(path, most).decode("utf-8", "replace").replace("\r\n", "\n")


def json_of(path: Path) -> Any:
    """The value of a JSON file; raises InvalidRecord."""
    from loki_memory.files.codec import read_json

    return read_json(_data(path, MOST_JSON), MOST_JSON)


def json_lines(path: Path, reading: SourceReading) -> Iterator[tuple[str, Any]]:
    """Each line of a file of JSON lines, with its place; those that are no JSON are refused."""
    from loki_memory.files.codec import read_json

    for number, line in enumerate(_data(path, MOST_JSON).splitlines(), 1):
        where = f"{path.name}:{number}"
        if not line.strip():
            continue
        try:
            yield where, read_json(line)
        except InvalidRecord as error:
            reading.refuse(where, "the line", error.reason)


def json_entries(path: Path, *lists: str) -> Iterator[tuple[str, Any]]:
    """Each entry of a JSON file, with its place: of a list, or of one by these names in an object.

    An object without such a list is one entry.
    """
    value = json_of(path)
    if isinstance(value, dict):
        value = next((value[name] for name in lists if isinstance(value.get(name), list)), [value])
    for number, entry in enumerate(value if isinstance(value, list) else ()):
        yield f"{path.name}:{number}", entry


def _data(path: Path, most: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe must not block
    with open(fd, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise InvalidRecord(f"has more than {most:,} bytes", advice="Split it.")
    return data


def files_below(folder: Path, *patterns: str) -> list[Path]:
    """The files in a folder that match one of the patterns, sorted; symbolic links are left."""
    found = {path for pattern in patterns for path in folder.glob(pattern)}
    return sorted(path for path in found if path.is_file() and not path.is_symlink())
