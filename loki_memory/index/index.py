"""The index: one object that answers queries and applies changes."""

from __future__ import annotations

import marshal
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

from loki_memory.errors import StoreBusy
from loki_memory.files.lock import locked
from loki_memory.index.database import (
    BUSY_SECONDS,
    Unusable,
    damage,
    is_whole,
    make_room,
    move_aside,
    open_for_reading,
    open_for_writing,
    reason_of,
    refuse_links,
    seal,
    sealed_files,
)
from loki_memory.index.list_filter import ListFilter
from loki_memory.index.revision import COLUMNS, FeatureRow, Rebuilding, Revision, Stamps

_FEW_FREE = 10  # one page of so many may be unused
_BUSY_MS = int(BUSY_SECONDS * 1000)
_QUEUE = "index.lock"
_AT_ONCE = 500  # names in one query
_ALL_THAT_IT_SAYS = (
    f"SELECT {COLUMNS} FROM memories ORDER BY id",  # noqa: S608
    (
        "SELECT id, key, text FROM passages AS p JOIN memories AS m ON m.row = memory "
        "ORDER BY id, p.row"
    ),
    "SELECT id, mark FROM marks JOIN memories AS m ON m.row = memory ORDER BY 1, 2",
    "SELECT * FROM edges ORDER BY source, relation, target, stated",
    "SELECT path, hash, claims, held FROM files ORDER BY path",
    "SELECT path, line, field, reason, advice FROM problems ORDER BY 1, 2, 3, 4, 5",
    "SELECT word, uses FROM vocabulary ORDER BY word",
    "SELECT kind, value FROM fingerprints WHERE value <> 0 ORDER BY kind",
    "SELECT term, doc, cnt FROM words_vocabulary ORDER BY term",
)


class Summary(NamedTuple):
    """One memory in a listing."""

    id: str
    kind: str
    title: str
    status: str
    scope: str
    at: str
    agent: str
    confidence: float | None
    pinned: int
    path: str


class _FolderCache:
    """Folders as they were read at one state of the index: 10,000 stamps take 3 ms to unpack."""

    def __init__(self, version: object) -> None:
        self.version = version
        self.folders: dict[str, tuple[int, bytes]] | None = None
        self.unpacked: dict[str, tuple[int, Stamps]] = {}


class Index:
    """The database of one workspace. A path of None keeps it in memory."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.notices: list[str] = []
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None
        self._pid = os.getpid()
        self._inherited: tuple[sqlite3.Connection | None, ...] = ()
        self._lock = RLock()
        self._changes = 0  # made by this process: SQLite tells of those of others
        self._folders = _FolderCache(None)

    # -- connections --------------------------------------------------------------------------

    def reader(self) -> sqlite3.Connection:
        """A connection for questions; the writing one if there is one already."""
        self._forget_after_fork()
        if self._writer is not None:
            return self._writer
        if self._reader is None:
            if self.path is None or not self.path.exists() or self._is_linked():
                return self.writer()
            try:
                if not is_whole(*sealed_files(self.path)):
                    return self.writer()
                self._reader = open_for_reading(self.path)
            except Unusable:
                return self.writer()
        return self._reader

    def writer(self) -> sqlite3.Connection:
        """A connection that may change the index; makes or replaces the file where needed."""
        self._forget_after_fork()
        if self._writer is None:
            self.close()
            self._writer = self._open_or_replace()
        return self._writer

    def _open_or_replace(self) -> sqlite3.Connection:
        if self.path is None:
            return open_for_writing(None)
        try:
            make_room(self.path)
            return self._checked(open_for_writing(self.path), self.path)
        except Unusable as error:
            aside = move_aside(self.path)
            self.notices.append(
                f"the index could not be used ({error}); it was moved to {aside.name} and rebuilt"
            )
            make_room(self.path)
            return open_for_writing(self.path)
        except (OSError, sqlite3.OperationalError) as error:
            if "locked" in str(error):
                raise
            self.keep_in_memory(reason_of(error))
            return open_for_writing(None)

    def _checked(self, database: sqlite3.Connection, path: Path) -> sqlite3.Connection:
        """A connection to a sound index; raises Unusable for one that somebody else damaged."""
        if is_whole(*sealed_files(path)):
            return database
        try:
            found = damage(database)
        except sqlite3.OperationalError:  # another process is writing, or nobody may write here
            return database
        except sqlite3.DatabaseError as error:
            found = str(error)
        if found:
            database.close()
            raise Unusable(found)
        with suppress(StoreBusy, OSError), locked(path.with_name(_QUEUE), 0):
            seal(*sealed_files(path))
        return database

    def _is_linked(self) -> bool:
        try:
            refuse_links(self.path or Path())
        except OSError:
            return True
        return False

    def copy_to(self, path: Path) -> None:
        """Copy the database to a new file."""
        make_room(path)
        with closing(sqlite3.connect(path)) as copy:
            self.reader().backup(copy)

    def keep_in_memory(self, why: str) -> None:
        """Continue without a file: on a read-only checkout, or a full disk."""
        self.close()
        self.path = None
        self.notices.append(f"the index cannot be written ({why}) and is kept in memory")

    def replace(self, reason: str) -> None:
        """Move a damaged database aside and begin a new one."""
        self.close()
        if self.path is not None and self.path.exists():
            aside = move_aside(self.path)
            self.notices.append(f"{reason}; the index was moved to {aside.name} and rebuilt")

    def close(self) -> None:
        for connection in (self._reader, self._writer):
            if connection is not None and self._pid == os.getpid():
                with suppress(sqlite3.Error):
                    connection.close()
        self._reader = self._writer = None

    def _forget_after_fork(self) -> None:
        """Drop the connection in a forked child, without closing it: the child opens its own."""
        if self._pid != os.getpid():
            self._inherited = (self._reader, self._writer)
            self._reader = self._writer = None
            self._pid = os.getpid()

    # -- queries ------------------------------------------------------------------------------

    def ask(self, sql: str, *values: object) -> list[Any]:
        with self._lock:
            return self.reader().execute(sql, values).fetchall()

    def ask_of(self, names: Sequence[object], sql: str, *values: object) -> Iterator[Any]:
        """Run a query over many names, some at a time; `{}` in the query is their place."""
        for start in range(0, len(names), _AT_ONCE):
            some = names[start : start + _AT_ONCE]
            yield from self.ask(sql.format(",".join("?" * len(some))), *some, *values)

    def scalar(self, sql: str, *values: object) -> Any:
        rows = self.ask(sql, *values)
        return rows[0][0] if rows else None

    def path_of(self, memory_id: str) -> str | None:
        path: str | None = self.scalar("SELECT path FROM memories WHERE id = ?", memory_id)
        return path

    def paths_of(self, ids: Sequence[str]) -> list[str]:
        """The files that hold these memories, in order."""
        sql = "SELECT path FROM memories WHERE id IN ({})"
        return sorted(row[0] for row in self.ask_of(ids, sql))

    def places(self, kind: str) -> list[tuple[str, str]]:
        """(id, path) of the memories of a kind, oldest first."""
        return self.ask("SELECT id, path FROM memories WHERE kind = ? ORDER BY at, id", kind)

    def body(self, memory_id: str) -> tuple[str, str] | None:
        """A memory's kind and JSON."""
        rows = self.ask("SELECT kind, body FROM memories WHERE id = ?", memory_id)
        return rows[0] if rows else None

    def ids_starting(self, prefix: str) -> list[str]:
        """Ids that begin so: people type the first few letters."""
        found = self.ask(
            "SELECT id FROM memories WHERE id >= ? AND id < ? ORDER BY id LIMIT 20",
            prefix,
            prefix + "\U0010ffff",
        )
        return [row[0] for row in found]

    def summaries(self, wanted: ListFilter = ListFilter()) -> list[Summary]:  # noqa: B008 - a value
        """Memories, newest first."""
        sql, values = wanted.sql()
        columns = ", ".join(Summary._fields)
        rows = self.ask(f"SELECT {columns} {sql} ORDER BY at DESC, id", *values)
        return [Summary(*row) for row in rows]

    def bodies(self, wanted: ListFilter = ListFilter()) -> list[tuple[str, str]]:  # noqa: B008 - a value
        """(kind, JSON) of the same memories in the same order."""
        sql, values = wanted.sql()
        return self.ask(f"SELECT kind, body {sql} ORDER BY at DESC, id", *values)

    def counts(self) -> dict[str, int]:
        """Count the memories of each kind."""
        return dict(self.ask("SELECT kind, count(*) FROM memories GROUP BY kind ORDER BY kind"))

    def candidate_count(self) -> int:
        """Count the candidates of this machine, which wait for somebody's decision."""
        sql = (
            "SELECT count(*) FROM live WHERE status = 'candidate' "
            "AND path >= 'local/' AND path < 'local0'"
        )
        return int(self.scalar(sql))

    def private_counts(self) -> dict[str, int]:
        """Count the memories of each kind in the local zone."""
        sql = (
            "SELECT kind, count(*) FROM memories WHERE path >= 'local/' AND path < 'local0' "
            "GROUP BY kind ORDER BY kind"
        )
        return dict(self.ask(sql))

    def problems(self) -> list[tuple[str, str, str, int, str]]:
        return self.ask(
            "SELECT path, reason, field, line, advice FROM problems ORDER BY path, line, field"
        )

    def problem_count(self) -> int:
        return int(self.scalar("SELECT count(*) FROM problems"))

    def open_handoff_count(self) -> int:
        sql = "SELECT count(*) FROM memories WHERE kind = 'handoff' AND status = 'open'"
        return int(self.scalar(sql))

    def edges_from(self, memory_id: str) -> list[tuple[str, str, float]]:
        return self.ask(
            "SELECT relation, target, weight FROM edges WHERE source = ? ORDER BY 1, 2", memory_id
        )

    def edges_to(self, target: str) -> list[tuple[str, str, float]]:
        return self.ask(
            "SELECT relation, source, weight FROM edges WHERE target = ? ORDER BY 1, 2", target
        )

    def file_count(self) -> int:
        """Count the files that were read."""
        return int(self.scalar("SELECT count(*) FROM files"))

    def file_hashes(self, among: Sequence[str] | None = None) -> dict[str, str]:
        """The hashes of the files that were read; of all of them, or of some."""
        if among is None:
            return dict(self.ask("SELECT path, hash FROM files"))
        return dict(self.ask_of(among, "SELECT path, hash FROM files WHERE path IN ({})"))

    def note(self, name: str) -> str:
        return self.scalar("SELECT value FROM notes WHERE name = ?", name) or ""

    def features(self, version: str) -> dict[str, FeatureRow]:
        """The files as a run of this version left them, by their paths."""
        sql = "SELECT path, etag, version, body FROM features WHERE version = ?"
        return {row[0]: FeatureRow(*row) for row in self.ask(sql, version)}

    def features_of(self, names: Sequence[str], version: str) -> Iterator[tuple[str, str]]:
        """Ids and features of those of some episodes that are as the last run left them."""
        sql = (
            "SELECT id, f.body FROM memories AS m JOIN features AS f USING (path, etag) "
            "WHERE id IN ({}) AND f.version = ? AND f.body <> '' ORDER BY id"
        )
        return self.ask_of(names, sql, version)

    def fingerprint(self, kind: str) -> int:
        return self.scalar("SELECT value FROM fingerprints WHERE kind = ?", kind) or 0

    def folders(self) -> dict[str, tuple[int, bytes]]:
        """Every folder that was looked at: its own mtime and the packed stamps of its files."""
        kept = self._as_of_now()
        if kept.folders is None:
            rows = self.ask("SELECT path, mtime, stamps FROM folders")
            kept.folders = {path: (mtime, stamps) for path, mtime, stamps in rows}
        return kept.folders

    def folder(self, path: str) -> tuple[int, Stamps]:
        """The same for one folder, unpacked."""
        kept = self._as_of_now()
        if path not in kept.unpacked:
            rows = self.ask("SELECT mtime, stamps FROM folders WHERE path = ?", path)
            kept.unpacked[path] = (rows[0][0], marshal.loads(rows[0][1])) if rows else (0, {})  # noqa: S302
        return kept.unpacked[path]

    def _as_of_now(self) -> _FolderCache:
        """The folders as they were read last, as long as nobody has changed the index since."""
        version = (self.scalar("PRAGMA data_version"), self._changes, id(self.reader()))
        if self._folders.version != version:
            self._folders = _FolderCache(version)
        return self._folders

    def digest(self) -> str:
        """A hash of the content of the index: equal for equal files, however it was built."""
        import hashlib

        whole = hashlib.sha256()
        for sql in _ALL_THAT_IT_SAYS:
            for row in self._for_digest().execute(sql):
                whole.update(repr(tuple(row)).encode())
        return whole.hexdigest()

    def _for_digest(self) -> sqlite3.Connection:
        writer = self.writer()
        writer.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.words_vocabulary "
            "USING fts5vocab(main, 'words', 'row')"
        )
        return writer

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Run several queries on one state of the index, whatever other processes change."""
        with self._lock:
            reader = self.reader()
            reader.execute("BEGIN")
            try:
                yield
            finally:
                reader.execute("COMMIT")

    # -- changes ------------------------------------------------------------------------------

    @contextmanager
    def _turn(self, *, wait: bool) -> Iterator[None]:
        """Queue up with other processes: SQLite serves those that wait in no order.

        Where no lock can be had, on a read-only checkout, SQLite's own has to do.
        """
        if self.path is None:
            yield
            return
        with ExitStack() as held:
            try:
                seconds = BUSY_SECONDS if wait else 0
                held.enter_context(locked(self.path.with_name(_QUEUE), seconds))
            except StoreBusy:
                raise sqlite3.OperationalError("database is locked") from None
            except OSError:
                pass
            yield

    def vacuum(self) -> int:
        """Give pages that nothing uses back to the disk, if they are many; returns their bytes."""
        with self._lock, self._turn(wait=False):
            writer = self.writer()
            free, pages, size = (
                writer.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("freelist_count", "page_count", "page_size")
            )
            if free * _FEW_FREE < pages:
                return 0
            writer.execute("VACUUM")
            self._changes += 1
            if self.path is not None:
                seal(*sealed_files(self.path))
        return int(free * size)

    @contextmanager
    def change(self, *, wait: bool = True, anew: bool = False) -> Iterator[Revision]:
        """One transaction; `anew` starts from nothing.

        Without `wait`, raises sqlite3.OperationalError if another process is at it.
        """
        with self._lock, self._turn(wait=wait):
            writer = self.writer()
            try:
                writer.execute(f"PRAGMA busy_timeout = {_BUSY_MS if wait else 0}")
                writer.execute("BEGIN IMMEDIATE")
            finally:  # readers, and the commit, wait in any case
                writer.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
            try:
                revision = Rebuilding(writer) if anew else Revision(writer)
                yield revision
                revision.finish()
                writer.execute("COMMIT")
                self._changes += 1
                if self.path is not None:
                    seal(*sealed_files(self.path))
            except BaseException:
                with suppress(sqlite3.Error):
                    writer.execute("ROLLBACK")
                raise
