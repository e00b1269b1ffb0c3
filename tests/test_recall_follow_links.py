"""Links that lead from a hit to what replaced it, and to what was learned from it."""

from __future__ import annotations

from typing import Any

import pytest
from test_sync import write

from loki_memory import Workspace

OLD, NEW = "Walnut tokens are signed with the gateway key", "A keyring in the vault holds secrets"
QUESTION = "walnut tokens signed with which gateway key"
GOAL = "Implement the endpoint that lists todos"


@pytest.fixture(autouse=True)
def no_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small stores are sure of nothing; what is tested here is what links lead to."""
    monkeypatch.setenv("LOKI_RECALL_FLOOR", "0")


def replaced(ws: Workspace, relation: str, **fields: Any) -> None:
    """Two facts without a common word, one of which states that it replaces the other."""
    ends = {"superseded_by": ("old", "new"), "supersedes": ("new", "old")}
    stating, other = ends[relation]
    for name, text in (("old", OLD), ("new", NEW)):
        links = [{"to": f"fact-{other}", "relation": relation}] if name == stating else []
        write(ws, name, statement=text, links=links, **fields)


def ids(ws: Workspace, question: str = QUESTION, **options: Any) -> list[str]:
    return [hit.id for hit in ws.recall(question, **options)]


@pytest.mark.parametrize("relation", ["superseded_by", "supersedes"])
def test_what_a_link_replaces_is_hidden_and_its_successor_comes_first(
    ws: Workspace, relation: str
) -> None:
    for text in ("Walnut tokens are blue", "The gateway has a key", "Logs are signed"):
        ws.remember(text)
    replaced(ws, relation)
    hits = ws.recall(QUESTION, k=20)
    assert hits[0].id == "fact-new"
    assert "supersedes fact-old" in hits[0].why
    assert "fact-old" not in [hit.id for hit in hits]


def test_a_superseded_record_leads_to_its_successor(ws: Workspace) -> None:
    write(ws, "new", statement=NEW)
    write(
        ws,
        "old",
        statement=OLD,
        status="superseded",
        links=[{"to": "fact-new", "relation": "superseded_by"}],
    )
    assert ids(ws) == ["fact-new"]


def test_the_end_of_a_chain_is_what_holds(ws: Workspace) -> None:
    replaced(ws, "superseded_by")
    last = ws.remember("Nobody keeps any of it")
    ws.link(last.id, "supersedes", "fact-new")
    assert ids(ws) == [last.id]


def test_links_in_a_circle_hide_nothing(ws: Workspace) -> None:
    replaced(ws, "superseded_by")
    ws.link("fact-old", "supersedes", "fact-new")
    assert set(ids(ws)) == {"fact-old", "fact-new"}


def test_a_link_that_comes_from_outside_hides_nothing(ws: Workspace) -> None:
    write(ws, "old", statement=OLD)
    link = {"to": "fact-old", "relation": "supersedes"}
    write(ws, "new", statement=NEW, links=[link], origin="import")
    assert ids(ws)[0] == "fact-old"


def test_a_link_to_nothing_hides_nothing(ws: Workspace) -> None:
    link = {"to": "fact-gone", "relation": "superseded_by"}
    write(ws, "old", statement=OLD, links=[link])
    assert ids(ws) == ["fact-old"]


@pytest.mark.parametrize("question", ["fact-old", f"{QUESTION} status:all"])
def test_who_asks_for_what_was_replaced_is_shown_it(ws: Workspace, question: str) -> None:
    replaced(ws, "superseded_by")
    assert "fact-old" in ids(ws, question)


# -- what was learned from a hit ------------------------------------------------------------------


@pytest.fixture
def learned(ws: Workspace) -> Workspace:
    """An episode like the task, a pattern that rests on it in other words, and much else."""
    for number in range(8):
        ws.remember(f"Todos number {number} are listed by the endpoint of day {number}")
    ws.record([_episode("ep-2026-01-06-001", GOAL), _episode("ep-2026-01-07-001", "Rename a file")])
    return ws


def pattern(ws: Workspace, episode: str = "") -> str:
    rule = ws.remember("Annotate what a handler returns", kind="pattern")
    if episode:
        ws.link(rule.id, "derived_from", episode)
    return rule.id


def _episode(name: str, goal: str) -> dict[str, Any]:
    context = {"goal": goal, "files_involved": ["src/routes/todos.ts"]}
    return {"id": name, "timestamp": name[3:13], "outcome": "success", "context": context}


@pytest.mark.parametrize("episode", ["ep-2026-01-06-001", "ep-2026-01-07-001"])
def test_the_pattern_that_rests_on_the_best_episode_or_its_files_comes_along(
    learned: Workspace, episode: str
) -> None:
    rule = pattern(learned, episode)
    assert rule in [line.id for line in learned.context(GOAL).relevant_patterns]
    assert rule in learned.continuity(GOAL).read_text(encoding="utf-8")


def test_a_pattern_that_rests_on_nothing_near_stays_behind(learned: Workspace) -> None:
    rule = pattern(learned)
    assert rule not in [line.id for line in learned.context(GOAL).relevant_patterns]


def test_what_is_asked_for_is_answered_without_following_evidence(learned: Workspace) -> None:
    rule = pattern(learned, "ep-2026-01-06-001")
    assert rule not in ids(learned, GOAL)
