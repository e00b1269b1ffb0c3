"""Codex itself, with our hooks: what it accepts, and what its model receives."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from desk import Desk, open_desk

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(not shutil.which("codex"), reason="codex is not on PATH"),
]


def shell(command: str) -> dict[str, Any]:
    return {"call": ["exec_command", {"cmd": command}]}


def returning(path: str) -> dict[str, Any]:
    """The patch that mends a file."""
    patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n   }}\n+  return undefined;\n }}\n"
    return shell(f"apply_patch <<'EOF'\n{patch}*** End Patch\nEOF")


@pytest.fixture
def hooked(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    desk = open_desk(request, tmp_path)
    desk.configure_codex()
    desk.run("loki-mem", "install", "codex")
    return desk


def test_the_second_session_is_told_what_mended_the_error_of_the_first(hooked: Desk) -> None:
    mended = [shell("npm test"), returning("src/login.ts"), shell("npm test")]
    first = hooked.codex("Fix the failing login tests", [*mended, {"say": "The tests pass."}])
    assert "The tests pass." in first.out
    hooked.run("loki-mem", "ingest")
    copied = "sed 's/login/logout/; /undefined/d' src/login.ts > src/logout.ts"
    replies = [shell(copied), shell("npm test"), returning("src/logout.ts"), shell("npm test")]
    second = hooked.codex("Add a logout function like login", [*replies, {"say": "It is there."}])
    assert any("return undefined" in told for told in second.received("<loki-memory>"))
    for session in (first, second):
        assert "hook returned invalid" not in session.out
        assert "Hook failed" not in session.out


def test_an_error_that_took_several_attempts_is_a_reason_to_word_a_lesson(hooked: Desk) -> None:
    replies = [
        shell("npm test"),
        shell("npm test"),
        returning("src/login.ts"),
        shell("npm test"),
        {"say": "The tests pass."},
        shell("loki-mem lesson 'a function returns' --do 'return on every path' --error TS7030"),
        {"say": "The tests pass."},
    ]
    session = hooked.codex("Fix the failing login tests", replies)
    (request,) = session.received("Before you stop")
    assert "an error took several attempts" in request
    titles = [each["title"] for each in hooked.memory("list")["memories"]]
    assert any("return on every path" in title or "TS7030" in title for title in titles)
    hooked.run("loki-mem", "ingest")
    goals = [each["title"] for each in hooked.memory("list", "--kind", "episode")["memories"]]
    assert goals == ["Fix the failing login tests"]
