"""Open the index database: create it, check it, or move a broken one aside.

Only SQLite ever opens the database file: another descriptor on it in this process would, when
closed, drop SQLite's locks (POSIX says so).
"""

from __future__ import annotations

import marshal
import os
import sqlite3
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

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


# Seals: whether files of the cache are as we left them, without reading them.
#
# SQLite finds damage to its own structure only, and of that only what a question happens to meet.
# So after each change we set a file's modification time to the nanosecond, and note it with the
# size beside the file. Whoever else writes to the file leaves the kernel's time, which comes in
# steps of milliseconds. A file whose seal is broken is checked in full, or made again. Damage
# that the disk itself does leaves the time alone; `loki-mem doctor --deep` looks for that.


def seal(*paths: Path) -> None:
    """Note files as they are now, beside the first; what cannot be sealed counts as broken."""
    with suppress(OSError):
        now = time.time_ns()
        for path in paths:
            with suppress(FileNotFoundError):
                os.utime(path, ns=(now, now))
        disk.replace_plainly(seal_of(paths[0]), _state(paths))


def is_whole(*paths: Path) -> bool:
    """Check if nobody but us has written to files since they were sealed."""
    try:
        return disk.read_derived(seal_of(paths[0])) == _state(paths)
    except OSError:
        return False


def seal_of(path: Path) -> Path:
    """The file with the seal of another one."""
    return path.with_name(f"{path.name}.seal")


def _state(paths: Sequence[Path]) -> bytes:
    found = []
    for path in paths:
        with suppress(FileNotFoundError):
            status = os.stat(path)
            found.append(f"{path.suffix} {status.st_mtime_ns} {status.st_size}")
    return "\n".join(found).encode()


# Digests: the number of rows of each table and the XOR of their hashes, kept right by each
# change.
#
# Triggers that only our own connection has call us for every row that comes or goes, cascades
# too. So a row that anybody else changed, or a flipped bit, makes a table differ from its digest.

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


_IGNORED = b"*\n"  # the content of .gitignore in the cache


def reason_of(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror == disk.LINKED:
        return f"{error.filename} {error.strerror}"
    return str(error)


def sealed_files(path: Path) -> tuple[Path, Path]:
    """The database, and the log in which newer versions of SQLite write first."""
    return path, Path(f"{path}-wal")


def make_room(path: Path) -> None:
    """Make an empty file that only its user may read, in a folder that git ignores by itself.

    SQLite gives its journal the rights of the database. A database that is there stays closed: to
    open and close it here would drop SQLite's locks.
    """
    refuse_links(path)
    disk.make_folder(path.parent)
    with suppress(FileExistsError):
        disk.write_new(path, b"", durable=False)
    ignore = path.parent / ".gitignore"
    if disk.read_derived(ignore) != _IGNORED:
        disk.replace_plainly(ignore, _IGNORED)
