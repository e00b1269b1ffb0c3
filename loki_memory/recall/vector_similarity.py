"""Likeness of meaning: static vectors of tokens, and sentence vectors where there are any.

Sentence vectors are made where nobody waits for an answer, some at a time: whoever is stopped goes
on where it was. A question uses them once most passages have one; a passage that has none yet is as
near as its static vector says. A model that fails is left alone for some minutes, and named once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from loki_memory.embedding import load_sentence_model
from loki_memory.embedding.sentence_model import ModelChoice
from loki_memory.errors import ModelUnavailable
from loki_memory.files import disk
from loki_memory.index.queries import passage_texts
from loki_memory.index.vectors import Vectors, dimensions, missing_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loki_memory.embedding.sentence_model import SentenceModel
    from loki_memory.embedding.static_model import Embedding
    from loki_memory.index.index import Index
    from loki_memory.recall.catalogue import Catalogue

    Floats = NDArray[np.float32]
    Ints = NDArray[np.int32]
    Progress = Callable[[int, int], None]


_LONGEST = 4000  # characters of a question that are embedded


class Lengths:
    """Lengths of the vectors of tokens, each measured once."""

    def __init__(self, embedding: Embedding) -> None:
        self._known: Floats = np.zeros(embedding.vocabulary, np.float32)

    def of(self, tokens: Ints, rows: Floats) -> Floats:
        new = self._known[tokens] == 0
        if new.any():
            squares = np.einsum("ij,ij->i", rows[new], rows[new])
            self._known[tokens[new]] = np.maximum(np.sqrt(squares), 1e-9)
        known: Floats = self._known[tokens]
        return known


class Meaning:
    """One question's tokens, each as rare as it is in this store."""

    def __init__(
        self,
        store: Catalogue,
        vectors: Vectors,
        embedding: Embedding,
        lengths: Lengths,
        text: str,
    ) -> None:
        self._store = store
        self._vectors = vectors
        self._embedding = embedding
        self._lengths = lengths
        self.tokens: Ints = np.array(embedding.tokens(text[:_LONGEST]), np.int32)
        self.weights: Floats = store.corpus.rarity[self.tokens]
        self._rows: Floats = embedding.rows(self.tokens)

    def cosine(self) -> Floats:
        """Cosine with every passage, after half of the store's mean is taken off both sides.

        What all memories of a project have in common tells none of them apart.
        """
        store = self._store
        if not len(self.tokens) or not len(self._vectors):
            return np.zeros(len(store.entry), np.float32)
        vector = unit(unit(self.weights @ self._rows) - store.mean * np.float32(0.5))
        along = self._vectors.matrix @ vector - np.float32(store.mean @ vector / 2)
        cosine: Floats = along[store.entry] / store.norm
        cosine[store.entry < 0] = 0
        return cosine

    def similar(self) -> Callable[[Ints], Floats]:
        """Asks for the cosine of each token of the question with other tokens."""
        own: Floats = np.divide(
            self._rows, self._lengths.of(self.tokens, self._rows)[:, None], dtype=np.float32
        )

        def similar(tokens: Ints) -> Floats:
            rows = self._embedding.rows(tokens)
            like: Floats = (own @ rows.T) / self._lengths.of(tokens, rows)
            return like

        return similar


def unit(vector: Floats) -> Floats:
    length = float(np.sqrt(vector @ vector))
    return (vector / length).astype(np.float32) if length else vector.astype(np.float32)


# -- sentence vectors ------------------------------------------------------------------------------


_BATCH = 64  # texts between two writes: about a second of MiniLM
_FEW = 16  # texts that a question waits for
_MOST = 0.5  # of the passages must have a vector: before that, two scales would be compared
_ANEW = "give `embedding.hosted_model` its new name, or delete `.loki/cache`"
_REST_SECONDS = 300  # in which a model that failed is not asked again


class SentenceVectors:
    """The vectors of the sentence model for one index."""

    def __init__(
        self,
        index: Index,
        folder: Path | None,
        choice: ModelChoice,
        may_load: Callable[[], bool],
    ) -> None:
        """`may_load` says whether a question may wait for the model to load."""
        self.notices: list[str] = []
        self.name = choice.sentence_name
        self._index, self._folder, self._choice, self._may_load = index, folder, choice, may_load
        self._vectors: Vectors | None = None
        self._entry: NDArray[np.int32] | None = None
        self._looked_at: object = None  # the state of the index that was looked at last
        self._state: object = None  # … and with it that of the vectors

    # -- memories ---------------------------------------------------------------------------------

    def embed(self, most: int | None = None, progress: Progress | None = None) -> int:
        """Embed passages that have no vector, at most so many; returns how many are left."""
        keys = self._missing()
        if not keys or self._rests():
            return 0
        chosen = keys[:most]
        try:
            for done in range(0, len(chosen), _BATCH):
                if progress and len(chosen) > _BATCH:
                    progress(done, len(chosen))
                self._add(chosen[done : done + _BATCH])
        except ModelUnavailable as error:
            self._rest(error)
            return 0
        return len(keys) - len(chosen)

    def _missing(self) -> list[int]:
        return missing_keys(self._index, self.name) if self.name else []

    def _add(self, keys: list[int]) -> None:
        texts = passage_texts(self._index, keys)
        found = self._encoded(list(texts.values()))
        vectors = self._opened(found.shape[1])
        vectors.add(self._index, list(texts), found, [[] for _ in texts])

    def _opened(self, size: int) -> Vectors:
        if self._vectors is None:
            self._vectors = Vectors(self._folder, self.name, size)
        return self._vectors

    # -- questions --------------------------------------------------------------------------------

    def prepare(self, store: Catalogue, static: Vectors) -> None:
        """Find the vectors of the passages, and make the last few; it may write."""
        if not self.name or not self._may_load():
            return
        changed = self._index.note("changed_ns")
        if changed != self._looked_at and 0 < len(self._missing()) <= _FEW:
            self.embed()
        self._looked_at = changed
        size = dimensions(self._index, self.name)
        if size is None:
            self._entry = None
            return
        vectors = self._opened(size)
        vectors.refresh(self._index)
        state = (changed, static.state, vectors.state)
        if state != self._state:
            self._state, self._entry = state, vectors.find(static.keys(store.entry))

    def cosine(self, store: Catalogue, text: str, static: Floats) -> Floats | None:
        """Cosine of a question with every passage; None where static vectors must do."""
        entry = self._entry
        if entry is None or self._vectors is None or not self._may_load() or self._rests():
            return None
        wanted, known = store.entry >= 0, entry >= 0
        if not known.any() or known.sum() < _MOST * wanted.sum():
            return None
        try:
            question = self._encoded([text[:_LONGEST]])[0]
        except ModelUnavailable as error:
            self._rest(error)
            return None
        cosine: Floats = (self._vectors.matrix @ question)[entry]
        return _filled(cosine, known, wanted, static)

    def _model(self) -> SentenceModel:
        return load_sentence_model(self._choice)

    def _encoded(self, texts: list[str]) -> Floats:
        """Embed texts; those that leave this machine do so without secrets and personal data."""
        if self._choice.is_hosted:
            from loki_memory.files.redaction import impersonal, redact

            texts = [impersonal(redact(text)) for text in texts]
        found = self._model().encode(texts)
        known = dimensions(self._index, self.name)
        if known is not None and known != found.shape[1]:
            reason = f"vectors have {found.shape[1]} numbers now and had {known}: {_ANEW}"
            raise ModelUnavailable(self._choice.model, reason)
        return found

    # -- a model that fails -----------------------------------------------------------------------

    def _rests(self) -> bool:
        """Check if the model failed a short time ago, here or in another process."""
        if not self._choice.is_hosted or self._folder is None:
            return False
        with suppress(OSError):
            age = time.time() - (self._folder / f"{self.name}.failed").stat().st_mtime
            return 0 <= age < _REST_SECONDS
        return False

    def _rest(self, error: ModelUnavailable) -> None:
        self.notices.append(str(error))
        if self._folder is not None:
            with suppress(OSError):
                disk.make_folder(self._folder)
                disk.replace_plainly(self._folder / f"{self.name}.failed", b"")


def _filled(
    cosine: Floats, known: NDArray[np.bool_], wanted: NDArray[np.bool_], static: Floats
) -> Floats:
    """Give passages without a vector the place that their static cosine has among all."""
    least, most = cosine[known].min(), cosine[known].max()
    reach = max(float(static.max() - static.min()), 1e-6)
    place = (static - static.min()) / np.float32(reach)
    filled: Floats = np.where(known, cosine, least + (most - least) * place)
    filled[~wanted] = np.minimum(least, 0)
    return filled.astype(np.float32)
