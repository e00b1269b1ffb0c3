"""Parse files into rows of the index: the slow part of a sync."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from loki_memory.errors import InvalidRecord, StoreFailed
from loki_memory.files.codec import MAX_BYTES, decode_with_document
from loki_memory.files.problem import Problem, both_changed, secret_problems
from loki_memory.files.redaction import may_hold_secret, redact_value
from loki_memory.files.scan import Stamp
from loki_memory.files.store import Store, Stored, sealed
from loki_memory.index.row import IndexEntry, entry_of
from loki_memory.models import Memory
from loki_memory.models.field_slips import slips

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
