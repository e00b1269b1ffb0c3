"""Changes of the index within one transaction."""

from __future__ import annotations

import marshal
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.index.database import Digests, create_schema

if TYPE_CHECKING:  # rows are made only when something changed
    from loki_memory.index.row import IndexEntry, Row

Stamps = dict[str, tuple[int, int, int]]
EdgeRow = tuple[str, str, str, float, str]  # source, target, relation, weight, stated
PassageRow = tuple[int, int, str]  # row, key, text
ProblemRow = tuple[str, str, str, int, str]  # path, reason, field, line, advice
VectorRow = tuple[str, int, int, bytes, bytes]  # model, key, length, tokens, vector
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
_PASSAGE = "INSERT INTO passages (memory, key, text) VALUES (?, ?, ?)"
_PASSAGE_BY_ID = (
    "INSERT INTO passages (key, text, memory) "
    "VALUES (?, ?, (SELECT row FROM memories WHERE id = ?))"
)
_MARK_BY_ID = "INSERT INTO marks VALUES (?, (SELECT row FROM memories WHERE id = ?))"
_PASSAGES_OF = "SELECT row, key, text FROM passages WHERE memory = ? ORDER BY row"
_WORDS = "INSERT INTO words (rowid, text) VALUES (?, ?)"
_NO_WORDS = "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)"
_EDGE = "INSERT OR REPLACE INTO edges VALUES (?, ?, ?, ?, ?)"
_NO_EDGE = (
    "DELETE FROM edges "
    "WHERE source = ? AND target = ? AND relation = ? AND weight = ? AND stated = ?"
)
_EDGES_OF = "SELECT source, target, relation, weight, stated FROM edges WHERE stated = ?"
_MARK = "INSERT INTO marks VALUES (?, ?)"
_NO_MARK = "DELETE FROM marks WHERE mark = ? AND memory = ?"
_BATCH = 1000
PACKING = 2  # the newest version of marshal that gives equal bytes for equal values


class _Dependents(NamedTuple):
    """The rows of other tables that belong to a memory."""

    edges: list[EdgeRow]
    passages: list[PassageRow]
    marks: list[str]


class FeatureRow(NamedTuple):
    """A file as a run of consolidation left it, and the features of the episode in it."""

    path: str
    etag: str
    version: str
    body: str


class Revision:
    """Changes of the index within one transaction."""

    is_empty = False  # True if the index is built from nothing
    is_touched = False  # True if anything that can be recalled changed

    def __init__(self, database: sqlite3.Connection) -> None:
        self._db = database
        self._fingerprints: Counter[str] = Counter()
        self._gone: list[PassageRow] = []  # passages: row, key, text
        self._come: dict[int, tuple[int, str]] = {}  # the same by row
        for statement in _SCRATCH:
            database.execute(statement)
        self._digests = Digests(database)
        if not self.is_empty:
            self._digests.follow()

    def put(self, entry: IndexEntry) -> None:
        """Add or replace a memory, keeping its row if it has one.

        Most changes of a record leave its text alone, and add one edge to many: rows that stay the
        same are not deleted and inserted again.
        """
        sql = "SELECT row, kind, path, etag FROM memories WHERE id = ?"
        found = self._db.execute(sql, (entry.row.id,)).fetchone()
        new = self._put_row(_UPSERT, entry.row)
        self._fingerprints[entry.row.kind] ^= _fingerprint(entry.row.path, entry.row.etag)
        if found:
            self._fingerprints[found[1]] ^= _fingerprint(*found[2:])
            self._put_dependents(entry, found[0], self._dependents(entry.row.id, found[0]))
        else:
            self._put_dependents(entry, new, _Dependents([], [], []))
        self.is_touched = True

    def _dependents(self, memory_id: str, row: int) -> _Dependents:
        edges = self._db.execute(_EDGES_OF, (memory_id,)).fetchall()
        passages = self._db.execute(_PASSAGES_OF, (row,)).fetchall()
        marks = self._db.execute("SELECT mark FROM marks WHERE memory = ?", (row,))
        return _Dependents(edges, passages, [mark for (mark,) in marks])

    def _put_dependents(self, entry: IndexEntry, row: int, old: _Dependents) -> None:
        by_key = {edge[:3]: edge for edge in _edge_rows(entry)}  # of two weights the last counts
        self._replace(old.edges, list(by_key.values()), _NO_EDGE, _EDGE)
        known, marks = ([(mark, row) for mark in some] for some in (old.marks, entry.marks))
        self._replace(known, marks, _NO_MARK, _MARK)
        if [passage[1:] for passage in old.passages] != entry.passages:
            self._leave(old.passages)
            self._db.executemany(
                "DELETE FROM passages WHERE row = ?", [p[:1] for p in old.passages]
            )
            for key, text in entry.passages:
                self._come[self._put_row(_PASSAGE, (row, key, text))] = (key, text)

    def _put_row(self, sql: str, values: Sequence[object]) -> int:
        """Insert a row and return its number."""
        return self._db.execute(sql, values).lastrowid or 0

    def _replace(self, old: list[Any], new: list[Any], remove: str, add: str) -> None:
        before, after = set(old), set(new)
        self._db.executemany(remove, [row for row in old if row not in after])
        self._db.executemany(add, [row for row in new if row not in before])

    def remove_path(self, path: str, keep: str = "") -> None:
        """Remove the memories of a file, except the one named."""
        sql = "SELECT row, kind, etag FROM memories WHERE path = ? AND id <> ?"
        for row, kind, etag in self._db.execute(sql, (path, keep)).fetchall():
            self._uncount(row, kind, _fingerprint(path, etag))
            self._db.execute("DELETE FROM memories WHERE row = ?", (row,))

    def _uncount(self, row: int, kind: str, fingerprint: int) -> None:
        self._leave(self._db.execute(_PASSAGES_OF, (row,)).fetchall())
        self._fingerprints[kind] ^= fingerprint
        self.is_touched = True

    def _leave(self, passages: list[PassageRow]) -> None:
        """Note removed passages; one that was added in this change is not in the full text."""
        self._gone += [passage for passage in passages if self._come.pop(passage[0], None) is None]

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
        """Ids that a file claims while another file has them."""
        return [r[0] for r in self._db.execute("SELECT DISTINCT claims FROM files WHERE held = 0")]

    def set_problems(self, path: str, problems: Sequence[ProblemRow]) -> None:
        self._db.execute("DELETE FROM problems WHERE path = ?", (path,))
        self._db.executemany(
            "INSERT INTO problems (path, reason, field, line, advice) VALUES (?, ?, ?, ?, ?)",
            problems,
        )

    def set_folders(self, folders: Mapping[str, tuple[int, Stamps] | None]) -> None:
        """Store folders as they were scanned; None deletes one that is gone."""
        for path, seen in folders.items():
            if seen is None:
                self._db.execute("DELETE FROM folders WHERE path = ?", (path,))
            else:
                self._db.execute(
                    "INSERT OR REPLACE INTO folders VALUES (?, ?, ?)",
                    (path, seen[0], marshal.dumps(seen[1], PACKING)),
                )

    def keep_features(self, version: str, rows: Iterable[FeatureRow], gone: Iterable[str]) -> None:
        """Keep files as a run of this version left them; drop those of others, and what is gone."""
        self._db.execute("DELETE FROM features WHERE version <> ?", (version,))
        self._db.executemany("DELETE FROM features WHERE path = ?", ((path,) for path in gone))
        self._db.executemany("INSERT OR REPLACE INTO features VALUES (?, ?, ?, ?)", rows)

    def follow(self, path: str, before: str | None, after: str) -> None:
        """Let a file that was rewritten count as the last run left it, if it was as it left it.

        The same holds for one that is new, unless the last run left another one in its place.
        """
        if before is None:
            sql = "INSERT OR IGNORE INTO features SELECT ?, ?, version, '' FROM features LIMIT 1"
            self._db.execute(sql, (path, after))
        else:
            sql = "UPDATE features SET etag = ? WHERE path = ? AND etag = ?"
            self._db.execute(sql, (after, path, before))

    def set_note(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value))

    def put_vectors(self, rows: Sequence[VectorRow]) -> None:
        self._db.executemany(
            "INSERT INTO vectors (model, key, length, tokens, vector) VALUES (?, ?, ?, ?, ?)", rows
        )

    def drop_unused_vectors(self) -> None:
        """Delete the vectors of texts that no passage has."""
        self._db.execute("DELETE FROM vectors WHERE key NOT IN (SELECT key FROM passages)")

    def drop_other_vectors(self, *kept: str) -> int:
        """Delete the vectors of all models but some; return how many there were."""
        marks = ",".join("?" * len(kept))
        sql = f"DELETE FROM vectors WHERE model NOT IN ({marks})"  # noqa: S608 - only marks
        return self._db.execute(sql, kept).rowcount

    def finish(self) -> None:
        """Bring full text, counts of words and fingerprints up to date, once for all changes."""
        self._enter_words()
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
        self._digests.store()

    def _enter_words(self) -> None:
        """Passages that go before those that come: a row may be used again.

        Not by triggers: FTS5 writes what it has gathered to disk whenever another statement could
        be rolled back by itself, and so does every statement that fires a trigger.
        """
        come = [(row, key, text) for row, (key, text) in self._come.items()]
        for sql, passages in ((_NO_WORDS, self._gone), (_WORDS, come)):
            self._db.executemany(sql, [(row, text) for row, _, text in passages])
        for table, passages in (("gone", self._gone), ("come", come)):
            counted = [(text,) for _, key, text in passages if key]
            self._db.executemany(f"INSERT INTO temp.{table} (text) VALUES (?)", counted)  # noqa: S608

    def _fingerprint(self, kind: str) -> int:
        sql = "SELECT value FROM fingerprints WHERE kind = ?"
        found = self._db.execute(sql, (kind,)).fetchone()
        return int(found[0]) if found else 0


class Rebuilding(Revision):
    """The same for an empty index: many rows at a time, and full text once at the end.

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
        self._edges: list[EdgeRow] = []
        self._passages: list[tuple[int, str, str]] = []
        self._marks: list[tuple[str, str]] = []
        self._files: list[tuple[str, str, str, int]] = []

    def put(self, entry: IndexEntry) -> None:
        if entry.row.id in self._ids:  # two files claim one id: the later one until it is settled
            self._flush()
            self._strip(entry.row.id)
        self._ids.add(entry.row.id)
        self._paths.add(entry.row.path)
        self._rows.append(entry.row)
        self._edges += _edge_rows(entry)
        self._passages += [(key, text, entry.row.id) for key, text in entry.passages]
        self._marks += [(mark, entry.row.id) for mark in entry.marks]
        if len(self._rows) >= _BATCH:
            self._flush()

    def _strip(self, memory_id: str) -> None:
        self._db.execute("DELETE FROM edges WHERE stated = ?", (memory_id,))
        for table in ("passages", "marks"):
            self._db.execute(
                f"DELETE FROM {table} WHERE memory = (SELECT row FROM memories WHERE id = ?)",  # noqa: S608
                (memory_id,),
            )

    def _uncount(self, row: int, kind: str, fingerprint: int) -> None:
        """Do nothing: words are counted at the end."""

    def _flush(self) -> None:
        self._db.executemany(_UPSERT, self._rows)
        self._db.executemany(_EDGE, self._edges)
        self._db.executemany(_PASSAGE_BY_ID, self._passages)
        self._db.executemany(_MARK_BY_ID, self._marks)
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
        for kind, path, etag in self._db.execute("SELECT kind, path, etag FROM memories"):
            self._fingerprints[kind] ^= _fingerprint(path, etag)
        super().finish()
        self._db.execute("INSERT INTO words (words) VALUES ('rebuild')")
        self._db.execute("INSERT INTO parts (parts) VALUES ('rebuild')")
        for _, _, sql in self._later:
            self._db.execute(sql)
        self._digests.store_anew()


def _fingerprint(path: str, etag: str) -> int:
    """Of a file and what it says, which may depend on where it lies: a folder can be a date.

    60 bits of a hash: SQLite's integers are signed.
    """
    return int.from_bytes(blake2b(f"{path} {etag}".encode(), digest_size=8).digest()) >> 4


def _edge_rows(entry: IndexEntry) -> list[EdgeRow]:
    return [(entry.source, e.target, e.relation, e.weight, entry.row.id) for e in entry.edges]
