"""Real clients against a scripted model.

These tests run only when they are asked for: `pytest -m clients tests/clients`. The clients are
found on PATH, and the namespace needs `unshare` and `ip`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from desk import Desk, namespace


@pytest.fixture(autouse=True)
def _asked_for(request: pytest.FixtureRequest) -> None:
    if "clients" not in str(request.config.option.markexpr):
        pytest.skip("real clients run only when they are asked for: pytest -m clients")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    if not namespace():
        pytest.skip("no network namespace can be made here (unshare, ip)")
    found = Desk(tmp_path)
    found.make_project()
    return found
