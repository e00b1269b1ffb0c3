"""Changes of a repository since a cursor.

Writers of one repository take its versions under the lock of its row, which they hold until they
commit. So a version is seen only after all versions before it, and a cursor skips nothing that
commits late. It names the epoch of the row too: the versions of a database that was made anew begin
again, and an old cursor gets everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from loki_memory.server.replicas import standing_of

if TYPE_CHECKING:
    from psycopg.rows import TupleRow

    from loki_memory.server.database import Connection

MOST = 2000  # records of one answer
_LAST = "\U0010ffff"  # after all paths of a version
_DIGITS = 18  # of a version, which is a bigint


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


def pull(connection: Connection, repository: str, since: str = "", most: int = MOST) -> Pulled:
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
