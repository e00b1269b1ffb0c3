"""The map of memory: communities, positions, neighbourhoods."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from loki_memory import Workspace
from loki_memory.browse.layout import place, projected, rings
from loki_memory.browse.memory_map import communities
from loki_memory.errors import NotFound

TRIANGLES = [("a", "b"), ("b", "c"), ("c", "a"), ("x", "y"), ("y", "z"), ("z", "x"), ("a", "x")]


def test_two_triangles_with_a_bridge_are_two_communities() -> None:
    assert communities("abcxyz", TRIANGLES) == [["a", "b", "c"], ["x", "y", "z"]]


def test_communities_do_not_depend_on_the_order_of_edges() -> None:
    turned = [(target, source) for source, target in reversed(TRIANGLES)]
    assert communities("zyxcba", turned) == communities("abcxyz", TRIANGLES)


def test_a_node_without_edges_is_a_community_of_its_own() -> None:
    assert communities("ab", []) == [["a"], ["b"]]


def test_a_chain_of_cliques_is_found_at_several_levels() -> None:
    cliques = [[f"{letter}{number}" for number in range(6)] for letter in "abcdefgh"]
    edges = [(a, b) for clique in cliques for a in clique for b in clique if a < b]
    edges += [(a[0], b[0]) for a, b in pairwise(cliques)]
    found = communities([name for clique in cliques for name in clique], edges)
    assert sorted(found) == cliques


def test_positions_are_the_same_at_every_run() -> None:
    groups = communities("abcxyz", TRIANGLES)
    assert place(groups, TRIANGLES) == place(groups, TRIANGLES)


def test_every_node_has_a_position_and_no_two_share_one() -> None:
    groups = communities("abcxyzpq", TRIANGLES)
    points = place(groups, TRIANGLES)
    assert set(points) == set("abcxyzpq")
    assert len(set(points.values())) == 8


def test_communities_do_not_overlap() -> None:
    points = place(communities("abcxyz", TRIANGLES), TRIANGLES)
    centre = [sum(points[name].x for name in group) / 3 for group in ("abc", "xyz")]
    other = [sum(points[name].y for name in group) / 3 for group in ("abc", "xyz")]
    distance = ((centre[0] - centre[1]) ** 2 + (other[0] - other[1]) ** 2) ** 0.5
    assert distance > 2.5


def test_a_neighbourhood_has_its_root_in_the_middle() -> None:
    points = rings("a", {"a": 0, "b": 1, "c": 1, "d": 2})
    assert points["a"] == (0, 0)
    assert abs(points["b"].y) == 4.0
    assert points["d"].x ** 2 + points["d"].y ** 2 > 30


def test_vectors_are_projected_without_flipping() -> None:
    vectors = np.random.default_rng(7).normal(size=(20, 8)).astype(np.float32)
    assert np.allclose(projected(vectors), projected(vectors))
    assert projected(vectors).shape == (20, 2)


def test_the_whole_map_has_topics_files_and_typed_edges(example: Path) -> None:
    with Workspace.open(example) as ws:
        found = ws.browse.memory_map()
    kinds = {node.kind for node in found.nodes}
    assert {"fact", "pattern", "anti-pattern", "skill", "topic"} <= kinds
    assert "episode" not in kinds
    assert {"is about", "learned together"} <= {edge.relation for edge in found.edges}
    assert found.communities[0].size >= found.communities[-1].size


def test_episodes_come_onto_the_map_when_they_are_asked_for(example: Path) -> None:
    with Workspace.open(example) as ws:
        found = ws.browse.memory_map(with_episodes=True)
    assert "episode" in {node.kind for node in found.nodes}


def test_the_map_of_meaning_places_memories_only(example: Path) -> None:
    with Workspace.open(example) as ws:
        found = ws.browse.memory_map("meaning")
        again = ws.browse.memory_map("meaning")
    assert found == again
    assert not {node.kind for node in found.nodes} & {"topic", "file"}


def test_the_map_of_a_memory_with_one_belief_is_one_point(ws: Workspace) -> None:
    ws.remember("CI runs on Node 22")
    for layout in ("links", "meaning"):
        assert len(ws.browse.memory_map(layout).nodes) == 1


def test_an_empty_memory_has_an_empty_map(ws: Workspace) -> None:
    assert ws.browse.memory_map().nodes == []
    assert ws.browse.memory_map("meaning").nodes == []


def test_a_neighbourhood_of_a_belief_a_file_and_a_topic(example: Path) -> None:
    with Workspace.open(example) as ws:
        assert ws.browse.neighbours("sem-001").root == "sem-001"
        topic = ws.browse.neighbours("topic:testing")
        assert topic.nodes[0].kind == "topic"
        assert {edge.target for edge in topic.edges if edge.relation == "is about"} == {
            "topic:testing"
        }
        path = ws.browse.files().files[0].path
        assert ws.browse.neighbours(f"file:{path}").nodes[0].id == f"file:{path}"


def test_a_topic_that_nobody_wrote_about_is_not_found(ws: Workspace) -> None:
    with pytest.raises(NotFound):
        ws.browse.neighbours("topic:nothing")


def test_a_file_tells_which_beliefs_cite_it_and_which_are_stale(
    ws: Workspace, project: Path
) -> None:
    (project / "app.py").write_text("port = 8080\n")
    cited = {"path": "app.py", "blob": "47a4b96c4f0d9f9e9a9b4b8f4a1f7cf0e0a1f1aa"}
    stale = ws.remember("The port is 3000", details={"citations": [cited]})
    fresh = ws.remember("The port is set in app.py", details={"citations": [{"path": "app.py"}]})
    found = ws.browse.file("app.py")
    assert {belief.id: belief.stale for belief in found.beliefs} == {
        stale.id: True,
        fresh.id: False,
    }
    assert found.is_there


def test_a_file_lists_sessions_that_touched_it_and_what_was_learned_there(example: Path) -> None:
    with Workspace.open(example) as ws:
        path = max(ws.browse.files().files, key=lambda file: file.touching).path
        found = ws.browse.file(path)
    assert found.episodes
    assert {belief.relation for belief in found.beliefs} <= {"cites", "touches", "learned there"}


def test_files_are_found_by_a_part_of_their_path(example: Path) -> None:
    with Workspace.open(example) as ws:
        found = ws.browse.files("VITEST").files
    assert found
    assert all("vitest" in file.path for file in found)


def test_an_unknown_file_has_no_memory(ws: Workspace) -> None:
    found = ws.browse.file("../../etc/passwd")
    assert (found.is_there, found.beliefs, found.episodes) == (False, [], [])
