"""Parse changed files, and write them into the index as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from loki_memory.errors import InvalidRecord, StoreFailed
from loki_memory.files import views
from loki_memory.files.codec import MAX_BYTES, decode_with_document
from loki_memory.files.layout import PRIVATE, is_misplaced, kind_of, view_kind
from loki_memory.files.problem import (
    Problem,
    both_changed,
    misplaced,
    other_kind,
    same_id,
    secret_problems,
)
from loki_memory.files.redaction import may_hold_secret, redact_value
from loki_memory.files.scan import NESTED, ODD, UNREADABLE, Changes, ScanResult, Stamp
from loki_memory.files.store import Store, Stored, sealed
from loki_memory.index.revision import Revision
from loki_memory.index.row import IndexEntry, entry_of
from loki_memory.models import Memory
from loki_memory.models.field_slips import slips

_STEP = 100  # files between two reports of progress


class Intake:
    """One pass over the changes that a scan found."""

    def __init__(
        self,
        store: Store,
        revision: Revision,
        seen: ScanResult,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._store = store
        self._revision = revision
        self._seen = seen
        self._removed = set(seen.removed)
        self._contested: set[str] = set()
        self.unread: set[str] = (
            set()
        )  # to be read again by the next sync, even if they do not change
        self._progress = progress

    def run(self) -> Changes:
        changes = Changes([], [], [])
        for number, reading in enumerate(self._readings()):
            if self._progress and number % _STEP == 0:
                self._progress(number, len(self._seen.changed))
            self._take_in(reading, changes)
        for path in self._seen.removed:
            if kind_of(path):
                changes.removed.append(path)
                self._revision.remove_path(path)
                self._revision.forget_file(path)
            self._revision.set_problems(path.rstrip("/"), ())
        self._settle_contests()
        self._look_at_views(changes)
        for paths in changes[:3]:
            paths.sort()
        return changes

    def _readings(self) -> Iterator[Reading]:
        """The changed record files, read; files whose bytes the index knows are left out."""
        items = sorted(item for item in self._seen.changed.items() if self._is_record(*item))
        known = [(path, stamp, self._revision.hash_of(path) or "") for path, stamp in items]
        return read_files(self._store, known)

    def _is_record(self, path: str, stamp: Stamp) -> bool:
        """Check if a file should be read; one that cannot be is a problem at once."""
        if stamp == UNREADABLE:
            folder = path.rstrip("/")
            self._revision.set_problems(folder, [Problem(folder, "may not be listed")])
        elif stamp == NESTED:
            reason = "makes its folder a repository of its own, such as a submodule; it is not read"
            self._revision.set_problems(path, [Problem(path, reason)])
        elif stamp == ODD:
            reason = "is a symbolic link, a device, or has a name that is not UTF-8"
            problem = Problem(path, reason, advice="Replace it by an ordinary file or folder.")
            self._revision.set_problems(path, [problem])
            self._revision.remove_path(path)
            self._revision.forget_file(path)
        elif is_misplaced(path):
            self._revision.set_problems(path, [misplaced(path)])
        return stamp[0] >= 0 and kind_of(path) is not None

    def _take_in(self, reading: Reading, changes: Changes) -> None:
        path, digest, entry, problems = reading
        if not digest:
            self.unread.add(path)
        known = self._revision.hash_of(path) is not None
        (changes.modified if known else changes.added).append(path)
        memory_id = entry.row.id if entry else ""
        self._revision.set_problems(path, problems)
        claimed = memory_id.lower()  # ids that differ only by case are one file on some systems
        self._revision.note_file(path, digest, claimed)
        self._revision.remove_path(path, keep=memory_id)
        if entry is None:
            return
        others = (other for other in self._revision.claimants(claimed) if other != path)
        if any(other not in self._removed for other in others):
            self._contested.add(claimed)
        self._revision.put(entry)

    def _settle_contests(self) -> None:
        """Give each id that several files claim to the first of them."""
        for memory_id in sorted(self._contested | set(self._revision.losers())):
            paths = [p for p in self._revision.claimants(memory_id) if p not in self._removed]
            paths.sort(key=_precedence)
            for path in paths:
                self._revision.remove_path(path)
            for number, path in enumerate(paths):
                self._settle(memory_id, path, paths[0] if number else "")

    def _settle(self, memory_id: str, path: str, holder: str) -> None:
        found = self._store.read(path)
        if found is None:
            return
        if path.startswith(PRIVATE) and path == PRIVATE + holder:  # the published record counts
            self._revision.note_file(path, found.etag, memory_id, held=False)
            self._revision.set_problems(path, ())
            return
        entry, problems = entry_in(path, found, rekey=bool(holder))
        if entry is None:
            return
        self._revision.note_file(path, found.etag, memory_id, held=not holder)
        free = not self._revision.has(entry.row.id)
        if holder:
            problems = [*problems, same_id(path, memory_id, holder, entry.row.id if free else "")]
        self._revision.set_problems(path, problems)
        if free:
            self._revision.put(entry)

    def _look_at_views(self, changes: Changes) -> None:
        shown = {path: stamp for path, stamp in self._seen.changed.items() if view_kind(path)}
        if changes or shown:
            edited = views.edited_views(self._store)
            changes.modified.extend(p for p, stamp in shown.items() if stamp == ODD or p in edited)
            self._show_pending(edited)

    def _show_pending(self, edited: Iterable[str]) -> None:
        """Index new entries of edited views without taking them over: reading never writes."""
        for view in views.view_paths(self._store.layout):
            self._revision.remove_path(view)
            self._revision.set_problems(view, ())
        for view in edited:
            records, unread = views.pending(self._store, view)
            self._revision.set_problems(view, unread)
            for record in records:
                self._show(view, record)

    def _show(self, view: str, record: Memory) -> None:
        path = self._revision.path_of(record.id)
        if path is None:
            self._revision.put(entry_of(record, view))
        elif kind_of(path) not in {None, record.kind}:
            self._revision.add_problem(other_kind(view, record.id, path))


def _precedence(path: str) -> tuple[bool, str, str]:
    """The order of files that claim one id: published ones first, then small letters."""
    return path.startswith(PRIVATE), path.lower(), path.swapcase()


# Parse files into rows of the index: the slow part of a sync.

Item = tuple[str, Stamp, str]  # a file's path, its stamp, and the hash of its bytes if it is known


class Reading(NamedTuple):
    """The result of reading one file."""

    path: str
    digest: str  # of its bytes; empty if it could not be read
    entry: IndexEntry | None
    problems: list[Problem]


def read_file(store: Store, path: str, stamp: Stamp, known: str = "") -> Reading | None:
    """Read a file for the index; None if its bytes are those with the hash `known`."""
    found, problem = _stored(store, path, stamp)
    if found is None:
        return Reading(path, "", None, [problem] if problem else [])
    if found.etag == known:
        return None
    fresh = store.fresh.get(path)
    if fresh and fresh.etag == found.etag:
        return Reading(path, found.etag, *_entry(fresh.record, path, fresh.etag))
    return Reading(path, found.etag, *entry_in(path, found))


def _entry(record: Memory, path: str, etag: str) -> tuple[IndexEntry, list[Problem]]:
    """The index entry of a record that the store has just written."""
    document = record.document()
    problems = _slip_problems(path, record)
    if document.get("conflicts"):
        problems.append(both_changed(path, "another place"))
    return entry_of(record, path, document, etag), problems


def _stored(store: Store, path: str, stamp: Stamp) -> tuple[Stored | None, Problem | None]:
    """The file, or the problem of reading it; neither if it is gone again."""
    if stamp[2] > MAX_BYTES:
        reason = f"has {stamp[2]:,} bytes, and {MAX_BYTES:,} is the most"
        advice = "Split it, or keep the bulk in a file of its own and name that file."
        return None, Problem(path, reason, advice=advice)
    try:
        return store.read(path), None
    except StoreFailed as error:
        return None, Problem(path, f"cannot be read ({error.__cause__})")


def entry_in(
    path: str, stored: Stored, *, rekey: bool = False
) -> tuple[IndexEntry | None, list[Problem]]:
    """The index entry of a file. Secrets that somebody wrote by hand are redacted.

    `rekey` gives the record the id that follows from its key instead of its own.
    """
    problems: list[Problem] = []
    try:
        record, document = decode_with_document(path, stored.data)
        if may_hold_secret(stored.data) and redact_value(document) is not document:
            problems = secret_problems(path, stored.data)
            record = sealed(record)[0]
            document = record.document()
        if rekey:
            record = record.changed(id="")
    except InvalidRecord as error:
        return None, [Problem.of(error.at(path))]
    problems += _slip_problems(path, record)
    if document.get("conflicts"):
        problems.append(both_changed(path, "another place"))
    if (
        record.kind == "episode" and "goal" in document
    ):  # a short form that code which reads the JSON does not know
        document = record.document()
    if document.get("id") != record.id and record.keeps_id:
        document = {**document, "id": record.id}
    return entry_of(record, path, document, stored.etag), problems


def _slip_problems(path: str, record: Memory) -> list[Problem]:
    """One problem for each field that was probably meant to be another."""
    return [Problem(path, slip.reason, slip.field, advice=slip.advice) for slip in slips(record)]


def read_files(store: Store, items: Iterable[Item]) -> Iterator[Reading]:
    """Read files; those whose bytes are known are left out."""
    for item in items:
        reading = read_file(store, *item)
        if reading is not None:
            yield reading
