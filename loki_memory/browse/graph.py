"""The graph of memories, or a memory's neighbourhood, for terminals, Graphviz and Mermaid.

Text in a drawing comes from memories and is escaped: it cannot become a part of the syntax.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.index.graph import beside_in_time, relations_at, source_of_link
from loki_memory.index.index import Index
from loki_memory.index.queries import heading, topic_members
from loki_memory.models.text import printable_line

if TYPE_CHECKING:
    from loki_memory.home import Home
    from loki_memory.homes import OpenWorkspace

_NODES = 40  # more do not fit on a screen
_NAME, _LABEL = 90, 60  # characters
_AGAIN = "↺"
_DOT_BREAK, _MERMAID_BREAK = "\\n", "<br/>"


class Node(NamedTuple):
    """A memory, a file of the project, or a name that leads nowhere (kind `missing`)."""

    id: str
    kind: str
    title: str
    status: str
    distance: int

    def lines(self) -> list[str]:
        """The name, and the title if there is one."""
        state = "" if self.status in {"active", ""} else f" ({self.status})"
        title = printable_line(self.title, _LABEL) + state
        return (
            [printable_line(self.id, _NAME), title] if title else [printable_line(self.id, _NAME)]
        )


class GraphEdge(NamedTuple):
    """A link between two of the nodes."""

    source: str
    relation: str
    target: str

    def other(self, end: str) -> str:
        return self.target if end == self.source else self.source

    def label(self) -> str:
        return printable_line(self.relation, _LABEL)


class Graph(NamedTuple):
    """The neighbourhood of `root`; the graph of all memories if there is none."""

    root: str
    nodes: list[Node]
    edges: list[GraphEdge]
    more: int  # neighbours that were left out


def linked(workspace: OpenWorkspace, name: str, depth: int, similar: int = 0) -> Graph:
    """Return the neighbourhood of a memory, or of a file of the project (`file:src/app.ts`)."""
    if name.startswith("file:"):
        workspace.home.ensure("read")
        home = workspace.home
    else:
        home = workspace.homes.up_to_date(name)
    found = home.answer(partial(neighbourhood, home.index, name, depth))
    return _with_similar(home, found, similar) if similar else found


def _with_similar(home: Home, graph: Graph, most: int) -> Graph:
    """Add the memories that are nearest in meaning, with the cosine of their vectors."""
    from loki_memory.browse.layout import most_similar

    near = most_similar(home, graph.root, most)
    edges = [GraphEdge(graph.root, f"similar {cosine:.2f}", name) for name, cosine in near]
    known = {node.id for node in graph.nodes}
    nodes = [_node(home.index, name, 1) for name, _ in near if name not in known]
    return graph._replace(nodes=[*graph.nodes, *nodes], edges=[*graph.edges, *edges])


def neighbourhood(index: Index, memory_id: str, depth: int = 1, limit: int = _NODES) -> Graph:
    """Up to `depth` links away in either direction, the nearest and strongest first."""
    root = source_of_link(index, memory_id) or memory_id  # a link is an edge, not a node
    distances, edges, left = {root: 0}, dict[str, list[GraphEdge]](), set[str]()
    for step in range(1, depth + 1):
        for node in [name for name, distance in distances.items() if distance == step - 1]:
            edges[node] = _edges_at(index, node)
            for other in (edge.other(node) for edge in edges[node]):
                if other not in distances and len(distances) < limit:
                    distances[other] = step
                elif other not in distances:
                    left.add(other)
    between = {
        edge
        for node in distances
        for edge in edges.get(node) or _edges_at(index, node)
        if edge.source in distances and edge.target in distances
    }
    nodes = [_node(index, name, distance) for name, distance in distances.items()]
    edges_by_relation = sorted(between, key=lambda edge: (edge.relation, edge))
    return Graph(root, nodes, edges_by_relation, len(left - set(distances)))


def whole(index: Index) -> Graph:
    """All live memories and files, and every link between them; its root is empty."""
    names = [member.id for member in topic_members(index)]
    edges = {edge for name in names for edge in _edges_at(index, name)}
    ends = {end for edge in edges for end in (edge.source, edge.target)}
    nodes = [_node(index, name, 0) for name in sorted({*names, *ends})]
    return Graph("", nodes, sorted(edges, key=lambda edge: (edge.relation, edge)), 0)


def _edges_at(index: Index, name: str) -> list[GraphEdge]:
    """The links of a memory, and what came before and after it in its session."""
    rows = [*relations_at(index, name), *beside_in_time(index, name)]
    return [GraphEdge(*row) for row in rows]


def _node(index: Index, name: str, distance: int) -> Node:
    if name.startswith("file:"):
        return Node(name, "file", "", "", distance)
    return Node(name, *(heading(index, name) or ("missing", "", "")), distance)


# -- drawing ---------------------------------------------------------------------------------------


def draw(graph: Graph) -> str:
    """Draw the graph as a tree for the terminal.

    A repeated memory is marked `↺` and not followed again. The outermost memories are leaves:
    links between two of them are left to the other formats.
    """
    nodes = {node.id: node for node in graph.nodes}
    rim = max(node.distance for node in graph.nodes)
    left, drawn = list(graph.edges), {graph.root}

    def below(name: str, indent: str) -> Iterator[str]:
        branches = [edge for edge in left if name in {edge.source, edge.target}]
        left[:] = [edge for edge in left if edge not in branches]
        for edge in branches:
            other = nodes[edge.other(name)]
            again = other.id in drawn or other.distance <= nodes[name].distance
            fork, bar = ("└─", "   ") if edge is branches[-1] else ("├─", "│  ")
            yield f"{indent}{fork} {_branch(edge, name)} {_node_text(other, again=again)}"
            if not again:
                drawn.add(other.id)
                yield from below(other.id, indent + bar) if other.distance < rim else ()

    return "\n".join([_node_text(nodes[graph.root], again=False), *below(graph.root, "")])


def _branch(edge: GraphEdge, end: str) -> str:
    return f"{edge.label()} {'→' if edge.source == end else '←'}"


def _node_text(node: Node, *, again: bool) -> str:
    return f"{node.lines()[0]} {_AGAIN}" if again else "  ".join(node.lines())


def dot(graph: Graph) -> str:
    """Draw the graph for Graphviz."""
    numbers = {node.id: f"n{number}" for number, node in enumerate(graph.nodes)}
    shapes = {"file": "note", "missing": "plaintext"}
    return "\n".join(
        [
            "digraph memory {",
            "  rankdir=LR;",
            *(
                f"  {numbers[node.id]} [shape={shapes.get(node.kind, 'box')}, label="
                f'"{_DOT_BREAK.join(map(_dot_text, node.lines()))}"];'
                for node in graph.nodes
            ),
            *(
                f"  {numbers[edge.source]} -> {numbers[edge.target]} "
                f'[label="{_dot_text(edge.label())}"];'
                for edge in graph.edges
            ),
            "}",
        ]
    )


def _dot_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def mermaid(graph: Graph) -> str:
    """Draw the graph for Mermaid, as Markdown pages show it."""
    numbers = {node.id: f"n{number}" for number, node in enumerate(graph.nodes)}
    return "\n".join(
        [
            "flowchart LR",
            *(
                f'  {numbers[node.id]}["{_MERMAID_BREAK.join(map(_mermaid_text, node.lines()))}"]'
                for node in graph.nodes
            ),
            *(
                f'  {numbers[edge.source]} -->|"{_mermaid_text(edge.label())}"| '
                f"{numbers[edge.target]}"
                for edge in graph.edges
            ),
        ]
    )


def _mermaid_text(text: str) -> str:
    """Escape everything but letters, digits and the plainest signs as numbered entities."""
    return re.sub(r"[^\w .,:/-]", lambda found: f"#{ord(found[0])};", text)
