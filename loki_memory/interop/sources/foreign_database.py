"""A database of another program, opened for reading only.

A database with a write-ahead log that nobody has open has no log beside it; SQLite would create one
even to read. Such a database is opened as immutable, so that nothing is left in its folder. Every
other one is opened with `mode=ro`, and read with what stands in its log.

A database may come from anywhere. A table that computes what it shows could make a few bytes
endless, so it counts as none: a view, a virtual table, generated columns, long default values.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from loki_memory.errors import InvalidRecord

_HEADER, _WRITE_AHEAD = 19, b"\2"  # bytes of the header that end with the kind of journal
_SECONDS = 2.0  # to wait for a lock of the database's owner
_LONGEST = 900_000  # characters of a value: a record has at most a megabyte
_MOST_BYTES = 1 << 26  # of a value or row; SQLite's own limit is a gigabyte
_STORED = """
SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c
WHERE m.type = 'table' AND m.rootpage > 0 AND NOT EXISTS (
    SELECT 1 FROM pragma_table_xinfo(m.name) x WHERE x.hidden OR length(x.dflt_value) > 1000
)
"""


def has_tables(path: Path, *names: str) -> bool:
    """Check for an SQLite database with these tables."""
    try:
        with open(path, "rb") as file:
            is_database = file.read(16) == b"SQLite format 3\0"
    except OSError:
        return False
    return is_database and set(names) <= tables(path).keys()


def tables(path: Path) -> dict[str, set[str]]:
    """The names of all tables with those of their columns."""
    found: dict[str, set[str]] = {}
    for row in rows(path, _STORED, ("table", "column")):
        found.setdefault(str(row["table"]), set()).add(str(row["column"]))
    return found


def rows(path: Path, query: str, names: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
    """The rows of a query as objects; raises InvalidRecord where it fails."""
    try:
        with closing(sqlite3.connect(_address(path), uri=True, timeout=_SECONDS)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_BYTES)
            connection.set_authorizer(_of_plain_tables)
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            cursor = connection.execute(query)
            columns = names or tuple(column[0] for column in cursor.description)
            for row in cursor:
                yield {name: _bounded(value) for name, value in zip(columns, row, strict=True)}
    except sqlite3.Error as error:
        raise InvalidRecord(
            f"cannot be read as a database ({error})", advice="Close its program and try again."
        ) from None


def _of_plain_tables(_action: int, _one: object, _two: object, _file: object, view: object) -> int:
    """Let a query read what is stored, and nothing that a view or a trigger computes."""
    return sqlite3.SQLITE_OK if view is None else sqlite3.SQLITE_DENY


def _address(path: Path) -> str:
    """The address for reading, which says if nobody else has the database open."""
    try:
        with open(path, "rb") as file:
            has_log = file.read(_HEADER)[-1:] == _WRITE_AHEAD
    except OSError as error:
        raise InvalidRecord(f"cannot be read ({error.strerror})") from None
    is_at_rest = has_log and not path.with_name(f"{path.name}-wal").exists()
    option = "immutable=1" if is_at_rest else "mode=ro"
    return f"file:{quote(str(path.absolute()))}?{option}"


def _bounded(value: Any) -> Any:
    return value[:_LONGEST] if isinstance(value, str) else value
