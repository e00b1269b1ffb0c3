"""Remove memories and bring them back: archive, forget, restore.

Archived files are under `archive/`, tracked, unchanged. Forgotten ones are gone from memory and
from the next commit; a copy stays in the local zone, so that `restore` works without git too,
until `gc` clears it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from loki_memory.errors import Ambiguous, FileChanged, InvalidRecord, NotFound, NothingToUndo
from loki_memory.files.codec import MAX_BYTES, decode, read_json
from loki_memory.files.layout import ARCHIVE, PRIVATE, Layout, archived_path
from loki_memory.files.redaction import redact
from loki_memory.files.scan import archived, etag
from loki_memory.files.store import Change, Store, sealed
from loki_memory.index import graph, queries
from loki_memory.index.index import Index
from loki_memory.models import AntiPattern, Belief, Memory, Skill, Tombstone
from loki_memory.models.ids import ID

_FORGOTTEN = "local/.forgotten/"
_BEGINNING = re.compile(r"[a-z]{2,8}(?:-[\w-]*)?")  # of an id


class Forgotten(NamedTuple):
    """The ids that a `forget` removed, and those of records that referred to them."""

    removed: list[str]  # ids
    changed: list[str]  # ids of records that no longer refer to them


def candidate_beside(change: Change, path: str) -> list[str]:
    """The candidate in the local zone that a file was published from, if there is one."""
    beside = PRIVATE + path
    return [] if path.startswith(PRIVATE) or change.read(beside) is None else [beside]


def archive(change: Change, path: str) -> str:
    """Move a file to the archive, beside an earlier one of that name.

    The candidate that it was published from would stand in its place, and goes.
    """
    target = _free(change, path)
    for beside in candidate_beside(change, path):
        change.remove(beside)
    change.move(path, target)
    return target


def keep_copy(change: Change, path: str) -> str:
    """Copy a file to the archive, before it is written anew."""
    there, target = change.read(path), _free(change, path)
    if there is not None:
        change.render(target, there.data)
    return target


def _free(change: Change, path: str) -> str:
    target = archived_path(path)
    stem, dot, suffix = target.rpartition(".")
    number = 1
    while change.read(target) is not None:
        number += 1
        target = f"{stem}~{number}{dot}{suffix}"
    return target


class TakenOut(NamedTuple):
    """The files that were taken out of memory, and the records that referred to them."""

    files: dict[str, str]  # by path, the text
    references: dict[str, dict[str, str]]  # by path, the text before, and the etag after
    changed: list[str]  # ids of the records that referred to them

    def kept(self) -> dict[str, Any]:
        """The part that brings them back."""
        return {"files": self.files, "references": self.references}


def forget(store: Store, index: Index, memory_id: str, why: str, today: str) -> Forgotten:
    """Remove a memory and what was derived only from it, and every reference to them."""
    gone = closure(index, memory_id)
    with store.change() as change:
        taken = take_out(change, index, gone)
        kept = {"why": redact(why), "on": today, **taken.kept()}
        change.render(kept_copy(memory_id), orjson.dumps(kept))
    return Forgotten(sorted(gone), taken.changed)


def kept_copy(memory_id: str) -> str:
    """The path of the copy that a `forget` keeps."""
    return f"{_FORGOTTEN}{memory_id}.json"


def take_out(change: Change, index: Index, gone: set[str]) -> TakenOut:
    """Remove memories and every reference to them."""
    taken = TakenOut({}, {}, [])
    for name in sorted(gone):
        path = index.path_of(name)
        if path is None or change.read(path) is None:
            raise FileChanged(path or name)
        for each in (path, *candidate_beside(change, path)):
            stored = change.read(each)
            taken.files[each] = stored.data.decode() if stored else ""
            change.remove(each)
    for name, path in _referring(index, gone):
        record, there = change.record(path), change.read(path)
        if record is not None and there is not None:
            new = change.put(_without(record, gone), path)
            after = etag(sealed(new)[1])
            taken.references[path] = {"before": there.data.decode(), "after": after}
            taken.changed.append(name)
    return taken


def closure(index: Index, memory_id: str) -> set[str]:
    """The memory, and transitively all that rests on nothing but forgotten memories.

    A person's statement rests on that person.
    """
    gone = {memory_id}
    while True:
        more = {name for name in _resting_on(index, gone) if name not in gone}
        if not more:
            return gone
        gone |= more


def _resting_on(index: Index, gone: set[str]) -> Iterator[str]:
    for name in sorted(gone):
        for relation, source, _ in index.edges_to(name):
            if relation == "derived_from" and _rests_only_on(index, source, gone):
                yield source
        yield from graph.links_at(index, name)


def _rests_only_on(index: Index, source: str, gone: set[str]) -> bool:
    evidence = {t for relation, t, _ in index.edges_from(source) if relation == "derived_from"}
    return evidence <= gone and queries.origin(index, source) != "owner"


def _referring(index: Index, gone: set[str]) -> list[queries.RecordPlace]:
    """The records that stay and name something that goes."""
    found = {record for name in gone for record in graph.stating(index, name)}
    return sorted(record for record in found if record.id not in gone)


def _without(record: Memory, gone: set[str]) -> Memory:
    """The record without any mention of forgotten memories."""
    document = record.document()
    if isinstance(record, Skill):
        metadata = dict(record.metadata)
        left = [
            name
            for name in metadata.get("loki-evidence", "").replace(",", " ").split()
            if name not in gone
        ]
        metadata["loki-evidence"] = ", ".join(left)
        return record.changed(metadata=metadata)
    if isinstance(record, AntiPattern) and record.source in gone:
        del document["source"]
    if isinstance(record, Belief) and record.parent in gone:
        del document["parent"]
    return type(record).model_validate(_pruned(document, gone))


def _pruned(value: Any, gone: set[str]) -> Any:
    """JSON values without list items that are, or link to, a forgotten memory."""
    if isinstance(value, list):
        return [_pruned(item, gone) for item in value if not _names(item, gone)]
    if isinstance(value, dict):
        return {name: _pruned(item, gone) for name, item in value.items()}
    return value


def _names(item: Any, gone: set[str]) -> bool:
    if isinstance(item, dict):
        return item.get("to") in gone or (set(item) <= {"id", "helpful"} and item.get("id") in gone)
    return isinstance(item, str) and item in gone


def restore(store: Store, memory_id: str) -> str:
    """Restore an archived, forgotten or rejected memory; returns its path."""
    if ID.fullmatch(memory_id) is None:
        raise NothingToUndo(memory_id)
    with store.change() as change:
        kept = change.read(f"{_FORGOTTEN}{memory_id}.json")
        if kept is not None:
            return _remembered_again(change, memory_id, read_json(kept.data, 64 * MAX_BYTES))
        for path in reversed(list(archived(store.layout))):  # the latest first
            found = change.read(path)
            original = re.sub(r"~\d+(\.\w+)$", r"\1", path.replace(ARCHIVE, "", 1))
            if found is not None and memory_id in _ids_in(original, found.data):
                change.move(path, original)
                return original
        raise NothingToUndo(memory_id)


def kept_id(layout: Layout, start: str) -> str:
    """The only archived or forgotten id that begins so; the beginning itself if none does."""
    files = [path.stem for path in forgotten_files(layout)]
    files += [Path(path).stem.partition("~")[0] for path in archived(layout)]
    found = {name for name in files if _BEGINNING.fullmatch(start) and name.startswith(start)}
    if len(found) > 1 and start not in found:
        raise Ambiguous(start, sorted(found))
    return found.pop() if len(found) == 1 else start


def _remembered_again(change: Change, memory_id: str, kept: Any) -> str:
    parts = (kept.get("files"), kept.get("references")) if isinstance(kept, dict) else ()
    if not parts or not all(isinstance(part, dict) for part in parts):
        raise InvalidRecord(
            f"the copy of {memory_id} that was kept makes no sense",
            advice="Look for it in git's history.",
        )
    put_back(change, kept)
    change.remove(f"{_FORGOTTEN}{memory_id}.json")
    paths = [p for p, text in kept["files"].items() if memory_id in _ids_in(p, text.encode())]
    return str(paths[0])


def put_back(change: Change, kept: dict[str, Any]) -> None:
    """Write files again that were taken out, and the references to them, unless those changed."""
    for path, text in kept["files"].items():
        if change.read(path) is None:
            change.render(path, text.encode())
    for path, reference in kept["references"].items():
        there = change.read(path)
        if there is not None and there.etag == reference["after"]:
            change.render(path, reference["before"].encode())


def is_summary(record: Memory) -> bool:
    """Check if a record is a summary of an archived one."""
    return (record.model_extra or {}).get("detail") == "summary"


def lift(store: Store, index: Index, memory_id: str) -> Memory:
    """Undo a rejection, named by the tombstone or by the rejected memory.

    Returns that memory, or the tombstone that was removed if the memory is gone.
    """
    path = index.path_of(memory_id)
    record = store.record(path) if path else None
    if path is None or record is None:
        raise NotFound(memory_id)
    stone_id = memory_id
    if not isinstance(record, Tombstone):
        stone_id = queries.tombstone_of(index, memory_id)
    stone_path = index.path_of(stone_id)
    with store.change() as change:
        stone = change.record(stone_path) if stone_path else None
        if not isinstance(stone, Tombstone) or stone_path is None:
            raise NothingToUndo(memory_id)
        change.remove(stone_path)
        belief_path = index.path_of(stone.rejected or "") or ""
        belief = change.record(belief_path) if belief_path else None
        if isinstance(belief, Belief) and belief.status == "rejected":
            return change.put(belief.changed(status="active"), belief_path)
        return stone


def _ids_in(path: str, data: bytes) -> set[str]:
    """The id of the record in a file, and the one under which it is shown if that is taken."""
    try:
        record = decode(path, data)
    except InvalidRecord:
        return set()
    return {record.id, record.changed(id="").id}


def forgotten_files(layout: Layout) -> list[Path]:
    folder = layout.resolve(_FORGOTTEN)
    return sorted(folder.glob("*.json")) if folder.is_dir() else []
