"""The base of a view: its last rendering, which tells an edited view from an outdated one."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_PATH = ".views/{}.json"
_ETAG = re.compile(rb'\{\s*"etag":\s*"([0-9a-f]+)"')  # it stands first in what we write


class Shown(NamedTuple):
    """What a view shows of a record: its path, the entry's hash, and the etag it was made from."""

    path: str = ""
    hash: str = ""
    etag: str = ""


class Base(NamedTuple):
    """What was rendered last: the view's etag, and of each record what was shown of it."""

    etag: str
    # A Shown as a list, and how many bytes the entry has; or whatever came with somebody's clone.
    entries: dict[str, Any]

    def shown(self, memory_id: str) -> Shown:
        """What is known of an entry; nothing if it was not rendered, or by no version of ours."""
        found = self.entries.get(memory_id)
        if not isinstance(found, list) or not 2 <= len(found) <= len(Shown._fields) + 1:  # noqa: PLR2004
            return Shown()
        return Shown(*map(str, found[: len(Shown._fields)]))


def base_path(view: str) -> str:
    """Where the base of a view lies."""
    return _PATH.format(view.removesuffix(".json").replace("/", "-"))


def etag_in(base: bytes | None) -> str:
    """The etag that a view was rendered with; what else a base says takes long to read."""
    told = _ETAG.match(base) if base else None
    return told[1].decode() if told else ""
