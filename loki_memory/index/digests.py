"""Digests: the number of rows of each table and the XOR of their hashes, kept right by each change.

Triggers that only our own connection has call us for every row that comes or goes, cascades too. So
a row that anybody else changed, or a flipped bit, makes a table differ from its digest.
"""

from __future__ import annotations

import marshal
import sqlite3
from collections import Counter
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

TABLES = ("memories", "passages", "vectors", "marks", "edges", "files")
_CHANGED = ("memories",)  # tables whose rows are changed in place
_PACKING = 2  # equal bytes for equal values


class Digests:
    """The changes of digests within one transaction."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._db = database
        self._rows: Counter[str] = Counter()
        self._values: Counter[str] = Counter()

    def follow(self) -> None:
        """Have the connection tell of each row that comes or goes from here on."""
        self._db.create_function("row_changed", -1, _noting(self._rows, self._values))
        for table in TABLES:
            columns = _columns(self._db, table)
            for event, parts in _events(table):
                calls = ";".join(
                    f"SELECT row_changed('{table}', {sign}, {_of(row, columns)})"
                    for row, sign in parts
                )
                self._db.execute(
                    f"CREATE TEMP TRIGGER IF NOT EXISTS {table}_{event} AFTER {event} "
                    f"ON main.{table} BEGIN {calls}; END"
                )

    def store(self) -> None:
        """Apply the changes to what is stored."""
        for table in self._values:
            rows, value = stored(self._db).get(table, (0, 0))
            self._put(table, rows + self._rows[table], value ^ self._values[table])

    def store_anew(self) -> None:
        """Store the digests of the tables as they are."""
        for table in TABLES:
            self._put(table, *counted(self._db, table))

    def _put(self, table: str, rows: int, value: int) -> None:
        self._db.execute("INSERT OR REPLACE INTO digests VALUES (?, ?, ?)", (table, rows, value))


def _noting(rows: Counter[str], values: Counter[str]) -> Callable[..., None]:
    """The function that triggers call. It holds no connection, else the two never went away."""

    def note(table: str, sign: int, *row: object) -> None:
        rows[table] += sign
        values[table] ^= _hash(row)

    return note


def damage(database: sqlite3.Connection) -> str:
    """Check every row of an index, and its structure; returns what is wrong, empty if nothing is.

    Raises sqlite3.DatabaseError if SQLite itself finds it.
    """
    known = stored(database)
    for table in TABLES:
        if counted(database, table) != known.get(table, (0, 0)):
            return f"rows of {table} are missing or damaged"
    found: str = database.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if found != "ok":
        return found.partition("\n")[0]
    for table in ("words", "parts"):
        database.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")  # noqa: S608
    return ""


def stored(database: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    rows = database.execute("SELECT name, rows, value FROM digests")
    return {name: (count, value) for name, count, value in rows}


def counted(database: sqlite3.Connection, table: str) -> tuple[int, int]:
    """Count the rows of a table and hash them."""
    rows, value = 0, 0
    for row in database.execute(f"SELECT {', '.join(_columns(database, table))} FROM {table}"):  # noqa: S608
        rows += 1
        value ^= _hash(row)
    return rows, value


def _hash(values: tuple[Any, ...]) -> int:
    """60 bits of a hash: SQLite's integers are signed."""
    return int.from_bytes(blake2b(marshal.dumps(values, _PACKING), digest_size=8).digest()) >> 4


def _columns(database: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in database.execute(f"PRAGMA main.table_info({table})")]


def _events(table: str) -> list[tuple[str, list[tuple[str, int]]]]:
    events = [("INSERT", [("new", 1)]), ("DELETE", [("old", -1)])]
    return [*events, ("UPDATE", [("old", -1), ("new", 1)])] if table in _CHANGED else events


def _of(row: str, columns: list[str]) -> str:
    return ", ".join(f"{row}.{column}" for column in columns)
