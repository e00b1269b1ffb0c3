"""Take a text out of the memory files of a home, leaving no copy.

A record that says nothing but the text is removed, with all that was derived only from it. In other
records `[PURGED]` takes the place of the text. A tombstone keeps its id, which is a hash of the
value, so what was rejected stays rejected.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.editing import removal
from loki_memory.errors import InvalidRecord
from loki_memory.files import disk
from loki_memory.files.codec import decode
from loki_memory.files.layout import ARCHIVE, PRIVATE, kind_of, view_kind
from loki_memory.files.store import sealed
from loki_memory.models import Memory, parse
from loki_memory.models.kinds import STATEMENT

if TYPE_CHECKING:
    from loki_memory.files.layout import Layout
    from loki_memory.files.store import Change
    from loki_memory.home import Home


_REASONS = ("why", "prevention", "correct_approach", "incorrect_approach")
SHORTEST = 6  # characters of a text: a shorter one stands everywhere


class PurgedRecords(NamedTuple):
    """The memory files that a purge removed and changed, as paths."""

    removed: list[str]
    changed: list[str]


def check_length(text: str) -> str:
    """The text to purge; raises InvalidRecord if it is too short to be one."""
    text = text.strip()
    if len(text) < SHORTEST:
        raise InvalidRecord(
            f"a text of fewer than {SHORTEST} characters stands in too many places",
            advice="Give more of it, or the id of a memory.",
        )
    return text


def texts_of(home: Home, memory_id: str) -> list[str]:
    """The words of a memory and of what was derived only from it."""
    records = (
        home.store.record(path) for path in home.paths_of(removal.closure(home.index, memory_id))
    )
    found = [text for record in records if record for text in _words(record)]
    return list(dict.fromkeys(text for text in found if len(text) >= SHORTEST))


def shared_paths_of(home: Home, memory_id: str) -> list[str]:
    """The files of a memory, and of what was derived only from it, that others may have."""
    paths = home.paths_of(removal.closure(home.index, memory_id))
    return [path for path in paths if not path.startswith(PRIVATE)]


def _words(record: Memory) -> Iterator[str]:
    """The sentences of a record; a link has none."""
    if record.kind != "link":
        yield from _says(record)
        document = record.document()
        yield from (
            found.strip() for name in _REASONS if isinstance(found := document.get(name), str)
        )


def _says(record: Memory) -> Iterator[str]:
    document = record.document()
    yield record.title().strip()
    yield from (found.strip() for name in STATEMENT if isinstance(found := document.get(name), str))


def purge_memory(home: Home, memory_id: str, today: str) -> list[str]:
    """Remove a memory and what was derived only from it, without a copy; returns the ids."""
    gone = removal.forget(home.store, home.index, memory_id, "", today)
    with home.store.change() as change:
        change.remove(removal.kept_copy(memory_id))
    home.wrote()
    return gone.removed


def purge_text(home: Home, texts: Sequence[str], wanted: Sequence[bytes]) -> PurgedRecords:
    """Take texts, by their spellings, out of every memory file of a home."""
    done = PurgedRecords([], [])
    with home.store.change() as change:
        for path in sorted(_traced(home.layout, wanted)):
            kept = _purged(change, path, texts, wanted)
            (done.changed if kept else done.removed).append(path)
    home.wrote()
    return done


def _traced(layout: Layout, wanted: Sequence[bytes]) -> Iterator[str]:
    """The paths of memory files with a trace in their content or name; views are made again."""
    for prefix, top in (("", layout.memory), (PRIVATE, layout.local / "memory")):
        for file in files_below(top):
            path = prefix + file.relative_to(top).as_posix()
            if not view_kind(path) and _is_traced(file, wanted):
                yield path


def _is_traced(file: Path, wanted: Sequence[bytes]) -> bool:
    return is_traced(file.read_bytes(), wanted) or is_traced(file.name.encode(), wanted)


def _purged(change: Change, path: str, texts: Sequence[str], wanted: Sequence[bytes]) -> bool:
    """Purge one file; tells whether something of it stays."""
    there = change.read(path)
    if there is None or is_traced(path.encode(), wanted):
        change.remove(path)
        return False
    record = _record(path, there.data)
    if record is None:
        change.render(path, without_traces(there.data, wanted))
        return True
    if record.kind != "tombstone" and any(saying in texts for saying in _says(record)):
        change.remove(path)
        return False
    clean = _cleaned(record, texts)
    change.render(path, sealed(clean)[1] if clean else without_traces(there.data, wanted))
    return True


def _record(path: str, data: bytes) -> Memory | None:
    if kind_of(path.removeprefix(PRIVATE).removeprefix(ARCHIVE)) is None:
        return None
    try:
        return decode(path, data)
    except InvalidRecord:
        return None


def _cleaned(record: Memory, texts: Iterable[str]) -> Memory | None:
    """The record without the texts, under its own id; None if that makes no record."""
    document = record.document()
    for text in texts:
        document = _replaced(document, text)
    try:
        return parse(type(record), {**document, "id": record.id})
    except InvalidRecord:
        return None


def _replaced(value: Any, text: str) -> Any:
    if isinstance(value, str):
        return value.replace(text, PURGED)
    if isinstance(value, list):
        return [_replaced(item, text) for item in value]
    if isinstance(value, dict):
        return {name.replace(text, PURGED): _replaced(item, text) for name, item in value.items()}
    return value


# -- traces: the spellings of a text in files, and the exports that may hold it --------------------


PURGED = "[PURGED]"


def spellings(texts: Iterable[str]) -> list[bytes]:
    """The bytes that may stand for texts in a file, the longest first."""
    found: set[str] = set()
    for text in texts:
        forms = {text}
        for ascii_only in (False, True):
            once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
            forms |= {once, json.dumps(once, ensure_ascii=ascii_only)[1:-1]}
        found |= forms
    encoded = {form.encode("utf-8", "surrogatepass") for form in found if form}
    return sorted(encoded, key=lambda form: (-len(form), form))


def is_traced(data: bytes, wanted: Iterable[bytes]) -> bool:
    """Check whether a file's content holds one of the spellings."""
    return any(form in data for form in wanted)


def without_traces(data: bytes, wanted: Iterable[bytes]) -> bytes:
    """The content with `PURGED` in the place of every spelling."""
    for form in wanted:
        data = data.replace(form, PURGED.encode())
    return data


def files_below(folder: Path) -> Iterator[Path]:
    """All plain files of a folder in order; links are not followed."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        paths = (Path(place, name) for name in sorted(names))
        yield from (path for path in paths if path.is_file() and not path.is_symlink())


def purge_file(path: Path, wanted: Iterable[bytes]) -> bool:
    """Take every trace out of a file; tells whether there was one."""
    before = disk.read_bytes(path)
    forms = list(wanted)
    if before is None or not is_traced(before, forms):
        return False
    disk.write_bytes(path, without_traces(before, forms))
    return True
