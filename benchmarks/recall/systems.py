"""Ways to find documents: ours through the library face, and plain ones to compare it with.

Each takes documents and answers a question with their ids, best first.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from data import Document

from loki_memory import Workspace
from loki_memory.editing.edits import statement
from loki_memory.files.codec import encode
from loki_memory.files.layout import place
from loki_memory.files.redaction import redact

DEPTH = 20  # documents that each is asked for


class System(Protocol):
    def ranked(self, question: str) -> list[str]: ...


# -- ours ------------------------------------------------------------------------------------------


class Ours:
    """One memory per document, recalled through Workspace."""

    def __init__(self, documents: Iterable[Document], folder: Path, *, bulk: bool = False) -> None:
        folder.mkdir(parents=True)
        self.workspace = Workspace.init(folder)
        self.documents: dict[str, str] = {}  # id of a memory: id of its document
        if bulk:
            self.documents.update(written(self.workspace, documents))
        else:
            for document in documents:
                self.add(document)
        self.workspace.home.embed()

    def add(self, document: Document) -> None:
        memory = self.workspace.remember(
            document.text,
            kind="fact",
            by=document.by,
            session=document.session,
            at=document.at,
        )
        self.documents[memory.id] = document.id

    def recalled(self, question: str, k: int = DEPTH) -> Any:
        return self.workspace.recall(question, k=k)

    def ranked(self, question: str) -> list[str]:
        return [self.documents[hit.id] for hit in self.recalled(question)]

    def close(self) -> None:
        self.workspace.close()


def written(workspace: Workspace, documents: Iterable[Document]) -> dict[str, str]:
    """Write the files that `remember` would, without its promises, and sync once.

    Only for loading large sets faster; the bytes are the same.
    """
    ids, folders = {}, set[str]()
    for document in documents:
        fields = {"by": document.by, "session": document.session, "at": document.at}
        record = statement(
            redact(document.text), "fact", fields, now=document.at, origin=workspace.origin
        )
        path = workspace.layout.file(place(record))
        parent = os.path.dirname(path)
        if parent not in folders:
            os.makedirs(parent, exist_ok=True)
            folders.add(parent)
        with open(path, "wb") as file:
            file.write(encode(record))
        ids[record.id] = document.id
    workspace.sync()
    return ids


# -- plain ones ------------------------------------------------------------------------------------


def full_text(document: Document) -> str:
    return f"{document.by}: {document.text}" if document.by else document.text


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


class Grep:
    """Documents with the most of the question's words; among equals, the order they came in."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._words = [(document.id, set(_words(full_text(document)))) for document in documents]

    def ranked(self, question: str) -> list[str]:
        asked = set(_words(question))
        counts = [(-len(asked & words), number) for number, (_, words) in enumerate(self._words)]
        return [self._words[number][0] for count, number in sorted(counts)[:DEPTH] if count]


class Bm25:
    """SQLite's FTS5 with stemming, all words of the question, any of them."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._ids = [document.id for document in documents]
        self._db = sqlite3.connect(":memory:")
        self._db.execute("CREATE VIRTUAL TABLE d USING fts5(x, tokenize = 'porter')")
        texts = enumerate(map(full_text, documents))
        self._db.executemany("INSERT INTO d(rowid, x) VALUES (?, ?)", texts)

    def ranked(self, question: str, limit: int = DEPTH) -> list[str]:
        return [self._ids[row] for row, _ in self.scores(question, limit)]

    def scores(self, question: str, limit: int) -> list[tuple[int, float]]:
        words = " OR ".join(f'"{word}"' for word in _words(question))
        if not words:
            return []
        found = "SELECT rowid, -bm25(d) FROM d WHERE d MATCH ? ORDER BY bm25(d), rowid LIMIT ?"
        return self._db.execute(found, (words, limit)).fetchall()


Encode = Callable[[list[str]], Any]  # texts to unit vectors


class Vectors:
    """Cosine of the mean vectors of question and document, nothing else."""

    def __init__(self, documents: Sequence[Document], encode: Encode) -> None:
        self._ids, self._encode = [document.id for document in documents], encode
        self._vectors = encode([full_text(document) for document in documents])

    def ranked(self, question: str, limit: int = DEPTH) -> list[str]:
        return [self._ids[row] for row in (-self.cosines(question)).argsort()[:limit]]

    def cosines(self, question: str) -> Any:
        return self._vectors @ self._encode([question])[0]


class Fused:
    """Plain reciprocal rank fusion (k = 60) of words and vectors."""

    def __init__(self, words: Bm25, vectors: Vectors) -> None:
        self._parts = (words, vectors)

    def ranked(self, question: str) -> list[str]:
        sums: dict[str, float] = {}
        for part in self._parts:
            for rank, one in enumerate(part.ranked(question, limit=100), 1):
                sums[one] = sums.get(one, 0.0) + 1 / (60 + rank)
        return sorted(sums, key=lambda one: -sums[one])[:DEPTH]


class Weighed:
    """Words and vectors, each scaled to 0 … 1, half and half."""

    def __init__(self, documents: Sequence[Document], words: Bm25, vectors: Vectors) -> None:
        self._ids = [document.id for document in documents]
        self._lexical, self._vectors = words, vectors

    def ranked(self, question: str) -> list[str]:
        cosines = self._vectors.cosines(question)
        sums = (cosines - cosines.min()) / ((cosines.max() - cosines.min()) or 1)
        found = self._lexical.scores(question, len(self._ids))
        for row, value in found:
            sums[row] += value / found[0][1]
        return [self._ids[row] for row in (-sums).argsort()[:DEPTH]]


def static_encode() -> Encode:
    """The bundled static model."""
    from loki_memory.embedding import load

    model = load()
    return _once(lambda texts: model.embed([model.tokens(text) for text in texts]))


def minilm_encode() -> Encode | None:
    """all-MiniLM-L6-v2 through sentence-transformers, if both are on this machine."""
    if importlib.util.find_spec("sentence_transformers") is None:
        return None
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from sentence_transformers import SentenceTransformer

    try:
        model = SentenceTransformer("sentence-transformers/all-MiniLM-L6-v2", device="cpu")
    except OSError:
        return None
    return _once(lambda texts: model.encode(texts, normalize_embeddings=True))


def _once(encode: Encode) -> Encode:
    """The same, but no text twice: the sessions' store grows with every question."""
    import numpy as np

    known: dict[str, Any] = {}

    def encoded(texts: list[str]) -> Any:
        fresh = [text for text in dict.fromkeys(texts) if text not in known]
        if fresh:
            known.update(zip(fresh, encode(fresh), strict=True))
        return np.stack([known[text] for text in texts])

    return encoded


def plain_systems(
    documents: Sequence[Document], encoders: Mapping[str, Encode]
) -> dict[str, System]:
    """The rows beside ours."""
    words = Bm25(documents)
    systems: dict[str, System] = {"grep": Grep(documents), "FTS5 BM25": words}
    if "static" in encoders:
        vectors = Vectors(documents, encoders["static"])
        systems |= {"static vectors": vectors, "plain RRF": Fused(words, vectors)}
    if "MiniLM" in encoders:
        vectors = Vectors(documents, encoders["MiniLM"])
        systems["MiniLM hybrid"] = Weighed(documents, words, vectors)
    return systems
