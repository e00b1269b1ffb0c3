"""Quarantine: memories that came from a source which turned out to be bad, set aside together.

They leave memory, index and views at once, like what is forgotten, but as one case that can be
looked at, released or dropped. A case lies in the local zone, readable by its user only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from loki_memory.editing import removal
from loki_memory.errors import InvalidRecord
from loki_memory.files.codec import MAX_BYTES, read_json
from loki_memory.files.layout import view_kind
from loki_memory.index import queries
from loki_memory.models.ids import digest

if TYPE_CHECKING:
    from loki_memory.files.store import Store
    from loki_memory.home import Home
    from loki_memory.index.index import Index

_FOLDER = "local/.quarantine/"
_MOST_BYTES = 64 * MAX_BYTES


class QuarantinedMemory(NamedTuple):
    """A memory in quarantine."""

    id: str
    path: str
    title: str


class QuarantineCase(NamedTuple):
    """Memories that were set aside together."""

    case: str
    source: str  # what was tainted
    why: str
    on: str  # day
    memories: list[QuarantinedMemory]


def derived(index: Index, seeds: Iterable[str]) -> list[str]:
    """The seeds and, transitively, everything that was derived from any of them.

    A person's statement rests on that person.
    """
    found: dict[str, None] = {}
    waiting = sorted(seeds)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = None
            waiting += [
                source
                for relation, source, _ in index.edges_to(name)
                if relation == "derived_from" and queries.origin(index, source) != "owner"
            ]
    return sorted(found)


def memories(index: Index, ids: Iterable[str]) -> list[QuarantinedMemory]:
    """Describe memories that have a file of their own."""
    names = list(ids)
    titles = queries.titles(index, names)
    places = ((name, index.path_of(name) or "") for name in names)
    return [
        QuarantinedMemory(name, path, titles.get(name, ""))
        for name, path in places
        if path and not view_kind(path)
    ]


def set_aside(
    home: Home, chosen: list[QuarantinedMemory], source: str, why: str, today: str
) -> QuarantineCase:
    """Move memories into a new case."""
    case = QuarantineCase(
        digest("case", source, today, *(m.id for m in chosen)), source, why, today, chosen
    )
    with home.store.change() as change:
        taken = removal.take_out(change, home.index, {memory.id for memory in chosen})
        kept = {**case._asdict(), "memories": [m._asdict() for m in chosen], **taken.kept()}
        change.render(_path(case.case), orjson.dumps(kept))
    home.wrote()
    return case


def cases(store: Store) -> list[QuarantineCase]:
    """All cases, the oldest first."""
    folder = store.layout.resolve(_FOLDER)
    names = sorted(path.stem for path in folder.glob("*.json")) if folder.is_dir() else []
    return sorted(
        (_case(_read(store, name)) for name in names), key=lambda case: (case.on, case.case)
    )


def release(home: Home, name: str) -> QuarantineCase:
    """Bring the memories of a case back."""
    kept = _read(home.store, name)
    with home.store.change() as change:
        removal.put_back(change, kept)
        change.remove(_path(name))
    home.wrote()
    return _case(kept)


def drop(home: Home, name: str) -> QuarantineCase:
    """Delete the memories of a case for good."""
    kept = _read(home.store, name)
    home.store.remove(_path(name))
    return _case(kept)


def _path(name: str) -> str:
    return f"{_FOLDER}{name}.json"


def _read(store: Store, name: str) -> dict[str, Any]:
    found = store.read(_path(name)) if name.isalnum() else None
    kept = read_json(found.data, _MOST_BYTES) if found else None
    if not isinstance(kept, dict):
        advice = "`loki-mem quarantine list` shows the cases."
        raise InvalidRecord(f"there is no case {name!r} in quarantine", advice=advice)
    return kept


def _case(kept: dict[str, Any]) -> QuarantineCase:
    chosen = [QuarantinedMemory(**memory) for memory in kept["memories"]]
    return QuarantineCase(kept["case"], kept["source"], kept["why"], kept["on"], chosen)
