"""What a run keeps of episodes is enough: with it or without, memory comes to the same."""

from __future__ import annotations

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
from loki_memory.consolidation import features as features_module
from loki_memory.consolidation import input as input_module
from loki_memory.consolidation import provenance
from loki_memory.consolidation.features import decoded, encoded, episode_features
from loki_memory.consolidation.phases import all_phases, consolidate, first_phases
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
    now = Snapshot(grown.records.values(), archived=grown.archive.values())
    assert consolidate(now, all_phases(), new) == consolidate(now, all_phases())


@settings(max_examples=30, deadline=None)
@given(EPISODES)
def test_features_that_were_kept_teach_what_episodes_teach(episodes: list[Episode]) -> None:
    kept = [decoded(encoded(episode_features(one))) for one in episodes]
    assert consolidate(Snapshot(kept, whole=episodes), all_phases()) == consolidate(
        Snapshot(episodes), all_phases()
    )


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
    phases = (lambda _, __: apart, first_phases()[-1])
    everything = consolidate(before, phases)
    assert [one.id for one in everything.put] == ["sem-heir", "sem-twin"]
    assert consolidate(before, phases, frozenset(ids[2:])) == everything


# -- as a workspace does it ------------------------------------------------------------------------

TOLD = [episode(n, timestamp=f"2026-01-{n % 28 + 1:02d}T1{n % 7}:30:00Z") for n in range(40)]


def lose_features(ws: Workspace) -> None:
    with ws.index.change() as change:
        change.keep_features("none", [], [])


@pytest.fixture
def extracted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the episodes of which features were extracted."""
    seen: list[str] = []

    def noted(one: Episode) -> features_module.EpisodeFeatures:
        seen.append(one.id)
        return episode_features(one)

    monkeypatch.setattr(input_module, "episode_features", noted)
    return seen


def test_batch_by_batch_memory_is_what_it_is_without_what_was_kept(tmp_path: Path) -> None:
    with Workspace.init(tmp_path / "kept") as kept, Workspace.init(tmp_path / "lost") as lost:
        for start in range(0, len(TOLD), 8):
            for one in TOLD[start : start + 8]:
                kept.record(one)
                lost.record(one)
            lose_features(lost)
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
        lose_features(lost)
        assert kept.consolidate() == lost.consolidate()
        assert record_files(kept) == record_files(lost)


def test_only_new_episodes_are_read_whole(ws: Workspace, extracted: list[str]) -> None:
    first = [one.id for one in ws.record(TOLD[:10])]
    ws.consolidate(day="2026-01-01")
    assert sorted(extracted) == sorted(first)
    extracted.clear()
    new = [ws.record(one).id for one in TOLD[10:13]]
    ws.consolidate(day="2026-01-01")
    assert sorted(extracted) == sorted(new)


def correct_an_episode(ws: Workspace) -> None:
    path = min(ws.layout.memory.glob("episodic/*/*.json"))
    path.write_text(path.read_text().replace("singers", "artists"))


def archive_an_episode(ws: Workspace) -> None:
    ws.archive(ws.list(kind="episode")[0].id)


@pytest.mark.parametrize("change", [correct_an_episode, archive_an_episode])
def test_an_episode_that_changed_or_moved_is_read_again_and_no_other(
    ws: Workspace, extracted: list[str], change: Callable[[Workspace], None]
) -> None:
    ws.record(TOLD[:10])
    ws.consolidate(day="2026-01-01")
    extracted.clear()
    change(ws)
    ws.consolidate(day="2026-01-01")
    assert len(extracted) == 1


def test_other_code_extracts_all_of_them_again(
    ws: Workspace, extracted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ws.record(TOLD[:10])
    ws.consolidate(day="2026-01-01")
    extracted.clear()
    monkeypatch.setattr(input_module, "version", lambda _: "another")
    ws.consolidate(day="2026-01-01")
    assert len(extracted) == 10
    assert ws.index.ask("SELECT DISTINCT version FROM features") == [("another",)]


def test_features_of_files_that_are_gone_are_dropped(ws: Workspace) -> None:
    ws.record(TOLD[:10])
    ws.consolidate(day="2026-01-01")
    ws.forget(ws.list(kind="episode")[0].id)
    ws.consolidate(day="2026-01-01")
    assert ws.index.scalar("SELECT count(*) FROM features WHERE body <> ''") == 9


def test_a_plan_keeps_nothing(ws: Workspace) -> None:
    ws.record(TOLD[:10])
    assert ws.consolidate(plan_only=True).written
    assert ws.index.scalar("SELECT count(*) FROM features") == 0


def test_two_files_with_the_same_bytes_on_two_days_are_two_episodes(ws: Workspace) -> None:
    """What has no timestamp has the date of its folder."""
    for day in ("2026-01-05", "2026-01-06"):
        path = ws.layout.memory / "episodic" / day / "task-a.json"
        path.parent.mkdir(parents=True)
        path.write_text('{"context": {"goal": "List the singers"}, "outcome": "success"}')
    for _ in range(2):
        ws.consolidate()
        found = input_module.read_input(ws, "").snapshot.episodes
        assert [one.date for one in found] == ["2026-01-05", "2026-01-06"]


def test_what_is_due_for_a_summary_is_summarised_from_the_whole(ws: Workspace) -> None:
    """The first run extracts features, the second makes the summary."""
    log = [{"action": "read_file", "target": f"src/{n}.py", "result": "x" * 99} for n in range(30)]
    ws.record(episode(1, action_log=log, ticket="T-1", scope="local", captured=True))
    ws.consolidate(day="2026-01-02")
    report = ws.consolidate(day="2026-01-20")
    assert [step.what for step in report.steps] == ["summarised"]
    [short] = [ws.get(one.id) for one in ws.list(kind="episode")]
    assert short.document()["ticket"] == "T-1"


# -- what is new -----------------------------------------------------------------------------------


@pytest.fixture
def given_to_phases(monkeypatch: pytest.MonkeyPatch) -> list[Touched | None]:
    """What each consolidation was told to be new."""
    from loki_memory.consolidation import run

    seen: list[Touched | None] = []
    plan = run._planned

    def noted(before: Any, touched: Any, *more: Any, **known: Any) -> Any:
        seen.append(touched)
        return plan(before, touched, *more, **known)

    monkeypatch.setattr(run, "_planned", noted)
    return seen


def test_recorded_episodes_are_what_is_new(
    ws: Workspace, given_to_phases: list[Touched | None]
) -> None:
    ws.record(TOLD[:10])
    ws.consolidate()
    new = [ws.record(one).id for one in TOLD[10:]]  # two of a day, which share lessons
    ws.consolidate()
    many = [episode(n % 60, task_id=f"task-{n}") for n in range(100, 201)]
    bulk = [one.id for one in ws.record(many)]
    ws.consolidate()
    assert given_to_phases == [None, frozenset(new), frozenset(bulk)]


def forget_what_is_learned_again(ws: Workspace) -> None:
    ws.forget(min(one.id for one in ws.list(kind="anti-pattern")))
    ws.record(TOLD[11])


def lose_an_archived_one(ws: Workspace) -> None:
    ws.archive(ws.list(kind="episode")[0].id)
    ws.consolidate()
    min(ws.layout.memory.glob("archive/episodic/*/*.json")).unlink()


def set_a_threshold(ws: Workspace) -> None:
    ws.home.set_config("consolidation.cluster", "40")


@pytest.mark.parametrize(
    "change",
    [
        correct_an_episode,
        archive_an_episode,
        forget_what_is_learned_again,
        lose_an_archived_one,
        lose_features,
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
    ws.consolidate()
    assert given_to_phases[-1] is None


def test_what_somebody_wrote_while_a_run_went_on_is_new_to_the_next(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, given_to_phases: list[Touched | None]
) -> None:
    from loki_memory.consolidation import run

    ws.record(TOLD[:10])
    apply = run.apply
    late = parse(Episode, TOLD[39])

    def interrupted(*given: Any, **more: Any) -> Any:
        path = ws.layout.memory / "episodic/2026-02-01/task-late.json"
        path.parent.mkdir()
        path.write_bytes(late.model_dump_json(exclude_unset=True).encode())
        ws.sync()
        return apply(*given, **more)

    monkeypatch.setattr(run, "apply", interrupted)
    ws.consolidate()
    monkeypatch.setattr(run, "apply", apply)
    ws.consolidate()
    assert given_to_phases[-1] == frozenset({late.id})


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
