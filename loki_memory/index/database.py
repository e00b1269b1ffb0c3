"""Open the index database: create it, check it, or move a broken one aside.

Only SQLite ever opens the database file: another descriptor on it in this process would, when
closed, drop SQLite's locks (POSIX says so).
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from loki_memory.files import disk

SCHEMA_VERSION = 10
APPLICATION_ID = 0x6C6F6B69  # "loki"
BUSY_SECONDS = 10.0  # how long to wait for another process's transaction
# Before 3.51.3 a checkpoint could lose committed pages when the WAL was reset under a reader.
_SAFE_WAL = (3, 51, 3)
# A change touches pages all over the database. Pages that do not fit into the cache (by default
# 2 MiB) are written before the commit, with a flush each time, and read again.
_CACHE_KIB = 32 << 10
_COMPANIONS = ("", "-journal", "-wal", "-shm")


class Unusable(Exception):
    """The file is not an index that this version can use."""


def open_for_writing(path: Path | None) -> sqlite3.Connection:
    """Connect, creating the schema in a new file. None opens an index in memory."""
    database = sqlite3.connect(
        path or ":memory:",
        timeout=BUSY_SECONDS,
        isolation_level=None,
        cached_statements=256,
        check_same_thread=False,  # the index lets one thread in at a time
    )
    try:
        _prepare(database)
    except BaseException:
        database.close()
        raise
    return database


def _prepare(database: sqlite3.Connection) -> None:
    try:
        if _is_empty(database):
            _create(database)
        _verify(database)
        wal = sqlite3.sqlite_version_info >= _SAFE_WAL
        database.execute(f"PRAGMA journal_mode = {'WAL' if wal else 'TRUNCATE'}")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("PRAGMA foreign_keys = ON")
        database.execute("PRAGMA recursive_triggers = ON")  # rows that are replaced count too
        database.execute("PRAGMA temp_store = MEMORY")
        database.execute(f"PRAGMA cache_size = {-_CACHE_KIB}")
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
            raise
        raise Unusable(str(error)) from error


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Connect without the right to write. Raises Unusable if there is no usable index."""
    try:
        database = sqlite3.connect(
            f"file:{_quoted(path)}?mode=ro",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
    except sqlite3.OperationalError as error:
        raise Unusable(str(error)) from error
    try:
        _verify(database)
    except (sqlite3.DatabaseError, Unusable) as error:
        database.close()
        raise Unusable(str(error)) from error
    return database


def noted_home(path: Path) -> str:
    """The folder that an index was made for, whatever its version; empty if it does not say."""
    try:
        database = sqlite3.connect(f"file:{_quoted(path)}?mode=ro", uri=True)
        try:
            found = database.execute("SELECT value FROM notes WHERE name = 'home'").fetchone()
        finally:
            database.close()
    except sqlite3.Error:
        return ""
    return str(found[0]) if found else ""


def _quoted(path: Path) -> str:
    """A path for a URI, with the characters escaped that SQLite would misread."""
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _is_empty(database: sqlite3.Connection) -> bool:
    return not database.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()


def _create(database: sqlite3.Connection) -> None:
    database.execute("BEGIN IMMEDIATE")
    if _is_empty(database):  # no other process created it first
        create_schema(database)
    database.execute("COMMIT")


def create_schema(database: sqlite3.Connection) -> None:
    """Create everything anew, within the caller's transaction; drop what there was.

    Vectors stay: they depend on texts and the model, not on what the files say.
    """
    for kind in ("VIEW", "TRIGGER", "TABLE"):
        for (name,) in database.execute(
            "SELECT name FROM sqlite_schema "
            "WHERE type = ? AND name NOT LIKE 'sqlite_%' AND name <> 'vectors'",
            (kind.lower(),),
        ).fetchall():
            database.execute(f'DROP {kind} IF EXISTS "{name}"')
    schema = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
    for statement in _statements(schema):
        database.execute(statement)
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _statements(script: str) -> Iterator[str]:
    """Run statements one by one: `executescript` would commit the transaction it runs in."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _verify(database: sqlite3.Connection) -> None:
    application = database.execute("PRAGMA application_id").fetchone()[0]
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        raise Unusable("it was not made by loki-memory")
    if version != SCHEMA_VERSION:
        raise Unusable(f"its schema version is {version}, and this program uses {SCHEMA_VERSION}")


def move_aside(path: Path) -> Path:
    """Move an unusable file aside; it replaces one that was moved aside before."""
    aside = path.with_name(path.name + ".aside")
    for companion in _COMPANIONS:
        old, new = Path(f"{path}{companion}"), Path(f"{aside}{companion}")
        if old.exists():
            disk.move(old, new)
    return aside


def refuse_links(path: Path) -> None:
    """Raise OSError if the database, its journal or a folder on the way to them is a link.

    A pipe that an archive brought in their place is removed: SQLite would wait for it for ever.
    """
    for companion in _COMPANIONS:
        disk.refuse_links(f"{path}{companion}")
        with suppress(FileNotFoundError, NotADirectoryError):
            if stat.S_ISFIFO(os.lstat(f"{path}{companion}").st_mode):
                os.unlink(f"{path}{companion}")
