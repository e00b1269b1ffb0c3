"""Signals that a question shares with memories besides words, and what memories lead to.

An error, a file, a name of code or an id in the question speaks for the memories that have it. From
the direct hits, links lead to what replaced them, to what was learned from them, and in a deep
recall, by personalised PageRank, to whatever is joined with them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from loki_memory.index.graph import (
    beliefs_about_files_of,
    beliefs_resting_on,
    joined,
    names_of_rows,
    replacements,
    sharer_counts,
)
from loki_memory.index.search import marked, marked_failures, marked_warnings, rows_of, touching
from loki_memory.models.kinds import KINDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loki_memory.index.index import Index
    from loki_memory.recall.catalogue import Catalogue
    from loki_memory.recall.ranking import Ranked


# -- errors, files, names of code and ids ----------------------------------------------------------


# What is added to a score, which is about 1 for the best match of words and meaning.
_NAMED = 10.0  # a memory that the question names comes first
_SAME_ERROR, _LIKE_ERROR = 1.0, 0.15
_SAME_RULE = 2.0  # a warning about it says more than the episodes that met it
_FAILED = 0.1  # who met the same error and failed knows less about it than who got over it
_SAME_FILE, _SAME_SYMBOL = 0.3, 0.1  # times how rare it is
_ERROR_SIGNS = ("Error:", "error:", "Exception:", "fatal:", "panic:")
_CROWD = 2000  # memories beyond which what they share says nothing


class SharedSignals(NamedTuple):
    """A memory that has something in common with the question."""

    row: int
    worth: float
    why: str
    is_sure: bool = True  # whether it is reason enough to answer; a name of code alone is not


def shared(
    index: Index,
    total: int,
    *,
    text: str,
    named: Sequence[int],
    error: str,
    files: Sequence[str],
) -> list[SharedSignals]:
    """All memories that share something, of a store of `total`.

    An error that was pasted into the question counts like one that was given apart.
    """
    error = error or (text if any(sign in text for sign in _ERROR_SIGNS) else "")
    return [
        *(SharedSignals(row, _NAMED, "its id") for row in named),
        *_same_error(index, error),
        *_same_files(index, files, total),
        *_same_symbols(index, text, total),
    ]


def _same_error(index: Index, error: str) -> Iterator[SharedSignals]:
    if not error:
        return
    from loki_memory.models.error_signature import signature  # its patterns take 2 ms to compile

    warned = _same_rule(index, error)
    yield from warned.values()
    found = signature(error)
    if found is None:
        return
    exact = [row for row in marked(index, f"error:{found.exact}", _CROWD) if row not in warned]
    failed = marked_failures(index, f"error:{found.exact}")
    for row in exact:
        worth = _SAME_ERROR - (_FAILED if row in failed else 0.0)
        yield SharedSignals(row, worth, f"same error signature: {found.exact}")
    like = set(marked(index, f"errors:{found.broad}", _CROWD)) - {*exact, *warned}
    yield from (
        SharedSignals(row, _LIKE_ERROR, f"same kind of error: {found.broad}")
        for row in sorted(like)
    )


def _same_rule(index: Index, error: str) -> dict[int, SharedSignals]:
    """The warnings about the rules of linters and compilers that an error names, by row."""
    from loki_memory.models.diagnostics import findings, rule

    named = [finding.kind for finding in findings(error)] or [rule(error)]
    return {
        row: SharedSignals(row, _SAME_RULE, f"the same rule: {name}")
        for name in dict.fromkeys(filter(None, named))
        for row in marked_warnings(index, f"rule:{name}", _CROWD)
    }


def _same_files(index: Index, files: Sequence[str], total: int) -> Iterator[SharedSignals]:
    for path in dict.fromkeys(path.removeprefix("./") for path in files):
        rows = touching(index, path, _CROWD)
        worth = _SAME_FILE * _rare(len(rows), total)
        yield from (SharedSignals(row, worth, f"file {path}") for row in rows)


def _same_symbols(index: Index, text: str, total: int) -> Iterator[SharedSignals]:
    if text.islower() and text.replace(" ", "").isalnum():
        return
    from loki_memory.models.text import symbols

    for name in symbols(text):
        rows = marked(index, f"symbol:{name}", _CROWD)
        worth = _SAME_SYMBOL * _rare(len(rows), total)
        yield from (SharedSignals(row, worth, f"names {name}", is_sure=False) for row in rows)


def _rare(sharers: int, total: int) -> float:
    """1 for what one memory has, one half for what all have."""
    if sharers < 1 or total < 2:  # noqa: PLR2004
        return 1.0
    return 0.5 + 0.5 * max(0.0, log(total / sharers) / log(total))


# -- successors, and beliefs of an episode ---------------------------------------------------------


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


# -- deep recall -----------------------------------------------------------------------------------


_SEEDS = 20
_HIT = 0.5  # of the best score, from which on a memory is a hit and not what is left over
_WORTH = 0.5  # of the best find, on the scale on which the best match of words has about 1


def deepened(
    index: Index,
    store: Catalogue,
    document_of: NDArray[np.int32],
    ranked: Ranked,
    allowed: NDArray[np.bool_],
    reasons: dict[int, list[str]],
) -> Ranked:
    """The ranking with what the walk found; its reasons say from where it came."""
    documents, direct = ranked.documents.tolist(), ranked.scores.tolist()
    names = names_of_rows(index, store.corpus.row[ranked.documents[:_SEEDS]].tolist())
    seeds = {
        names[int(store.corpus.row[document])]: score
        for document, score in zip(documents[:_SEEDS], direct, strict=False)
        if score > 0 and score >= _HIT * direct[0]
    }
    graph = neighbourhood(index, list(seeds))
    gained = _gained(walk(graph, seeds), seeds)
    scores = dict(zip(documents, direct, strict=True))
    reached = rows_of(index, [node for node in gained if gained[node] > 0 and node not in seeds])
    best = max((gained[name] for name in reached), default=0.0)
    for name, row in reached.items():
        document = int(document_of[row]) if row < len(document_of) else -1
        if document < 0 or not allowed[document]:
            continue
        reasons.setdefault(document, []).append(_way_to(name, graph, seeds))
        scores[document] = scores.get(document, 0.0) + _WORTH * gained[name] / best
    return rescored(ranked, store, scores)


def _gained(reach: Mapping[str, float], seeds: Mapping[str, float]) -> dict[str, float]:
    """The gain of each memory by the walk, beyond where it began."""
    total = sum(seeds.values()) or 1.0
    start = {name: (1 - DAMPING) * score / total for name, score in seeds.items()}
    return {name: rank - start.get(name, 0.0) for name, rank in sorted(reach.items())}


def _way_to(name: str, graph: Graph, seeds: Mapping[str, float]) -> str:
    """From which hit the walk came, and through what: the shortest way, the first of several."""
    came: dict[str, str] = {name: ""}
    frontier = [name]
    while frontier and not (found := sorted(set(frontier) & seeds.keys())):
        steps = [(near, node) for node in frontier for near in sorted(graph[node])]
        reached = {near: node for near, node in reversed(steps) if near not in came}
        came |= reached
        frontier = sorted(reached)
    if not frontier:
        return "linked from the hits"
    between, node = [], came[found[0]]
    while node and node != name:
        between.append(node)
        node = came[node]
    return f"linked from {found[0]}" + (f" through {', '.join(between)}" if between else "")


DAMPING = 0.5
_ROUNDS = 15
_STEPS = 3  # how far the neighbourhood is fetched
_CROWDED = 60  # a file or name that more memories share joins nobody
_MOST = 3000  # memories and things in the neighbourhood

_THINGS = ("file:", "error:", "errors:", "symbol:")

Graph = dict[str, dict[str, float]]


def walk(graph: Mapping[str, Mapping[str, float]], seeds: Mapping[str, float]) -> dict[str, float]:
    """Personalized PageRank by power iteration, in a fixed order."""
    total = sum(seeds.values())
    if not total:
        return {}
    start = {node: weight / total for node, weight in sorted(seeds.items())}
    degree = {node: sum(near.values()) for node, near in graph.items()}
    rank = dict(start)
    for _ in range(_ROUNDS):
        moved: dict[str, float] = defaultdict(float)
        for node in sorted(rank):
            if not degree.get(node):
                continue
            for other, weight in graph[node].items():
                moved[other] += DAMPING * rank[node] * weight / degree[node]
        held = 1 - sum(moved.values())
        rank = {node: moved.get(node, 0.0) for node in sorted({*moved, *start})}
        for node, share in start.items():
            rank[node] += held * share
    return rank


def neighbourhood(index: Index, seeds: Sequence[str]) -> Graph:
    """Memories and things within reach of the seeds, and how strongly they are joined."""
    graph: Graph = defaultdict(dict)
    seen: set[str] = set()
    frontier = sorted(seeds)
    for _ in range(_STEPS):
        for a, b, weight in joined(index, frontier):
            graph[a][b] = graph[b][a] = max(weight, graph[a].get(b, 0.0))
        seen.update(frontier)
        reached = sorted(graph.keys() - seen)[: max(0, _MOST - len(seen))]
        crowded = _crowded(index, [node for node in reached if _is_thing(node)])
        for thing in crowded:
            for memory in graph.pop(thing):
                graph[memory].pop(thing, None)
        frontier = [node for node in reached if node not in crowded]
        if not frontier:
            break
    for thing in filter(_is_thing, list(graph)):
        for memory in graph[thing]:
            graph[memory][thing] = graph[thing][memory] = 1 / len(graph[thing])
    return graph


def _is_thing(node: str) -> bool:
    """A file, an error or a name: what memories share, as against a memory."""
    return node.startswith(_THINGS)


def _crowded(index: Index, things: Sequence[str]) -> set[str]:
    counts = sharer_counts(index, things)
    return {thing for thing, number in counts.items() if number > _CROWDED}
