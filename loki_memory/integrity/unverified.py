"""The list of records that the last `verify` could not confirm, for readers to be warned.

An entry refers to one content: writing the record anew removes it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loki_memory.files.layout import Layout

_NAME = "unverified.json"


def doubts(layout: Layout) -> dict[str, str]:
    """Unverified contents as path -> etag."""
    try:
        with open(layout.local / _NAME, "rb") as file:
            data = file.read()
    except OSError:
        return {}
    import json  # 3 ms, for the few that have doubts

    try:
        found = json.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def note_doubts(layout: Layout, found: Mapping[str, str]) -> None:
    """Keep them for readers. If that fails, at least the caller knows them."""
    import json

    from loki_memory.files import disk

    path = layout.local / _NAME
    with suppress(OSError):
        if found and found != doubts(layout):
            disk.write_bytes(path, json.dumps(dict(found), indent=1, sort_keys=True).encode())
        elif not found and os.path.lexists(path):
            os.unlink(path)
