"""Codex CLI's rollouts as turns and episodes."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from loki_memory import Workspace
from loki_memory.errors import InvalidRecord
from loki_memory.ingest.codex import Codex
from loki_memory.ingest.run import ingest
from loki_memory.ingest.staging import READER, Staging
from loki_memory.ingest.steps import steps
from loki_memory.ingest.turns import CALL, PROMPT, RESULT, STOP, Turn, is_foreign
from loki_memory.models import Episode

PATCH = (
    "*** Begin Patch\n*** Update File: src/cart.py\n+x\n*** Add File: docs/cart.md\n*** End Patch"
)


class Rollout:
    """A rollout, line by line, ten seconds apart."""

    def __init__(self, cwd: str = "/home/ana/shop", **about: Any) -> None:
        self.lines: list[dict[str, Any]] = []
        git = {"branch": "b"}
        self.add("session_meta", id="rollout-1", cwd=cwd, cli_version="0.65.0", git=git, **about)

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


def test_the_summary_with_which_a_compacted_session_goes_on_is_kept() -> None:
    rollout = Rollout().say("Sort the cart").add("compacted", message="Carts must be sorted.")
    dialect = Codex.reading(rollout.lines[0])
    assert dialect is not None
    kinds = [(turn.kind, turn.text) for line in rollout.lines for turn in dialect.turns(line) or ()]
    assert kinds == [("prompt", "Sort the cart"), ("compact", "Carts must be sorted.")]
    assert dialect.turns(Rollout().add("compacted", message="").lines[-1]) == []


class NewRollout(Rollout):
    """One as Codex writes it since 0.148: what happened, beside what the model was told of it."""

    def __init__(self, cwd: str = "/home/ana/shop") -> None:
        super().__init__(cwd, history_mode="paginated")

    def happened(self, kind: str, call: str, **item: Any) -> Rollout:
        return self.add("event_msg", type="item_completed", item={"type": kind, "id": call, **item})

    def say(self, text: str) -> Rollout:
        part = {"type": "text", "text": text, "text_elements": []}
        return self.happened("UserMessage", "m", content=[part])

    def shell(self, command: str, output: str, code: int = 0) -> Rollout:
        call = f"call_{len(self.lines)}"
        self.asked(call, command)
        self.add("token_usage_record", usage={})
        self.command(call, command, output, code)
        return self.answered(call, f"Process exited with code {code}", output)

    def asked(self, call: str, command: str) -> Rollout:
        given = {"name": "exec_command", "arguments": json.dumps({"cmd": command})}
        return self.add("response_item", type="function_call", call_id=call, **given)

    def command(self, call: str, command: str, output: str, code: int) -> Rollout:
        words = ["/bin/bash", "-lc", command]
        status = "failed" if code else "completed"
        said = {"status": status, "exit_code": code, "aggregated_output": output}
        return self.happened("CommandExecution", call, command=words, **said)

    def answered(self, call: str, how: str, output: str) -> Rollout:
        header = f"Chunk ID: 40f15b\nWall time: 1.1869 seconds\n{how}\nOriginal token count: 30\n"
        output = f"{header}Output:\n{output}"
        return self.add("response_item", type="function_call_output", call_id=call, output=output)

    def patch(self) -> Rollout:
        call = f"call_{len(self.lines)}"
        self.asked(call, f"apply_patch <<'EOF'\n{PATCH}\nEOF")
        update = {"type": "update", "unified_diff": "@@ -1 +1,2 @@\n", "move_path": None}
        paths = ("/home/ana/shop/src/cart.py", "/home/ana/shop/docs/cart.md")
        self.happened("FileChange", call, changes=dict.fromkeys(paths, update), status="completed")
        told = (
            "Wall time: 0.0000 seconds\nOutput:\nExit code: 0\nWall time: 0 seconds\nOutput:\nDone"
        )
        return self.add("response_item", type="function_call_output", call_id=call, output=told)


def new_work(cwd: str = "/home/ana/shop") -> Rollout:
    return (
        NewRollout(cwd)
        .add("world_state", state={})
        .say("Fix the cart")
        .shell("pytest tests", "KeyError: 'SHOP_ENV'", 1)
        .patch()
        .shell("SHOP_ENV=test pytest tests", "5 passed")
    )


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
        ("the exit code: 1 of another", False),
        ("Exit code: 1\nWall time: 0.1 seconds\nTotal output lines: 9\nOutput:\nno", True),
        ("Process exited with code -9\nOutput:\n", True),
        ("Wall time: 0.0 seconds\nOutput:\nExit code: 1\nWall time: 0 seconds\nOutput:\nno", True),
        ("Process exited with code 0\nOutput:\nExit code: 7", False),
        ([{"type": "input_text", "text": "Process exited with code 2\nOutput:\nno"}], True),
        ("apply_patch verification failed: no such line", True),
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
    assert told.errors_encountered[0].resolution == "Run `SHOP_ENV=test pytest tests`"
    with Workspace.init(tmp_path / "other") as other:
        ingest(other, [work().write(tmp_path / "b.jsonl")], "codex")
        assert [one.document() for one in other.list(kind="episode")] == [told.document()]


@pytest.mark.parametrize(
    "output",
    [
        (
            "Chunk ID: 1\nWall time: 1.2 seconds\nProcess exited with code 2\n"
            "Original token count: 30\nOutput:\nno such key"
        ),
        "Exit code: 1\nWall time: 0.1 seconds\nOutput:\nno such key",
        "Wall time: 0 seconds\nOutput:\nExit code: 1\nWall time: 0 seconds\nOutput:\nno such key",
        json.dumps({"output": "no such key", "metadata": {"exit_code": 1}}),
    ],
)
def test_an_error_is_what_the_command_said(output: str) -> None:
    told = Rollout().add("response_item", type="function_call_output", call_id="c", output=output)
    assert [(turn.text, turn.failed) for turn in told.turns()] == [("no such key", True)]


# -- since 0.148 ---------------------------------------------------------------------------------


def once(turns: list[Turn]) -> list[Turn]:
    """The turns as they are staged: each key once."""
    return list({turn.key: turn for turn in reversed(turns)}.values())[::-1]


def test_items_that_were_completed_are_the_same_turns() -> None:
    old, new = work().turns(), once(new_work().turns())
    assert [turn._replace(at="", key="", call="", files=()) for turn in new] == [
        turn._replace(at="", key="", call="", files=())._replace(
            text="" if turn.text == "Done!" else turn.text
        )
        for turn in old
    ]
    assert [turn.files for turn in new] == [turn.files for turn in old]


def test_a_rollout_of_items_is_told_in_pieces_as_at_once(ws: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "rollout-1.jsonl"
    for lines in range(1, len(new_work().lines) + 1):
        done = ingest(ws, [new_work().write(path, lines)])
        assert (done.unknown, done.refused) == ({}, 0)
    (told,) = ws.list(kind="episode")
    assert isinstance(told, Episode)
    assert (told.agent, told.goal, told.outcome) == ("codex", "Fix the cart", "success")
    assert told.files_modified == ["src/cart.py", "docs/cart.md"]
    (error,) = told.errors_encountered
    assert (error.message, error.resolution) == (
        "KeyError: 'SHOP_ENV'",
        "Run `SHOP_ENV=test pytest tests`",
    )
    assert [action.action for action in told.action_log] == ["shell", "apply_patch", "shell"]
    with Workspace.init(tmp_path / "other") as other:
        ingest(other, [new_work().write(tmp_path / "b.jsonl")], "codex")
        assert [one.document() for one in other.list(kind="episode")] == [told.document()]


def test_a_command_that_runs_on_is_told_once_with_how_it_ended() -> None:
    rollout = NewRollout()
    rollout.asked("c", "make all").answered("c", "Process running with session ID 42", "begun")
    given = {"name": "write_stdin", "arguments": json.dumps({"session_id": 42, "chars": ""})}
    rollout.add("response_item", type="function_call", call_id="d", **given)
    rollout.command("c", "make all", "begun\nno rule", 2)
    rollout.answered("d", "Process exited with code 2", "no rule")
    (step,) = steps(once(rollout.turns()))
    assert (step.target, step.answer, step.failed) == ("make all", "begun\nno rule", True)


def test_a_command_of_the_user_has_no_call_beside_it() -> None:
    (step,) = steps(NewRollout().command("u", "make", "no rule", 2).turns())
    assert (step.tool, step.target, step.answer, step.failed) == ("shell", "make", "no rule", True)


def test_a_command_that_somebody_declined_did_not_work() -> None:
    rollout = NewRollout().happened("CommandExecution", "c", command=["ls"], status="declined")
    (step,) = steps(rollout.turns())
    assert not step.worked
    assert not step.met_error


def test_a_tool_of_another_server_is_known_by_its_server() -> None:
    item = {"name": "search", "namespace": "mcp__web__", "arguments": "{}", "call_id": "c"}
    (turn,) = Rollout().add("response_item", type="function_call", **item).turns()
    assert is_foreign(turn.tool)


# -- lines of any shape --------------------------------------------------------------------------

ODD: list[Any] = [None, 7, 1.5, True, "", "\ud800", [], ["x"], {}, {"type": ["x"]}, [[None]]]


def shapes() -> Iterator[dict[str, Any]]:
    """Every line of both forms with each of its fields replaced by each odd value, or missing."""
    for one in (*work().lines, *new_work().lines):
        for path in _paths(one):
            yield _without(one, path)
            for odd in ODD:
                yield _with(one, path, odd)


def _paths(value: Any) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        keys: list[Any] = list(value)
    elif isinstance(value, list):
        keys = list(range(len(value)))
    else:
        return []
    return [(key, *rest) for key in keys for rest in ((), *_paths(value[key]))]


def _with(line: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(line)
    _holder(changed, path)[path[-1]] = value
    return changed


def _without(line: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    changed = copy.deepcopy(line)
    del _holder(changed, path)[path[-1]]
    return changed


def _holder(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        value = value[key]
    return value


def test_a_line_of_any_shape_is_told_or_counted(tmp_path: Path) -> None:
    dialect = Codex.reading(NewRollout().lines[0])
    assert dialect is not None
    staging = Staging(tmp_path)
    for line in shapes():
        Codex.reading(line)
        with suppress(InvalidRecord):
            staging.add(dialect.turns(line) or ())


@pytest.mark.parametrize(
    "line",
    [
        {"type": ["event_msg"], "payload": {}},
        {"type": {"a": 1}, "payload": {}},
        {"type": "event_msg", "payload": {"type": ["user_message"], "message": "x"}},
        {"type": "event_msg", "payload": {"type": "user_message", "message": 7}},
        {"type": "event_msg", "payload": {"type": "user_message"}},
        {"type": "event_msg", "payload": {"type": "item_completed", "item": None}},
        {"type": "event_msg", "payload": {"type": "item_completed", "item": {"type": {}}}},
        {
            "type": "event_msg",
            "payload": {"type": "item_completed", "item": {"type": "CommandExecution", "id": "c"}},
        },
        {"type": "response_item", "payload": {"type": "function_call", "name": "shell"}},
        {"type": "response_item", "payload": {"type": "function_call", "call_id": "c", "name": 1}},
        {
            "type": "response_item",
            "payload": {"type": "function_call", "call_id": "c", "name": "shell"},
        },
        {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c"}},
        {"type": "response_item", "payload": {"type": []}},
        {"type": "response_item", "payload": ["x"]},
    ],
)
def test_a_line_that_lacks_what_it_should_tell_is_refused_and_named(
    ws: Workspace, tmp_path: Path, line: dict[str, Any]
) -> None:
    rollout = work()
    rollout.lines.insert(3, {"timestamp": "2026-03-02T09:00:30.000Z", **line})
    path = rollout.write(tmp_path / "rollout-1.jsonl")
    done = ingest(ws, [path])
    assert (done.refused, done.unknown, done.episodes) == (1, {}, 1)
    assert [(reason.path, reason.line) for reason in done.reasons] == [(str(path), 4)]


def test_a_line_of_a_type_that_is_not_known_is_counted(ws: Workspace, tmp_path: Path) -> None:
    rollout = work()
    rollout.lines.insert(3, {"type": "unheard_of", "payload": {}})
    done = ingest(ws, [rollout.write(tmp_path / "rollout-1.jsonl")])
    assert (done.refused, done.unknown) == (0, {"unheard_of": 1})


def test_a_rollout_that_an_older_version_read_is_read_again(ws: Workspace, tmp_path: Path) -> None:
    """An older version knew no prompts of Codex 0.148 and moved its mark to the end."""
    path = work().write(tmp_path / "rollout-1.jsonl")
    ingest(ws, [path])
    (episode,) = ws.list(kind="episode")
    shutil.rmtree(ws.layout.local / "ingest" / "sessions")
    ws.layout.resolve(ws.home.record_path(episode.id) or "").unlink()
    assert ingest(ws, [path]).episodes == 0
    for mark in (ws.layout.local / "ingest").rglob("*.json"):
        mark.write_bytes(mark.read_bytes().replace(f',"reader":{READER}'.encode(), b""))
    again = ingest(ws, [path])
    assert (again.episodes, again.rewritten) == (1, ())


def test_rollouts_of_this_repository_are_found(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    folder = tmp_path / "codex" / "sessions" / "2026" / "03" / "02"
    work(str(ws.layout.root)).write(folder / "rollout-1.jsonl")
    work("/elsewhere").write(folder / "rollout-2.jsonl")
    done = ingest(ws)
    assert (done.files, done.episodes) == (1, 1)
