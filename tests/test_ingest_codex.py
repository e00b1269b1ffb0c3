"""Codex CLI's rollouts as turns and episodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loki_memory import Workspace
from loki_memory.ingest.codex import Codex
from loki_memory.ingest.turn import CALL, PROMPT, RESULT, STOP, Turn
from loki_memory.models import Episode
from loki_memory.writing.ingesting import ingest

PATCH = (
    "*** Begin Patch\n*** Update File: src/cart.py\n+x\n*** Add File: docs/cart.md\n*** End Patch"
)


class Rollout:
    """A rollout, line by line, ten seconds apart."""

    def __init__(self, cwd: str = "/home/ana/shop") -> None:
        self.lines: list[dict[str, Any]] = []
        self.add("session_meta", id="rollout-1", cwd=cwd, cli_version="0.65.0", git={"branch": "b"})

    def add(self, line: str, **payload: Any) -> Rollout:
        at = f"2026-03-02T09:{len(self.lines) // 6:02}:{len(self.lines) % 6 * 10:02}.000Z"
        self.lines.append({"timestamp": at, "type": line, "payload": payload})
        return self

    def say(self, text: str) -> Rollout:
        return self.add("event_msg", type="user_message", message=text)

    def shell(self, command: str, output: str, code: int = 0) -> Rollout:
        call = f"call_{len(self.lines)}"
        given = json.dumps({"command": ["bash", "-lc", command], "workdir": "/home/ana/shop"})
        self.add("response_item", type="function_call", name="shell", arguments=given, call_id=call)
        told = json.dumps({"output": output, "metadata": {"exit_code": code}})
        return self.add("response_item", type="function_call_output", call_id=call, output=told)

    def patch(self) -> Rollout:
        call = f"call_{len(self.lines)}"
        named = {"name": "apply_patch", "input": PATCH, "call_id": call}
        self.add("response_item", type="custom_tool_call", **named)
        return self.add(
            "response_item", type="custom_tool_call_output", call_id=call, output="Done!"
        )

    def turns(self) -> list[Turn]:
        dialect = Codex.reading(self.lines[0])
        assert dialect is not None
        return [turn for line in self.lines for turn in dialect.turns(line) or ()]

    def write(self, path: Path, lines: int | None = None) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines[:lines]))
        return path


def work(cwd: str = "/home/ana/shop") -> Rollout:
    return (
        Rollout(cwd)
        .say("Fix the cart")
        .shell("pytest tests", "KeyError: 'SHOP_ENV'", 1)
        .patch()
        .shell("SHOP_ENV=test pytest tests", "5 passed")
        .add("response_item", type="message", role="assistant", content=[])
        .add("event_msg", type="token_count", info={})
    )


def test_prompts_calls_and_results_are_turns() -> None:
    told = work().turns()
    assert [turn.kind for turn in told] == [PROMPT, CALL, RESULT, CALL, RESULT, CALL, RESULT]
    assert (told[1].tool, told[1].text) == ("shell", "pytest tests")
    assert [turn.failed for turn in told if turn.kind == RESULT] == [True, False, False]
    assert told[3].files == ("src/cart.py", "docs/cart.md")
    assert {(turn.session, turn.cwd, turn.branch) for turn in told} == {
        ("rollout-1", "/home/ana/shop", "b")
    }


@pytest.mark.parametrize(
    ("output", "failed"),
    [
        ("Chunk ID: 1\nProcess exited with code 2\nOutput:\nno", True),
        ("Process exited with code 0\nOutput:\nfine", False),
        ({"content": "no", "success": False}, True),
        ("plain words", False),
    ],
)
def test_however_a_result_says_that_it_failed(output: Any, failed: bool) -> None:
    told = Rollout().add("response_item", type="function_call_output", call_id="c", output=output)
    assert [turn.failed for turn in told.turns()] == [failed]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"command": ["bash", "-lc", "make all"]}, "make all"),
        ({"command": ["ls", "-la"]}, "ls -la"),
        ({"command": "make"}, "make"),
        ({"cmd": "make", "yield_time_ms": 5}, "make"),
    ],
)
def test_however_a_shell_is_given_its_command(given: dict[str, Any], text: str) -> None:
    item = {"type": "function_call", "name": "exec_command", "call_id": "c"}
    (turn,) = Rollout().add("response_item", **item, arguments=json.dumps(given)).turns()
    assert (turn.tool, turn.text) == ("shell", text)


def test_what_the_program_adds_is_no_prompt_and_an_abort_stops() -> None:
    told = Rollout().say("<environment_context>x</environment_context>")
    told.add("response_item", type="message", role="user", content=[])
    assert [turn.kind for turn in told.add("event_msg", type="turn_aborted").turns()] == [STOP]


def test_a_file_that_begins_otherwise_is_no_rollout() -> None:
    assert Codex.reading({"type": "user", "sessionId": "a"}) is None
    assert Codex.reading({"type": "session_meta", "payload": {}}) is None


def test_a_rollout_is_told_in_pieces_as_at_once(ws: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "rollout-1.jsonl"
    for lines in range(1, len(work().lines) + 1):
        ingest(ws, [work().write(path, lines)])
    (told,) = ws.list(kind="episode")
    assert isinstance(told, Episode)
    assert (told.agent, told.goal, told.outcome) == ("codex", "Fix the cart", "success")
    assert told.files_modified == ["src/cart.py", "docs/cart.md"]
    assert told.errors_encountered[0].resolution == "SHOP_ENV=test pytest tests"
    with Workspace.init(tmp_path / "other") as other:
        ingest(other, [work().write(tmp_path / "b.jsonl")], "codex")
        assert [one.document() for one in other.list(kind="episode")] == [told.document()]


def test_rollouts_of_this_repository_are_found(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    folder = tmp_path / "codex" / "sessions" / "2026" / "03" / "02"
    work(str(ws.layout.root)).write(folder / "rollout-1.jsonl")
    work("/elsewhere").write(folder / "rollout-2.jsonl")
    done = ingest(ws)
    assert (done.files, done.episodes) == (1, 1)
