"""Facts are forgotten by age, relevance or count: on request, and never for good."""

from __future__ import annotations

import pytest

from loki_memory import Workspace
from loki_memory.consolidation.retention import Aged, Limits, dispensable, relevance_of
from loki_memory.models import Fact

TODAY = "2026-06-01T09:00:00Z"


@pytest.fixture(autouse=True)
def _today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOKI_NOW", TODAY)


def aged(name: str, age: int, **fields: object) -> Aged:
    fact = Fact(id=f"fact-{name}", statement=name, **fields)  # type: ignore[arg-type]
    return Aged(fact, age, relevance_of(fact, age))


def gone(limits: Limits, *facts: Aged) -> list[str]:
    return [pruned.id for pruned in dispensable(facts, limits)]


def test_a_relevance_is_halved_every_season() -> None:
    fact = Fact(statement="x", importance=0.6)
    assert [relevance_of(fact, age) for age in (0, 90, 180)] == [60, 30, 15]


def test_each_limit_takes_its_own() -> None:
    facts = (aged("new", 1), aged("old", 400), aged("dull", 1, importance=0.1))
    assert gone(Limits(days=365), *facts) == ["fact-old"]
    assert gone(Limits(relevance=20), *facts) == ["fact-old", "fact-dull"]
    assert gone(Limits(facts=2), *facts) == ["fact-old"]
    assert gone(Limits(), *facts) == []


def test_nothing_is_pruned_by_default(ws: Workspace) -> None:
    ws.remember("Old", at="2020-01-01")
    assert list(ws.care.gc(prune=True).pruned) == []


def test_an_old_fact_goes_to_the_archive_and_comes_back(ws: Workspace) -> None:
    old = ws.remember("We deploy on Fridays", at="2025-01-01")
    ws.remember("Prices are kept in cents")
    ws.home.set_config("prune.days", "365")
    (planned,) = ws.care.gc(prune=True, dry_run=True).pruned
    assert ws.get(old.id).title() == "We deploy on Fridays"
    assert list(ws.care.gc(prune=True).pruned) == [planned]
    assert [fact.title() for fact in ws.list(kind="fact")] == ["Prices are kept in cents"]
    assert ws.restore(old.id).title() == "We deploy on Fridays"


def test_what_is_pinned_important_used_or_stood_on_stays(ws: Workspace) -> None:
    pinned, used, topic = (
        ws.remember(text, at="2025-01-01") for text in ("Pinned", "Used", "A topic")
    )
    ws.remember("Important", at="2025-01-01", importance="high")
    ws.remember("Below", parent=topic.id, at="2026-05-30")
    ws.pin(pinned.id)
    ws.browse.opened(used.id)
    ws.home.set_config("prune.days", "30")
    assert list(ws.care.gc(prune=True).pruned) == []


def test_without_prune_gc_leaves_facts_alone(ws: Workspace) -> None:
    ws.remember("Old", at="2025-01-01")
    ws.home.set_config("prune.days", "30")
    assert list(ws.care.gc().pruned) == []
    assert len(ws.list(kind="fact")) == 1
