"""Follow links from the direct hits: to what replaced a hit, and to what was learned from it.

A question in the words of an outdated memory is answered by its successor. An agent that begins a
task like an earlier one is told the beliefs that rest on that episode, whatever words they use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from loki_memory.index.graph import (
    beliefs_about_files_of,
    beliefs_resting_on,
    names_of_rows,
    replacements,
)
from loki_memory.index.search import rows_of
from loki_memory.models.kinds import KINDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loki_memory.index.index import Index
    from loki_memory.recall.catalogue import Catalogue
    from loki_memory.recall.ranking import Ranked

_LOOKED_AT = 100  # ranked documents that may have a successor
_EPISODES, _BELIEFS = 3, 2  # best-matching episodes, and beliefs that each brings along
_LIKE = 0.7  # of the best score, from which on an episode is like the task
_BEHIND = 0.95  # of its episode's score, for a belief that rests on it
_EPISODE = KINDS.index("episode")


class Links(NamedTuple):
    """The link graph of an index, over the documents of a catalogue."""

    database: Index
    store: Catalogue
    document_of: NDArray[np.int32]  # by row

    def replaced(self, documents: Sequence[int]) -> list[int]:
        """Documents that another memory replaces."""
        names = self._names(documents)
        known = successors(self.database, list(names.values()))
        return [document for document, name in names.items() if name in known]

    def with_successors(
        self, ranked: Ranked, allowed: NDArray[np.bool_], reasons: dict[int, list[str]]
    ) -> Ranked:
        """Put successors in the place of what they replace, with the better of both scores."""
        names = self._names(ranked.documents[:_LOOKED_AT].tolist())
        replaced = successors(self.database, list(names.values()))
        if not replaced and allowed[ranked.documents].all():
            return ranked
        rows = rows_of(
            self.database, sorted({name for heirs in replaced.values() for name in heirs})
        )
        documents = ranked.documents.tolist()
        direct = dict(zip(documents, ranked.scores.tolist(), strict=True))
        scores = {
            document: score
            for document, score in direct.items()
            if allowed[document] and names.get(document) not in replaced
        }
        for document, name in names.items():
            for heir in self._documents(
                [rows[heir_id] for heir_id in replaced.get(name, ())], allowed
            ):
                scores[heir] = max(direct[document], scores.get(heir, direct[document]))
                reasons.setdefault(heir, []).append(f"supersedes {name}")
        return rescored(ranked, self.store, scores)

    def with_beliefs(
        self, ranked: Ranked, allowed: NDArray[np.bool_], reasons: dict[int, list[str]]
    ) -> Ranked:
        """The best episodes, each followed by what was learned from it, or on the same files."""
        scores = dict(zip(ranked.documents.tolist(), ranked.scores.tolist(), strict=True))
        enough = _LIKE * max(scores.values(), default=0.0)
        episodes = [
            document
            for document, score in scores.items()
            if self.store.corpus.kind[document] == _EPISODE and score >= enough
        ][:_EPISODES]
        gained: dict[int, float] = {}
        for episode, name in self._names(episodes).items():
            for document, why in self._learned(name, allowed):
                gained[document] = max(_BEHIND * scores[episode], gained.get(document, 0.0))
                reasons.setdefault(document, []).append(f"{why} {name}")
        if not gained:
            return ranked
        for document, score in gained.items():
            scores[document] = max(score, scores.get(document, score))
        return rescored(ranked, self.store, scores)

    def _learned(self, episode: str, allowed: NDArray[np.bool_]) -> Iterator[tuple[int, str]]:
        ways = (
            (beliefs_resting_on, _BELIEFS, "rests on"),
            (beliefs_about_files_of, 1, "about the files of"),
        )
        for beliefs, most, why in ways:
            found = self._documents(beliefs(self.database, episode), allowed)[:most]
            yield from ((document, why) for document in found)
            if found:
                return

    def _names(self, documents: Sequence[int]) -> dict[int, str]:
        """Ids by document, in the order of the documents."""
        rows = self.store.corpus.row[list(documents)].tolist() if documents else []
        names = names_of_rows(self.database, rows)
        return {
            document: names[row]
            for document, row in zip(documents, rows, strict=True)
            if row in names
        }

    def _documents(self, rows: Sequence[int], allowed: NDArray[np.bool_]) -> list[int]:
        known = (int(self.document_of[row]) for row in rows if row < len(self.document_of))
        return [document for document in known if document >= 0 and allowed[document]]


def successors(index: Index, names: Sequence[str]) -> dict[str, list[str]]:
    """Map each memory to the last of its replacements; one that nothing replaces is left out.

    Links in a circle replace nothing.
    """
    after: dict[str, set[str]] = {}
    frontier = list(dict.fromkeys(names))
    while frontier:
        found: dict[str, set[str]] = defaultdict(set)
        for old, new in replacements(index, frontier):
            found[old].add(new)
        after |= {name: found[name] for name in frontier}
        frontier = sorted(set().union(*found.values()) - after.keys())
    ends = {name: _ends(name, after) for name in names}
    return {name: found_ends for name, found_ends in ends.items() if found_ends}


def _ends(name: str, after: Mapping[str, set[str]]) -> list[str]:
    reached: set[str] = set()
    waiting = sorted(after[name])
    while waiting:
        other = waiting.pop()
        if other not in reached:
            reached.add(other)
            waiting += sorted(after[other])
    return [] if name in reached else sorted(other for other in reached if not after[other])


def rescored(ranked: Ranked, store: Catalogue, scores: Mapping[int, float]) -> Ranked:
    """The documents with other scores, best first; one that was not ranked has no parts."""
    order = sorted(scores, key=lambda document: (-scores[document], document))
    places = {document: place for place, document in enumerate(ranked.documents.tolist())}
    taken = np.array([places.get(document, -1) for document in order], np.int32)
    was_ranked = taken >= 0
    return ranked._replace(
        documents=np.array(order, np.int32),
        scores=np.array([scores[document] for document in order], np.float32),
        passage=np.where(was_ranked, ranked.passage[taken], store.corpus.first[order])
        if places
        else store.corpus.first[order],
        parts={name: _taken(values, taken) for name, values in ranked.parts.items()},
        alike=_taken(ranked.alike, taken),
        cosine=_taken(ranked.cosine, taken),
    )


def _taken(values: NDArray[np.float32], places: NDArray[np.int32]) -> NDArray[np.float32]:
    """The values at some places; 0 where a place is -1."""
    if not len(values):
        return np.zeros(len(places), np.float32)
    return np.where(places >= 0, values[places], np.float32(0))
