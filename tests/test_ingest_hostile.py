"""A transcript line of any shape is taken, or refused by file and line; all others are told.

Every field of every line is replaced, one at a time, by what should not stand there. Before each
such line stands a prompt of the same session, and beside the file another one: all of these have to
become episodes that can be read again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_lines import Transcript, shop
from click.testing import CliRunner, Result

from loki_memory import Workspace
from loki_memory.cli.sessions import ingest_command
from loki_memory.hooks.response import respond
from loki_memory.ingest.run import Ingested, ingest, staged
from loki_memory.models import Episode

HERE = "@here@"
HOSTILE = {
    "list": '[{"type": "user"}, 7]',
    "object": '{"type": {"type": []}}',
    "number": "-17.5",
    "null": "null",
    "true": "true",
    "empty": '""',
    "half a character": '"\\ud800 and \\udfff"',
    "control characters": '"\\u0000\\u001b[31m\\u007f\\u2028\\r\\n"',
    "long": json.dumps("x" * 100_000),
    "deep": "[" * 3000 + "]" * 3000,
    "deep, and just readable": "[" * 500 + "]" * 500,
    "beyond floats": "1e400",
    "beyond integers": "1" + "0" * 400,
    "NaN": "NaN",
    "year 1": '"0001-01-01T00:00:00Z"',
    "year 999": '"0999-12-31T23:59:59.999Z"',
    "before the first year": '"0001-01-01T00:00:00+14:00"',
    "after the last year": '"9999-12-31T23:59:59-12:00"',
    "another way up": '"../../../../etc/passwd"',
    "a tag": '"<private>"',
}


def event() -> dict[str, Any]:
    """A line with all that Claude Code writes into one."""
    return {
        "parentUuid": "p",
        "isSidechain": False,
        "isMeta": False,
        "userType": "external",
        "cwd": "/home/ana/shop",
        "sessionId": "s",
        "version": "2.1.0",
        "gitBranch": "main",
        "type": "user",
        "message": {
            "role": "user",
            "content": [
                {
                    "tool_use_id": "t1",
                    "type": "tool_result",
                    "content": [{"type": "text", "text": "Error: it failed"}],
                    "is_error": True,
                },
                {"type": "text", "text": "Go on with the cart"},
            ],
        },
        "uuid": "u",
        "timestamp": "2026-03-02T09:10:00.000Z",
        "toolUseResult": {"stdout": "", "stderr": "x", "interrupted": False},
    }


def call() -> dict[str, Any]:
    use = {"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": "a.py"}}
    message = {"role": "assistant", "content": [use, {"type": "text", "text": "I edit it"}]}
    return {**event(), "type": "assistant", "message": message}


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All places in a value: of fields, of items, and of what holds them."""
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield (*place, key)
        if isinstance(value[key], (dict, list)):
            yield from places(value[key], (*place, key))


def replaced(value: dict[str, Any], place: tuple[Any, ...]) -> dict[str, Any]:
    holder: Any = value
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = HERE
    return value


def hostile_lines(hostile: str) -> Iterator[tuple[dict[str, Any], str]]:
    """A good line of a session, and one of the same session with something hostile in it."""
    number = 0
    for make in (event, call):
        for place in places(make()):
            number += 1
            named = {"sessionId": f"s-{number}", "uuid": f"u-{number}"}
            (good,) = Transcript(f"s-{number}").say(f"Do the work of number {number}").lines
            bad = replaced({**make(), **named}, place)
            yield good, json.dumps(bad).replace(f'"{HERE}"', hostile)


def episodes(ws: Workspace) -> list[Episode]:
    return [one for one in ws.list(kind="episode") if isinstance(one, Episode)]


def run(ws: Workspace, *args: str) -> Result:
    given = {"directory": str(ws.layout.root), "json": False}
    return CliRunner().invoke(ingest_command, args, obj=given, catch_exceptions=False)


def is_counted(done: Ingested) -> bool:
    return done.lines == done.read + done.refused + done.waiting


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_a_line_of_any_shape_is_taken_or_refused_and_the_rest_is_told(
    ws: Workspace, tmp_path: Path, hostile: str
) -> None:
    pairs = list(hostile_lines(hostile))
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{json.dumps(good)}\n{bad}\n" for good, bad in pairs))
    done = ingest(ws, [path, shop().write(tmp_path / "b.jsonl")])
    assert is_counted(done)
    assert done.lines == 2 * len(pairs) + len(shop().lines)
    assert done.failed == ()
    assert {(one.path, one.line % 2) for one in done.reasons} <= {(str(path), 0)}
    goals = {one.goal for one in episodes(ws)}
    assert goals >= {f"Do the work of number {number + 1}" for number in range(len(pairs))}
    assert goals >= {"Fix the total of the cart"}
    ws.sync()
    assert ws.status().problems == 0
    assert [one.why for one in staged(ws) if "no prompt" not in one.why] == []
    assert ingest(ws, [path]).lines == 0


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_a_file_that_begins_so_keeps_no_other_out(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hostile: str
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    folder = tmp_path / "claude" / "projects" / "x"
    work = Transcript(cwd=str(ws.layout.root)).say("Fix the cart").call("Bash", command="ls")
    work.write(folder / "b.jsonl")
    for number, place in enumerate(places(event())):
        bad = json.dumps(replaced(event(), place)).replace(f'"{HERE}"', hostile)
        (folder / f"a{number}.jsonl").write_text(f"{bad}\n{hostile}\n")
    assert is_counted(ingest(ws))
    assert "Fix the cart" in {one.goal for one in episodes(ws)}


def test_a_refused_line_is_named_with_its_file_its_number_and_its_field(
    ws: Workspace, tmp_path: Path
) -> None:
    path = shop().write(tmp_path / "a.jsonl")
    with path.open("a") as file:
        file.write('{"type": ["user"]}\n')
    done = ingest(ws, [path])
    assert (done.read, done.refused, done.episodes) == (14, 1, 2)
    assert done.reasons[0][1:] == (15, "cannot be read (type is a list, not text)")
    path.write_text('{"type": {}}\n')
    said = run(ws, str(path))
    assert said.exit_code == 0
    assert f"{path}:1 cannot be read (type is an object, not text)" in said.output


def test_a_line_that_a_hook_refused_is_named_by_the_next_ingest(
    ws: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    work = Transcript(cwd=str(ws.layout.root)).say("Fix the cart").call("Bash", command="ls")
    given = {"session_id": work.session, "cwd": work.cwd, "transcript_path": str(path)}
    data = json.dumps(given).encode()
    path.write_text('{"type": []}\n' + work.text())
    assert respond("Stop", data, {}).err == ""
    with path.open("a") as file:
        file.write('{"type": 7}\n')
    assert respond("SessionEnd", data, {}, wait=True).err == ""
    assert [one.goal for one in episodes(ws)] == ["Fix the cart"]
    done = ingest(ws, [path])
    assert [(one.line, one.reason) for one in done.reasons] == [
        (1, "cannot be read (type is a list, not text)"),
        (5, "cannot be read (type is a number, not text)"),
    ]
    assert ingest(ws, [path]).reasons == ()


def test_the_good_values_of_a_glued_line_are_taken(ws: Workspace, tmp_path: Path) -> None:
    first, second = (json.dumps(line) for line in shop().lines[:2])
    (tmp_path / "a.jsonl").write_text(f'{first}{{"type": 7}}{second}\n')
    done = ingest(ws, [tmp_path / "a.jsonl"])
    assert (done.lines, done.refused, done.episodes) == (1, 1, 1)


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_a_hook_takes_or_refuses_a_field_of_any_shape(ws: Workspace, hostile: str) -> None:
    fields = {
        "session_id": "s",
        "cwd": str(ws.layout.root),
        "prompt": "Fix the cart",
        "tool_name": "Bash",
        "tool_use_id": "t",
        "tool_input": {"command": "ls"},
        "error": "Error: no",
    }
    for place in places(fields):
        data = json.dumps(replaced(json.loads(json.dumps(fields)), place))
        given = data.replace(f'"{HERE}"', hostile).encode()
        for name in ("UserPromptSubmit", "PostToolUse", "PostToolUseFailure"):
            respond(name, given, {}, folder=str(ws.layout.root))
    respond("UserPromptSubmit", json.dumps(fields).encode(), {})
    respond("SessionEnd", json.dumps(fields).encode(), {}, wait=True)
    assert ingest(ws).failed == ()
    assert "Fix the cart" in {one.goal for one in episodes(ws)}


def test_an_episode_of_the_longest_texts_is_small_enough_for_a_record(
    ws: Workspace, tmp_path: Path
) -> None:
    escaped = "\x1b" * 3000  # six bytes for each character
    work = Transcript("\x1b" * 4000).say(escaped)
    for number in range(200):
        path = f"/home/ana/shop/{number}{escaped}"[:2000]
        work.call("Read", file_path=path).call("Write", file_path=path)
        work.call("t" + escaped, f"Error: {escaped}", failed=number % 2 == 0, command=escaped)
        work.call("Bash", f"Error: {escaped}", failed=number % 2 == 0, command=escaped)
    done = ingest(ws, [work.write(tmp_path / "a.jsonl")])
    assert (done.failed, done.episodes) == ((), 1)


# -- what was staged before lines were checked -----------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        '["k","s","1-01-01T00:00:00.000Z","prompt","x","","",false,[],"","",""]',
        '["k","s","2026-03-02T09:00:00.000Z","prompt",7,"","",false,[],"","",""]',
        '["k","s","2026-03-02T09:00:00.000Z","prompt"]',
        '{"k": 1}',
        "nonsense",
    ],
)
def test_a_staged_turn_that_cannot_be_told_keeps_nothing_out(
    ws: Workspace, tmp_path: Path, line: str
) -> None:
    path = tmp_path / "a.jsonl"
    ingest(ws, [shop().write(path, 6)])
    (log,) = (ws.layout.local / "ingest" / "sessions").glob("*.jsonl")
    log.write_text(f"{line}\n{log.read_text()}{line}\n")
    (log.parent / "s.jsonl").write_text(f"{line}\n")
    assert len(staged(ws)) <= 1
    assert ingest(ws, [shop().write(path)]).episodes == 1


# -- a session that cannot be told -----------------------------------------------------------------


def test_a_session_that_cannot_be_told_is_named_and_the_others_are_told(
    ws: Workspace, tmp_path: Path
) -> None:
    """A folder stands where its episode belongs."""
    before = Transcript("first").say("Fix the cart")
    ingest(ws, [before.write(tmp_path / "a.jsonl")])
    (first,) = episodes(ws)
    path = Path(ws.browse.where(first.id))
    ws.forget(first.id)
    path.mkdir(parents=True)
    (ws.layout.local / "ingest" / "sessions" / "first.json").unlink()
    said = run(ws, str(tmp_path / "a.jsonl"), str(shop().write(tmp_path / "b.jsonl")))
    assert said.exit_code == 4
    assert "2 new episodes" in said.output
    assert "session first could not be recorded" in said.output
    assert path.name in said.output
    assert [one.what for one in staged(ws)] == ["first"]
    path.rmdir()
    assert ingest(ws, [tmp_path / "a.jsonl"]).episodes == 1
