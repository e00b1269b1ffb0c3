"""OpenCode's database: `~/.local/share/opencode/opencode.db` holds the sessions of all projects.

A session of it is named like a file below the database, `opencode.db/ses_…`, and its parts are read
like the lines of one, in the order in which OpenCode stored them. A part that OpenCode still
changes (a call that runs, a text that is being written) waits, and so do all behind it. Once a
later message exists, nobody will finish it, and it is read as it is.

The database is opened for reading only; OpenCode keeps a write-ahead log, so that neither of us
waits for the other.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from loki_memory.ingest.json_lines import LONGEST, Piece, Value, decoded

_SECONDS = 2.0  # to wait for a lock, which only a migration of OpenCode holds for long
_SESSIONS = "SELECT id FROM session ORDER BY time_created, id"
_SESSION = "SELECT directory, parent_id FROM session WHERE id = :session"
_STATE = """
    SELECT count(*), CAST(coalesce(max(time_updated), 0) AS INTEGER)
    FROM part WHERE session_id = :session
"""
_LAST = """
    SELECT id FROM message WHERE session_id = :session ORDER BY time_created DESC, id DESC LIMIT 1
"""
# Only ids are sorted: the data of a long session would fill the memory.
_IDS = "SELECT id FROM part WHERE session_id = :session ORDER BY time_created, id"
# Data that is too long to be held is not even fetched.
_PART = """
    SELECT part.id, part.message_id, part.time_created,
           CASE WHEN length(part.data) <= :longest THEN part.data END,
           CASE WHEN length(message.data) <= :longest THEN message.data END
    FROM part LEFT JOIN message ON message.id = part.message_id
    WHERE part.id = :part
"""


class _Row(NamedTuple):
    """A part as it is stored."""

    id: Any
    message_id: Any
    at: Any
    part: Any
    message: Any


def is_database(path: Path) -> bool:
    return path.suffix == ".db" and path.is_file()


def is_session(path: Path) -> bool:
    """Check if a path names a session of a database."""
    return is_database(path.parent)


def sessions(database: Path) -> list[Path]:
    """The sessions of a database as paths below it. Raises OSError."""
    with closing(_connected(database)) as connection:
        return [database / str(name) for (name,) in _rows(connection, database, _SESSIONS)]


def session_folder(path: Path) -> str:
    """The folder in which a session began. Raises OSError."""
    with closing(SessionRows(path)) as rows:
        return rows.folder


class SessionRows:
    """The parts of one session."""

    def __init__(self, path: Path) -> None:
        self._database, self._session = path.parent, path.name
        self._connection = _connected(self._database)
        try:
            folder, parent = self._about()
        except OSError:
            self.close()
            raise
        self.folder = folder if isinstance(folder, str) else ""
        # An agent that works for another one is part of the session of that.
        self._fields: Value = {
            "session": parent or self._session,
            "is_subagent": parent is not None,
            "cwd": folder,
        }

    def state(self) -> tuple[int, int]:
        count, changed = next(self._select(_STATE))
        return count, changed

    def pieces(self, start: int = 0, line: int = 0) -> Iterator[Piece]:
        last = next(self._select(_LAST), None)
        parts = self._ids[start:]
        rows = (_Row._make(row) for part in parts for row in self._select(_PART, part))
        for number, row in enumerate(rows, line + 1):
            values, reason = _values(row, self._fields)
            if (row.message_id,) == last and any(map(_is_open, values)):
                yield Piece(number, 1, number - 1, waits=True)
                return
            yield Piece(number, 1, number, values, reason)

    def fingerprint(self, end: int) -> str:
        """Digest of the first and the last part that were read."""
        if not 0 < end <= len(self._ids):
            return ""
        ends = repr((self._ids[0], self._ids[end - 1]))
        return blake2b(ends.encode("utf-8", "replace"), digest_size=16).hexdigest()

    def close(self) -> None:
        self._connection.close()

    @cached_property
    def _ids(self) -> list[Any]:
        return [part for (part,) in self._select(_IDS)]

    def _about(self) -> tuple[Any, ...]:
        for row in self._select(_SESSION):
            return row
        raise FileNotFoundError(2, "no such session", f"{self._database}/{self._session}")

    def _select(self, statement: str, part: Any = None) -> Iterator[tuple[Any, ...]]:
        given = {"session": self._session, "part": part, "longest": LONGEST}
        return _rows(self._connection, self._database, statement, given)


def _connected(database: Path) -> sqlite3.Connection:
    try:
        uri = f"file:{quote(str(database))}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, timeout=_SECONDS)
    except sqlite3.Error as error:
        raise OSError(5, str(error), str(database)) from None
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    return connection


def _rows(
    connection: sqlite3.Connection,
    database: Path,
    statement: str,
    given: Mapping[str, Any] | None = None,
) -> Iterator[tuple[Any, ...]]:
    try:
        yield from connection.execute(statement, given or {})
    except sqlite3.Error as error:  # no database of OpenCode, or of another version
        raise OSError(5, str(error), str(database)) from None


def _values(row: _Row, fields: Value) -> tuple[tuple[Value, ...], str]:
    """A row as one value: what OpenCode wrote, and beside it what the columns say."""
    found: list[Value] = []
    for text in (row.part, row.message):
        if not isinstance(text, str):
            return (), f"is no text of at most {LONGEST >> 20} MB"
        values, reason = decoded(text.encode("utf-8", "replace"))
        if reason or len(values) != 1:
            return (), reason or "is not one JSON object"
        found += values
    part, message = found
    columns = {"id": row.id, "message_id": row.message_id, "at": row.at}
    return ({**fields, **columns, "type": part.get("type"), "part": part, "message": message},), ""


def _is_open(value: Value) -> bool:
    """Check if OpenCode will still change a part."""
    part, message = value["part"], value["message"]
    state = part.get("state")
    if part.get("type") == "tool":
        return isinstance(state, dict) and state.get("status") in {"pending", "running"}
    time = part.get("time")
    is_written = part.get("type") == "text" and message.get("role") == "assistant"
    return is_written and not (isinstance(time, dict) and time.get("end"))
