"""The map of memory: beliefs, topics and files with positions, or the neighbourhood of one.

Beliefs that were learned from the same episode are joined directly, so that a map need not show
every episode. A topic is a category that two memories share, as the node `topic:NAME`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from loki_memory.browse.graph import Graph, GraphEdge, Node, linked, neighbourhood
from loki_memory.browse.layout import Point, place, rings
from loki_memory.errors import NotFound
from loki_memory.index.overview import MapRow, categories, map_rows, relations
from loki_memory.models.text import shorten

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace
    from loki_memory.index.graph import Relation


Layout = Literal["links", "meaning"]
TOPIC = "topic:"
_MOST = 5_000  # memories on one map
_LABEL = 80  # characters
_LARGE = 2  # nodes of a community that has a name


class MapNode(NamedTuple):
    """A memory, a topic or a file, and where it stands."""

    id: str
    kind: str
    title: str
    status: str
    at: str
    community: int  # its place among the communities; -1 if it has no edge
    degree: int
    x: float
    y: float


class Community(NamedTuple):
    """Nodes that are linked with each other more than with others."""

    label: str  # the title of its best linked node
    size: int


class MemoryMap(NamedTuple):
    """Nodes with positions, and the edges between them."""

    root: str  # of a neighbourhood; empty for the whole map
    layout: Layout
    nodes: list[MapNode]
    edges: list[GraphEdge]
    communities: list[Community]
    more: int  # neighbours or memories that were left out


def whole_map(
    workspace: OpenWorkspace, layout: Layout = "links", *, with_episodes: bool = False
) -> MemoryMap:
    """The map of all beliefs, or of the newest five thousand memories."""
    workspace.home.ensure("read")
    home = workspace.home
    rows = home.answer(partial(map_rows, home.index, with_episodes=with_episodes, limit=_MOST))
    stated = home.answer(partial(relations, home.index))
    nodes, edges = assembled(rows, stated, home.answer(partial(categories, home.index)))
    pairs = [(edge.source, edge.target) for edge in edges]
    groups = communities(nodes, pairs)
    points = place(groups, pairs) if layout == "links" else _by_meaning(workspace, rows, nodes)
    shown = [name for name in nodes if name in points]
    return _map("", layout, nodes, edges, groups, {name: points[name] for name in shown})


def around(workspace: OpenWorkspace, name: str, depth: int) -> MemoryMap:
    """The neighbourhood of a memory, a file (`file:PATH`) or a topic (`topic:NAME`)."""
    found = (
        _around_topic(workspace, name) if name.startswith(TOPIC) else _near(workspace, name, depth)
    )
    nodes = {
        node.id: MapRow(0, node.id, node.kind, node.title or node.id, node.status, "")
        for node in found.nodes
    }
    points = rings(found.root, {node.id: node.distance for node in found.nodes})
    groups = communities(nodes, [(edge.source, edge.target) for edge in found.edges])
    made = _map(found.root, "links", nodes, found.edges, groups, points)
    return made._replace(more=found.more)


def _near(workspace: OpenWorkspace, name: str, depth: int) -> Graph:
    return linked(workspace, name if name.startswith("file:") else workspace.resolve(name), depth)


def _around_topic(workspace: OpenWorkspace, name: str) -> Graph:
    workspace.home.ensure("read")
    index = workspace.index
    members = categories(index).get(name.removeprefix(TOPIC), [])
    if not members:
        raise NotFound(name)
    rows = {row.id: row for row in map_rows(index, with_episodes=True, limit=_MOST)}
    known = [rows[member] for member in members if member in rows]
    nodes = [Node(name, "topic", name.removeprefix(TOPIC), "", 0)]
    nodes += [Node(row.id, row.kind, row.title, row.status, 1) for row in known]
    edges = [GraphEdge(row.id, "is about", name) for row in known]
    inside = {row.id for row in known}
    between = {
        edge
        for row in known
        for edge in neighbourhood(index, row.id).edges
        if {*edge[::2]} <= inside
    }
    return Graph(name, nodes, [*edges, *sorted(between)], len(members) - len(known))


def assembled(
    rows: Sequence[MapRow], stated: Iterable[Relation], topics: Mapping[str, Sequence[str]]
) -> tuple[dict[str, MapRow], list[GraphEdge]]:
    """The nodes and edges of a map from what the index says."""
    nodes = {row.id: row for row in rows}
    together: dict[str, list[str]] = defaultdict(list)
    edges: list[GraphEdge] = []
    for source, relation, target in stated:
        if source in nodes and (target in nodes or relation == "cites"):
            edges.append(GraphEdge(source, relation, target))
        elif source in nodes and relation == "derived_from":
            together[target].append(source)
    for learned in together.values():
        edges += [GraphEdge(a, "learned together", b) for a, b in pairwise(sorted(learned))]
    for topic, members in topics.items():
        shown = [member for member in members if member in nodes]
        if len(shown) >= _LARGE:
            edges += [GraphEdge(member, "is about", f"{TOPIC}{topic}") for member in shown]
    for edge in edges:
        if edge.target not in nodes:
            nodes[edge.target] = _thing(edge.target)
    return nodes, sorted(set(edges))


def _thing(name: str) -> MapRow:
    kind, _, title = name.partition(":")
    return MapRow(0, name, kind, title, "", "")


def _map(
    root: str,
    layout: Layout,
    nodes: Mapping[str, MapRow],
    edges: Sequence[GraphEdge],
    groups: Sequence[Sequence[str]],
    points: Mapping[str, Point],
) -> MemoryMap:
    shown = [edge for edge in edges if edge.source in points and edge.target in points]
    degree = Counter(end for edge in shown for end in (edge.source, edge.target))
    named = [group for group in groups if len(group) >= _LARGE]
    home = {name: number for number, group in enumerate(named) for name in group}
    return MemoryMap(
        root=root,
        layout=layout,
        nodes=[
            MapNode(
                id=name,
                kind=nodes[name].kind,
                title=shorten(nodes[name].title, _LABEL),
                status=nodes[name].status,
                at=nodes[name].at[:10],
                community=home.get(name, -1),
                degree=degree[name],
                x=point.x,
                y=point.y,
            )
            for name, point in points.items()
        ],
        edges=list(shown),
        communities=[_community(group, nodes, degree) for group in named],
        more=0,
    )


def _community(
    group: Sequence[str], nodes: Mapping[str, MapRow], degree: Mapping[str, int]
) -> Community:
    best = max(group, key=lambda name: (degree.get(name, 0), nodes[name].kind == "topic", name))
    return Community(shorten(nodes[best].title, _LABEL), len(group))


def _by_meaning(
    workspace: OpenWorkspace, rows: Sequence[MapRow], nodes: Mapping[str, MapRow]
) -> dict[str, Point]:
    """Positions of memories by their vectors; topics and files have none and are left out."""
    from loki_memory.browse.layout import positions

    return {name: point for name, point in positions(workspace.home, rows).items() if name in nodes}


# Communities of a graph by Louvain's method (Blondel et al. 2008).
#
# Each node moves to the neighbouring community with the largest gain of modularity until none
# moves; then communities become the nodes of a smaller graph, and the same begins again. Nodes
# are taken in the order of their names, and of equal gains the first community wins, so the same
# graph always gives the same communities.

Weights = Mapping[str, Mapping[str, float]]  # node -> neighbour -> weight, in both directions

_ROUNDS = 20  # of moves at one level; a graph of memories settles in three or four
_LEVELS = 10
_GAIN = 1e-12  # less is rounding


def communities(names: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """The communities, largest first, each in the order of names; a node without edges is one."""
    nodes = sorted(set(names))
    weights = _weights(nodes, edges)
    groups = {name: [name] for name in nodes}
    for _ in range(_LEVELS):
        moved = _moved(weights)
        if len(set(moved.values())) == len(weights):
            break
        groups = _merged(groups, moved)
        weights = _contracted(weights, moved)
    found = [sorted(group) for group in groups.values()]
    return sorted(found, key=lambda group: (-len(group), group))


def _weights(nodes: Sequence[str], edges: Iterable[tuple[str, str]]) -> Weights:
    found: dict[str, dict[str, float]] = {name: {} for name in nodes}
    for source, target in sorted(edges):
        if source != target and source in found and target in found:
            found[source][target] = found[source].get(target, 0.0) + 1.0
            found[target][source] = found[target].get(source, 0.0) + 1.0
    return found


def _moved(weights: Weights) -> dict[str, str]:
    """The community of each node after moves at one level, named after one of its nodes."""
    degree = {name: sum(near.values()) for name, near in weights.items()}
    total = sum(degree.values()) or 1.0
    home, inside = {name: name for name in weights}, dict(degree)
    for _ in range(_ROUNDS):
        moves = 0
        for name in weights:
            inside[home[name]] -= degree[name]
            best = _best(name, weights[name], home, inside, degree[name] / total)
            moves += best != home[name]
            home[name] = best
            inside[best] += degree[name]
        if not moves:
            break
    return home


def _best(
    name: str,
    near: Mapping[str, float],
    home: Mapping[str, str],
    inside: Mapping[str, float],
    share: float,
) -> str:
    """The community that gains most by a node that has left its own."""
    links: dict[str, float] = {home[name]: 0.0}
    for other, weight in near.items():
        if other != name:
            links[home[other]] = links.get(home[other], 0.0) + weight
    best, gain = home[name], links[home[name]] - inside[home[name]] * share
    for community in sorted(links):
        gained = links[community] - inside[community] * share
        if gained > gain + _GAIN:
            best, gain = community, gained
    return best


def _merged(groups: Mapping[str, list[str]], moved: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, members in groups.items():
        found.setdefault(moved[name], []).extend(members)
    return found


def _contracted(weights: Weights, moved: Mapping[str, str]) -> Weights:
    """The graph of communities; a weight to itself keeps what lies inside one."""
    found: dict[str, dict[str, float]] = {name: {} for name in sorted(set(moved.values()))}
    for name, near in weights.items():
        for other, weight in near.items():
            into = found[moved[name]]
            into[moved[other]] = into.get(moved[other], 0.0) + weight
    return found
