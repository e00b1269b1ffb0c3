"""Deep recall: Personalized PageRank from the direct hits over all that memories share.

Links, evidence, files, errors and names of code join memories; a walk from the hits finds what
has no word and no meaning in common with the question and is two steps away from it. What is
shared by many says little: a step through it is worth less (its weight is divided by how many
share it).

After HippoRAG (damping 0.5). The walk is computed on the neighbourhood of the hits, which is
fetched step by step; nothing farther than that can have a weight worth showing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loki_memory.index.index import Index

DAMPING = 0.5
_ROUNDS = 15
_STEPS = 3  # how far the neighbourhood is fetched
_CROWD = 60  # a file or name that more memories share joins nobody
_MOST = 3000  # memories and things in the neighbourhood

_THINGS = ("file:", "error:", "errors:", "symbol:")
_JOINED = (
    "SELECT source, target, weight FROM edges WHERE source IN ({})",
    "SELECT source, target, weight FROM edges WHERE target IN ({})",
    "SELECT id, mark, 1.0 FROM memories JOIN marks ON memory = row WHERE id IN ({})",
    "SELECT id, mark, 1.0 FROM marks JOIN memories ON memory = row WHERE mark IN ({})",
)
_SHARERS = (
    "SELECT target, count(*) FROM edges WHERE target IN ({}) GROUP BY target",
    "SELECT mark, count(*) FROM marks WHERE mark IN ({}) GROUP BY mark",
)

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
        for a, b, weight in _joined(index, frontier):
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


def _joined(index: Index, nodes: Sequence[str]) -> Iterator[tuple[str, str, float]]:
    """All that leaves or enters some memories and things."""
    for sql in _JOINED:
        yield from index.ask_of(nodes, sql)


def _crowded(index: Index, things: Sequence[str]) -> set[str]:
    counts: Counter[str] = Counter()
    for sql in _SHARERS:
        counts.update(dict(index.ask_of(things, sql)))
    return {thing for thing, number in counts.items() if number > _CROWD}
