"""Changes of the index within one transaction."""

from __future__ import annotations

import marshal
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from loki_memory.index.database import create_schema

if TYPE_CHECKING:  # rows are made only when something changed
    from loki_memory.index.row import Entry, Row

Stamps = dict[str, tuple[int, int, int]]
ProblemRow = tuple[str, str, str, int, str]  # path, reason, field, line, advice
COLUMNS = (
    "id, kind, path, etag, status, scope, origin, at, until, agent, session, category, outcome, "
    "confidence, importance, pinned, parent, tombstone, title, size, body"
)
_UPSERT = (
    f"INSERT INTO memories ({COLUMNS}) VALUES ({', '.join('?' * 21)}) "  # noqa: S608
    "ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in COLUMNS.split(", ")[1:])
)
# Words are counted by SQLite itself, in tables that live for one change.
_SCRATCH = [
    statement
    for name in ("come", "gone")
    for statement in (
        f"DROP TABLE IF EXISTS temp.{name}",
        f"DROP TABLE IF EXISTS temp.{name}_words",
        (
            f"CREATE VIRTUAL TABLE temp.{name} USING fts5 "
            "(text, content = '', "
            "tokenize = \"unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'\")"
        ),
        f"CREATE VIRTUAL TABLE temp.{name}_words USING fts5vocab (temp, '{name}', 'row')",
    )
]
_COUNT_WORDS = "INSERT INTO temp.{} (text) VALUES (?)"
_PASSAGE = "INSERT INTO passages (memory, key, text) SELECT row, ?, ? FROM memories WHERE id = ?"
_MARK = "INSERT INTO marks SELECT ?, row FROM memories WHERE id = ?"
_EDGE = "INSERT OR REPLACE INTO edges VALUES (?, ?, ?, ?, ?)"
_BATCH = 1000
PACKING = 2  # the newest version of marshal that gives equal bytes for equal values


class Revision:
    """Changes of the index within one transaction."""

    is_empty = False  # whether it starts from nothing
    is_touched = False  # whether anything that can be recalled came, went or changed

    def __init__(self, database: sqlite3.Connection) -> None:
        self._db = database
        self._fingerprints: Counter[str] = Counter()
        for statement in _SCRATCH:
            database.execute(statement)

    def put(self, entry: Entry) -> None:
        """Add or replace a memory, keeping its row if it has one."""
        self._uncount("id = ?", entry.row.id)
        self._db.execute("DELETE FROM edges WHERE stated = ?", (entry.row.id,))
        self._db.execute(_UPSERT, entry.row)
        self._db.executemany(_EDGE, _edge_rows(entry))
        self._strip(entry.row.id)
        self._db.executemany(_PASSAGE, _passage_rows(entry))
        self._db.executemany(_MARK, _mark_rows(entry))
        counted = [(text,) for key, text in entry.passages if key]
        self._db.executemany(_COUNT_WORDS.format("come"), counted)
        self._fingerprints[entry.row.kind] ^= _fingerprint(entry.row.etag)
        self.is_touched = True

    def _strip(self, memory_id: str) -> None:
        """Take away what a memory was found by."""
        for table in ("passages", "marks"):
            self._db.execute(
                f"DELETE FROM {table} WHERE memory = (SELECT row FROM memories WHERE id = ?)",  # noqa: S608
                (memory_id,),
            )

    def remove_path(self, path: str, keep: str = "") -> None:
        """Remove the memories that stand in a file, except the one named."""
        self._uncount("path = ? AND id <> ?", path, keep)
        self._db.execute("DELETE FROM memories WHERE path = ? AND id <> ?", (path, keep))

    def _uncount(self, where: str, *values: str) -> None:
        sql = f"SELECT row, kind, etag FROM memories WHERE {where}"  # noqa: S608
        for row, kind, etag in self._db.execute(sql, values).fetchall():
            self._db.execute(
                "INSERT INTO temp.gone (text) SELECT text FROM passages "
                "WHERE memory = ? AND key <> 0",
                (row,),
            )
            self._fingerprints[kind] ^= _fingerprint(etag)
            self.is_touched = True

    def has(self, memory_id: str) -> bool:
        found = self._db.execute("SELECT 1 FROM memories WHERE id = ?", (memory_id,))
        return found.fetchone() is not None

    def path_of(self, memory_id: str) -> str | None:
        sql = "SELECT path FROM memories WHERE id = ?"
        found = self._db.execute(sql, (memory_id,)).fetchone()
        return found[0] if found else None

    def add_problem(self, problem: ProblemRow) -> None:
        self._db.execute(
            "INSERT INTO problems (path, reason, field, line, advice) VALUES (?, ?, ?, ?, ?)",
            problem,
        )

    def note_file(self, path: str, digest: str, claims: str, *, held: bool = True) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", (path, digest, claims, int(held))
        )

    def hash_of(self, path: str) -> str | None:
        found = self._db.execute("SELECT hash FROM files WHERE path = ?", (path,)).fetchone()
        return found[0] if found else None

    def forget_file(self, path: str) -> None:
        self._db.execute("DELETE FROM files WHERE path = ?", (path,))

    def claimants(self, memory_id: str) -> list[str]:
        # A partial index serves a bound value only if the statement says that it is not empty.
        sql = "SELECT path FROM files WHERE claims = ? AND claims <> '' ORDER BY path"
        return [row[0] for row in self._db.execute(sql, (memory_id,))]

    def losers(self) -> list[str]:
        """Ids that some file claims and does not hold."""
        return [r[0] for r in self._db.execute("SELECT DISTINCT claims FROM files WHERE held = 0")]

    def set_problems(self, path: str, problems: Sequence[ProblemRow]) -> None:
        self._db.execute("DELETE FROM problems WHERE path = ?", (path,))
        self._db.executemany(
            "INSERT INTO problems (path, reason, field, line, advice) VALUES (?, ?, ?, ?, ?)",
            problems,
        )

    def set_folders(self, folders: Mapping[str, tuple[int, Stamps] | None]) -> None:
        """Remember folders as they were seen; None forgets one that is gone."""
        for path, seen in folders.items():
            if seen is None:
                self._db.execute("DELETE FROM folders WHERE path = ?", (path,))
            else:
                self._db.execute(
                    "INSERT OR REPLACE INTO folders VALUES (?, ?, ?)",
                    (path, seen[0], marshal.dumps(seen[1], PACKING)),
                )

    def set_note(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value))

    def finish(self) -> None:
        """Bring the counts of words and the fingerprints up to date, once for all changes."""
        for table, sign in (("come", 1), ("gone", -1)):
            self._db.execute(
                f"INSERT INTO vocabulary (word, uses) SELECT term, {sign} * doc "  # noqa: S608
                f"FROM temp.{table}_words WHERE length(term) BETWEEN 2 AND 64 "
                "ON CONFLICT (word) DO UPDATE SET uses = uses + excluded.uses"
            )
        self._db.execute(
            "DELETE FROM vocabulary WHERE uses <= 0 AND word IN (SELECT term FROM temp.gone_words)"
        )
        for kind, change in self._fingerprints.items():
            self._db.execute(
                "INSERT OR REPLACE INTO fingerprints VALUES (?, ?)",
                (kind, self._fingerprint(kind) ^ change),
            )

    def _fingerprint(self, kind: str) -> int:
        sql = "SELECT value FROM fingerprints WHERE kind = ?"
        found = self._db.execute(sql, (kind,)).fetchone()
        return int(found[0]) if found else 0


class Rebuilding(Revision):
    """The same from nothing: many rows at a time, and full text once at the end.

    FTS5 takes a sixth of the time for "rebuild" that it takes for as many single inserts.
    """

    is_empty = True

    def __init__(self, database: sqlite3.Connection) -> None:
        super().__init__(database)
        create_schema(database)
        self._later = database.execute(
            "SELECT type, name, sql FROM sqlite_schema "
            "WHERE type = 'trigger' OR (type = 'index' AND sql IS NOT NULL)"
        ).fetchall()
        for kind, name, _ in self._later:
            database.execute(f'DROP {kind} "{name}"')
        self._ids: set[str] = set()
        self._paths: set[str] = set()
        self._claims: dict[str, list[str]] = {}
        self._rows: list[Row] = []
        self._edges: list[tuple[str, str, str, float, str]] = []
        self._passages: list[tuple[int, str, str]] = []
        self._marks: list[tuple[str, str]] = []
        self._files: list[tuple[str, str, str, int]] = []

    def put(self, entry: Entry) -> None:
        if entry.row.id in self._ids:  # two files claim one id: the later one until it is settled
            self._flush()
            self._db.execute("DELETE FROM edges WHERE stated = ?", (entry.row.id,))
            self._strip(entry.row.id)
        self._ids.add(entry.row.id)
        self._paths.add(entry.row.path)
        self._rows.append(entry.row)
        self._edges += _edge_rows(entry)
        self._passages += _passage_rows(entry)
        self._marks += _mark_rows(entry)
        if len(self._rows) >= _BATCH:
            self._flush()

    def _uncount(self, where: str, *values: str) -> None:
        """Nothing is counted before the end."""

    def _flush(self) -> None:
        self._db.executemany(_UPSERT, self._rows)
        self._db.executemany(_EDGE, self._edges)
        self._db.executemany(_PASSAGE, self._passages)
        self._db.executemany(_MARK, self._marks)
        self._db.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", self._files)
        self._rows, self._edges, self._files = [], [], []
        self._passages, self._marks = [], []

    def has(self, memory_id: str) -> bool:
        self._flush()
        return super().has(memory_id)

    def path_of(self, memory_id: str) -> str | None:
        self._flush()
        return super().path_of(memory_id)

    def note_file(self, path: str, digest: str, claims: str, *, held: bool = True) -> None:
        self._files.append((path, digest, claims, int(held)))
        if claims and path not in self._claims.setdefault(claims, []):
            self._claims[claims].append(path)

    def hash_of(self, path: str) -> str | None:  # noqa: ARG002 - nothing is known of any file
        return None

    def claimants(self, memory_id: str) -> list[str]:
        return sorted(self._claims.get(memory_id, []))

    def remove_path(self, path: str, keep: str = "") -> None:
        if not keep and path in self._paths:  # a file that was just read has left nothing behind
            self._flush()
            super().remove_path(path)

    def set_problems(self, path: str, problems: Sequence[ProblemRow]) -> None:
        if problems:
            super().set_problems(path, problems)

    def losers(self) -> list[str]:
        self._flush()
        return super().losers()

    def finish(self) -> None:
        self._flush()
        self._db.execute(
            "INSERT INTO temp.come (rowid, text) SELECT row, text FROM passages WHERE key <> 0"
        )
        for kind, etag in self._db.execute("SELECT kind, etag FROM memories"):
            self._fingerprints[kind] ^= _fingerprint(etag)
        super().finish()
        self._db.execute("INSERT INTO words (words) VALUES ('rebuild')")
        self._db.execute("INSERT INTO parts (parts) VALUES ('rebuild')")
        for _, _, sql in self._later:
            self._db.execute(sql)


def _fingerprint(etag: str) -> int:
    """60 bits of a hash: SQLite's integers are signed."""
    return int(etag[:15], 16)


def _edge_rows(entry: Entry) -> list[tuple[str, str, str, float, str]]:
    return [(entry.source, e.target, e.relation, e.weight, entry.row.id) for e in entry.edges]


def _passage_rows(entry: Entry) -> list[tuple[int, str, str]]:
    return [(key, text, entry.row.id) for key, text in entry.passages]


def _mark_rows(entry: Entry) -> list[tuple[str, str]]:
    return [(mark, entry.row.id) for mark in entry.marks]
