"""Deep recall: personalised PageRank over the link graph, started from the direct hits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from loki_memory.index.graph import joined, names_of_rows, sharer_counts
from loki_memory.index.search import rows_of
from loki_memory.recall.follow_links import rescored

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from loki_memory.index.index import Index
    from loki_memory.recall.catalogue import Catalogue
    from loki_memory.recall.ranking import Ranked

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


# -- Deep recall: Personalized PageRank from the direct hits over all that memories s -------------


DAMPING = 0.5
_ROUNDS = 15
_STEPS = 3  # how far the neighbourhood is fetched
_CROWD = 60  # a file or name that more memories share joins nobody
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
    return {thing for thing, number in counts.items() if number > _CROWD}
