"""What surrounds a memory, and drawings that no memory's text can break."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki_memory import Workspace
from loki_memory.browse.graph import Graph, GraphEdge, Node, dot, draw, mermaid, neighbourhood


@pytest.fixture
def todo(example: Path) -> Iterator[Workspace]:
    with Workspace.open(example) as workspace:
        workspace.sync()
        yield workspace


def _facts(ws: Workspace, *names: str) -> list[str]:
    return [ws.remember(f"About {name}").id for name in names]


def _ids(graph: Graph) -> list[str]:
    return [node.id for node in graph.nodes]


def _shape(graph: Graph, names: dict[str, str]) -> str:
    """A drawing with short names in place of ids."""
    text = draw(graph)
    for memory_id, name in names.items():
        text = text.replace(f"{memory_id}  About {name}", name).replace(memory_id, name)
    return text


def test_links_are_followed_in_both_directions(ws: Workspace) -> None:
    a, b, c, d = _facts(ws, "a", "b", "c", "d")
    ws.link(a, "supersedes", b)
    ws.link(c, "related_to", a)
    ws.link(b, "related_to", d)
    ws.sync()
    near = neighbourhood(ws.index, a)
    assert set(_ids(near)) == {a, b, c}
    assert near.edges == [GraphEdge(c, "related_to", a), GraphEdge(a, "supersedes", b)]
    assert set(_ids(neighbourhood(ws.index, a, depth=2))) == {a, b, c, d}


def test_what_came_before_and_after_in_a_session_is_followed(ws: Workspace) -> None:
    first, then, last = (
        ws.remember(f"Step {n}", session="s1", at=f"2026-01-0{n}T09:00:00Z").id for n in (1, 2, 3)
    )
    other = ws.remember("Step 4", session="s2", at="2026-01-02T10:00:00Z").id
    edges = {(edge.source, edge.target) for edge in ws.browse.graph(then).edges}
    assert edges == {(first, then), (then, last)}
    assert [line.id for line in ws.browse.traverse(then, "before")] == [first]
    assert [line.id for line in ws.browse.traverse(then, "after")] == [last]
    assert ws.browse.graph(other).edges == []


def test_memories_that_are_near_in_meaning_are_edges_when_asked_for(ws: Workspace) -> None:
    lint = ws.remember("Run the linter before you commit")
    near = ws.remember("Linting must pass before every commit")
    ws.remember("Invoices are numbered without gaps")
    assert ws.browse.graph(lint.id).edges == []
    (edge,) = ws.browse.graph(lint.id, similar=1).edges
    assert (edge.target, edge.relation[:8]) == (near.id, "similar ")


def test_a_circle_is_cut_with_a_mark_and_the_outermost_are_leaves(ws: Workspace) -> None:
    a, b, c, d, e = _facts(ws, "a", "b", "c", "d", "e")
    ws.link(a, "related_to", b)
    ws.link(b, "related_to", c)
    ws.link(c, "elaborates", a)
    ws.link(b, "contradicts", d)
    ws.link(c, "contradicts", e)
    ws.link(d, "related_to", e)
    ws.sync()
    names = {a: "a", b: "b", c: "c", d: "d", e: "e"}
    assert _shape(neighbourhood(ws.index, a, depth=2), names) == (
        "a\n"
        "├─ elaborates ← c\n"
        "│  ├─ contradicts → e\n"
        "│  └─ related_to ← b ↺\n"
        "└─ related_to → b\n"
        "   └─ contradicts → d"
    )


def test_files_are_neighbours_and_can_be_asked_about(todo: Workspace) -> None:
    found = neighbourhood(todo.index, "file:src/app.ts")
    assert draw(found) == (
        "file:src/app.ts\n"
        "├─ touches ← ep-2026-01-08-25zehyq52r  Serve the built web client from Express\n"
        "└─ touches ← ep-2026-01-09-q9hy32m80g  Implement GET /api/health endpoint"
    )
    assert found.nodes[0] == Node("file:src/app.ts", "file", "", "", 0)


def test_a_link_record_stands_for_its_source(todo: Workspace) -> None:
    link = next(m for m in todo.browse.summaries(kind="link"))
    found = neighbourhood(todo.index, link.id)
    assert found.root == link.title.split()[0]
    assert len(found.nodes) > 1


def test_names_that_lead_nowhere_are_shown_as_missing(ws: Workspace, project: Path) -> None:
    folder = project / ".loki" / "memory" / "semantic" / "facts"
    (folder / "fact-a.json").write_text(
        '{"id": "fact-a", "statement": "About a", "source_episodes": ["ep-2026-01-06-404"]}'
    )
    ws.sync()
    found = neighbourhood(ws.index, "fact-a")
    assert found.nodes[1] == Node("ep-2026-01-06-404", "missing", "", "", 1)


def test_a_crowd_is_cut_and_counted(ws: Workspace) -> None:
    ws.record([{"goal": f"Fix {n}", "files_modified": ["app.ts"]} for n in range(30)])
    ws.sync()
    found = neighbourhood(ws.index, "file:app.ts", limit=10)
    assert (len(found.nodes), len(found.edges), found.more) == (10, 9, 21)
    assert found == neighbourhood(ws.index, "file:app.ts", limit=10)


def test_every_link_between_the_memories_shown_is_there_once(todo: Workspace) -> None:
    found = neighbourhood(todo.index, "sem-001", depth=2)
    assert len(set(found.edges)) == len(found.edges)
    ids = set(_ids(found))
    rows = todo.index.ask("SELECT DISTINCT source, relation, target FROM edges")
    links = {edge for edge in found.edges if edge.relation != "followed_by"}
    assert {GraphEdge(*row) for row in rows if row[0] in ids and row[2] in ids} == links


# -- drawings ------------------------------------------------------------------------------------

NASTY = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            '"];\n}',
            "\\",
            '\\"',
            "`|`",
            "end",
            "%%{init: {}}%%",
            "<script>",
            "]-->",
            "\x1b[31m",
            "#35;",
        ]
    ),
)


@st.composite
def graphs(draw_: st.DrawFn) -> Graph:
    names = draw_(st.lists(NASTY, min_size=1, max_size=5, unique=True))
    titles = draw_(st.lists(NASTY, min_size=len(names), max_size=len(names)))
    nodes = [
        Node(name, "fact", title, "active", min(number, 2))
        for number, (name, title) in enumerate(zip(names, titles, strict=True))
    ]
    edge = st.builds(GraphEdge, st.sampled_from(names), NASTY, st.sampled_from(names))
    return Graph(names[0], nodes, draw_(st.lists(edge, max_size=6, unique=True)), 0)


@given(graphs())
def test_no_text_breaks_out_of_a_graphviz_drawing(graph: Graph) -> None:
    first, second, *inside, last = dot(graph).split("\n")
    assert (first, second, last) == ("digraph memory {", "  rankdir=LR;", "}")
    text = r'"(?:[^"\\]|\\.)*"'
    node, edge = rf"  n\d \[shape=\w+, label={text}\];", rf"  n\d -> n\d \[label={text}\];"
    assert len(inside) == len(graph.nodes) + len(graph.edges)
    assert all(re.fullmatch(f"{node}|{edge}", line) for line in inside)


@given(graphs())
def test_no_text_breaks_out_of_a_mermaid_drawing(graph: Graph) -> None:
    first, *inside = mermaid(graph).split("\n")
    assert first == "flowchart LR"
    text = r'"(?:[\w .,:/-]|#\d+;)*(?:<br/>(?:[\w .,:/-]|#\d+;)*)?"'
    node, edge = rf"  n\d\[{text}\]", rf"  n\d -->\|{text}\| n\d"
    assert len(inside) == len(graph.nodes) + len(graph.edges)
    assert all(re.fullmatch(f"{node}|{edge}", line) for line in inside)


@given(graphs())
def test_a_drawing_for_the_terminal_is_plain_lines_one_for_each_link(graph: Graph) -> None:
    lines = draw(graph).split("\n")
    assert all(line.isprintable() for line in lines)
    assert len(lines) <= 1 + len(graph.edges)


def test_the_whole_graph_has_every_memory_and_every_link(todo: Workspace) -> None:
    found = todo.browse.whole_graph()
    names = {node.id for node in found.nodes}
    assert {memory.id for memory in todo.list() if memory.kind != "link"} <= names
    assert all({edge.source, edge.target} <= names for edge in found.edges)
    near = todo.browse.graph("sem-001")
    assert {*near.edges} <= {*found.edges}
    assert len(re.findall(r"^ *n\d+ -> n\d+ ", dot(found), re.MULTILINE)) == len(found.edges)
