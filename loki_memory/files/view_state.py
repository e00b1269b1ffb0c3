"""The state of the views at their last rendering, by which most checks need no more than a stat.

Nothing here reads a record: a session begins with this check, and the models take 100 ms to load.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.files.disk import read_derived
from loki_memory.files.layout import VIEW_BASES, Layout, view_kind

if TYPE_CHECKING:
    from loki_memory.models.kinds import Kind


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


PATHS: dict[Kind, str] = {
    "pattern": "semantic/patterns.json",
    "anti-pattern": "semantic/anti-patterns.json",
    "fact": "semantic/facts.json",
    "link": "semantic/links.json",
    "episode": "episodic/index.json",
}
SHOWN: tuple[Kind, ...] = (*PATHS, "learning")
STATE = f"{VIEW_BASES}state.json"


class ViewState(NamedTuple):
    """A cache: where it is missing or out of date, views are compared in full."""

    stamps: dict[str, list[int]]  # of views as they were rendered
    rendered: dict[str, int]  # per kind, the fingerprint of the index at rendering


def view_state(layout: Layout) -> ViewState:
    """The state that was noted last; an empty one if there is none."""
    try:
        raw = json.loads(read_derived(layout.file(STATE)) or b"{}")
        return ViewState(dict(raw["stamps"]), dict(raw["rendered"]))
    except (OSError, ValueError, KeyError, TypeError):
        return ViewState({}, {})


def are_views_current(layout: Layout, fingerprints: Mapping[Kind, int]) -> bool:
    """Check if every view is as it was rendered, and the index has not changed since."""
    known = view_state(layout)
    try:
        stamps, views = view_stamps(layout), rendered_once(layout)
    except OSError:
        return False
    is_rendered = known.stamps == stamps and known.rendered == fingerprints
    return is_rendered and all(view in stamps for view in views)


def view_stamps(layout: Layout, *, days: bool = True) -> dict[str, list[int]]:
    """Modification, change and size of each view that exists; `days` includes the learnings."""
    stamps: dict[str, list[int]] = {}
    paths = list(PATHS.values())
    if days:
        paths += [f"learnings/{name}" for name in _names_in(layout.file("learnings"))]
    for path in paths:
        if view_kind(path):
            with suppress(FileNotFoundError, NotADirectoryError):
                status = os.stat(layout.file(path))
                if stat.S_ISREG(status.st_mode):
                    stamps[path] = [status.st_mtime_ns, status.st_ctime_ns, status.st_size]
    return stamps


def rendered_once(layout: Layout) -> list[str]:
    """The views that have a base: they were there at the last rendering."""
    bases = _names_in(layout.file(VIEW_BASES))
    days = [name.removeprefix("learnings-") for name in bases if name.startswith("learnings-")]
    views = [*PATHS.values(), *(f"learnings/{day}" for day in days)]
    return [view for view in views if base_path(view).rpartition("/")[2] in bases]


def _names_in(folder: str) -> list[str]:
    """The names in a folder, in order; none if there is no such folder."""
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
