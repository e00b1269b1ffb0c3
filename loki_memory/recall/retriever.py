"""The retriever: from a question to the memories for it, over one workspace's index and vectors.

What it needs of the whole store (the catalogue, the words that were asked for) it keeps while the
index stays as it is, so that a process that asks again is answered in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.embedding import load as load_embedding  # first: it pins BLAS to one thread
from loki_memory.embedding import load_with_model2vec
from loki_memory.embedding.sentence_model import BUNDLED, ModelChoice

import numpy as np  # isort: skip

from loki_memory.index import search
from loki_memory.index.vectors import Vectors
from loki_memory.models.kinds import KINDS, SCOPES, STATUSES
from loki_memory.recall import catalogue
from loki_memory.recall.catalogue import UNKNOWN_DAY
from loki_memory.recall.field_filters import Route, counted, route, translate
from loki_memory.recall.full_text import Lexicon
from loki_memory.recall.links import Links, deepened, shared
from loki_memory.recall.question import Question, ask
from loki_memory.recall.ranking import Ranked, is_dated, rank
from loki_memory.recall.rerank import (
    RIVAL,
    Candidate,
    DatedPassage,
    Hit,
    choose,
    detect,
    explained,
    newer_first,
    with_excerpts,
)
from loki_memory.recall.result import FEW, Nearness, Query, certainty
from loki_memory.recall.signals import Signals, Word
from loki_memory.recall.vector_similarity import Lengths, Meaning, SentenceVectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loki_memory.embedding.static_model import Embedding
    from loki_memory.index.index import Index
    from loki_memory.recall.catalogue import Catalogue

    Progress = Callable[[int, int], None]
    Mask = NDArray[np.bool_]
    Reasons = dict[int, list[str]]

_BUNDLED_MODEL = ModelChoice(BUNDLED)
# Not shown unless asked for. A ledger says where an agent stands, not what was learned.
_HIDDEN = [STATUSES.index(name) for name in ("superseded", "rejected", "retired")]
_UNASKED = [KINDS.index("ledger")]
_SESSION = SCOPES.index("session")
_MANY = 1000  # texts from which on model2vec embeds them: it takes 0.3 s to start
_POOL = 30  # candidates that are looked at closely, at least
_ESSAY = 400  # tokens: a longer text mentions many values and states none


class RetrieverAnswer(NamedTuple):
    """The answer of the retriever to a question."""

    hits: list[Hit]
    found: int  # candidates that there were
    best: Nearness | None  # None where nothing was ranked
    exact: bool  # whether an id, a field, an error, a file or a day led to hits
    task: str
    in_few: bool = False  # whether a word matched in a store too small to be certain of anything
    counts: str = ""  # people or files that the question asks for, counted

    @property
    def certainty(self) -> float:
        """The chance that the store knows anything about the question."""
        return certainty(self.best) if self.best else 0.0


class Retriever:
    """One workspace's read path. `folder` is where vectors and catalogue are kept."""

    def __init__(
        self,
        index: Index,
        folder: Path | None,
        choice: ModelChoice = _BUNDLED_MODEL,
        progress: Progress | None = None,
        may_load: Callable[[], bool] = lambda: True,
    ) -> None:
        """`may_load` says whether a question may wait for the sentence model to load."""
        self.progress = progress
        self.sentences = SentenceVectors(index, folder, choice, may_load)
        self.notices = self.sentences.notices
        self._index = index
        self._folder = folder
        self._model = choice.folder
        self._state = ""
        self._embedding: Embedding | None = None
        self._vectors: Vectors | None = None
        self._catalogue: Catalogue | None = None
        self._usual: dict[str, NDArray[np.int32]] = {}

    # -- the whole store --------------------------------------------------------------------------

    @property
    def embedding(self) -> Embedding:
        if self._embedding is None:
            self._embedding = load_embedding(self._model)
            self._lengths = Lengths(self._embedding)
        return self._embedding

    @property
    def vectors(self) -> Vectors:
        if self._vectors is None:
            self._vectors = Vectors(self._folder, self.embedding.name, self.embedding.size)
        return self._vectors

    def prepare(self) -> Catalogue:
        """The catalogue of what the index says now."""
        state = self._index.note("changed_ns")
        if self._catalogue is None or state != self._state:
            self._catalogue = self._load()
            self._lexicon = Lexicon(self._index, self._catalogue)
            rows = self._catalogue.corpus.row
            self._document = np.full(int(rows.max(initial=0)) + 1, -1, np.int32)
            self._document[rows] = np.arange(len(rows), dtype=np.int32)
            self._state = state
        self.sentences.prepare(self._catalogue, self.vectors)
        return self._catalogue

    def is_current(self) -> bool:
        """Check if the catalogue is of what the index says now."""
        return self._catalogue is not None and self._index.note("changed_ns") == self._state

    def _load(self) -> Catalogue:
        file = self._folder / "catalogue" if self._folder else None
        with self._one_model():
            return catalogue.load(self._index, self.vectors, self.embedding, file, self.progress)

    def embed(self, most: int | None = None) -> int:
        """Embed all that has no vector yet, so that the next question need not wait for it.

        Call it where start-up does not matter: many texts are embedded by model2vec. Of the
        sentence model at most so many vectors are made; returns how many are left.
        """
        keys = self.vectors.missing(self._index)
        with self._one_model():
            many = len(keys) >= _MANY and not self._model  # model2vec reads all other models anyway
            model = load_with_model2vec() if many else self.embedding
            catalogue.embed(self._index, self.vectors, model, keys, self.progress)
        return self._embed_sentences(most)

    def _embed_sentences(self, most: int | None) -> int:
        left = self.sentences.embed(most, self.progress)
        if not left and self.sentences.name:
            self._drop_other_models()
        return left

    @contextmanager
    def _one_model(self) -> Iterator[None]:
        """Drop the vectors of other models once there are some of this one."""
        self.vectors.open()
        is_new = not len(self.vectors)
        yield
        if is_new and len(self.vectors):
            self._drop_other_models()

    def _drop_other_models(self) -> None:
        if self.vectors.drop_other_models(self._index, self.sentences.name):
            self.notices.append("the embedding model is another one: all vectors were made anew")

    def tokens_available(self) -> int:
        """The cost of reading the whole store, estimated as bytes / 4."""
        return (int(self.prepare().size.sum(dtype=np.int64)) + 3) // 4

    # -- one question -----------------------------------------------------------------------------

    def answer(
        self, asked: Query, phase: str = "", strengths: Mapping[str, float] | None = None
    ) -> RetrieverAnswer:
        """The best memories for a question."""
        store = self.prepare()
        way, counts = self._routed(asked)
        task = asked.task or detect(way.text, phase=phase, error=bool(asked.error))
        allowed = self._allowed(store, asked, way)
        question = ask(_text(way.text, asked.error), store.speakers)
        if way.rows is not None and not question.words:
            return _latest(store, allowed, asked.k, way)._replace(counts=counts)
        reasons, boost, sure = self._shared(store, asked, way, allowed)
        words = self._lexicon.words(question.words, question.title) if question.words else []
        links = Links(self._index, store, self._document)
        searched = self._searched(links, asked, way, allowed)
        ranked, best = self._ranked(store, question, words, searched, boost)
        if asked.deep:
            ranked = deepened(self._index, store, self._document, ranked, searched, reasons)
        if not (asked.status or way.status or way.is_named):
            ranked = links.with_successors(ranked, allowed, reasons)
        if asked.injected:
            ranked = links.with_beliefs(ranked, allowed, reasons)
        candidates = self._candidates(store, asked, ranked, strengths or {})
        if not question.asks_past:
            statements = self._statements(store, ranked, candidates)
            candidates = newer_first(candidates, statements, _rarity(words))
        chosen = [(hit.number, score) for hit, score in choose(candidates, asked.k, task)]
        hits = explained(store, words, ranked, chosen, reasons, sure, best)
        if not asked.injected:
            hits = with_excerpts(self._index, store, ranked, chosen, hits, _rarity(words))
        in_few = len(store.corpus.row) < FEW and _has_words(ranked)
        exact = bool(sure) or way.rows is not None or is_dated(store.corpus, question)
        found = RetrieverAnswer(hits, len(ranked.documents), best, exact, task, in_few)
        return found._replace(counts=counts)

    def _routed(self, asked: Query) -> tuple[Route, str]:
        """The exact parts of a question, and what is counted for it, if it asks for that."""
        plain = None if asked.injected else translate(asked.query, asked.now)
        if plain:
            way = route(plain.query, self._index)
            if way.rows:
                return way, counted(plain, self._index)
        return route(asked.query, self._index, asked.now, strict=not asked.injected), ""

    def _ranked(
        self,
        store: Catalogue,
        question: Question,
        words: Sequence[Word],
        allowed: Mask,
        boost: NDArray[np.float32] | None,
    ) -> tuple[Ranked, Nearness | None]:
        """The memories in their order, and the best that there is for the question."""
        title = (word for word in question.words if word in question.title)  # it counts twice
        text = " ".join((*title, *question.words)) or question.text
        meaning = Meaning(store, self.vectors, self.embedding, self._lengths, text)
        cosine = meaning.cosine()
        signals = Signals(
            words=words,
            near=self._lexicon.near(words),
            cosine=cosine,
            sentence=self.sentences.cosine(store, question.text, cosine),
            tokens=meaning.tokens,
            weights=meaning.weights,
            similar=meaning.similar(),
            allowed=allowed,
            boost=boost,
            expected=self._tokens(" ".join(question.expected)),
            asking=self._tokens("?"),
        )
        ranked = rank(store.corpus, question, signals)
        if not len(ranked.documents):
            return ranked, None
        stored = int(store.corpus.length[allowed].sum())
        nearest, closest = float(ranked.alike.max()), float(ranked.cosine.max())
        return ranked, Nearness(nearest, closest, stored, len(meaning.tokens))

    def _tokens(self, text: str) -> NDArray[np.int32]:
        """Token ids of a text that comes again with every question of its kind."""
        if text not in self._usual:
            self._usual[text] = np.array(self.embedding.tokens(text), np.int32)
        return self._usual[text]

    def _allowed(self, store: Catalogue, asked: Query, way: Route) -> Mask:
        """Status, scope, kind and fields, applied before anything is ranked."""
        corpus = store.corpus
        allowed = np.ones(len(corpus.row), np.bool_)
        status = asked.status or way.status
        if not status and not way.is_named:
            allowed &= ~_among(store.status, _HIDDEN)
        elif status and status != "all":
            allowed &= store.status == STATUSES.index(status)
        if asked.kinds:
            allowed &= _among(corpus.kind, [KINDS.index(kind) for kind in asked.kinds])
        elif way.rows is None:
            allowed &= ~_among(corpus.kind, _UNASKED)
        if asked.scope:
            allowed &= store.scope == SCOPES.index(asked.scope)
        own = store.sessions.index(asked.session) if asked.session in store.sessions else -2
        allowed &= (store.scope != _SESSION) | (corpus.session == own)
        if asked.injected:
            allowed &= _passing(store, unasked=asked.unasked)
        if asked.now and not status and not way.is_named:
            allowed &= store.until > _day(asked.now)
        if asked.under:
            allowed &= self._below(asked.under)[corpus.row]
        if way.rows is not None:
            left = np.zeros(len(self._document), np.bool_)
            left[[row for row in way.rows if row < len(left)]] = True
            allowed &= left[corpus.row]
        return allowed

    def _searched(self, links: Links, asked: Query, way: Route, allowed: Mask) -> Mask:
        """Mark what is ranked: what may be shown, and what leads to it by being superseded."""
        if asked.status or way.status or way.is_named:
            return allowed
        over = self._allowed(links.store, asked._replace(status="superseded"), way)
        searched = allowed.copy()
        searched[links.replaced(np.flatnonzero(over).tolist())] = True
        return searched

    def _below(self, topic: str) -> Mask:
        """By row: whether a memory stands below a topic, at any depth."""
        chosen = np.zeros(len(self._document), np.bool_)
        rows = search.rows_below(self._index, topic)
        chosen[[row for row in rows if row < len(chosen)]] = True
        return chosen

    def _shared(
        self, store: Catalogue, asked: Query, way: Route, allowed: Mask
    ) -> tuple[Reasons, NDArray[np.float32] | None, set[int]]:
        """Reasons besides words, additions to scores, and documents with a sure reason."""
        total = len(store.corpus.row)
        reasons: Reasons = {}
        sure: set[int] = set()
        boost = np.zeros(total, np.float32)
        for signal in shared(
            self._index,
            total,
            text=way.text,
            named=way.named,
            error=asked.error,
            files=asked.files,
        ):
            document = int(self._document[signal.row]) if signal.row < len(self._document) else -1
            if document >= 0 and allowed[document]:
                boost[document] += signal.worth
                reasons.setdefault(document, []).append(signal.why)
                sure |= {document} if signal.is_sure else set()
        return reasons, boost if reasons else None, sure

    # -- choosing ---------------------------------------------------------------------------------

    def _candidates(
        self, store: Catalogue, asked: Query, ranked: Ranked, strengths: Mapping[str, float]
    ) -> list[Candidate]:
        """The best of the ranked documents, with what is known of each."""
        pool = max(_POOL, 2 * asked.k)
        rows = store.corpus.row[ranked.documents[:pool]].tolist()
        today = _day(asked.now) if asked.now else None
        days = store.corpus.day[ranked.documents[:pool]].tolist()
        known = self._known(rows)
        return [
            Candidate(number, score, *known[row][1:])._replace(
                strength=strengths.get(known[row][0], 0.0),
                age_days=None if today is None or day == UNKNOWN_DAY else today - day,
            )
            for number, (row, day, score) in enumerate(
                zip(rows, days, ranked.scores.tolist(), strict=False)
            )
        ]

    def _statements(
        self, store: Catalogue, ranked: Ranked, candidates: Sequence[Candidate]
    ) -> list[DatedPassage]:
        """The short facts among the best candidates, each with its best passage."""
        enough = RIVAL * max((candidate.relevance for candidate in candidates), default=0.0)
        numbers = [
            candidate.number
            for candidate in candidates
            if candidate.kind == "fact"
            and candidate.relevance >= enough
            and store.corpus.length[ranked.documents[candidate.number]] <= _ESSAY
        ]
        passages = store.passage[ranked.passage[numbers]].tolist() if len(numbers) > 1 else []
        texts = search.dated_passages(self._index, passages)
        known = {passage.row: (passage.at, passage.text) for passage in texts}
        return [
            DatedPassage(number, *known[row])
            for number, row in zip(numbers, passages, strict=False)
        ]

    def _known(self, rows: Sequence[int]) -> dict[int, list[Any]]:
        """By row: id, then what a Candidate is made of."""
        return search.judged_fields(self._index, rows)


def _rarity(words: Sequence[Word]) -> dict[str, float]:
    """The rarity of the words that somebody wrote."""
    return {word.word: word.rarity for word in words if len(word.passages)}


def _has_words(ranked: Ranked) -> bool:
    matched = ranked.parts.get("bm25")
    return matched is not None and float(matched.max(initial=0)) > 0


def _text(query: str, error: str) -> str:
    """The text to search for: the question, and the line of an error that says what went wrong."""
    if not error:
        return query
    from loki_memory.models.error_signature import salient

    return f"{query}\n{salient(error)}"


def _day(moment: str) -> int:
    return int(np.datetime64(moment[:10]).astype(np.int64))


def _passing(store: Catalogue, *, unasked: bool) -> Mask:
    """Mark memories that may be put into a context: see `gate`."""
    trusted: Mask = store.foreign == 0
    return trusted & (store.unproven == 0) if unasked else trusted


def _among(codes: NDArray[np.uint8], wanted: Sequence[int]) -> Mask:
    """Mark the codes that are wanted. (numpy's `isin` would load 8 ms of masked arrays for it.)"""
    table = np.zeros(256, np.bool_)
    table[list(wanted)] = True
    chosen: Mask = table[codes]
    return chosen


def _latest(store: Catalogue, allowed: Mask, k: int, way: Route) -> RetrieverAnswer:
    """Ids or fields alone were asked for: what they leave, newest first."""
    documents = np.flatnonzero(allowed)
    days = store.corpus.day[documents].astype(np.int64)
    rows = store.corpus.row[documents[np.lexsort((documents, -days))]].tolist()
    why = list(way.said) or ["its id"]
    return RetrieverAnswer(
        [Hit(row, 1.0, why, {}) for row in rows[:k]], len(rows), None, exact=True, task=""
    )
