"""Topics and timeline: small, and their counts add up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki_memory import Workspace
from loki_memory.browse.topics import (
    Item,
    Timeline,
    Topic,
    grouped,
    overview,
    timeline,
    topics,
    within,
)
from loki_memory.index.queries import TopicMember
from loki_memory.models.text import printable_line, tokens

NOW = "2026-01-17T09:00:00Z"


@pytest.fixture
def todo(example: Path) -> Iterator[Workspace]:
    with Workspace.open(example) as workspace:
        workspace.sync()
        yield workspace


def _by_id(workspace: Workspace) -> dict[str, Topic]:
    workspace.sync()
    return {topic.id: topic for topic in topics(workspace.index)}


def _line(topic: str, size: int = 1) -> Topic:
    return Topic(topic, topic.partition(":")[2] or topic, size, {"fact": size}, 10 * size, "")


# -- topics --------------------------------------------------------------------------------------


def test_the_topics_of_a_normal_store_take_about_a_hundred_tokens(todo: Workspace) -> None:
    found = overview(topics(todo.index), 100)
    text = "\n".join(topic.line() for topic in found.topics)
    assert 60 <= tokens(text) <= 110
    assert found.topics[0].line() == (
        "[fact-0d548y5qh8] Storage: the todo API keeps all its data in one SQLite file: "
        "3 memories, 306 tokens"
    )
    assert found.more > 0


def test_every_live_memory_is_in_one_topic(todo: Workspace) -> None:
    found = overview(topics(todo.index), budget=10_000)
    assert found.more == 0
    assert found.total_memories == len(todo.browse.summaries())
    assert found.total_memories == sum(sum(topic.kinds.values()) for topic in found.topics)
    bodies = todo.index.bodies()
    assert found.total_tokens == sum(-(-len(body.encode()) // 4) for _, body in bodies)


def test_a_topic_tree_counts_what_is_below_its_top(ws: Workspace) -> None:
    top = ws.remember("Storage", category="decision").id
    ws.sync()
    middle = ws.remember("One SQLite file", category="decision", parent=top).id
    ws.sync()
    ws.remember("It is called todo.db", category="name", parent=middle, at="2026-01-09")
    ws.remember("We deploy on Fridays", category="decision")
    found = _by_id(ws)
    assert set(found) == {top, "category:decision"}
    assert found[top][1:4] == ("Storage", 3, {"fact": 3})
    assert found[top].last >= "2026-01-09"
    assert found["category:decision"].memories == 1


def test_a_memory_of_depth_0_is_a_topic_before_anything_is_below_it(
    ws: Workspace, project: Path
) -> None:
    folder = project / ".loki" / "memory" / "semantic" / "facts"
    for name, depth in (("fact-a", "0"), ("fact-b", "1")):
        text = f'{{"id": "{name}", "statement": "About {name}", "depth": {depth}}}'
        (folder / f"{name}.json").write_text(text)
    assert set(_by_id(ws)) == {"fact-a", "kind:fact"}


def test_what_is_given_up_is_in_no_topic(ws: Workspace) -> None:
    kept = ws.remember("We deploy on Fridays", category="habit")
    gone = ws.remember("We deploy on Mondays", category="habit")
    ws.sync()
    ws.reject(gone.id)
    found = _by_id(ws)
    assert set(found) == {"category:habit"}
    assert found["category:habit"].memories == 1
    assert found["category:habit"].tokens == tokens(ws.index.body(kept.id)[1])  # type: ignore[index]


def test_categories_are_one_however_they_are_written(ws: Workspace) -> None:
    ws.remember("Run them in parallel", category="Testing")
    ws.remember("Seed the random numbers", category="testing ")
    ws.remember("Never retry", kind="anti-pattern", category="testing")
    found = _by_id(ws)
    assert found["category:testing"].kinds == {"anti-pattern": 1, "fact": 2}


def test_an_empty_store_has_no_topics(ws: Workspace) -> None:
    assert overview(_by_id(ws).values(), 100) == ([], 0, 0, 0)


members = st.builds(
    TopicMember,
    id=st.sampled_from([f"fact-{n}" for n in range(8)]),
    kind=st.sampled_from(["fact", "pattern"]),
    category=st.sampled_from(["", "testing"]),
    parent=st.sampled_from(["", "gone", *(f"fact-{n}" for n in range(8))]),
    day=st.sampled_from(["", "2026-01-06"]),
    tokens=st.integers(1, 100),
    is_top=st.integers(0, 1),
)


@given(st.lists(members, unique_by=lambda member: member.id))
def test_counts_add_up_whatever_parents_say(given_: list[TopicMember]) -> None:
    """Parents that lead in a circle or nowhere lose nothing."""
    found = grouped(given_)
    assert sum(topic.memories for topic in found) == len(given_)
    assert sum(topic.tokens for topic in found) == sum(member.tokens for member in given_)
    assert len({topic.id for topic in found}) == len(found)


def test_topics_of_the_user_are_joined_with_those_of_the_project() -> None:
    found = overview([_line("category:b", 2), _line("fact-1"), _line("category:b", 3)], 100)
    assert [topic.id for topic in found.topics] == ["fact-1", "category:b"]
    assert found.topics[1].kinds == {"fact": 5}
    assert (found.total_memories, found.total_tokens) == (6, 60)


def test_topics_that_do_not_fit_are_counted() -> None:
    found = overview([_line(f"category:{n:03}", 999 - n) for n in range(50)], budget=30)
    assert [topic.title for topic in found.topics] == ["000", "001", "002"]
    assert found.more == 47
    assert found.total_memories == sum(range(950, 1000))


# -- timeline ------------------------------------------------------------------------------------


def _lines(items: list[Item]) -> list[str]:
    return [item.line() for item in items]


def test_the_timeline_of_a_normal_store_takes_about_five_hundred_tokens(todo: Workspace) -> None:
    found = within([timeline(todo.index, None, NOW)], 500)
    parts = [item.line() for part in found[:5] for item in part]
    assert 400 <= tokens("\n".join(parts)) <= 550
    assert all(found[:5])
    assert found.more > 0


def test_a_timeline_says_what_happened_and_where_everybody_stands(todo: Workspace) -> None:
    found = timeline(todo.index, None, NOW)
    assert _lines(found.recent_actions)[0] == (
        "2026-01-16 ops-001-devops Deploy version 1.0.0 to staging (failure) "
        "[ep-2026-01-16-xvfsbj67bd]"
    )
    assert len(found.recent_actions) == 27
    assert _lines(found.key_decisions)[-1] == (
        "2026-01-05 mara Storage: the todo API keeps all its data in one SQLite file "
        "[fact-0d548y5qh8]"
    )
    assert _lines(found.focus)[1] == (
        "2026-01-16 eng-001-backend Limit the length of a title in the spec and in the validation "
        "[ledger-eng-001-backend]"
    )
    assert _lines(found.blockers)[2] == (
        "2026-01-16 eng-001-backend A title of 90 kB is accepted: openapi.yaml has no maxLength "
        "[handoff-pxfhe1devs]"
    )
    assert _lines(found.next_up)[0] == (
        "2026-01-16 eng-001-backend take over: Rolled staging back to 0.9.3: version 1.0.0 could "
        "not open its database (open) [handoff-pntnsg6v73]"
    )
    assert found.next_up[1].text == "test: a start as the service user, not as root"


def test_a_timeline_since_a_day(todo: Workspace) -> None:
    found = timeline(todo.index, "2026-01-16", NOW)
    assert [item.at[:10] for item in found.recent_actions] == ["2026-01-16"] * 3
    assert found.key_decisions == []


def test_a_closed_handoff_blocks_nobody(ws: Workspace) -> None:
    handoff = ws.team.hand_off(
        "a", "b", "Added search", known_issues=["slow"], needs_testing=["paging"]
    )
    ws.sync()
    found = timeline(ws.index, None, NOW)
    assert [item.text for item in found.blockers] == ["slow"]
    assert [item.text for item in found.next_up] == ["take over: Added search", "test: paging"]
    ws.team.accept(handoff.id)
    ws.sync()
    assert [item.text for item in timeline(ws.index, None, NOW).next_up] == ["test: paging"]
    ws.team.close_handoff(handoff.id)
    ws.sync()
    assert timeline(ws.index, None, NOW)[2:5] == ([], [], [])


def test_blockers_and_plans_that_agents_add_to_a_ledger_are_found(ws: Workspace) -> None:
    ws.team.checkpoint(
        {
            "agent_id": "qa-1",
            "current_task": "task-7",
            "blocked_by": "no staging server",
            "context": {"blockers": ["flaky network", 5, ""], "next_steps": ["load test"]},
        }
    )
    ws.sync()
    found = timeline(ws.index, None, NOW)
    assert [item.text for item in found.focus] == ["task-7"]
    assert [item.text for item in found.blockers] == ["no staging server", "flaky network"]
    assert [item.text for item in found.next_up] == ["load test"]


def test_decisions_that_no_longer_hold_are_left_out(ws: Workspace) -> None:
    kept = ws.remember("Use SQLite", category="decision")
    gone = ws.remember("Use Postgres", category="Decision")
    ws.sync()
    ws.correct(gone.id, invalid_at="2026-01-10T00:00:00Z")
    ws.sync()
    later, earlier = (timeline(ws.index, None, now) for now in (NOW, "2026-01-09T00:00:00Z"))
    assert [item.id for item in later.key_decisions] == [kept.id]
    assert {item.id for item in earlier.key_decisions} == {kept.id, gone.id}


def test_what_belongs_to_one_session_is_on_no_timeline(ws: Workspace) -> None:
    ws.record({"goal": "Try something", "scope": "session"})
    ws.record({"goal": "Fix the build"})
    ws.sync()
    assert [item.text for item in timeline(ws.index, None, NOW).recent_actions] == ["Fix the build"]


def test_what_one_part_of_a_timeline_leaves_over_another_uses() -> None:
    actions = [Item(f"ep-{n:02}", "2026-01-06", "", "x" * 80) for n in range(50)]
    found = within([Timeline(actions, [], [], [], [])], budget=500)
    assert sum(tokens(item.line()) for item in found.recent_actions) > 450
    assert len(found.recent_actions) + found.more == 50


def test_timelines_of_several_indexes_are_one_newest_first() -> None:
    mine = Timeline([Item("ep-1", "2026-01-06", "", "mine")], [], [], [], [])
    yours = Timeline([Item("ep-2", "2026-01-07", "", "yours")], [], [], [], [])
    found = within([mine, yours], 500)
    assert [item.text for item in found.recent_actions] == ["yours", "mine"]


@given(st.text(max_size=50), st.integers(2, 40))
def test_a_line_is_one_line_of_harmless_characters(text: str, width: int) -> None:
    shown = printable_line(text, width)
    assert len(shown) <= width
    assert shown.isprintable()
