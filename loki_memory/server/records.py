"""Record files as rows, and changes of them in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from loki_memory.embedding import load as load_embedding
from loki_memory.files.layout import kind_of
from loki_memory.files.scan import etag
from loki_memory.files.store import Stored
from loki_memory.sync.apply import entry_in

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from loki_memory.embedding.static_model import Embedding
    from loki_memory.server.database import Connection

T = TypeVar("T")

_AT_ONCE = 500  # rows of one statement
_SILENT = ("link", "tombstone")  # kinds that are not searched by their text
_LONGEST_WORDS = 100_000  # characters of a passage: PostgreSQL takes a megabyte of distinct words
_PUT = """
INSERT INTO loki.records (repository, path, version, id, kind, title, status,
  value, etag, content, pushed_by)
SELECT %(repository)s, path, %(version)s, id, kind, title, status,
  value, etag, content, %(pushed_by)s
FROM unnest(%(path)s::text[], %(id)s::text[], %(kind)s::text[], %(title)s::text[],
  %(status)s::text[], %(value)s::text[], %(etag)s::text[], %(content)s::bytea[])
  AS come (path, id, kind, title, status, value, etag, content)
ON CONFLICT (repository, path) DO UPDATE SET version = excluded.version, id = excluded.id,
  kind = excluded.kind, title = excluded.title, status = excluded.status, value = excluded.value,
  etag = excluded.etag, content = excluded.content, pushed_by = excluded.pushed_by, gone = false
"""
_REMOVE = """
UPDATE loki.records SET version = %s, gone = true, content = '', title = '', etag = ''
WHERE repository = %s AND path = ANY (%s) AND NOT gone
"""
_PUT_PASSAGES = """
INSERT INTO loki.passages (repository, path, number, words, meaning)
SELECT %s, path, number, to_tsvector('english', words), meaning::vector
FROM unnest(%s::text[], %s::int[], %s::text[], %s::text[]) AS come (path, number, words, meaning)
"""


class ServedFile(NamedTuple):
    """A record file, and the texts by which it is found."""

    path: str
    id: str
    kind: str
    title: str
    status: str
    value: str  # the id that a tombstone of its value has
    etag: str
    content: bytes
    passages: tuple[str, ...]


class _PassageRow(NamedTuple):
    path: str
    number: int
    words: str
    meaning: str


def row_of(path: str, content: bytes) -> ServedFile:
    """The row of a file; one that cannot be read is kept for replicas, which report it."""
    stamp = etag(content)
    entry = entry_in(path, Stored(content, stamp))[0] if kind_of(path) else None
    if entry is None:
        return ServedFile(path, "", "", "", "", "", stamp, content, ())
    found = entry.row
    texts = () if found.kind in _SILENT else tuple(text for key, text in entry.passages if key)
    told = (found.id, found.kind, found.title, found.status, found.tombstone)
    return ServedFile(path, *told, stamp, content, texts)


def put(
    connection: Connection,
    repository: int,
    version: int,
    rows: Iterable[ServedFile],
    pushed_by: int | None = None,
) -> None:
    """Add or replace rows, and the passages by which they are found."""
    for some in _batches(rows):
        columns = {name: [getattr(row, name) for row in some] for name in ServedFile._fields[:-1]}
        given = {"repository": repository, "version": version, "pushed_by": pushed_by}
        connection.execute(_PUT, {**given, **columns})
        _drop_passages(connection, repository, columns["path"])
        for passages in _batches(_passages(some)):
            columns_of_passages = [list(column) for column in zip(*passages, strict=True)]
            connection.execute(_PUT_PASSAGES, (repository, *columns_of_passages))


def remove(connection: Connection, repository: int, version: int, paths: Sequence[str]) -> int:
    """Mark rows as gone, without their content; returns how many there were."""
    _drop_passages(connection, repository, paths)
    return connection.execute(_REMOVE, (version, repository, list(paths))).rowcount


def contents(connection: Connection, repository: int) -> dict[str, bytes]:
    """All files of a repository by path."""
    rows = connection.execute(
        "SELECT path, content FROM loki.records WHERE repository = %s AND NOT gone", (repository,)
    )
    return dict(rows.fetchall())


def changed_since(
    connection: Connection, repository: int, version: int
) -> tuple[dict[str, bytes], list[str]]:
    """The files that changed after a version, and the paths of those that are gone since."""
    rows = connection.execute(
        "SELECT path, content, gone FROM loki.records WHERE repository = %s AND version > %s",
        (repository, version),
    ).fetchall()
    return {path: data for path, data, gone in rows if not gone}, [row[0] for row in rows if row[2]]


def etags(connection: Connection, repository: int) -> Mapping[str, str]:
    """The etags of what is known from git, by path."""
    rows = connection.execute(
        "SELECT path, etag FROM loki.records "
        "WHERE repository = %s AND pushed_by IS NULL AND NOT gone",
        (repository,),
    )
    return dict(rows.fetchall())


def as_vector(values: NDArray[np.float32]) -> str:
    """A vector as pgvector reads it."""
    return f"[{','.join(map(repr, values.tolist()))}]"


@cache
def embedding() -> Embedding:
    """The bundled model: every repository is embedded alike, so that they can be compared."""
    return load_embedding()


def _passages(rows: Sequence[ServedFile]) -> Iterator[_PassageRow]:
    texts = [(row.path, number, text) for row in rows for number, text in enumerate(row.passages)]
    if not texts:
        return
    vectors = embedding().encode([text for _, _, text in texts]).vectors
    for (path, number, text), vector in zip(texts, vectors, strict=True):
        yield _PassageRow(path, number, text.replace("\0", " ")[:_LONGEST_WORDS], as_vector(vector))


def _drop_passages(connection: Connection, repository: int, paths: Sequence[str]) -> None:
    connection.execute(
        "DELETE FROM loki.passages WHERE repository = %s AND path = ANY (%s)",
        (repository, list(paths)),
    )


def _batches(rows: Iterable[T]) -> Iterator[list[T]]:
    waiting = iter(rows)
    while some := list(islice(waiting, _AT_ONCE)):
        yield some
