"""Push and pull: what clients exchange with a repository of the server.

A push takes in candidates that lie on no shared branch. A pushed belief is redacted, has to pass
the lint, gets the id that follows from its words and the origin `import`, and is a candidate
whatever it says of itself. The same belief from two clients is merged by the function that merges
two branches, so that a push can be repeated at will.

A pull gives the changes since a cursor. Writers of one repository take its versions under the lock
of its row, which they hold until they commit. So a version is seen only after all versions before
it, and a cursor skips nothing that commits late. It names the epoch of the row too: the versions of
a database that was made anew begin again, and an old cursor gets everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.consolidation.lint import LONGEST, lint, vacuous
from loki_memory.errors import InvalidRecord, NoAccess
from loki_memory.files.codec import build, decode
from loki_memory.files.layout import PRIVATE, place
from loki_memory.files.store import sealed
from loki_memory.history.merge import merge
from loki_memory.models import Belief
from loki_memory.server import records
from loki_memory.server.replicas import standing_of

if TYPE_CHECKING:
    from psycopg.rows import TupleRow

    from loki_memory.server.database import Connection

MOST_PUSHED, MOST_PULLED = 1000, 2000  # records of one request
_KINDS = ("fact", "pattern", "anti-pattern")
# What a push says of itself in these fields does not count. The scope is stated, since a file
# below local/ has the scope `local` otherwise.
_CAPPED = {"origin": "import", "status": "candidate", "scope": "project"}
_LAST = "\U0010ffff"  # after all paths of a version
_DIGITS = 18  # of a version, which is a bigint


class Refusal(NamedTuple):
    """A record that was not taken, by its place in the push."""

    number: int
    reason: str


class Pushed(NamedTuple):
    """The result of a push: what is kept now, under which ids."""

    ids: list[str]  # in the order of the push; empty for one that was refused
    changed: list[str]  # those that were not there before, or say more than before
    refused: list[Refusal]
    withdrawn: list[str]
    version: int


def push(
    connection: Connection,
    repository: str,
    given: Sequence[Mapping[str, Any]],
    withdrawn: Sequence[str] = (),
) -> Pushed:
    """Merge records into a repository: all that are good, in one transaction; raises NoAccess."""
    number, token, version = _standing(connection, repository)
    ids, refused, wanted = list[str](), list[Refusal](), dict[str, Belief]()
    for place_in_push, document in enumerate(given):
        try:
            record = _at_the_door(document)
        except InvalidRecord as error:
            ids.append("")
            refused.append(Refusal(place_in_push, str(error)))
            continue
        ids.append(record.id)
        path = _path(record)
        wanted[path] = merge(None, wanted[path], record) if path in wanted else record
    if not (withdrawn or _changes(connection, number, wanted)):
        return Pushed(ids, [], refused, [], version)  # repeated: it costs no version
    version = _next_version(connection, number)
    rows = _changes(connection, number, wanted)
    records.put(connection, number, version, rows, pushed_by=token)
    gone = _withdraw(connection, number, version, token, withdrawn)
    return Pushed(ids, [row.id for row in rows], refused, gone, version)


def _standing(connection: Connection, repository: str) -> tuple[int, int, int]:
    """The repository's number, the token's, and the version that there is."""
    found = connection.execute(
        "SELECT id, loki.token(), version FROM loki.repositories "
        "WHERE name = %s AND id = ANY (loki.reach('push'))",
        (repository,),
    ).fetchone()
    if found is None:
        raise NoAccess("push to", repository)
    return int(found[0]), int(found[1]), int(found[2])


def _next_version(connection: Connection, repository: int) -> int:
    """Wait for other writers of the repository, and take the next version."""
    found = connection.execute("SELECT loki.next_version(%s)", (repository,)).fetchone()
    return int((found or (0,))[0])


def _at_the_door(document: Mapping[str, Any]) -> Belief:
    """The record as it is kept; raises InvalidRecord for what is not taken."""
    kind = document.get("kind")
    fields = document.get("record")
    if kind not in _KINDS or not isinstance(fields, Mapping):
        advice = f"Push facts, patterns and anti-patterns: {{kind: {'|'.join(_KINDS)}, record: …}}."
        raise InvalidRecord("is not taken", field="kind", advice=advice)
    if fields.get("scope", "project") != "project":
        advice = "What is for one session, machine or user stays there."
        raise InvalidRecord("is private", field="scope", advice=advice)
    given = {name: value for name, value in fields.items() if name != "id"}
    record = sealed(build(kind, {**given, **_CAPPED}))[0]
    wrong = _faults(record) if isinstance(record, Belief) else []
    if wrong or not isinstance(record, Belief):
        raise InvalidRecord("; ".join(wrong), field=record.id, advice="Word it as a statement.")
    return record


def _faults(record: Belief) -> list[str]:
    """The faults of a belief; a learned one must also name its episodes."""
    if "key" in (record.model_extra or {}):
        return lint(record)
    too_long = [f"is longer than {LONGEST} characters"] if len(record.title()) > LONGEST else []
    return vacuous(record) + too_long


def _path(record: Belief) -> str:
    return PRIVATE + place(record).removeprefix(PRIVATE)


def _contents(connection: Connection, repository: int, paths: list[str]) -> dict[str, bytes]:
    rows = connection.execute(
        "SELECT path, content FROM loki.records "
        "WHERE repository = %s AND path = ANY (%s) AND NOT gone",
        (repository, paths),
    )
    return dict(rows.fetchall())


def _changes(
    connection: Connection, repository: int, wanted: Mapping[str, Belief]
) -> list[records.ServedFile]:
    there = _contents(connection, repository, list(wanted))
    return [row for path, record in wanted.items() if (row := _changed(path, record, there))]


def _changed(path: str, record: Belief, there: Mapping[str, bytes]) -> records.ServedFile | None:
    """The row of a record merged with the one that is there; None if that says as much."""
    if path in there:
        known = decode(path, there[path])
        record = merge(None, known, record) if isinstance(known, Belief) else record
    content = sealed(record)[1]
    return None if there.get(path) == content else records.row_of(path, content)


def _withdraw(
    connection: Connection, repository: int, version: int, token: int, ids: Sequence[str]
) -> list[str]:
    """Remove what this token pushed, with its content; others' pushes stay."""
    rows = connection.execute(
        "SELECT id, path FROM loki.records WHERE repository = %s AND pushed_by = %s "
        "AND id = ANY (%s) AND NOT gone ORDER BY id",
        (repository, token, list(ids)),
    ).fetchall()
    records.remove(connection, repository, version, [path for _, path in rows])
    return [memory_id for memory_id, _ in rows]


# -- pull -----------------------------------------------------------------------------------------


class PulledRecord(NamedTuple):
    """A record file as it is now; one that is gone has no content."""

    path: str
    id: str
    kind: str
    etag: str
    pushed: bool  # else it is in the repository's history
    gone: bool
    content: str


class Pulled(NamedTuple):
    """Records that changed, oldest change first."""

    records: list[PulledRecord]
    cursor: str  # for the next pull
    more: bool  # whether there is more to pull at once
    commit: str


def pull(
    connection: Connection, repository: str, since: str = "", most: int = MOST_PULLED
) -> Pulled:
    """The records that changed since a cursor; all that are there without one."""
    standing = standing_of(connection, repository)
    epoch, version, path = _parsed(since)
    if epoch != standing.epoch:
        version, path = 0, ""
    rows = connection.execute(
        "SELECT path, id, kind, etag, pushed_by IS NOT NULL, gone, content, version "
        "FROM loki.records WHERE repository = %s AND (version, path) > (%s, %s) "
        "AND version <= %s AND (NOT gone OR %s > 0) ORDER BY version, path LIMIT %s",
        (standing.id, version, path, standing.version, version, most + 1),
    ).fetchall()
    shown, more = rows[:most], len(rows) > most
    last = (shown[-1][-1], shown[-1][0]) if more else (standing.version, _LAST)
    cursor = f"{standing.epoch}:{last[0]}:{last[1]}"
    found = [_record(row) for row in shown]
    return Pulled(found, cursor, more, standing.commit)


def _record(row: TupleRow) -> PulledRecord:
    path, name, kind, stamp, pushed, gone, data, _ = row
    return PulledRecord(path, name, kind, stamp, pushed, gone, data.decode(errors="replace"))


def _parsed(cursor: str) -> tuple[str, int, str]:
    epoch, _, rest = cursor.partition(":")
    version, _, path = rest.partition(":")
    if version.isdigit() and len(version) <= _DIGITS:
        return epoch, int(version), path
    return "", 0, ""
