"""Graph: the neighbourhood of a belief, a file or a topic; the whole map on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response

from loki_memory.errors import NoHistory
from loki_memory.ui.page import Visit, page, render
from loki_memory.ui.site import derived

if TYPE_CHECKING:
    from loki_memory.browse.memory_map import Layout, MapNode, MemoryMap
    from loki_memory.workspace import Workspace

_FURTHEST = 2  # links from the middle of a neighbourhood
_LISTED = 30  # nodes to begin with
_COMMITS = 100  # that the slider reaches back


class Neighbour(NamedTuple):
    """A node that is linked with the middle, or with one that is."""

    id: str
    kind: str
    title: str
    status: str
    relation: str  # words for the link
    is_outgoing: bool  # whether the middle states it


class MapMoment(NamedTuple):
    """A commit whose memory the map can show."""

    commit: str
    at: str
    subject: str


class GraphPage(NamedTuple):
    """The data of the page Graph."""

    around: str  # the node in the middle; empty if none is
    title: str  # of that node
    depth: int
    layout: str
    is_whole: bool  # whether the whole map is shown
    with_episodes: bool
    map: MemoryMap | None  # nodes with positions; none if memory is empty
    neighbours: list[Neighbour]
    further: list[MapNode]  # nodes that are two links away
    entries: list[MapNode]  # the best linked nodes, to begin with
    at: str = ""  # the commit that is shown; empty: memory as it is now
    moments: tuple[MapMoment, ...] = ()  # the commits that changed memory, oldest first


class GraphOptions(NamedTuple):
    """The choices in the address of the page."""

    around: str = ""
    depth: int = 1
    layout: Layout = "links"
    is_whole: bool = False
    with_episodes: bool = False
    at: str = ""


def graph_page(workspace: Workspace, asked: GraphOptions) -> GraphPage:
    """The neighbourhood that was asked for, the whole map, or where the most links meet."""
    if asked.around:
        return _neighbourhood(workspace, asked)
    found = _whole(workspace, asked)
    best = sorted(found.nodes, key=lambda node: (-node.degree, node.kind != "topic", node.id))
    if best and not asked.is_whole:
        near = _neighbourhood(workspace, asked._replace(around=best[0].id))
        return near._replace(entries=best[:_LISTED])
    return GraphPage(
        *("", "", asked.depth, asked.layout, asked.is_whole, asked.with_episodes),
        map=found if asked.is_whole else None,
        neighbours=[],
        further=[],
        entries=best[:_LISTED],
        at=asked.at,
        moments=_moments(workspace) if asked.is_whole else (),
    )


def _whole(workspace: Workspace, asked: GraphOptions) -> MemoryMap:
    layout, episodes = asked.layout, asked.with_episodes
    return derived(
        workspace,
        f"map {layout} {episodes} {asked.at}",
        lambda: _at(workspace, asked.at).browse.memory_map(layout, with_episodes=episodes),
    )


def _at(workspace: Workspace, commit: str) -> Workspace:
    return workspace.history.as_of(commit) if commit else workspace


def _moments(workspace: Workspace) -> tuple[MapMoment, ...]:
    try:
        commits = workspace.history.commits(_COMMITS)
    except NoHistory:
        return ()
    return tuple(MapMoment(commit.id, commit.at, commit.subject) for commit in reversed(commits))


def _neighbourhood(workspace: Workspace, asked: GraphOptions) -> GraphPage:
    found = workspace.browse.neighbours(asked.around, asked.depth)
    nodes = {node.id: node for node in found.nodes}
    near = [
        _neighbour(found.root, nodes[edge.other(found.root)], edge.relation, edge.source)
        for edge in found.edges
        if found.root in {edge.source, edge.target}
    ]
    known = {found.root, *(neighbour.id for neighbour in near)}
    return GraphPage(
        *(found.root, nodes[found.root].title, asked.depth, "links", False, False),
        map=found,
        neighbours=near,
        further=[node for node in found.nodes if node.id not in known],
        entries=[],
    )


def _neighbour(root: str, node: MapNode, relation: str, source: str) -> Neighbour:
    words = relation.replace("_", " ")
    return Neighbour(node.id, node.kind, node.title, node.status, words, source == root)


def graph(visit: Visit) -> Response:
    asked = GraphOptions(
        around=visit.query("around"),
        depth=_FURTHEST if visit.query("depth") == str(_FURTHEST) else 1,
        layout="meaning" if visit.query("layout") == "meaning" else "links",
        is_whole=bool(visit.query("all")),
        with_episodes=bool(visit.query("episodes")),
        at=visit.query("at") if visit.query("all") else "",
    )
    return render(visit, "graph.html", graph_page(visit.workspace, asked))


routes = page("/graph", graph)
shapes: dict[str, Any] = {"graph": GraphPage}
