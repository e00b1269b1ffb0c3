"""Topics by their names, and what stands below them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from loki_memory import Workspace
from loki_memory.cli.main import cli
from loki_memory.errors import NotFound


@pytest.fixture
def topic(ws: Workspace) -> Workspace:
    for number in range(5):
        ws.remember(f"Queue consumer {number} acks after commit {number}", category="queue")
    ws.consolidate()
    return ws


def test_a_topic_is_explored_by_its_category(topic: Workspace) -> None:
    found = topic.browse.explore("Queue")
    assert found.title.startswith("Queue: ")
    assert len(found.children) == 5
    assert topic.browse.explore(found.id) == found


def test_a_subtree_is_all_that_stands_below(topic: Workspace) -> None:
    below = topic.browse.subtree("queue")
    assert {topic.get(name).title()[:14] for name in below} == {"Queue consumer"}
    assert len(below) == 5


def test_a_traversal_reaches_all_that_stands_below(topic: Workspace) -> None:
    below = topic.browse.subtree("queue")
    top = topic.browse.explore("queue").id
    assert {line.id for line in topic.browse.traverse(top, "subtree")} == {*below}


def test_a_topic_that_is_not_there_is_said(topic: Workspace) -> None:
    with pytest.raises(NotFound):
        topic.browse.explore("billing")


def test_every_topic_that_is_listed_can_be_explored(topic: Workspace) -> None:
    topic.remember("The API listens on 8080", category="ports")
    topic.record({"goal": "Add the ports page"})
    listed = topic.browse.topics(budget=1000).topics
    assert len(listed) > 2
    for found in listed:
        explored = topic.browse.explore(found.title if ":" in found.id else found.id)
        assert len(explored.children) + (":" not in found.id) == found.memories, found.title


def test_the_place_of_a_memory_is_the_topics_above_it(ws: Workspace) -> None:
    top = ws.remember("Frontend").id
    part = ws.remember("Buttons", parent=top).id
    leaf = ws.remember("Buttons use the design tokens", parent=part).id
    assert [step.id for step in ws.browse.place_of(leaf)] == [top, part]
    assert ws.browse.place_of(top) == []


def test_of_each_topic_the_best_hit_is_shown_with_its_place(ws: Workspace, project: Path) -> None:
    top = ws.remember("Frontend").id
    for text in ("Buttons use the design tokens", "Buttons are tested with axe"):
        ws.remember(text, parent=top)
    ws.sync()
    given = ["-C", str(project), "recall", "buttons", "--by-topic"]
    said = CliRunner().invoke(cli, given).output
    assert said.count("Buttons") == 1
    assert "in Frontend" in said
