"""Shared memory in a format that others read: JSON lines, one Markdown page, or an OKF bundle.

Each of them holds the records word for word, so that `import --as-is` gives them back as they were:
JSON lines by themselves, the others in a comment below the text for people. What is private to this
machine is left out, and so is the archive, unless a backup is made.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import orjson

from loki_memory.errors import BadArchive, InvalidRecord
from loki_memory.files import disk, front_matter
from loki_memory.files.codec import decode
from loki_memory.files.layout import ARCHIVE, PRIVATE, kind_of, user_folder
from loki_memory.files.redaction import redact_value
from loki_memory.files.store import failures_named
from loki_memory.files.zones import note_exports
from loki_memory.models import Belief, Episode, Memory, Skill, parse
from loki_memory.models.kinds import KINDS, Kind

if TYPE_CHECKING:
    from loki_memory.files.layout import Layout
    from loki_memory.homes import OpenWorkspace

FORMAT = "loki-memory export"
VERSION = 1
_OPEN, _CLOSE = "<!-- loki-mem:record ", " -->"
_BLOCK = re.compile(rf"^{_OPEN}(.*){_CLOSE}$", re.MULTILINE)


class RecordLine(NamedTuple):
    """A record as it is written to an export."""

    kind: Kind
    document: dict[str, Any]
    path: str  # of its file, empty where that is not known


def header() -> dict[str, Any]:
    return {"format": FORMAT, "version": VERSION}


def line_of(record: Memory, path: str) -> bytes:
    """A record as a line of JSON."""
    return orjson.dumps({"kind": record.kind, "path": path, "record": record.document()}) + b"\n"


def block_of(record: Memory, path: str) -> str:
    """A record as a comment of Markdown, which no reader shows."""
    text = line_of(record, path).decode().rstrip("\n")
    return f"{_OPEN}{text.replace('>', chr(92) + 'u003e')}{_CLOSE}\n"


def record_of(value: Any) -> RecordLine | None:
    """The record in a value that was read from JSON; None if there is none."""
    if not isinstance(value, dict) or value.get("kind") not in KINDS:
        return None
    document, path = value.get("record"), value.get("path")
    if not isinstance(document, dict):
        return None
    kind = cast("Kind", value["kind"])
    return RecordLine(kind, document, str(path) if is_path_of(kind, path) else "")


def is_path_of(kind: Kind, path: Any) -> bool:
    """Check for a path at which records of a kind are stored, in memory or its archive."""
    if not isinstance(path, str) or "\\" in path or "\0" in path or path.startswith("/"):
        return False
    inside = path.removeprefix(PRIVATE).removeprefix(ARCHIVE)
    return all(part and part[0] != "." for part in path.split("/")) and kind_of(inside) == kind


def records_in(text: str) -> Iterator[RecordLine]:
    """The records in the comments of a page."""
    for found in _BLOCK.findall(text):
        try:
            line = record_of(orjson.loads(found))
        except ValueError:
            continue
        if line is not None:
            yield line


def record_in(text: str) -> RecordLine | None:
    """The first record of a page; None if there is none."""
    return next(records_in(text), None)


FORMATS = ("jsonl", "markdown", "okf")
_OKF = "0.2"
_HEADINGS = {"anti-pattern": "Mistakes to avoid", "ledger": "Agents", "tombstone": "Rejected"}
_STATUS = {"candidate": "draft", "superseded": "deprecated", "retired": "deprecated"}
_STATUS |= {"rejected": "deprecated", "resolved": "deprecated"}


class StoredFile(NamedTuple):
    """A record and the path of its file, in memory or below `local/`."""

    record: Memory
    path: str


class ExportedMemory(NamedTuple):
    """The content of an export, counted."""

    path: str
    format: str
    records: dict[str, int]  # by kind
    unread: list[str]  # files that hold no readable record, and are left out


def export_memory(workspace: OpenWorkspace, path: Path, format_: str) -> ExportedMemory:
    """Write the shared memory to a new file, or for OKF to a new folder."""
    if format_ not in FORMATS:
        raise InvalidRecord(f"{format_!r} is not a format", advice=f"Use: {', '.join(FORMATS)}.")
    _refuse_place(path)
    workspace.home.before_write()
    unread: list[str] = []
    found = map(_without_secrets, stored_files(workspace.layout, unread))
    files = sorted(found, key=_order)
    with failures_named(path):
        if format_ == "okf":
            written = _write_bundle(path, files, workspace.now())
        else:
            text = _lines(files) if format_ == "jsonl" else _page(files)
            write_new(path, text)
            written = [path]
        note_exports(workspace.layout, written)
    return ExportedMemory(str(path), format_, counts(files), unread)


def _without_secrets(file: StoredFile) -> StoredFile:
    """A file as others may read it: what somebody wrote by hand, no door has redacted."""
    document = file.record.document()
    clean = redact_value(document)
    if clean is document or not isinstance(clean, dict):
        return file
    return file._replace(record=parse(type(file.record), clean))


def write_page(workspace: OpenWorkspace, path: Path, html: bytes) -> None:
    """Write a page to a new file, and note it as an export."""
    _refuse_place(path)
    with failures_named(path):
        write_new(path, [html])
        note_exports(workspace.layout, [path])


def _refuse_place(path: Path) -> None:
    refuse_existing(path)
    if not path.parent.exists():
        reason = "would lie in a folder that does not exist"
        raise BadArchive(path, reason, "Create it first; nothing was written.")


def refuse_existing(path: Path) -> None:
    if os.path.lexists(path):
        raise BadArchive(path, "exists already", "Choose another name; nothing was written.")


def backup(workspace: OpenWorkspace, path: Path, unread: list[str]) -> list[StoredFile]:
    """Write all records, private and archived ones too, to a file that only its user can read."""
    files = sorted(stored_files(workspace.layout, unread, everything=True), key=_order)
    with failures_named(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_new(path, _lines(files), mode=0o600)
        note_exports(workspace.layout, [path])
    return files


def counts(files: Iterable[StoredFile]) -> dict[str, int]:
    """The number of records of each kind."""
    kinds = [file.record.kind for file in files]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}


def stored_files(
    layout: Layout, unread: list[str], *, everything: bool = False
) -> Iterator[StoredFile]:
    """The records of the shared zone; with `everything`, also private and archived ones."""
    zones = [("", layout.memory)]
    if everything:
        zones.append((PRIVATE, layout.local / "memory"))
    for zone, top in zones:
        for inside in _names(top):
            path = zone + inside
            if inside.startswith(ARCHIVE) and not everything:
                continue
            if kind_of(inside.removeprefix(ARCHIVE)) is not None:
                yield from _read(layout, path, unread)


def _names(top: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(name for name in folders if name[0] != ".")
        for name in sorted(names):
            yield (Path(folder) / name).relative_to(top).as_posix()


def _read(layout: Layout, path: str, unread: list[str]) -> Iterator[StoredFile]:
    data = disk.read_bytes(layout.file(path))
    inside = path.removeprefix(PRIVATE)
    zone = PRIVATE if path.startswith(PRIVATE) else ""
    try:
        if data is not None:
            yield StoredFile(decode(zone + inside.removeprefix(ARCHIVE), data), path)
    except InvalidRecord as error:
        unread.append(f"{path}: {error.reason}")


def _order(file: StoredFile) -> tuple[int, str, str]:
    return KINDS.index(file.record.kind), file.record.when(), file.path


def write_new(path: Path, data: Iterable[bytes], mode: int = 0o666) -> None:
    """Write a file that must not exist yet, and flush it."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with open(fd, "wb") as file:
        file.writelines(data)
        file.flush()
        os.fsync(file.fileno())


def _lines(files: Iterable[StoredFile]) -> Iterator[bytes]:
    yield orjson.dumps(header()) + b"\n"
    yield from (line_of(record, path) for record, path in files)


# -- Markdown -------------------------------------------------------------------------------------


def _page(files: Iterable[StoredFile]) -> Iterator[bytes]:
    """One page: a section for each kind, an entry for each record."""
    yield f"<!-- {orjson.dumps(header()).decode()} -->\n# Memory\n".encode()
    kind = ""
    for record, path in files:
        if record.kind != kind:
            kind = record.kind
            yield f"\n## {_heading(kind)}\n".encode()
        yield f"\n### {_harmless(_one_line(record.title()))}\n\n{_text(record)}\n".encode()
        yield block_of(record, path).encode()


def _heading(kind: str) -> str:
    return _HEADINGS.get(kind) or f"{kind.capitalize()}s"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _text(record: Memory) -> str:
    """The rest of a record for people: a line for each field that says something."""
    if isinstance(record, Skill):
        return _harmless(record.body)
    told = {**record.document(), "id": record.id}
    title = record.title()
    fields = {name: value for name, value in told.items() if value != title and _is_told(value)}
    lines = [f"- {name}: {_value(value)}" for name, value in fields.items()]
    return _harmless("\n".join(lines)) + "\n"


def _harmless(text: str) -> str:
    """Text that cannot pass for one of our comments with a record."""
    return text.replace("<!--", "&lt;!--")


def _is_told(value: Any) -> bool:
    return value not in (None, "", [], {}, False)


def _value(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return _one_line(", ".join(value))
    return _one_line(value if isinstance(value, str) else orjson.dumps(value).decode())


# -- OKF ------------------------------------------------------------------------------------------


def _write_bundle(top: Path, files: list[StoredFile], now: str) -> list[Path]:
    """Write a folder of pages by kind, and an index that names each of them; returns the files."""
    top.mkdir(parents=True)
    index = [f'---\nokf_version: "{_OKF}"\n---\n# Memory\n']
    kind, written = "", [top / "index.md"]
    for record, path in files:
        if record.kind != kind:
            kind = record.kind
            (top / f"{kind}s").mkdir()
            index.append(f"\n## {_heading(kind)}\n\n")
        name = f"{kind}s/{_file_name(record, top)}"
        write_new(top / name, [_okf_page(record, path, now).encode()])
        written.append(top / name)
        index.append(f"* [{_link_text(record.title())}]({name})\n")
    write_new(written[0], [line.encode() for line in index])
    return written


def _file_name(record: Memory, top: Path) -> str:
    """The id as a name; a record whose id another file has gets a number."""
    number, name = 1, f"{record.id}.md"
    while os.path.lexists(top / f"{record.kind}s" / name):
        number += 1
        name = f"{record.id}~{number}.md"
    return name


def _link_text(text: str) -> str:
    return _one_line(text).replace("[", "(").replace("]", ")")[:120]


def _okf_page(record: Memory, path: str, now: str) -> str:
    at = record.when() or now
    at = f"{at}T00:00:00Z" if len(at) == len("2026-01-06") else at
    about: dict[str, Any] = {
        "type": getattr(record, "type", None) or record.kind,
        "title": _one_line(record.title())[:200],
        "description": _one_line(_description(record))[:1000],
        "tags": list(getattr(record, "tags", ())),
        "status": _STATUS.get(str(getattr(record, "status", "")), "stable"),
        "generated": {"by": "loki-mem", "at": at},
        "sources": [{"resource": f"urn:loki:{name}"} for name in _evidence(record)],
        "stale_after": getattr(record, "invalid_at", None),
    }
    told = {name: value for name, value in about.items() if value}
    text = _text(record)
    return f"---\n{front_matter.written(told)}---\n\n{text}\n{block_of(record, path)}"


def _description(record: Memory) -> str:
    if isinstance(record, Skill):
        return record.description
    if isinstance(record, Episode):
        return record.summary or record.title()
    return record.title()


def _evidence(record: Memory) -> list[str]:
    return record.episodes_for() if isinstance(record, Belief) else []


# Clear the memory of a project: all records at once, after a backup of them was written.
#
# The backup is an export that `import --as-is` takes back word for word, in the user's own folder
# unless another place is named. It is on disk before the first record goes, and both happen under
# the lock of the store, so that nothing that somebody writes meanwhile is lost.


class ClearedMemory(NamedTuple):
    """The result of clearing a memory."""

    backup: str  # the file that `import --as-is` takes back
    removed: dict[str, int]  # records by kind
    left: list[str]  # files that hold no readable record, and stay
    planned: bool


def clear_memory(
    workspace: OpenWorkspace, to: Path | None = None, *, plan_only: bool = False
) -> ClearedMemory:
    """Remove every record of a project, shared, private and archived; the user's memory stays."""
    path = to or _free_name(workspace)
    refuse_existing(path)
    workspace.home.before_write()
    left: list[str] = []
    if plan_only:
        files = list(stored_files(workspace.layout, left, everything=True))
    else:
        files = _removed(workspace, path, left)
    return ClearedMemory(str(path), counts(files), left, plan_only)


def _removed(workspace: OpenWorkspace, path: Path, left: list[str]) -> list[StoredFile]:
    with workspace.store.change() as change:
        files = backup(workspace, path, left)
        for file in files:
            change.remove(file.path)
    workspace.home.wrote()
    return files


def _free_name(workspace: OpenWorkspace) -> Path:
    """A name that says which project and when, and that is not taken."""
    moment = re.sub(r"\D", "", workspace.now())[:14]
    name = f"{workspace.layout.root.resolve().name}-{moment}"
    folder, number = user_folder() / "backups", 1
    path = folder / f"{name}.jsonl"
    while path.exists():
        number += 1
        path = folder / f"{name}~{number}.jsonl"
    return path
