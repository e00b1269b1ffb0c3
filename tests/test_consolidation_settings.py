"""Settings of consolidation: each reaches the phase that it is for, and none differs by machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loki_memory import Workspace
from loki_memory.consolidation.snapshot import Thresholds
from loki_memory.settings import SETTINGS

SHARED = [setting for setting in SETTINGS if setting.shared]
LIKENESS = {"cluster", "merge", "surprise", "confident"}  # in hundredths


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("LOKI_HOME", str(tmp_path / "home"))
    return Workspace.init(tmp_path / "project")


def met(day: int, message: str, resolution: str) -> dict[str, Any]:
    return {
        "task_id": f"task-{day}",
        "timestamp": f"2026-01-{day:02d}T10:00:00Z",
        "context": {"goal": f"Deploy the service, attempt {day}"},
        "outcome": "success",
        "errors_encountered": [
            {"type": "DeployError", "message": message, "resolution": resolution}
        ],
    }


def test_what_is_set_by_default_is_what_consolidation_does_by_default(ws: Workspace) -> None:
    assert Thresholds.of(ws.config) == Thresholds()


def test_every_threshold_has_a_setting_and_every_setting_a_threshold() -> None:
    names = {setting.name.removeprefix("consolidation.") for setting in SHARED}
    assert names == set(Thresholds._fields)


@pytest.mark.parametrize("setting", SHARED, ids=lambda setting: setting.name)
def test_a_setting_changes_its_threshold_and_no_other(ws: Workspace, setting: Any) -> None:
    name = setting.name.removeprefix("consolidation.")
    ws.home.set_config(setting.name, "9")
    expected = 0.09 if name in LIKENESS else 9
    assert Thresholds.of(ws.config) == Thresholds()._replace(**{name: expected})


def test_the_remedies_that_are_kept_are_as_many_as_set(ws: Workspace) -> None:
    ws.home.set_config("consolidation.resolutions", "1")
    for day, remedy in enumerate(["Rotate the token", "Clear the cache"], start=1):
        ws.record(met(day, "Registry refused the push of image api", remedy))
    (error,) = ws.list(kind="anti-pattern")
    assert len(error.document()["resolutions"]) == 1
    ws.consolidate()
    assert len(ws.get(error.id).document()["resolutions"]) == 1


def test_a_belief_needs_as_many_sessions_as_set(ws: Workspace) -> None:
    ws.home.set_config("consolidation.support", "3")
    for day in (1, 2):
        ws.record(met(day, "Registry refused the push of image api", "Rotate the token"))
    (error,) = ws.list(kind="anti-pattern")
    assert error.document()["status"] == "candidate"
    ws.record(met(3, "Registry refused the push of image api", "Rotate the token"))
    assert ws.get(error.id).document()["status"] == "active"


def test_another_machines_settings_change_nothing(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_CONSOLIDATION_MERGE", "99")
    again = Workspace.open(ws.layout.root)
    assert Thresholds.of(again.config) == Thresholds()
    assert any("LOKI_CONSOLIDATION_MERGE" in notice for notice in again.notices)
