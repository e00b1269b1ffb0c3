"""One contract for all clients: the same session, as each wrote it, is the same episode."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from client_sessions import CLIENTS, Client, Line

from loki_memory import Workspace
from loki_memory.errors import InvalidRecord
from loki_memory.ingest.discover import transcripts
from loki_memory.ingest.opencode import SessionRows
from loki_memory.ingest.read_transcript import DIALECTS
from loki_memory.ingest.run import Ingested, ingest
from loki_memory.ingest.tool_calls import called
from loki_memory.ingest.turns import PROMPT, RESULT, Dialect, Turn, checked
from loki_memory.models import Episode

CLOSING = (
    "The login tests pass now: the function returned nothing on one path (TS7030). "
    "I added an explicit `return undefined;` at the end."
)
LATER = "2026-11-18T09:00:00Z"
SECRET = "ghp_" + "a1B2c3D4e5" * 4  # the form of a token, not one
each_client = pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)
written_in_lines = pytest.mark.parametrize(
    "client",
    [client for client in CLIENTS.values() if client.name != "opencode"],
    ids=lambda c: c.name,
)


@pytest.fixture(autouse=True)
def _places(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "COPILOT_HOME",
        "GEMINI_CLI_HOME",
        "QWEN_HOME",
        "QWEN_RUNTIME_DIR",
        "XDG_DATA_HOME",
    ):
        monkeypatch.delenv(name, raising=False)


def told(ws: Workspace) -> list[Episode]:
    return [episode for episode in ws.list(kind="episode") if isinstance(episode, Episode)]


def documents(ws: Workspace) -> list[dict[str, Any]]:
    return [episode.document() for episode in told(ws)]


def replaced(lines: list[Line], before: str, after: str) -> list[Line]:
    """Lines with a text replaced wherever it stands in them."""
    return [json.loads(json.dumps(line).replace(before, after)) for line in lines]


# -- the contract ---------------------------------------------------------------------------------


def test_every_dialect_has_a_recorded_session() -> None:
    assert {dialect.name for dialect in DIALECTS} == set(CLIENTS)


@each_client
def test_a_session_is_the_same_episode_whichever_client_wrote_it(
    ws: Workspace, tmp_path: Path, client: Client
) -> None:
    done = ingest(ws, [client.write(tmp_path, client.lines())])
    (episode,) = told(ws)
    (error,) = episode.errors_encountered
    assert (done.refused, done.waiting, done.unknown) == (0, 0, {})
    assert (episode.agent, episode.session) == (client.name, client.session)
    assert (episode.goal, episode.outcome) == ("Fix the failing login tests", "success")
    assert episode.files_modified == ["src/login.ts"]
    assert (error.type, error.message) == (
        "npm test",
        "src/login.ts:1: Not all code paths return a value. (TS7030)",
    )
    assert error.hunk == "add `return undefined;` (login.ts)"
    assert error.resolution == "Add `return undefined;` (login.ts)"
    assert (episode.document()["summary"], episode.origin) == (CLOSING, "agent")


@each_client
def test_a_session_is_found_in_the_repository_in_which_it_began(
    ws: Workspace, project: Path, tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_NOW", LATER)
    lines = client.lines(str(project))
    client.write(Path.home(), lines, str(project))
    with Workspace.init(tmp_path / "other") as other:
        assert ingest(other).files == 0
    assert ingest(ws).files == 1
    assert [episode.files_modified for episode in told(ws)] == [["src/login.ts"]]


@each_client
def test_a_session_is_told_in_pieces_as_at_once(
    ws: Workspace, tmp_path: Path, client: Client
) -> None:
    lines = client.lines()
    for count in range(len(lines) + 1):
        with_tables = count if client.name != "opencode" else max(count, _tables(lines))
        ingest(ws, [client.write(tmp_path, lines[:with_tables])])
    with Workspace.init(tmp_path / "other") as other:
        ingest(other, [client.write(tmp_path / "again", lines)], client.name)
        assert documents(other) == documents(ws)
    assert len(documents(ws)) == 1


def _tables(lines: list[Line]) -> int:
    """How many statements it takes until all tables are there."""
    return 1 + max(n for n, line in enumerate(lines) if line["sql"].startswith("CREATE"))


@each_client
def test_reading_again_adds_nothing(ws: Workspace, tmp_path: Path, client: Client) -> None:
    path = client.write(tmp_path, client.lines())
    ingest(ws, [path])
    before = documents(ws)
    again = ingest(ws, [path])
    assert (again.lines, again.episodes, again.changed) == (0, 0, 0)
    assert documents(ws) == before


@each_client
def test_secrets_are_redacted_before_they_touch_the_disk(
    ws: Workspace, project: Path, tmp_path: Path, client: Client
) -> None:
    lines = replaced(client.lines(), "Not all code paths", f"{SECRET} is no code path")
    lines = replaced(lines, "npm test", f"TOKEN={SECRET} npm test")
    assert ingest(ws, [client.write(tmp_path, lines)]).episodes == 1
    kept = [path.read_bytes() for path in project.rglob("*") if path.is_file()]
    assert kept
    assert not any(SECRET.encode() in data for data in kept)


def _of_another_server(client: Client) -> list[Line]:
    """The session, with a tool of a foreign server in place of the shell."""
    lines = client.lines()
    if client.name == "copilot":
        for line in lines:
            if line["type"] == "tool.execution_start" and line["data"]["toolName"] == "bash":
                line["data"] |= {"toolName": "other-search", "mcpServerName": "other"}
        return lines
    shell, foreign = {
        "claude-code": ('"name": "Bash"', '"name": "mcp__other__search"'),
        "gemini": ('"name": "run_shell_command"', '"name": "mcp_other_search"'),
        "opencode": ('\\"tool\\": \\"bash\\"', '\\"tool\\": \\"other_search\\"'),
        "qwen": ('"name": "run_shell_command"', '"name": "mcp__other__search"'),
    }[client.name]
    return replaced(lines, shell, foreign)


@pytest.mark.parametrize("name", sorted(CLIENTS.keys() - {"codex"}))
def test_the_words_of_a_foreign_server_are_of_external_origin(
    ws: Workspace, tmp_path: Path, name: str
) -> None:
    client = CLIENTS[name]
    ingest(ws, [client.write(tmp_path, _of_another_server(client))])
    met = {episode.origin: len(episode.errors_encountered) for episode in told(ws)}
    assert met == {"agent": 0, "external": 1}


PROMPT_PART = '{"text": "Fix the failing login tests"}'
SUBMITTED = "qwen:user-prompt-submit-context"
FENCED = r"&lt;loki-memory&gt;\nTOLD\n&lt;/loki-memory&gt;"  # as Gemini and Qwen write it


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("gemini", "Fix the", rf"<hook_context>{FENCED}</hook_context>\n\nFix the"),
        (
            "gemini",
            PROMPT_PART,
            f'{PROMPT_PART}, {{"text": "<hook_context>{FENCED}</hook_context>"}}',
        ),
        (
            "gemini",
            "</untrusted_context>",
            rf"</untrusted_context>\n\n<hook_context>{FENCED}</hook_context>",
        ),
        (
            "qwen",
            PROMPT_PART,
            f'{PROMPT_PART}, {{"text": "<{SUBMITTED}>{FENCED}</{SUBMITTED}>"}}',
        ),
        ("qwen", "Found 1 error.", rf"Found 1 error.\n{FENCED}"),
    ],
)
def test_what_hooks_said_is_neither_prompt_nor_error(
    ws: Workspace, tmp_path: Path, name: str, before: str, after: str
) -> None:
    client = CLIENTS[name]
    lines = replaced(client.lines(), before, after)
    assert "TOLD" in json.dumps(lines)
    ingest(ws, [client.write(tmp_path, lines)])
    (episode,) = told(ws)
    assert episode.goal == "Fix the failing login tests"
    assert [error.type for error in episode.errors_encountered] == ["npm test"]
    staged = [path.read_text() for path in ws.layout.local.rglob("*.jsonl")]
    assert staged
    assert not any("TOLD" in text for text in [json.dumps(documents(ws)), *staged])


PATCH = """*** Begin Patch
*** Update File: src/login.ts
@@
     return { user };
   }
+  return undefined;
 }
*** End Patch"""


@pytest.mark.parametrize("given", [{"patchText": PATCH}, {"input": PATCH}, PATCH])
def test_a_patch_is_an_edit_of_the_files_that_it_names(given: Any) -> None:
    (turn,) = called(Turn("", "s", LATER, ""), "call", "apply_patch", given)
    assert (turn.tool, turn.text, turn.files) == ("apply_patch", "src/login.ts", ("src/login.ts",))
    assert [(hunk.path, hunk.added) for hunk in turn.hunks] == [
        ("src/login.ts", "return undefined;")
    ]


# -- lines that are not as they should be ---------------------------------------------------------


def values(client: Client, folder: Path) -> list[Line]:
    """The values of a session as its dialect is given them."""
    if client.name != "opencode":
        return client.lines()
    (path,) = transcripts([client.write(folder, client.lines())])
    with closing(SessionRows(path)) as rows:
        return [value for piece in rows.pieces() for value in piece.values]


def dialect_of(first: Line) -> Dialect:
    return next(found for dialect in DIALECTS if (found := dialect.reading(first)))


def spoiled(value: Any, by: Any) -> Iterator[Any]:
    """A value with each of its fields, at any depth, replaced in turn."""
    fields = value.items() if isinstance(value, dict) else enumerate(value)
    for name, field in fields:
        copy = dict(value) if isinstance(value, dict) else list(value)
        copy[name] = by
        yield copy
        if isinstance(field, dict | list):
            for inner in spoiled(field, by):
                copy = dict(value) if isinstance(value, dict) else list(value)
                copy[name] = inner
                yield copy


@pytest.mark.parametrize(
    "by", [7, -1.5, True, None, "", "x", [], [3], {}, {"a": []}, 10**30, "\ud800"]
)
@each_client
def test_whatever_a_field_holds_a_line_is_read_or_refused(
    tmp_path: Path, client: Client, by: Any
) -> None:
    lines = values(client, tmp_path)
    dialect = dialect_of(lines[0])
    for bad in (bad for line in lines for bad in spoiled(line, by)):
        assert all(each.reading(bad) is None or each.name for each in DIALECTS)
        with suppress(InvalidRecord):
            turns = [checked(turn) for turn in dialect.turns(bad) or ()]
            assert all(turn.session and turn.key for turn in turns)


@pytest.mark.parametrize(
    ("name", "at", "place", "field"),
    [
        ("copilot", "user.message", ("timestamp",), "timestamp"),
        ("copilot", "assistant.message", ("data", "content"), "content"),
        ("copilot", "tool.execution_complete", ("data", "success"), "success"),
        ("gemini", "user", ("id",), "id"),
        ("gemini", "gemini", ("toolCalls",), "content"),
        ("qwen", "user", ("message", "parts"), "message.parts"),
        ("qwen", "assistant", ("sessionId",), "sessionId"),
        ("qwen", "tool_result", ("toolCallResult", "status"), "status"),
    ],
)
def test_a_line_that_cannot_be_read_is_named_with_its_field(
    ws: Workspace, tmp_path: Path, name: str, at: str, place: tuple[str, ...], field: str
) -> None:
    client = CLIENTS[name]
    lines = client.lines()
    number = next(n for n, line in enumerate(lines) if line.get("type") == at)
    inner = lines[number]
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = 7
    path = client.write(tmp_path, lines)
    (refused,) = ingest(ws, [path]).reasons
    assert (refused.path, refused.line) == (str(path), number + 1)
    assert refused.reason.startswith(f"cannot be read ({field} ")


@written_in_lines
def test_a_last_line_that_is_not_complete_waits(
    ws: Workspace, tmp_path: Path, client: Client
) -> None:
    path = client.write(tmp_path, client.lines())
    path.write_bytes(path.read_bytes()[:-20])
    assert ingest(ws, [path]).waiting == 1


# -- OpenCode's database --------------------------------------------------------------------------


def statements(tmp_path: Path, *more: str) -> Path:
    """OpenCode's database with further changes."""
    client = CLIENTS["opencode"]
    return client.write(tmp_path, [*client.lines(), *({"sql": sql} for sql in more)])


RUNNING = """
    UPDATE part SET data = json_set(data, '$.state.status', 'running')
    WHERE id = 'prt_1ec4ed6d5001SjtKG44NsulXX2'
"""
LATER_MESSAGES = "DELETE FROM message WHERE id = 'msg_1ec4ed7fe001o45hFTStcqftH2'"
LATER_PARTS = "DELETE FROM part WHERE message_id = 'msg_1ec4ed7fe001o45hFTStcqftH2'"


PATCHED = """
    UPDATE part SET data = json_set(
        data, '$.tool', 'apply_patch', '$.state.input', json_object('patchText', :patch),
        '$.state.metadata', json_object('files', json_array(json_object(
            'filePath', json_extract(data, '$.state.input.filePath'),
            'patch', json_extract(data, '$.state.metadata.diff')))))
    WHERE id = 'prt_1ec4ed5900012Fe8drho46dJIl'
"""


def test_a_patch_mends_an_error_as_an_edit_does(ws: Workspace, tmp_path: Path) -> None:
    path = statements(tmp_path)
    with closing(sqlite3.connect(path)) as database:
        database.execute(PATCHED, {"patch": PATCH})
        database.commit()
    ingest(ws, [path])
    (episode,) = told(ws)
    assert episode.files_modified == ["src/login.ts"]
    assert [error.hunk for error in episode.errors_encountered] == [
        "add `return undefined;` (login.ts)"
    ]


def test_a_call_that_runs_waits_and_is_told_when_it_is_over(ws: Workspace, tmp_path: Path) -> None:
    done = ingest(ws, [statements(tmp_path, RUNNING, LATER_MESSAGES, LATER_PARTS)])
    assert (done.waiting, [one.outcome for one in told(ws)]) == (1, ["failure"])
    done = ingest(ws, [statements(tmp_path)])
    assert (done.waiting, done.rewritten) == (0, ())
    assert [one.outcome for one in told(ws)] == ["success"]


def test_a_call_that_nobody_finished_does_not_hide_what_came_later(
    ws: Workspace, tmp_path: Path
) -> None:
    assert ingest(ws, [statements(tmp_path, RUNNING)]).waiting == 0
    assert [one.document()["summary"] for one in told(ws)] == [CLOSING]


def test_a_session_whose_parts_were_taken_back_is_read_anew(ws: Workspace, tmp_path: Path) -> None:
    ingest(ws, [statements(tmp_path)])
    done = ingest(ws, [statements(tmp_path, LATER_MESSAGES, LATER_PARTS)])
    assert len(done.rewritten) == 1
    assert len(told(ws)) == 1


def test_an_agent_that_works_for_another_belongs_to_its_session(
    ws: Workspace, tmp_path: Path
) -> None:
    child = "UPDATE session SET parent_id = 'ses_parent'"
    (path,) = transcripts([statements(tmp_path, child)])
    with closing(SessionRows(path)) as rows:
        lines = [value for piece in rows.pieces() for value in piece.values]
    turns = [turn for line in lines for turn in dialect_of(line).turns(line) or ()]
    assert {turn.session for turn in turns} == {"ses_parent"}
    assert PROMPT not in {turn.kind for turn in turns}
    assert sum(turn.failed for turn in turns if turn.kind == RESULT) == 1


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        ("UPDATE part SET data = '[[[' WHERE id LIKE 'prt_1ec4ecf02%'", "is not JSON"),
        ("UPDATE part SET data = x'ff00ff' WHERE id LIKE 'prt_1ec4ecf02%'", "is no text"),
        ("UPDATE part SET data = CAST(x'7bff7d' AS TEXT) WHERE id LIKE 'prt_1ec4ecf02%'", "is not"),
        (
            "UPDATE part SET data = json_set(data, '$.text', 7) WHERE id LIKE 'prt_1ec4ecf02%'",
            "cannot be read (text is a number",
        ),
        (
            "UPDATE part SET data = hex(zeroblob(9000000)) WHERE id LIKE 'prt_1ec4ecf02%'",
            "is no text of at most 16 MB",
        ),
    ],
)
def test_a_row_that_cannot_be_read_is_named_and_the_others_are_told(
    ws: Workspace, tmp_path: Path, spoil: str, reason: str
) -> None:
    path = statements(tmp_path, spoil)
    done = ingest(ws, [path])
    (refused,) = done.reasons
    assert (refused.path, refused.line) == (f"{path}/{CLIENTS['opencode'].session}", 3)
    assert refused.reason.startswith(reason)
    assert [one.outcome for one in told(ws)] == ["success"]


@pytest.mark.parametrize("data", [b"", b"SQLite format 3\0 and no more", b"{}\n"])
def test_a_database_that_is_none_is_named(ws: Workspace, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "opencode.db"
    path.write_bytes(data)
    (refused,) = ingest(ws, [path]).reasons
    assert refused.path.startswith(str(path))
    assert refused.reason.startswith("cannot be read (")
    assert path.read_bytes() == data


def test_a_database_is_only_read(ws: Workspace, tmp_path: Path) -> None:
    path = statements(tmp_path)
    before = path.read_bytes()
    ingest(ws, [path])
    assert path.read_bytes() == before
    assert sorted(found.name for found in path.parent.iterdir()) == ["opencode.db"]


def test_sessions_of_other_projects_stay_where_they_are(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_NOW", LATER)
    client = CLIENTS["opencode"]
    path = client.write(Path.home(), client.lines(str(project)))
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE other AS SELECT * FROM session")
        database.execute("UPDATE other SET id = 'ses_other', directory = '/home/ana/secret'")
        database.execute("INSERT INTO session SELECT * FROM other")
        database.commit()
    done: Ingested = ingest(ws)
    assert (done.files, done.episodes) == (1, 1)
