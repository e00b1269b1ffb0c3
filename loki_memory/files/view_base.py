"""The base of a view: its last rendering, by which an edited view is known from an outdated one."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from loki_memory.files.layout import VIEW_BASES

_ETAG = re.compile(rb'\{\s*"etag":\s*"([0-9a-f]+)"')  # it comes first in what we write


class Shown(NamedTuple):
    """A view's entry for a record: the path, the entry's hash, and the etag of the record."""

    path: str = ""
    hash: str = ""
    etag: str = ""


class Base(NamedTuple):
    """The last rendering: the view's etag, and the entries of its records."""

    etag: str
    # A Shown as a list, and the entry's size in bytes; or whatever a clone brought.
    entries: dict[str, Any]

    def shown(self, memory_id: str) -> Shown:
        """The base of an entry; empty if it was not rendered, or not by a version of ours."""
        found = self.entries.get(memory_id)
        if not isinstance(found, list) or not 2 <= len(found) <= len(Shown._fields) + 1:  # noqa: PLR2004
            return Shown()
        return Shown(*map(str, found[: len(Shown._fields)]))


def base_path(view: str) -> str:
    """The path of a view's base."""
    return f"{VIEW_BASES}{view.removesuffix('.json').replace('/', '-')}.json"


def etag_in(base: bytes | None) -> str:
    """The etag that a view was rendered with, without parsing the rest of the base."""
    found = _ETAG.match(base) if base else None
    return found[1].decode() if found else ""
