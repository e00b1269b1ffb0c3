"""Memory of another system, imported as records of the origin `import`.

Imported records are not injected until somebody reviews them. A second import adds only what is
new: a memory that is known, or that was corrected, archived, forgotten or rejected since, stays as
it is. Every entry of the source is new, known or refused, and the numbers add up.

An export of one's own can be taken over as it is, with the origins and rejections that it names;
from anybody else, neither counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.editing.removal import forgotten_files
from loki_memory.errors import InvalidRecord, LokiMemoryError, RejectedValue
from loki_memory.files.layout import ARCHIVE, PRIVATE, place
from loki_memory.files.scan import archived
from loki_memory.index.queries import paths_saying
from loki_memory.install.edits import InstallStep, carry_out
from loki_memory.interop import claude_memory
from loki_memory.interop.sources import SOURCES, detected
from loki_memory.interop.sources.source import (
    FoundMemory,
    ImportRequest,
    RefusedMemory,
    SourceReading,
)

if TYPE_CHECKING:
    from loki_memory.files.store import Change
    from loki_memory.homes import OpenWorkspace
    from loki_memory.models import Memory

SCOPES = ("project", "local")
_SESSIONS = {"episode"}  # private unless somebody asks otherwise, as those that are captured


class ImportOptions(NamedTuple):
    """The ways to import."""

    scope: str = ""  # of all records; empty: facts and the like are shared, episodes are private
    plan_only: bool = False
    every_project: bool = False  # of a database that several projects share
    as_is: bool = False  # an export of one's own, whose origins and rejections count


class Imported(NamedTuple):
    """The result of an import."""

    source: str
    planned: bool
    files: list[str]
    records: list[Memory]  # new ones
    known: int
    refused: list[RefusedMemory]
    left_out: dict[str, int]  # fields that have no place here, with how often they were met


def import_memory(
    workspace: OpenWorkspace,
    source: str = "",
    path: Path | None = None,
    options: ImportOptions | None = None,
) -> Imported:
    """Import the memory of another system; `path` is its file or folder.

    Without a source, the path says which system it is; without a path, its usual places are tried.

    >>> import_memory(ws, "claude-memory").records  # doctest: +SKIP
    """
    options = options or ImportOptions()
    if options.scope and options.scope not in SCOPES:
        advice = f"Use: {', '.join(SCOPES)}."
        raise InvalidRecord(f"{options.scope!r} is not a scope", advice=advice)
    name = source or source_of(path)
    reading = _read(workspace, name, path, options)
    workspace.home.before_write()
    workspace.home.ensure("current")
    taking = _Taking(workspace, name, options)
    taking.take(reading.found)
    refused = [*reading.refused, *taking.refused]
    left_out = dict(sorted(reading.left_out.items()))
    return Imported(
        name, options.plan_only, reading.files, taking.records, taking.known, refused, left_out
    )


def source_of(path: Path | None) -> str:
    """The one system whose memory a path holds; raises InvalidRecord where it is not one."""
    if path is None or not path.exists():
        raise InvalidRecord(f"there is no {path or 'path'}", advice="Name a file or folder.")
    found = detected(path)
    if len(found) == 1:
        return found[0]
    if not found:
        raise InvalidRecord(
            f"{path} holds no memory of a known system",
            advice=f"Name one with --from: {', '.join(sorted(SOURCES))}.",
        )
    raise InvalidRecord(
        f"{path} holds memory of several systems: {', '.join(found)}",
        advice="Choose one with --from.",
    )


def write_back(
    workspace: OpenWorkspace, source: str, path: Path | None = None, *, plan_only: bool = False
) -> InstallStep:
    """List the memories of this project in the index of another system, in a block of our own."""
    if source != "claude-memory":
        raise InvalidRecord(
            f"{source!r} has no index to list memories in", advice="Use claude-memory."
        )
    index = claude_memory.index_of(workspace, path)
    return carry_out([claude_memory.write_back_edit(workspace, index)], plan_only=plan_only)[0]


def _read(
    workspace: OpenWorkspace, name: str, path: Path | None, options: ImportOptions
) -> SourceReading:
    if name not in SOURCES:
        raise InvalidRecord(
            f"{name!r} is not a source of memory",
            advice=f"Use one of: {', '.join(sorted(SOURCES))}.",
        )
    root = workspace.layout.root
    request = ImportRequest(root.resolve().name, workspace.now(), options.every_project)
    reading = SourceReading.empty(request)
    tried = [path] if path else SOURCES[name].usual_places(root, Path.home())
    _refuse_itself(workspace, name, tried)
    for place_ in (place_ for place_ in tried if place_.exists()):
        SOURCES[name].read(place_, reading)
    if not reading.files:
        named = " or ".join(map(str, tried)) or "its usual places"
        raise InvalidRecord(
            f"there is no memory of {name} in {named}", advice="Name its file or folder."
        )
    return reading


def _refuse_itself(workspace: OpenWorkspace, name: str, places: Iterable[Path]) -> None:
    mine = os.path.realpath(workspace.layout.loki)
    for path in places if name == "loki" else ():
        if mine in {os.path.realpath(path), os.path.realpath(path / ".loki")}:
            raise InvalidRecord(
                f"{path} is the memory of this workspace", advice="`loki-mem sync` reads it."
            )


class _Taking:
    """An import in progress."""

    def __init__(self, workspace: OpenWorkspace, source: str, options: ImportOptions) -> None:
        self.workspace, self.source, self.options = workspace, source, options
        self.records: list[Memory] = []
        self.known = 0
        self.refused: list[RefusedMemory] = []
        layout = workspace.layout
        self._taken_out = {Path(path).stem for path in archived(layout)}
        self._taken_out |= {path.stem for path in forgotten_files(layout)}

    def take(self, found: Iterable[FoundMemory]) -> None:
        """Write the new records, all or none."""
        from loki_memory.files.store import Change

        records = self._joined([(record, f) for f in found if (record := self._record(f))])
        if self.options.plan_only:
            self._put_all(Change(self.workspace.store), records)
            return
        with self.workspace.store.change() as change:
            self._put_all(change, records)

    def _put_all(self, change: Change, records: Iterable[tuple[Memory, FoundMemory]]) -> None:
        for record, found in records:
            path = self._path(record, found)
            if self._is_known(change, record, path):
                self.known += 1
                continue
            try:
                self.records.append(change.create(record, path))
            except LokiMemoryError as error:
                self._refuse(found, record.title(), error)

    def _refuse(self, found: FoundMemory, what: str, error: LokiMemoryError) -> None:
        self.refused.append(RefusedMemory(found.where, what, str(error)))

    def _path(self, record: Memory, found: FoundMemory) -> str:
        """The file of a record: where it was, if its zone is the same, else its own place."""
        usual = place(record)
        is_private = found.path.startswith(PRIVATE)
        is_same = bool(found.path) and is_private == usual.startswith(PRIVATE)
        is_archived = found.path.removeprefix(PRIVATE).startswith(ARCHIVE)
        return found.path if is_same and (self.options.as_is or not is_archived) else usual

    def _is_known(self, change: Change, record: Memory, path: str) -> bool:
        """Check if a record is stored already, in any file, or was removed."""
        from loki_memory.models.rejected import value_id

        is_here = change.read(path) or change.read(place(record))
        if is_here or (record.id in self._taken_out and not self.options.as_is):
            return True
        index = self.workspace.index
        if index.path_of(record.id) is not None:
            return True
        if record.kind in {"episode", "tombstone"} or not record.value():
            return False
        return bool(paths_saying(index, record.kind, value_id(record.value())))

    def _record(self, found: FoundMemory) -> Memory | None:
        from loki_memory.files.store import sealed
        from loki_memory.models import MODELS, parse

        if found.kind == "tombstone" and not self.options.as_is:
            why = "a rejection counts only in an export of your own (--as-is)"
            self.refused.append(RefusedMemory(found.where, str(found.fields.get("value")), why))
            return None
        try:
            record = parse(MODELS[found.kind], self._document(found))
            return sealed(record)[0]  # as it will be stored: an id follows from it
        except (InvalidRecord, RejectedValue) as error:
            what = found.fields.get("statement") or found.fields.get("id") or found.kind
            self._refuse(found, str(what), error)
            return None

    def _document(self, found: FoundMemory) -> dict[str, Any]:
        if found.whole and self.options.as_is:
            return dict(found.fields)
        fields = _model_fields(found.kind)
        document: dict[str, Any] = _without_home(dict(found.fields))
        if not found.whole:
            document["imported"] = {"from": self.source, **({"id": found.ref} if found.ref else {})}
        if found.kind == "skill":
            document["metadata"] = {**document.get("metadata", {}), "loki-origin": "import"}
        if "origin" in fields:
            document["origin"] = "import"
        if found.kind == "fact" and not found.whole:
            document.setdefault("valid_from", self.workspace.now()[:10])
        scope = self._scope(found)
        if scope == "project":
            document.pop("scope", None)  # the default, which records do not state
        elif "scope" in fields:
            document["scope"] = scope
        return document

    def _scope(self, found: FoundMemory) -> str:
        """The scope of a record here, whatever it was there; what was private stays so."""
        if found.private or found.fields.get("scope") in {"local", "session"}:
            return "local"
        return self.options.scope or ("local" if found.kind in _SESSIONS else "project")

    def _joined(
        self, records: list[tuple[Memory, FoundMemory]]
    ) -> list[tuple[Memory, FoundMemory]]:
        """The records with parents and links, which the source names by ids of its own."""
        ids = {found.ref: record.id for record, found in records if found.ref}
        return [(_linked(record, found, ids), found) for record, found in records]


def _linked(record: Memory, found: FoundMemory, ids: dict[str, str]) -> Memory:
    fields: dict[str, Any] = {}
    if found.parent in ids:
        fields["parent"] = ids[found.parent]
    links = [{"to": ids[ref], "relation": name} for name, ref in found.links if ref in ids]
    if links:
        fields["links"] = links
    return record.changed(**fields) if fields else record


def _without_home(value: Any) -> Any:
    """Values whose texts name no home folder of the machine that they come from."""
    from loki_memory.models.text import without_home

    if isinstance(value, dict):
        return {name: _without_home(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_home(item) for item in value]
    return without_home(value) if isinstance(value, str) else value


def _model_fields(kind: str) -> set[str]:
    from loki_memory.models import MODELS

    return set(MODELS[kind].model_fields)  # type: ignore[index]
