"""The catalogue: plain arrays of all that ranking knows of every memory, in the order of sessions.

Making it means reading one line per passage and embedding texts that were never embedded: some
15 ms for 10,000 memories, and done again after each change of the index. So it is kept in a file,
which holds for one state of index and vectors only.
"""

from __future__ import annotations

import marshal
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np

from loki_memory.files import disk
from loki_memory.models.kinds import KINDS, SCOPES, STATUSES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loki_memory.embedding.static_model import Embedding
    from loki_memory.index.index import Index
    from loki_memory.index.vectors import Vectors

    Ints = NDArray[np.int32]
    Floats = NDArray[np.float32]
    Codes = NDArray[np.uint8]
    Progress = Callable[[int, int], None]

UNKNOWN_DAY = -(2**31)
NEVER = 2**31 - 1
_VERSION = 5  # of the file
_BATCH = 2000  # texts that are embedded and written at a time
_EMPTY = np.zeros(0, np.int32)


class Corpus(NamedTuple):
    """All documents and their passages."""

    row: Ints  # per document: its row in the index
    kind: Codes  # its place in KINDS
    session: Ints  # a number per session; -1 for none
    length: Ints  # tokens of the whole document, repeated ones too
    centre: Floats  # its middle, in tokens since the start of its session
    day: Ints  # of the moment it speaks of, since 1970; UNKNOWN_DAY if it does not say
    speaker: Ints  # a number per agent or speaker; -1 for none
    first: Ints  # documents + 1: passages of document d are first[d] … first[d + 1] - 1
    document: Ints  # per passage: its document
    tokens: NDArray[np.uint32]  # distinct token ids of all passages, one after the other
    starts: NDArray[np.int64]  # passages + 1: where each passage's tokens begin
    rarity: Floats  # per token id: ln(1 + (N - n + .5) / (n + .5)) over passages


class Catalogue(NamedTuple):
    """The corpus with what finding candidates needs besides."""

    corpus: Corpus
    status: Codes  # per document: its place in STATUSES
    scope: Codes  # … in SCOPES
    until: Ints  # … the day from which on it does not hold; a day that never comes if it does
    size: Ints  # … bytes of the whole record
    foreign: Codes  # 1 where the memory was imported or comes from outside
    unproven: Codes  # 1 where it is not told unasked: `gate.PROVEN`
    passage: Ints  # per passage: its row in the index, and in the full text
    entry: Ints  # per passage: its entry among the vectors; -1 for none
    norm: Floats  # per passage: length of its vector less half of the mean
    mean: Floats  # of all vectors
    sessions: list[str]
    speakers: list[str]


def load(
    index: Index,
    vectors: Vectors,
    embedding: Embedding,
    file: Path | None,
    progress: Progress | None = None,
) -> Catalogue:
    """The catalogue of what the index says now."""
    stamp = _stamp(index, vectors, embedding)
    found = _read(file, stamp) if file else None
    if found is not None:
        return found
    changed = index.note("changed_ns")
    made = _make(index, vectors, embedding, progress)
    if file and index.note("changed_ns") == changed:  # else it is of a state that is gone
        with suppress(OSError):  # a read-only checkout makes it anew each time
            _write(file, _stamp(index, vectors, embedding), made)
    return made


def _stamp(index: Index, vectors: Vectors, embedding: Embedding) -> bytes:
    state = (_VERSION, index.note("changed_ns"), embedding.name, *vectors.state)
    return repr(state).encode() + b"\n"


def _make(
    index: Index, vectors: Vectors, embedding: Embedding, progress: Progress | None
) -> Catalogue:
    from loki_memory.index.queries import passage_columns

    found = passage_columns(index)
    entry = _entries(index, vectors, embedding, np.array(found.key, np.uint64), progress)
    of_row = np.array(found.memory, np.int32)
    first, document = _documents(of_row)
    session_names, session_codes = _coded(found.session, first)
    speakers, speaker_codes = _coded(found.agent, first)
    length = _lengths(vectors, entry, document, len(first))
    tokens, starts = _tokens(vectors, entry)
    mean, norm = _centre_of(vectors, entry)
    corpus = Corpus(
        row=of_row[first],
        kind=_codes(found.kind, first, KINDS),
        session=session_codes,
        length=length,
        centre=_centres(length, session_codes),
        day=_days([found.at[n][:10] for n in first.tolist()]),
        speaker=speaker_codes,
        first=np.append(first, np.int32(len(of_row))).astype(np.int32),
        document=document,
        tokens=tokens,
        starts=starts,
        rarity=_rarity(tokens, embedding.vocabulary, int((entry >= 0).sum())),
    )
    return Catalogue(
        corpus=corpus,
        status=_codes(found.status, first, STATUSES),
        scope=_codes(found.scope, first, SCOPES),
        until=_ends([found.until[n][:10] for n in first.tolist()]),
        size=np.array(found.size, np.int32)[first],
        foreign=np.array(found.foreign, np.uint8)[first],
        unproven=np.array(found.unproven, np.uint8)[first],
        passage=np.array(found.passage, np.int32),
        entry=entry,
        norm=norm,
        mean=mean,
        sessions=session_names,
        speakers=speakers,
    )


def _documents(of_row: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The first passage of each memory, and the number of the memory of each passage."""
    is_first = np.concatenate([[True], of_row[1:] != of_row[:-1]])[: len(of_row)]
    first = np.flatnonzero(is_first).astype(np.int32)
    return first, (np.cumsum(is_first) - 1).astype(np.int32)


def _lengths(
    vectors: Vectors, entry: NDArray[np.int32], document: NDArray[np.int32], number: int
) -> NDArray[np.int32]:
    """The tokens of each memory, over all its passages that have a vector."""
    known = entry >= 0
    lengths = np.zeros(len(entry), np.int32)
    lengths[known] = vectors.lengths(entry[known])
    return np.bincount(document, lengths, number).astype(np.int32)


def _entries(
    index: Index,
    vectors: Vectors,
    embedding: Embedding,
    keys: NDArray[np.uint64],
    progress: Progress | None,
) -> NDArray[np.int32]:
    """The entry of each passage among the vectors, made where there is none."""
    if int(vectors.tokens.max(initial=0)) >= embedding.vocabulary:
        vectors.forget()
    vectors.refresh(index)
    entry = vectors.find(keys)
    missing = np.unique(keys[(entry < 0) & (keys > 0)])
    if len(missing):
        embed(index, vectors, embedding, missing.tolist(), progress)
        with suppress(sqlite3.OperationalError):  # another process is at work
            vectors.drop_unused(index, keys)
        entry = vectors.find(keys)
    entry[keys == 0] = -1
    return entry


def embed(
    index: Index,
    vectors: Vectors,
    embedding: Embedding,
    keys: Sequence[int],
    progress: Progress | None = None,
) -> None:
    """Embed the passages that have these keys, some at a time."""
    from loki_memory.index.queries import passage_texts

    for done in range(0, len(keys), _BATCH):
        if progress and len(keys) > _BATCH:
            progress(done, len(keys))
        texts = passage_texts(index, keys[done : done + _BATCH])
        tokens, found = embedding.encode(list(texts.values()))
        vectors.add(index, list(texts), found, tokens)


def _coded(names: Sequence[str], first: NDArray[np.int32]) -> tuple[list[str], NDArray[np.int32]]:
    """A number for each different name, in the order of appearance; -1 for the empty one."""
    numbers: dict[str, int] = {"": -1}
    chosen = [names[n] for n in first.tolist()]
    codes = [numbers.setdefault(name, len(numbers) - 1) for name in chosen]
    return list(numbers)[1:], np.array(codes, np.int32)


def _codes(
    values: Sequence[str], first: NDArray[np.int32], names: Sequence[str]
) -> NDArray[np.uint8]:
    number = {name: place for place, name in enumerate(names)}
    return np.array([number.get(values[n], 255) for n in first.tolist()], np.uint8)


def _days(dates: Sequence[str]) -> NDArray[np.int32]:
    if not dates:
        return _EMPTY
    try:
        days = np.array([date or "NaT" for date in dates], "datetime64[D]")
    except ValueError:  # a year that numpy does not read; no date is better than none of all
        return np.full(len(dates), UNKNOWN_DAY, np.int32)
    return np.where(np.isnat(days), UNKNOWN_DAY, days.astype(np.int64)).astype(np.int32)


def _ends(dates: Sequence[str]) -> NDArray[np.int32]:
    days = _days(dates)
    return np.where(days == UNKNOWN_DAY, NEVER, days).astype(np.int32)


def _centres(length: NDArray[np.int32], session: NDArray[np.int32]) -> NDArray[np.float32]:
    """The middle of each document, counted in tokens from the start of its session."""
    if not len(length):
        return np.zeros(0, np.float32)
    ends = np.cumsum(length, dtype=np.int64)
    begins = ends - length
    opens = np.concatenate([[True], session[1:] != session[:-1]])
    offset = np.maximum.accumulate(np.where(opens, begins, 0))
    return (begins - offset + length / 2).astype(np.float32)


def _tokens(
    vectors: Vectors, entry: NDArray[np.int32]
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The tokens of all passages, in the order of the passages."""
    counts = np.zeros(len(entry), np.int64)
    begins = np.zeros(len(entry), np.int64)
    known = entry >= 0
    if known.any():
        begins[known], ends = vectors.spans(entry[known])
        counts[known] = ends - begins[known]
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    places = np.arange(starts[-1]) + np.repeat(begins - starts[:-1], counts)
    return np.asarray(vectors.tokens[places], np.uint32), starts


def _centre_of(
    vectors: Vectors, entry: NDArray[np.int32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The mean vector, and how long each vector is once half of the mean is taken off."""
    matrix = vectors.matrix
    used = entry[entry >= 0]
    norm = np.ones(len(entry), np.float32)
    if not len(used):
        return np.zeros(matrix.shape[1], np.float32), norm
    weights = np.bincount(used, minlength=len(matrix)).astype(np.float32)
    mean = (weights @ matrix / np.float32(len(used))).astype(np.float32)
    squares = 1 - (matrix @ mean)[used] + mean @ mean / 4
    norm[entry >= 0] = np.sqrt(np.maximum(squares, 1e-6))
    return mean, norm


def _rarity(tokens: NDArray[np.uint32], vocabulary: int, passages: int) -> NDArray[np.float32]:
    uses = np.bincount(tokens, minlength=vocabulary)
    return np.log1p((passages - uses + 0.5) / (uses + 0.5)).astype(np.float32)


# -- the file -------------------------------------------------------------------------------------
# A stamp, then all names and the kinds and sizes of the arrays, then the arrays. numpy's own
# format would take 2 ms to read twenty headers.


def _write(file: Path, stamp: bytes, catalogue: Catalogue) -> None:
    """Complete or not at all."""
    arrays = [np.ascontiguousarray(array) for array in (*catalogue.corpus, *catalogue[1:-2])]
    shapes = [(array.dtype.str, array.size) for array in arrays]
    head = marshal.dumps((catalogue.sessions, catalogue.speakers, shapes))
    body = b"".join([len(head).to_bytes(8, "little"), head, *(array.data for array in arrays)])
    disk.replace_plainly(file, stamp + crc32(body).to_bytes(4, "little") + body)


def _read(file: Path, stamp: bytes) -> Catalogue | None:
    """The catalogue in a file; None if it holds another state, or is damaged."""
    try:
        data = disk.read_bytes(file) or b""
        if not data.startswith(stamp):
            return None
        body = len(stamp) + 4
        if int.from_bytes(data[len(stamp) : body], "little") != crc32(memoryview(data)[body:]):
            return None
        place = body + 8
        end = place + int.from_bytes(data[body:place], "little")
        sessions, speakers, shapes = marshal.loads(data[place:end])  # noqa: S302 - our own cache
        arrays: list[Any] = []
        for kind, size in shapes:
            arrays.append(np.frombuffer(data, kind, size, end))
            end += arrays[-1].nbytes
    except (OSError, ValueError, EOFError, TypeError):
        return None
    own = len(Corpus._fields)
    return Catalogue._make([Corpus._make(arrays[:own]), *arrays[own:], sessions, speakers])
