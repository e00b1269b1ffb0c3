"""Other memories on the same texts and vectors. Run by an interpreter that has them installed.

    python peers.py version|build|serve|once chromadb|mem0 FOLDER

FOLDER holds texts.json, vectors.npy, queries.json and query_vectors.npy. Nothing of loki-memory
is imported here. `serve` answers the number of a query with the seconds that its search took.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

SHOWN = 5
BATCH = 1000

os.environ["ANONYMIZED_TELEMETRY"] = os.environ["MEM0_TELEMETRY"] = "False"
os.environ.setdefault("OPENAI_API_KEY", "none")  # mem0 asks for one, and never uses it here


def load(folder: Path, name: str) -> tuple[list[str], Any]:
    """Texts, and a vector for each."""
    import numpy as np

    plural, single = {"texts": ("texts", "vectors"), "queries": ("queries", "query_vectors")}[name]
    texts = json.loads((folder / f"{plural}.json").read_text(encoding="utf-8"))
    return texts, np.load(folder / f"{single}.npy", mmap_mode="r")


class Chromadb:
    package = "chromadb"

    def __init__(self, folder: Path) -> None:
        import chromadb

        client = chromadb.PersistentClient(str(folder / "chromadb"))
        self._memories = client.get_or_create_collection(
            "memories", metadata={"hnsw:space": "cosine"}, embedding_function=None
        )

    def add(self, texts: list[str], vectors: Any) -> None:
        for start in range(0, len(texts), BATCH):
            part = range(start, min(start + BATCH, len(texts)))
            self._memories.add(
                ids=[str(number) for number in part],
                documents=texts[start : part.stop],
                embeddings=vectors[start : part.stop].tolist(),
            )

    def search(self, query: str, vector: Any) -> Any:  # noqa: ARG002 - vectors only
        return self._memories.query(query_embeddings=[vector.tolist()], n_results=SHOWN)


class Mem0:
    """Its default store (qdrant on disk), no language model, vectors from a dictionary."""

    package = "mem0ai"

    def __init__(self, folder: Path) -> None:
        os.environ["MEM0_DIR"] = str(folder / "mem0")
        from mem0 import Memory

        config = {"path": str(folder / "mem0" / "store"), "on_disk": True}
        self._memory = Memory.from_config(
            {
                "vector_store": {
                    "provider": "qdrant",
                    "config": {**config, "embedding_model_dims": 256},
                },
                "history_db_path": str(folder / "mem0" / "history.db"),
            }
        )
        self._memory.embedding_model = self._vectors = Dictionary()

    def add(self, texts: list[str], vectors: Any) -> None:
        for text, vector in zip(texts, vectors, strict=True):
            self._vectors.known[text] = vector.tolist()
            self._memory.add(text, user_id="everyone", infer=False)

    def search(self, query: str, vector: Any) -> Any:
        self._vectors.known[query] = vector.tolist()
        return self._memory.search(query, filters={"user_id": "everyone"}, top_k=SHOWN)


class Dictionary:
    """Stands in for mem0's embedding model."""

    def __init__(self) -> None:
        self.known: dict[str, list[float]] = {}

    def embed(self, text: str, *_: Any, **__: Any) -> list[float]:
        return self.known[text]

    def embed_batch(self, texts: list[str], *_: Any, **__: Any) -> list[list[float]]:
        return [self.known[text] for text in texts]


PEERS: dict[str, Any] = {"chromadb": Chromadb, "mem0": Mem0}


def show_version(name: str, _: Path) -> None:
    print(version(PEERS[name].package))


def build(name: str, folder: Path) -> None:
    peer = PEERS[name](folder)
    texts, vectors = load(folder, "texts")
    start = time.perf_counter()
    peer.add(texts, vectors)
    print(time.perf_counter() - start)


def serve(name: str, folder: Path) -> None:
    peer = PEERS[name](folder)
    answer_lines(peer.search, *load(folder, "queries"))


def once(name: str, folder: Path) -> None:
    peer = PEERS[name](folder)
    queries, vectors = load(folder, "queries")
    print(peer.search(queries[0], vectors[0]))


def answer_lines(search: Callable[[str, Any], object], queries: list[str], vectors: Any) -> None:
    """Each line asks for a query by its number, or for the `peak` of memory."""
    for line in sys.stdin:
        if line.strip() == "peak":
            print(peak(), flush=True)
            continue
        number = int(line)
        start = time.perf_counter()
        search(queries[number], vectors[number])
        print(time.perf_counter() - start, flush=True)


def peak() -> int:
    """Bytes of memory at most. Not `getrusage`: that begins with the peak of who started us."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


VERBS = {"version": show_version, "build": build, "serve": serve, "once": once}

if __name__ == "__main__":
    VERBS[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))
    sys.stdout.flush()
    os._exit(0)  # mem0's client complains when it is closed at the end
