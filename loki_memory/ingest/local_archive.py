"""Move what is on this machine only: one file of JSON lines out, and merged in elsewhere.

The file holds the records of the local zone as they are (captured sessions, candidates, private
notes, their archive) and how often each memory was used. What can be made again, what was forgotten
on purpose, and turns that are no episodes yet are left out.

A file that is taken in is data: it names record paths of the local zone and nothing else, and
every record passes the store like any other. What is here already stays. Of a candidate that both
machines have, the evidence is joined.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from loki_memory.consolidation.publish import joined
from loki_memory.errors import BadArchive, InvalidRecord, RejectedValue
from loki_memory.files import disk
from loki_memory.files.codec import MAX_BYTES, decode
from loki_memory.files.layout import ARCHIVE, PRIVATE, archived_path, kind_of
from loki_memory.files.store import failures_named
from loki_memory.files.zones import has_remote, note_exports, project_key
from loki_memory.models import Belief, Memory

if TYPE_CHECKING:
    from loki_memory.files.store import Change
    from loki_memory.homes import OpenWorkspace

_FORMAT = "loki-memory local"
_VERSION = 1
_MOST_LINE = 4 * MAX_BYTES  # a record whose characters are all escaped
_MOST_BYTES = 1 << 29  # 10,000 sessions have some 100 MB
_HEAD = 60  # bytes, in which the name of the format ends
_AT_ONCE = 500  # records per change: all of these or none


class Exported(NamedTuple):
    """The content of an exported file, counted."""

    path: str
    records: dict[str, int]  # by kind
    uses: int  # memories with uses
    bytes: int


class Merged(NamedTuple):
    """The result of an import of an exported file."""

    added: dict[str, int]  # new records, by kind
    joined: list[str]  # ids of candidates that got more evidence
    known: int  # records that are here already, or were taken out here
    refused: list[str]  # what was not taken, and why
    uses: int  # memories whose uses were taken over


def export_local(workspace: OpenWorkspace, path: Path) -> Exported:
    """Write everything that exists only on this machine to a file that only its user can read."""
    if os.path.lexists(path):
        raise BadArchive(path, "exists already", "Choose another name; nothing was written.")
    workspace.home.before_write()
    counts: dict[str, int] = {}
    uses = workspace.home.journal.sums(workspace.now())
    with failures_named(path):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(fd, "wb") as file:
            file.write(_line({"format": _FORMAT, "version": _VERSION, **_project(workspace)}))
            for name, text in _records(workspace):
                kind = str(kind_of(name.removeprefix(ARCHIVE)))
                counts[kind] = counts.get(kind, 0) + 1
                file.write(_line({"record": name, "text": text}))
            file.writelines(_line({"use": line}) for line in uses)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        note_exports(workspace.layout, [path])
    return Exported(str(path), dict(sorted(counts.items())), len(uses), size)


def _project(workspace: OpenWorkspace) -> dict[str, str]:
    root = workspace.layout.root
    return {"project": project_key(root)} if has_remote(root) else {}


def _line(value: Any) -> bytes:
    return orjson.dumps(value) + b"\n"


def _records(workspace: OpenWorkspace) -> Iterator[tuple[str, str]]:
    """Every record file of the local zone: its path there, and its text."""
    top = workspace.layout.local / "memory"
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(name for name in folders if name[0] != ".")
        for name in sorted(names):
            inside = (Path(folder) / name).relative_to(top).as_posix()
            data = disk.read_bytes(f"{top}/{inside}") if _is_record(inside) else None
            if data is not None:
                yield inside, data.decode("utf-8", "replace")


def _is_record(name: str) -> bool:
    """Check for a path of a record in the local zone, and nothing else."""
    parts = name.split("/")
    is_plain = not name.startswith("/") and "\\" not in name and "\0" not in name
    inside = name.removeprefix(ARCHIVE)
    is_shown = all(part and part[0] != "." for part in parts)
    return is_plain and is_shown and kind_of(inside) is not None


def is_archive(path: Path) -> bool:
    """Check if a file begins like one of `export_local`."""
    with failures_named(path), open(path, "rb") as file:
        return file.read(_HEAD).startswith(_line({"format": _FORMAT})[:-2])


def import_local(
    workspace: OpenWorkspace, path: Path, *, other_project: bool = False, plan_only: bool = False
) -> Merged:
    """Merge a file of `export_local` into the local zone; what is here stays."""
    with failures_named(path):
        lines = [*_checked_lines(path)]
    _check_header(workspace, path, lines[0], other_project=other_project)
    workspace.home.before_write()
    workspace.home.ensure("edits")
    taking = _ArchiveImport(workspace, plan_only=plan_only)
    taking.take([line for line in lines[1:] if "record" in line])
    uses = [line["use"] for line in lines[1:] if isinstance(line.get("use"), dict)]
    taken = 0 if plan_only else workspace.home.journal.take_sums(uses, now=workspace.now())
    if not plan_only:
        workspace.sync()
    return taking.result._replace(uses=taken)


def _checked_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of an archive; raises BadArchive at the first that is none."""
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(fd, "rb") as file:
        if os.fstat(fd).st_size > _MOST_BYTES:
            raise BadArchive(path, "is larger than 512 MB")
        number = 0
        while data := file.readline(_MOST_LINE + 1):
            number += 1
            if len(data) > _MOST_LINE:
                raise BadArchive(path, f"has a line {number} that is too long for a record")
            yield _parsed(path, number, data)
        if not number:
            raise BadArchive(path, "is empty")


def _parsed(path: Path, number: int, data: bytes) -> dict[str, Any]:
    try:
        line = orjson.loads(data)
    except ValueError:
        raise BadArchive(path, f"has a line {number} that is no JSON") from None
    name = line.get("record", "") if isinstance(line, dict) else None
    if not isinstance(name, str) or (name and not _is_record(name)):
        raise BadArchive(path, f"names in line {number} what is no record of the local zone")
    return dict(line)


def _check_header(
    workspace: OpenWorkspace, path: Path, header: dict[str, Any], *, other_project: bool
) -> None:
    if header.get("format") != _FORMAT:
        raise BadArchive(path, "was not written by `loki-mem export --local`")
    if header.get("version") != _VERSION:
        raise BadArchive(path, "was written by a newer loki-mem")
    theirs, ours = header.get("project"), _project(workspace).get("project")
    if theirs and ours and theirs != ours and not other_project:
        raise BadArchive(path, "is of another project", "Use --other-project if that is intended.")


class _ArchiveImport:
    """An import in progress."""

    def __init__(self, workspace: OpenWorkspace, *, plan_only: bool) -> None:
        self._workspace, self._plan_only = workspace, plan_only
        self.result = Merged({}, [], 0, [], 0)

    def take(self, lines: list[dict[str, Any]]) -> None:
        from loki_memory.files.store import Change

        for start in range(0, len(lines), _AT_ONCE):
            some = lines[start : start + _AT_ONCE]
            if self._plan_only:
                self._take_some(Change(self._workspace.store), some)
                continue
            with self._workspace.store.change() as change:
                self._take_some(change, some)

    def _take_some(self, change: Change, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            name, text = line["record"], line.get("text")
            try:
                record = decode(name.removeprefix(ARCHIVE), str(text).encode())
                self._take(change, PRIVATE + name, record)
            except (InvalidRecord, RejectedValue) as error:
                self.result.refused.append(f"{name}: {error}")

    def _take(self, change: Change, path: str, record: Memory) -> None:
        there = change.record(path.replace(ARCHIVE, "", 1)) if ARCHIVE in path else None
        here = there or change.record(path)
        if here is None and not self._was_taken_out(change, path, record):
            change.put(_private(record), path)
            added = self.result.added
            added[record.kind] = added.get(record.kind, 0) + 1
        elif here is not None and _gains(here, record):
            change.put(_with_evidence(here, record), path)
            self.result.joined.append(here.id)
        else:
            self.result = self.result._replace(known=self.result.known + 1)

    def _was_taken_out(self, change: Change, path: str, record: Memory) -> bool:
        """Check if a record was archived or forgotten here, or stands in another file."""
        forgotten = f"{PRIVATE}.forgotten/{record.id}.json"
        shared = path.removeprefix(PRIVATE)
        gone = (archived_path(path), archived_path(shared), forgotten)
        if any(change.read(place) is not None for place in gone if place != path):
            return True
        known = self._workspace.home.record_path(record.id)
        is_published = known == shared and isinstance(record, Belief)
        return known is not None and known != path and not is_published


def _private(record: Memory) -> Memory:
    """A record as it stands in the local zone, whatever the archive says of its scope."""
    scope = getattr(record, "scope", "local")
    return record if scope in {"local", "session"} else record.changed(scope="local")


def _gains(here: Memory, other: Memory) -> bool:
    """Check if a candidate that was learned gets evidence; what somebody wrote stays as it is."""
    if not isinstance(here, Belief) or not isinstance(other, Belief) or here.kind != other.kind:
        return False
    is_learned = "key" in (here.model_extra or {}) and here.origin != "owner"
    return is_learned and joined(here, other) is not here


def _with_evidence(here: Memory, other: Memory) -> Memory:
    return joined(here, other) if isinstance(here, Belief) and isinstance(other, Belief) else here
