"""A caller cannot widen its reach: other projects, other sessions, somebody else's authority."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from click.testing import CliRunner
from conftest import git
from mcp import Client
from mcp.shared.exceptions import MCPError
from test_mcp_http import Served, calling, serving

from loki_memory import Workspace
from loki_memory.cli.sessions import record_command
from loki_memory.mcp.server import make_server

VAULT = "The vault of the other project opens with zqsecret"
PRIVATE = "The session keeps zqsession to itself"
REFUSED = "lies outside the folders that this server was started for"


class Place(NamedTuple):
    """A server's project, one inside it, one beside it, and a worktree of it."""

    top: Path
    own: Path
    inner: Path
    other: Path
    tree: Path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    top = tmp_path_factory.mktemp("scopes")
    found = Place(top, top / "own", top / "own/inner", top / "other", top / "tree")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOKI_HOME", str(top / "home"))
        for folder in (found.own, found.inner, found.other):
            folder.mkdir(parents=True)
        git(found.own, "init", "-q", "-b", "main")
        for folder in (found.own, found.inner, found.other):
            with Workspace.init(folder) as ws:
                for scope in ("project", "local"):
                    ws.remember(f"{VAULT} in {folder.name}, {scope}", scope=scope)
        git(found.own, "add", ".loki")
        git(found.own, "commit", "-q", "-m", "memory")
        git(found.own, "worktree", "add", "-q", str(found.tree))
        (found.own / "link").symlink_to(found.other)
        yield found


def call(server_for: Path, tool: str, within: tuple[str, ...] = (), **given: Any) -> str:
    async def main() -> str:
        async with Client(make_server("core", str(server_for), within)) as client:
            answer = await client.call_tool(tool, given)
            return str(answer.content[0].text)  # type: ignore[union-attr]

    return anyio.run(main)


def read(server_for: Path, address: str) -> str:
    async def main() -> str:
        async with Client(make_server("core", str(server_for))) as client:
            try:
                found = await client.read_resource(address)
            except MCPError as error:  # the client would wrap it in a group on its way out
                return str(error)
            return str(found.contents[0])

    return anyio.run(main)


SPELLINGS: dict[str, Callable[[Place], str]] = {
    "path": lambda place: str(place.other),
    "slash": lambda place: f"{place.other}/",
    "way up": lambda place: f"{place.own}/../other",
    "way up twice": lambda place: f"{place.own}/inner/../../other",
    "link": lambda place: f"{place.own}/link",
    "memory folder": lambda place: f"{place.other}/.loki/memory",
    "relative": lambda place: os.path.relpath(place.other),
    "double slash": lambda place: f"/{place.other}",
    "same beginning": lambda place: str(place.other),
}
TOOLS: dict[str, dict[str, Any]] = {
    "memory_recall": {"query": "how does the vault open"},
    "memory_context": {"goal": "open the vault"},
    "memory_status": {},
    "memory_remember": {"text": "Planted from elsewhere zqplanted"},
    "memory_lesson": {"when": "you open the vault", "do": "ask zqplanted"},
    "memory_record_episode": {"goal": "Plant zqplanted"},
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("tool", TOOLS)
def test_another_project_is_out_of_reach(place: Place, tool: str, spelling: str) -> None:
    named = SPELLINGS[spelling](place)
    said = call(place.own, tool, project=named, **TOOLS[tool])
    assert REFUSED in said or "is not" in said
    assert "zqsecret" not in said
    files = (path.read_text() for path in place.other.rglob("*.json"))
    assert not any("zqplanted" in text for text in files)


@pytest.fixture(scope="module")
def over_http(place: Place) -> Iterator[Served]:
    with serving(place.top, place.own) as server:
        yield server


def asked_over_http(server: Served, tool: str, **given: Any) -> str:
    async def main() -> str:
        async with calling(server, server.token()) as client:
            answer = await client.call_tool(tool, given)
            return str(answer.content[0].text)

    return anyio.run(main)


@pytest.mark.parametrize("tool", TOOLS)
def test_another_project_is_out_of_reach_over_http(
    place: Place, over_http: Served, tool: str
) -> None:
    for spelling in SPELLINGS.values():
        said = asked_over_http(over_http, tool, project=spelling(place), **TOOLS[tool])
        assert REFUSED in said or "is not" in said
        assert "zqsecret" not in said
    files = (path.read_text() for path in place.other.rglob("*.json"))
    assert not any("zqplanted" in text for text in files)


def test_scopes_hold_over_http(place: Place, over_http: Served) -> None:
    """Another session's notes stay shut; the own project, a worktree and the user's are open."""
    with Workspace.open(place.own) as ws:
        record = ws.remember(f"{PRIVATE} over http", scope="session", session="own")
    for session in (None, "", "another", "OWN"):
        given = {} if session is None else {"session": session}
        for tool, asked in (
            ("memory_get", {"memory_id": record.id}),
            ("memory_recall", {"query": "what does the session keep"}),
        ):
            assert "zqsession" not in asked_over_http(over_http, tool, **asked, **given)
    opened = asked_over_http(over_http, "memory_get", memory_id=record.id, session="own")
    assert "zqsession" in opened
    vault = {"query": "how does the vault open"}
    for project in (None, str(place.inner), str(place.tree)):
        named = {} if project is None else {"project": project}
        assert "zqsecret" in asked_over_http(over_http, "memory_recall", **vault, **named)


@pytest.mark.parametrize("address", ["state/continuity", "memory/index", "queue/pending"])
def test_resources_of_another_project_are_out_of_reach(place: Place, address: str) -> None:
    said = read(place.own, f"loki://{address}?project={place.other}")
    assert REFUSED in said
    assert "zqsecret" not in said


def test_a_project_inside_is_within_reach(place: Place) -> None:
    assert "zqsecret in inner" in call(
        place.own, "memory_recall", project=str(place.inner), query="how does the vault open"
    )


def test_a_worktree_is_within_reach(place: Place) -> None:
    assert "zqsecret in own" in call(
        place.own, "memory_recall", project=str(place.tree), query="how does the vault open"
    )


def test_whoever_starts_the_server_may_add_a_folder(place: Place) -> None:
    asked = {"project": str(place.other), "query": "how does the vault open"}
    assert "zqsecret in other" in call(place.own, "memory_recall", (str(place.other),), **asked)


def test_a_server_started_nowhere_reaches_nothing(place: Place) -> None:
    said = call(Path("/"), "memory_recall", project=str(place.other), query="the vault")
    assert REFUSED in said


@pytest.mark.parametrize("session", [None, "", "another", "OWN", "own "])
def test_a_memory_of_a_session_is_opened_from_that_session_only(
    place: Place, session: str | None
) -> None:
    with Workspace.open(place.own) as ws:
        record = ws.remember(PRIVATE, scope="session", session="own")
    given = {} if session is None else {"session": session}
    assert "zqsession" not in call(place.own, "memory_get", memory_id=record.id, **given)
    asked = call(place.own, "memory_recall", query="what does the session keep", **given)
    assert "zqsession" not in asked
    assert "zqsession" not in call(place.own, "memory_blame", memory_id=record.id)
    changed = call(place.own, "memory_correct", memory_id=record.id, reject="mine now")
    assert "zqsession" not in changed
    assert "zqsession" in call(place.own, "memory_get", memory_id=record.id, session="own")


ERROR = {"type": "make", "message": "error: zqlink is broken", "resolution": "Use zqfix"}


def _statuses(ws: Workspace, moments: list[dict[str, Any]]) -> set[object]:
    for moment in moments:
        ws.record({"goal": "Build it", "errors_encountered": [ERROR], **moment})
    ws.consolidate()
    return {record.document().get("status") for record in ws.list(kind="anti-pattern")}


@pytest.mark.parametrize("second", [1, 57, 59])
def test_five_sessions_of_one_caller_within_a_minute_are_one(tmp_path: Path, second: int) -> None:
    moments = [
        {"session": f"s{number}", "timestamp": f"2026-01-21T09:{at // 60:02}:{at % 60:02}Z"}
        for number, at in enumerate(range(second, second + 50, 10))
    ]
    with Workspace.init(tmp_path / "burst") as ws:
        assert _statuses(ws, moments) == {"candidate"}


def test_two_agents_within_a_minute_are_two(tmp_path: Path) -> None:
    at = {"timestamp": "2026-01-21T09:00:00Z"}
    moments = [{"session": name, "agent": name, **at} for name in ("eng-001", "eng-002")]
    with Workspace.init(tmp_path / "agents") as ws:
        assert _statuses(ws, moments) == {"active"}


def test_a_caller_that_calls_its_episodes_captured_is_a_caller(tmp_path: Path) -> None:
    moments = [
        {"captured": True, "session": f"s{second}", "timestamp": f"2026-01-21T09:00:0{second}Z"}
        for second in range(5)
    ]
    given = [{"goal": "Build it", "errors_encountered": [ERROR], **moment} for moment in moments]
    with Workspace.init(tmp_path / "claim") as ws:
        place = {"directory": str(ws.layout.root), "json": False}
        told = json.dumps(given)
        CliRunner().invoke(record_command, ["-"], obj=place, input=told, catch_exceptions=False)
        assert len(ws.list(kind="episode")) == 5
        assert _statuses(ws, []) == {"candidate"}


def test_five_sessions_on_five_days_are_five(tmp_path: Path) -> None:
    moments = [
        {"session": f"s{day}", "timestamp": f"2026-01-2{day}T09:00:00Z"} for day in range(1, 6)
    ]
    with Workspace.init(tmp_path / "days") as ws:
        assert _statuses(ws, moments) == {"active"}
