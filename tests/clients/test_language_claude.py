"""`claude -p` itself as the language model that words lessons."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from desk import Desk, open_desk

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(not shutil.which("claude"), reason="claude is not on PATH"),
]
LESSON = "The payment tests need a running Redis, started with `make redis`, on port 6380."
WORDED = "Before the payment tests, start a Redis on port 6380 with `make redis`; tests need it."


@pytest.fixture
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    """A project with one lesson, and our hooks in the user's settings."""
    opened = open_desk(request, tmp_path)
    opened.run("loki-mem", "install", "claude-code")
    for number in (1, 2):
        episode = {
            "goal": "make the payment tests pass",
            "timestamp": f"2026-03-0{number}T09:00:00Z",
            "session": f"session-{number}",
            "outcome": "success",
            "statements": [{"text": LESSON, "type": "gotcha", "score": 0.7}],
        }
        path = tmp_path / f"episode-{number}.json"
        path.write_text(json.dumps(episode))
        opened.run("loki-mem", "record", str(path))
    opened.run("loki-mem", "consolidate")
    return opened


def test_claude_words_a_lesson_and_its_session_leaves_no_memory(desk: Desk) -> None:
    listed = desk.memory("list", "--kind", "fact")["memories"]
    (fact,) = [found for found in listed if LESSON in found["title"]]
    desk.environment["LOKI_LANGUAGE_BACKEND"] = "claude"
    answer = json.dumps({"items": [{"id": fact["id"], "text": WORDED}]})
    episodes = desk.run("loki-mem", "list", "--kind", "episode")
    done = desk.memory_session(["consolidate"], [{"plain": answer}])
    assert "1 of 1 memory worded by claude" in done.out, done.out
    (request,) = done.requests
    assert LESSON.split(",", maxsplit=1)[0] in json.dumps(request)
    assert "make the payment tests pass" not in json.dumps(request)
    assert desk.memory("show", fact["id"])["worded"] == WORDED
    assert desk.run("loki-mem", "list", "--kind", "episode") == episodes
    assert not list(desk.home.glob(".claude/projects/*/*.jsonl"))
