"""A run that looks at what is new comes to what a run over everything comes to."""

from __future__ import annotations

import marshal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from processes import record_files
from test_consolidation_branches import EPISODES, FACTS, GOALS, SIDES, by_id, clone, split
from test_consolidation_branches import episode as branch_episode
from test_consolidation_cost import episode

from loki_memory import Episode, Fact, Workspace
from loki_memory.consolidation import provenance, run_cache
from loki_memory.consolidation.failures import setbacks
from loki_memory.consolidation.features import LazyEpisode, episode_features
from loki_memory.consolidation.phases import ALL, WEIGH, looked_at
from loki_memory.consolidation.pipeline import consolidate
from loki_memory.consolidation.snapshot import PhaseChanges, Snapshot, Touched
from loki_memory.models import Pattern, parse


@settings(max_examples=100, deadline=None)
@given(EPISODES, FACTS, SIDES)
def test_what_is_new_alone_gives_what_everything_gives(
    episodes: list[Episode], facts: list[Fact], sides: list[str]
) -> None:
    records = [*by_id([*episodes, *facts]).values()]
    first, _ = split(records, sides)
    left = clone(first).consolidated()
    grown = left.with_(records)
    new = frozenset(grown.records.keys() - left.records.keys())
    touched = looked_at(Snapshot(first))._replace(ids=new)
    archived = [one.model_copy() for one in grown.archive.values()]
    now = Snapshot(grown.records.values(), archived=archived)
    everything = Snapshot(grown.records.values(), archived=archived)
    assert consolidate(now, ALL, touched) == consolidate(everything, ALL)


@settings(max_examples=30, deadline=None)
@given(EPISODES)
def test_an_episode_at_a_glance_is_compared_as_the_whole_is(episodes: list[Episode]) -> None:
    whole = Snapshot(episodes)
    seen = [
        LazyEpisode.at(episode_features(one), one.id, lambda one=one: one, setbacks(one))
        for one in whole.episodes
    ]
    assert looked_at(Snapshot(seen)) == looked_at(whole)
    assert consolidate(Snapshot(seen), ALL) == consolidate(whole, ALL)


def test_a_belief_is_weighed_anew_when_its_twin_goes_its_own_way() -> None:
    """New evidence gave the twin other words; what it was merged into is as it was."""
    episodes = [parse(Episode, episode(n)) for n in range(4)]
    ids = [one.id for one in episodes]
    link = {"to": "sem-heir", "relation": "superseded_by", "why": "says the same"}
    told = {"key": {"cluster": ids[0]}, "confidence": 0.86, "status": "active"}
    heir = {**told, "id": "sem-heir", "pattern": "List singers", "evidence": {"for": ids[:2]}}
    twin = {**told, "id": "sem-twin", "pattern": "List a singer", "evidence": {"for": ids[2:]}}
    merged = parse(Pattern, {**twin, "status": "superseded", "links": [link]})
    before = Snapshot([*episodes, parse(Pattern, heir), merged])
    apart = PhaseChanges(put=(parse(Pattern, twin),))
    phases = (("merge", lambda _, __: apart), WEIGH)
    everything = consolidate(before, phases)
    assert [one.id for one in everything.put] == ["sem-heir", "sem-twin"]
    assert consolidate(before, phases, Touched(frozenset(ids[2:]))) == everything


# -- as a workspace does it ------------------------------------------------------------------------

TOLD = [episode(n, timestamp=f"2026-01-{n % 28 + 1:02d}T1{n % 7}:30:00Z") for n in range(40)]


@pytest.fixture
def given_to_phases(monkeypatch: pytest.MonkeyPatch) -> list[Touched | None]:
    """What each run was told to be new."""
    from loki_memory.consolidation import pipeline

    seen: list[Touched | None] = []
    run = pipeline.consolidate

    def noted(before: Any, phases: Any, touched: Any = None, *more: Any) -> Any:
        seen.append(touched)
        return run(before, phases, touched, *more)

    monkeypatch.setattr(pipeline, "consolidate", noted)
    return seen


def test_batch_by_batch_memory_is_what_it_is_without_what_was_kept(tmp_path: Path) -> None:
    with Workspace.init(tmp_path / "kept") as kept, Workspace.init(tmp_path / "lost") as lost:
        for start in range(0, len(TOLD), 8):
            for one in TOLD[start : start + 8]:
                kept.record(one)
                lost.record(one)
            (lost.layout.cache / "consolidated").unlink(missing_ok=True)
            assert kept.consolidate() == lost.consolidate()
            assert record_files(kept) == record_files(lost)


def test_what_an_archived_episode_says_of_an_error_is_not_passed_over(tmp_path: Path) -> None:
    """A fourth remedy is not listed; whoever comes with it again makes it the best confirmed."""
    told = [
        branch_episode(number, 0, GOALS[0], "POST", "success", [error], [0, 0]).document()
        for number, error in enumerate((6, 7, 9, 8, 9))
    ]
    with Workspace.init(tmp_path / "kept") as kept, Workspace.init(tmp_path / "lost") as lost:
        for ws in (kept, lost):
            ids = [ws.record(one).id for one in told[:4]]
            ws.consolidate()
            ws.archive(ids[2])
            ws.consolidate()
            ws.record(told[4])
        (lost.layout.cache / "consolidated").unlink()
        assert kept.consolidate() == lost.consolidate()
        assert record_files(kept) == record_files(lost)


def test_recorded_episodes_are_what_is_new(
    ws: Workspace, given_to_phases: list[Touched | None]
) -> None:
    ws.record(TOLD[:10])
    ws.consolidate()
    new = [ws.record(one).id for one in TOLD[10:13]]
    given_to_phases.clear()
    ws.consolidate()
    [touched] = [one for one in given_to_phases if one is None or one.clusters is not None]
    assert touched is not None
    assert touched.ids == touched.learned == frozenset(new)


def test_what_was_recorded_by_hundreds_is_not_learned_from_yet(
    ws: Workspace, given_to_phases: list[Touched | None]
) -> None:
    ws.record(TOLD[:10])
    ws.consolidate()
    many = [episode(n % 60, task_id=f"task-{n}") for n in range(100, 201)]
    ws.record(many)
    given_to_phases.clear()
    ws.consolidate()
    [touched] = given_to_phases
    assert touched is not None
    assert (len(touched.ids), touched.learned) == (len(many), frozenset())


def correct_an_episode(ws: Workspace) -> None:
    path = min(ws.layout.memory.glob("episodic/*/*.json"))
    path.write_text(path.read_text().replace("singers", "artists"))


def forget_what_is_learned_again(ws: Workspace) -> None:
    ws.forget(min(one.id for one in ws.list(kind="anti-pattern")))
    ws.record(TOLD[11])


def lose_an_archived_one(ws: Workspace) -> None:
    ws.archive(ws.list(kind="episode")[0].id)
    ws.consolidate()
    min(ws.layout.memory.glob("archive/episodic/*/*.json")).unlink()


def spoil_what_was_kept(ws: Workspace) -> None:
    path = ws.layout.cache / "consolidated"
    path.write_bytes(path.read_bytes()[:-9] + b"nonsense!")


def come_to_another_version(ws: Workspace) -> None:
    """One that kept less."""
    data = marshal.dumps(("another",))
    (ws.layout.cache / "consolidated").write_bytes(run_cache._hash(data, ws.layout) + data)


def come_as_a_clone(ws: Workspace) -> None:
    """What another place kept, under the very name that ours has."""
    other = ws.layout.root.parent / "other"
    with Workspace.init(other) as twin:
        twin.record(TOLD[:10])
        twin.consolidate()
    for name in ("consolidated", "learned"):
        kept = other / ".loki/cache" / name
        if kept.exists():
            (ws.layout.cache / name).write_bytes(kept.read_bytes())


def set_a_threshold(ws: Workspace) -> None:
    ws.set_config("consolidation.cluster", "40")


@pytest.mark.parametrize(
    "change",
    [
        correct_an_episode,
        forget_what_is_learned_again,
        lose_an_archived_one,
        spoil_what_was_kept,
        come_to_another_version,
        come_as_a_clone,
        set_a_threshold,
        lambda ws: ws.pin(ws.list(kind="anti-pattern")[0].id),
        lambda ws: ws.forget(ws.list(kind="episode")[0].id),
        lambda ws: ws.reject(ws.list(kind="anti-pattern")[0].id),
    ],
)
def test_whatever_else_changes_makes_a_run_look_at_everything(
    ws: Workspace, given_to_phases: list[Touched | None], change: Callable[[Workspace], object]
) -> None:
    ws.record(TOLD[:10])
    ws.consolidate()
    change(ws)
    given_to_phases.clear()
    ws.consolidate()
    assert given_to_phases[-1] is None


def test_a_plan_keeps_nothing(ws: Workspace) -> None:
    ws.record(TOLD[:10])
    assert ws.consolidate(plan_only=True).written
    assert not (ws.layout.cache / "consolidated").exists()


def test_what_somebody_wrote_while_a_run_went_on_is_new_to_the_next(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, given_to_phases: list[Touched | None]
) -> None:
    from loki_memory.consolidation import run

    ws.record(TOLD[:10])
    apply = run.apply
    late: list[str] = []

    def interrupted(*given: Any, **more: Any) -> Any:
        path = ws.layout.memory / "episodic/2026-02-01/task-late.json"
        path.parent.mkdir()
        path.write_bytes(parse(Episode, TOLD[39]).model_dump_json(exclude_unset=True).encode())
        late.append(parse(Episode, TOLD[39]).id)
        return apply(*given, **more)

    monkeypatch.setattr(run, "apply", interrupted)
    ws.consolidate()
    monkeypatch.setattr(run, "apply", apply)
    ws.consolidate()
    assert given_to_phases[-1] is not None
    assert given_to_phases[-1].ids == frozenset(late)


# -- a common error --------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(EPISODES, FACTS, SIDES)
def test_beliefs_that_rest_on_more_than_they_name_are_the_same_in_any_batches(
    episodes: list[Episode], facts: list[Fact], sides: list[str]
) -> None:
    """As if three episodes were all that a belief may name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provenance, "_CITED", 3)
        records = [*by_id([*episodes, *facts]).values()]
        first, _ = split(records, sides)
        once = clone(records).consolidated()
        assert clone(first).consolidated().with_(records).consolidated().says() == once.says()
        again = once.plan()
        assert (again.put, again.archive) == ((), ())
        for one in once.records.values():
            assert len(getattr(one, "source_episodes", ())) <= 3
