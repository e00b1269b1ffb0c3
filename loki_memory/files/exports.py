"""The list of files to which memory was exported from this machine, so that `purge` finds them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from loki_memory.files import disk

if TYPE_CHECKING:
    from loki_memory.files.layout import Layout

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
