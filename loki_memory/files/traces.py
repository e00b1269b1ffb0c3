"""Traces of a text in files: how it may be spelled there, how to take it out, and which exports.

A text stands in JSON with escapes, and twice escaped where a file holds other files. Whatever the
spelling, `PURGED` takes its place, so that what surrounds it stays readable.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from loki_memory.files import disk

if TYPE_CHECKING:
    from loki_memory.files.layout import Layout


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


# The list of files to which memory was exported from this machine, so that `purge` finds them.

_NAME = "exports.json"  # in the local zone


def note_exports(layout: Layout, paths: Iterable[Path]) -> None:
    """Add files to the list."""
    known = {*map(str, exported_paths(layout)), *map(os.path.abspath, paths)}
    disk.write_bytes(layout.local / _NAME, f"{json.dumps(sorted(known))}\n".encode())


def exported_paths(layout: Layout) -> list[Path]:
    """The files of the list; some may be gone by now."""
    data = disk.read_bytes(layout.local / _NAME)
    try:
        found = json.loads(data) if data else []
    except ValueError:
        return []
    names = found if isinstance(found, list) else []
    return [Path(name) for name in names if isinstance(name, str)]
