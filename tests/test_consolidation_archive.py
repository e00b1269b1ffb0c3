"""Retention: seven days whole, thirty days in short, then archived unless something rests on it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki_memory import Workspace
from loki_memory.consolidation.actions import circumstances, moves, steps, summary
from loki_memory.consolidation.anti_patterns import antipatterns
from loki_memory.consolidation.archive import forget
from loki_memory.consolidation.phases import all_phases, consolidate
from loki_memory.consolidation.snapshot import Snapshot, Thresholds
from loki_memory.errors import NotFound
from loki_memory.models import (
    AntiPattern,
    Episode,
    Fact,
    Learning,
    Link,
    Memory,
    Pattern,
    Skill,
    parse,
)

LOG: list[dict[str, Any]] = [
    {"t": 0, "action": "read_file", "target": "openapi.yaml", "result": "ok"},
    *({"t": n, "action": "edit_file", "target": "src/a.ts", "payload": "x" * 99} for n in range(9)),
    {"t": 90, "action": "run_test", "target": "npm test", "error": "TS7030: no return"},
    {"t": 95, "action": "edit_file", "target": "src/a.ts", "result": "ok"},
    {"t": 99, "action": "run_test", "target": "npm test", "result": "pass"},
]


def episode(day: str = "2026-01-05", **fields: Any) -> Episode:
    given = {"goal": "Implement the endpoint", "timestamp": f"{day}T10:00:00Z", "action_log": LOG}
    return parse(Episode, {**given, "outcome": "success", **fields})


def archived(*records: Memory, day: str) -> tuple[str, ...]:
    return forget(Snapshot(records, day)).archive


@pytest.mark.parametrize(("day", "is_short"), [("2026-01-12", False), ("2026-01-13", True)])
def test_after_seven_days_an_episode_is_told_in_short(day: str, is_short: bool) -> None:
    changes = forget(Snapshot([episode()], day))
    assert bool(changes.put) is is_short
    assert changes.archive == ()


def test_a_summary_keeps_what_was_learned_and_drops_what_was_typed() -> None:
    errors = [{"message": "TS7030", "resolution": "added `: void`"}]
    whole = episode(errors_encountered=errors, git_commit="abc", artifacts_produced=["src/a.ts"])
    short = summary(whole)
    assert short is not None
    assert short.id == whole.id
    kept = {"context", "outcome", "errors_encountered", "git_commit", "artifacts_produced"}
    assert {name: short.document()[name] for name in kept} == {
        name: whole.document()[name] for name in kept
    }
    assert short.document()["detail"] == "summary"
    assert short.document()["action_counts"] == {"edit_file": 10, "npm test": 2}
    assert [one.model_dump(exclude_unset=True) for one in short.action_log] == [
        LOG[0],
        {"action": "edit_file", "target": "src/a.ts"},
        LOG[-3],
        LOG[-2],
        LOG[-1],
    ]


def test_a_short_log_is_left_as_it_is() -> None:
    assert summary(episode(action_log=LOG[-1:])) is None
    assert summary(episode(action_log=[])) is None


def test_a_summary_is_not_summarised_again() -> None:
    snapshot = Snapshot([episode()], "2026-01-20")
    again = snapshot.with_changes(forget(snapshot))
    assert not forget(again)
    assert not forget(Snapshot(again.records.values(), "2026-02-01"))


def test_unknown_fields_of_an_episode_survive() -> None:
    short = summary(episode(ticket="T-1"))
    assert short is not None
    assert short.document()["ticket"] == "T-1"


ACTIONS = st.fixed_dictionaries(
    {"action": st.sampled_from(["edit_file", "run_test", "read_file", "bash", ""])},
    optional={
        "target": st.sampled_from(
            ["src/a.ts", "src/b.ts", "tests/a.test.ts", "npm test", "cd web && npm test", "y" * 300]
        ),
        "result": st.sampled_from(["ok", "fail", "a long story " * 9]),
        "error": st.just("Error: it broke"),
    },
)


@given(st.lists(ACTIONS, max_size=12) | st.lists(ACTIONS, min_size=30, max_size=60))
def test_what_is_learned_from_a_summary_is_what_the_episode_taught(
    log: list[dict[str, str]],
) -> None:
    whole = episode(action_log=log)
    short = summary(whole) or whole
    assert moves(short) == moves(whole)
    assert steps(short) == steps(whole)
    assert circumstances(short) == circumstances(whole)
    lessons = antipatterns(Snapshot([whole])).put
    assert [one.document() for one in antipatterns(Snapshot([short])).put] == [
        one.document() for one in lessons
    ]


@pytest.mark.parametrize(("day", "is_gone"), [("2026-02-04", False), ("2026-02-05", True)])
def test_after_thirty_days_an_episode_that_nothing_rests_on_is_archived(
    day: str, is_gone: bool
) -> None:
    one = episode()
    assert archived(one, day=day) == ((one.id,) if is_gone else ())


def test_what_is_archived_is_not_written_too() -> None:
    assert forget(Snapshot([episode()], "2026-03-01")).put == ()


@pytest.mark.parametrize(
    "fields", [{"pinned": True}, {"importance": 0.8}], ids=["pinned", "important"]
)
def test_pinned_and_important_episodes_stay(fields: dict[str, Any]) -> None:
    assert archived(episode(**fields), day="2026-06-01") == ()


def resting_on(one: Episode) -> list[Memory]:
    return [
        Pattern(pattern="p", source_episodes=[one.id]),
        Pattern(pattern="p", parent=one.id),
        parse(Pattern, {"pattern": "p", "links": [{"to": one.id, "relation": "example_of"}]}),
        parse(AntiPattern, {"what_fails": "w", "resolutions": [{"do": "d", "for": [one.id]}]}),
        parse(AntiPattern, {"what_fails": "w", "resolutions": [{"do": "d", "against": [one.id]}]}),
        AntiPattern(what_fails="w", source=one.id),
        parse(Fact, {"statement": "s", "evidence": {"for": [one.id]}}),
        parse(Fact, {"statement": "s", "evidence": {"against": [one.id]}}),
        parse(Link, {"from": one.id, "to": "sem-1"}),
        parse(Link, {"from": "sem-1", "to": one.id}),
        parse(Learning, {"lesson": "l", "timestamp": "2026-01-05", "source": one.id}),
        Skill(name="s", metadata={"loki-evidence": f"ep-1, {one.id}"}),
        Skill(name="s", metadata={"loki-compared": f"ep-1, {one.id}"}),
        episode("2026-05-30", recalled=[{"id": one.id, "helpful": True}]),
    ]


@pytest.mark.parametrize("at", range(len(resting_on(episode()))))
def test_an_episode_stays_while_something_rests_on_it(at: int) -> None:
    one = episode()
    assert archived(one, resting_on(one)[at], day="2026-06-01") == ()


def test_what_was_replaced_or_taken_back_holds_no_episode() -> None:
    one = episode()
    dead = parse(Pattern, {"pattern": "p", "source_episodes": [one.id], "status": "superseded"})
    assert archived(one, dead, day="2026-06-01") == (one.id,)
    link = parse(Link, {"from": one.id, "to": "sem-1", "status": "rejected"})
    assert archived(one, link, day="2026-06-01") == (one.id,)


def test_at_the_beginning_of_the_calendar_nothing_is_old() -> None:
    assert not forget(Snapshot([episode("0001-01-02")], "0001-01-05"))


def test_two_old_episodes_do_not_hold_each_other() -> None:
    one = episode()
    other = episode("2026-01-06", links=[{"to": one.id}])
    assert archived(one, other, day="2026-06-01") == (one.id, other.id)


def replaced(heir: str = "sem-new", **fields: Any) -> Pattern:
    links = [{"to": heir, "relation": "superseded_by"}]
    given = {"id": "sem-old", "pattern": "old", "status": "superseded", "links": links}
    return parse(Pattern, {**given, "invalid_at": "2026-01-05", **fields})


NEW = Pattern(id="sem-new", pattern="new")


@pytest.mark.parametrize(("day", "gone"), [("2026-04-05", ()), ("2026-04-06", ("sem-old",))])
def test_a_superseded_belief_is_archived_after_ninety_days(day: str, gone: tuple[str, ...]) -> None:
    assert archived(replaced(), NEW, day=day) == gone


def test_the_heir_of_an_heir_is_an_heir() -> None:
    between = NEW.changed(status="superseded", links=[{"to": "sem-3", "relation": "superseded_by"}])
    last = Pattern(id="sem-3", pattern="the newest")
    assert archived(replaced(), between, last, day="2026-04-06") == ("sem-old",)
    dead = last.changed(status="rejected")
    assert archived(replaced(), between, dead, day="2026-04-06") == ()


def test_a_superseded_belief_without_a_live_heir_stays() -> None:
    assert archived(replaced(), day="2026-12-01") == ()
    dead = NEW.changed(status="rejected")
    assert archived(replaced(), dead, day="2026-12-01") == ()
    assert archived(replaced(pinned=True), NEW, day="2026-12-01") == ()


def test_a_twin_stays_because_its_evidence_counts_for_the_other() -> None:
    same = [{"to": "sem-new", "relation": "superseded_by", "why": "says the same"}]
    assert archived(replaced(links=same), NEW, day="2026-12-01") == ()


def test_children_of_what_goes_move_to_the_grandparent() -> None:
    root = Fact(id="fact-root", statement="topic", depth=0)
    orphan = parse(Fact, {"id": "fact-a", "statement": "child", "parent": "sem-old", "note": "n"})
    alone = replaced(parent="fact-root")
    changes = forget(Snapshot([root, NEW, alone, orphan], "2026-12-01"))
    assert [one.document()["parent"] for one in changes.put] == ["fact-root"]
    assert changes.put[0].document()["note"] == "n"
    (freed,) = forget(Snapshot([NEW, replaced(), orphan], "2026-12-01")).put
    assert "parent" not in freed.document()


def test_the_days_are_settings() -> None:
    settings = Thresholds(summarise_days=1, archive_days=2)
    one = episode()
    assert forget(Snapshot([one], "2026-01-07", thresholds=settings)).put
    assert forget(Snapshot([one], "2026-01-08", thresholds=settings)).archive == (one.id,)


def test_a_plan_says_which_episodes_must_be_kept_whole() -> None:
    """What is written anew goes to the archive first; what is only archived goes there anyway."""
    old, older = episode(), episode("2025-11-01", action_log=[])
    plan = consolidate(Snapshot([old, older, episode("2026-01-14")], "2026-01-14"), all_phases())
    assert plan.whole == (old.id,)
    assert older.id in plan.archive


def files(workspace: Workspace) -> dict[str, bytes]:
    top = workspace.layout.memory
    return {p.relative_to(top).as_posix(): p.read_bytes() for p in top.rglob("task-*.json")}


def worked(workspace: Workspace, **fields: Any) -> Episode:
    """An old episode that met an error and overcame it, and one of today."""
    errors = [{"message": "TS7030: no return", "resolution": "added `: void`"}]
    given = {**episode().document(), "id": "", "task_id": "task-1", "errors_encountered": errors}
    recorded = workspace.record({**given, **fields})
    workspace.record({"task_id": "task-2", "goal": "Rest", "timestamp": "2026-01-20T10:00:00Z"})
    assert isinstance(recorded, Episode)
    return recorded


def test_nothing_that_somebody_wrote_is_lost_without_git(ws: Workspace) -> None:
    """The folder has no history: what a summary leaves out must lie in the archive."""
    worked(ws)
    written = set(files(ws).values())
    ws.care.gc()
    assert written <= set(files(ws).values())
    ws.care.gc(day="2026-06-01")
    assert written <= set(files(ws).values())


def test_a_summarised_episode_is_whole_again_once_restored(ws: Workspace) -> None:
    whole = worked(ws)
    ws.care.gc()
    assert ws.get(whole.id).document()["detail"] == "summary"
    assert ws.restore(whole.id).document() == whole.document()
    assert ws.get(whole.id).document() == whole.document()
    ws.pin(whole.id)
    ws.care.gc()
    assert "detail" not in ws.get(whole.id).document()


def test_an_archived_episode_can_be_restored_and_pinned(ws: Workspace) -> None:
    whole = worked(ws, errors_encountered=[], action_log=[])
    ws.care.gc(day="2026-06-01")
    with pytest.raises(NotFound):
        ws.get(whole.id)
    ws.restore(whole.id)
    ws.pin(whole.id)
    ws.care.gc(day="2026-07-01")
    assert ws.get(whole.id).title() == whole.title()


def test_errors_and_resolutions_survive_every_compression(ws: Workspace) -> None:
    whole = worked(ws)
    for day in ("2026-01-20", "2026-03-01", "2027-01-01"):
        ws.consolidate(day=day)
        ws.care.gc(day=day)
        [warning] = [one for one in ws.list(kind="anti-pattern") if isinstance(one, AntiPattern)]
        assert "TS7030: no return" in warning.what_fails
        assert warning.prevention == "added `: void`"
        kept = ws.get(whole.id)
        assert isinstance(kept, Episode)
        assert kept.errors_encountered == whole.errors_encountered


def test_consolidation_leaves_tracked_episodes_as_they_are(ws: Workspace) -> None:
    """A feature branch that consolidates years later changes no old file."""
    worked(ws)
    written = files(ws)
    ws.consolidate(day="2027-01-01", reach="all")
    assert files(ws) == written


def test_consolidation_thins_the_episodes_of_this_machine(ws: Workspace) -> None:
    old = worked(ws, errors_encountered=[], action_log=[], scope="local", captured=True)
    ws.consolidate(day="2027-01-01")
    with pytest.raises(NotFound):
        ws.get(old.id)


def test_a_dry_run_says_which_episodes_grow_old(ws: Workspace) -> None:
    whole = worked(ws)
    written = files(ws)
    assert list(ws.care.gc(dry_run=True).summarised) == [whole.id]
    assert files(ws) == written
    assert list(ws.care.gc().summarised) == [whole.id]
    assert list(ws.care.gc().summarised) == []


def test_gc_publishes_nothing(ws: Workspace) -> None:
    """A lesson that is due waits for `consolidate`, `review` or `commit`."""
    errors = [{"message": "TS7030: no return", "resolution": "annotate it with `: void`"}]
    for number in (1, 2):
        ws.record(
            {
                "goal": f"Add route {number}",
                "timestamp": f"2026-01-0{number}T10:00:00Z",
                "session": f"s{number}",
                "scope": "local",
                "captured": True,
                "outcome": "success",
                "errors_encountered": errors,
            }
        )
    before = sorted((ws.layout.memory / "semantic").rglob("*-*.json"))
    ws.care.gc(day="2026-06-01")
    assert sorted((ws.layout.memory / "semantic").rglob("*-*.json")) == before
