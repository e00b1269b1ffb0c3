"""A walk from the hits: what is two links away is found, and crowds join nobody."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sync import write

from loki_memory import Workspace
from loki_memory.recall.links import DAMPING, Graph, neighbourhood, walk


def graph_of(*edges: tuple[str, str]) -> Graph:
    graph: Graph = {}
    for a, b in edges:
        graph.setdefault(a, {})[b] = 1.0
        graph.setdefault(b, {})[a] = 1.0
    return graph


# -- the walk ------------------------------------------------------------------------------------


def test_what_is_two_links_away_is_reached_and_counts_less() -> None:
    rank = walk(graph_of(("a", "b"), ("b", "c"), ("c", "d")), {"a": 1.0})
    assert rank["b"] > rank["c"] > rank["d"] > 0


def test_what_is_not_linked_is_not_reached() -> None:
    assert "z" not in walk(graph_of(("a", "b"), ("y", "z")), {"a": 1.0})


def test_two_ways_are_worth_more_than_one() -> None:
    graph = graph_of(("a", "b"), ("a", "c"), ("b", "x"), ("c", "x"), ("b", "y"))
    rank = walk(graph, {"a": 1.0})
    assert rank["x"] > rank["y"]


def test_a_step_to_one_of_many_is_worth_less() -> None:
    many = [("hub", f"n{n}") for n in range(20)]
    rank = walk(graph_of(("a", "hub"), ("a", "few"), ("few", "x"), *many), {"a": 1.0})
    assert rank["x"] > rank["n0"]


def test_seeds_begin_with_their_share() -> None:
    assert walk({}, {"a": 3.0, "b": 1.0}) == {"a": 0.75, "b": 0.25}


@pytest.mark.parametrize("seeds", [{}, {"a": 0.0}])
def test_a_walk_from_nowhere_leads_nowhere(seeds: Mapping[str, float]) -> None:
    assert walk(graph_of(("a", "b")), seeds) == {}


def test_one_step_follows_the_damping() -> None:
    """Two nodes: rank(b) = damping * rank(a), and both sum to 1."""
    rank = walk(graph_of(("a", "b")), {"a": 1.0})
    assert rank["b"] == pytest.approx(DAMPING / (1 + DAMPING), abs=1e-4)


NODE = st.sampled_from("abcdefgh")


@given(
    st.lists(st.tuples(NODE, NODE, st.floats(0, 1)), max_size=20),
    st.dictionaries(NODE, st.floats(0.01, 5), min_size=1),
)
@settings(max_examples=60, deadline=None)
def test_the_shares_sum_to_one_whatever_the_graph(
    edges: list[tuple[str, str, float]], seeds: dict[str, float]
) -> None:
    graph: Graph = {}
    for a, b, weight in edges:
        graph.setdefault(a, {})[b] = weight
        graph.setdefault(b, {})[a] = weight
    rank = walk(graph, seeds)
    assert sum(rank.values()) == pytest.approx(1)
    assert min(rank.values()) >= 0


def test_the_order_in_which_links_were_written_does_not_matter() -> None:
    edges = [(f"n{a}", f"n{b}") for a in range(8) for b in range(a) if (a * b) % 3]
    first = walk(graph_of(*edges), {"n1": 1.0, "n4": 0.3})
    shuffled = random.Random(7).sample(edges, len(edges))  # noqa: S311 - an order, not a secret
    second = walk(graph_of(*shuffled), {"n4": 0.3, "n1": 1.0})
    assert first == pytest.approx(second)
    assert list(first) == list(second)


# -- the neighbourhood ---------------------------------------------------------------------------


def episode(ws: Workspace, name: str, *files: str, **fields: Any) -> str:
    stored = ws.record(
        {
            "id": f"ep-{name}",
            "timestamp": "2026-01-06",
            "context": {"goal": f"Goal {name}", "files_involved": list(files)},
            **fields,
        }
    )
    return stored.id


def test_memories_are_joined_by_links_evidence_files_errors_and_names(ws: Workspace) -> None:
    """One by a file, its fact by evidence, one by an error, one by a name, one not at all."""
    met = {"message": "KeyError: 'user_id'"}
    episode(ws, "a", "src/app.ts", errors_encountered=[met], tags=["parse_config"])
    episode(ws, "b", "src/app.ts")
    episode(ws, "c", errors_encountered=[met])
    episode(ws, "d", tags=["parse_config"])
    write(ws, "f", statement="F", source_episodes=["ep-b"])
    write(ws, "g", statement="G", links=[{"to": "fact-f", "relation": "elaborates"}])
    ws.list()
    graph = neighbourhood(ws.index, ["ep-a"])
    rank = walk(graph, {"ep-a": 1.0})
    assert {"ep-b", "ep-c", "ep-d", "fact-f"} <= set(rank)
    assert "fact-g" not in rank or rank["fact-g"] < rank["fact-f"]
    assert set(graph["file:src/app.ts"]) == {"ep-a", "ep-b"}


def test_a_link_record_joins_the_two_that_it_names(ws: Workspace) -> None:
    a, b = ws.remember("One thing"), ws.remember("Quite another")
    ws.link(a.id, "supports", b.id)
    ws.list()
    assert b.id in walk(neighbourhood(ws.index, [a.id]), {a.id: 1.0})
    assert a.id in walk(neighbourhood(ws.index, [b.id]), {b.id: 1.0})


def test_a_crowd_joins_nobody(ws: Workspace) -> None:
    ws.record(
        [
            {
                "id": f"ep-{n}",
                "timestamp": "2026-01-06",
                "context": {"goal": f"Goal {n}", "files_involved": ["README.md"]},
            }
            for n in range(61)
        ]
    )
    ws.list()
    graph = neighbourhood(ws.index, ["ep-0", "ep-1"])
    assert "file:README.md" not in graph
    assert not any("file:README.md" in near for near in graph.values())
    ws.forget("ep-60")
    ws.list()
    assert len(neighbourhood(ws.index, ["ep-0"])["file:README.md"]) == 60


def test_what_two_share_joins_more_than_what_many_share(ws: Workspace) -> None:
    episode(ws, "a", "rare.ts", "common.ts")
    episode(ws, "b", "rare.ts")
    for name in "cdefgh":
        episode(ws, name, "common.ts")
    ws.list()
    rank = walk(neighbourhood(ws.index, ["ep-a"]), {"ep-a": 1.0})
    assert rank["ep-b"] > rank["ep-c"]


def test_a_memory_that_nobody_knows_has_no_neighbours(ws: Workspace) -> None:
    ws.remember("Something")
    ws.list()
    assert not neighbourhood(ws.index, ["fact-unknown"])
    assert not neighbourhood(ws.index, [])


def test_a_link_to_itself_is_harmless(ws: Workspace) -> None:
    write(ws, "a", statement="A", links=[{"to": "fact-a"}, {"to": "fact-b"}])
    write(ws, "b", statement="B")
    ws.list()
    rank = walk(neighbourhood(ws.index, ["fact-a"]), {"fact-a": 1.0})
    assert sum(rank.values()) == pytest.approx(1)
    assert rank["fact-b"] > 0


# -- deep recall ---------------------------------------------------------------------------------

GOAL = "Reticulate the splines of the carburettor"
PARTS = (
    *("scheduler", "importer", "gateway", "billing", "search", "mailer", "cache", "editor"),
    *("parser", "login"),
)
REMARKS = (
    "The {} keeps its settings in one file",
    "Restart the {} after a deployment",
    "Nobody knows why the {} is slow on Mondays",
    "The {} was rewritten in Rust last year",
    "Tests of the {} need a network",
    "Logs of the {} rotate every night",
    "The {} must never see personal data",
    "Ana owns the {} and reviews its changes",
    "Version two of the {} drops the old protocol",
    "Memory of the {} grows until it is restarted",
    "The {} reads its input from a queue",
    "Documentation of the {} is in the wiki",
)


def island(ws: Workspace) -> None:
    """Among many others: a hit; through a file and an episode, a fact that shares no word."""
    ws.record(
        [
            {"id": "ep-hit", "timestamp": "2026-01-06", "goal": GOAL, "files_read": ["src/q.ts"]},
            {
                "id": "ep-bridge",
                "timestamp": "2026-01-06",
                "goal": "Nightly housekeeping",
                "files_read": ["src/q.ts"],
            },
        ]
    )
    write(ws, "far", statement="Prefer walnuts over hazelnuts", source_episodes=["ep-bridge"])
    for number, (remark, part) in enumerate(product(REMARKS, PARTS)):
        write(ws, f"n{number}", statement=remark.format(part))


def test_deep_finds_what_shares_no_word_and_is_two_links_away(ws: Workspace) -> None:
    island(ws)
    question = "how to reticulate a carburettor"
    assert "fact-far" not in [hit.id for hit in ws.recall(question, k=10)]
    assert "fact-far" in [hit.id for hit in ws.recall(question, k=10, deep=True)]


def test_what_is_two_links_away_is_among_the_first(ws: Workspace) -> None:
    island(ws)
    hits = ws.recall("how to reticulate a carburettor", deep=True)
    assert [hit.id for hit in hits[:3]] == ["ep-hit", "ep-bridge", "fact-far"]


def test_the_reason_names_the_way(ws: Workspace) -> None:
    island(ws)
    hits = ws.recall("how to reticulate a carburettor", k=10, deep=True)
    why = {hit.id: hit.why for hit in hits}
    assert why["fact-far"][0].startswith("linked from ep-hit")
    assert "ep-bridge" in why["fact-far"][0]
    assert why["ep-bridge"][0] == "linked from ep-hit through file:src/q.ts"


def test_deep_says_how_it_found_what_was_a_candidate_anyhow(ws: Workspace) -> None:
    """In a small store everything is a candidate."""
    a, b = ws.remember("Reticulate the splines"), ws.remember("Prefer walnuts")
    ws.remember("Whales are mammals")
    ws.link(a.id, "supports", b.id)
    why = {hit.id: hit.why for hit in ws.recall("reticulate splines", deep=True)}
    assert f"linked from {a.id}" in why[b.id]


def test_deep_does_not_turn_the_first_hit_around(ws: Workspace) -> None:
    island(ws)
    assert ws.recall(GOAL, k=3, deep=True)[0].id == "ep-hit"


@pytest.mark.parametrize("status", ["superseded", "rejected", "retired"])
def test_a_walk_passes_what_is_hidden_and_does_not_show_it(ws: Workspace, status: str) -> None:
    a, b, c = (ws.remember(text) for text in ("Reticulate the splines", "Walnuts", "Whales"))
    ws.link(a.id, "supports", b.id)
    ws.link(b.id, "supports", c.id)
    ws.correct(b.id, status=status)
    assert b.id not in [hit.id for hit in ws.recall("reticulate splines", deep=True)]


@pytest.mark.parametrize("query", ["", "zebra", "!!!"])
def test_deep_from_no_hit_is_no_error(ws: Workspace, query: str) -> None:
    assert ws.recall(query, deep=True) == []
    ws.remember("Whales are mammals")
    assert isinstance(ws.recall(query, deep=True), list)
