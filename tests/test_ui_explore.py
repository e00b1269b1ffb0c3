"""The pages Timeline, Graph, Files, Handoffs and Health, as a browser without scripts sees them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import jsonschema
import pytest
from conftest import LATE, put_into_git
from ui_client import Browser, browser

from loki_memory import Workspace
from loki_memory.resources import resource

PAGES = {
    "timeline": ["/timeline", "/timeline?agent=qa-001-testing", "/timeline?before=2026-01-10"],
    "graph": [
        "/graph",
        "/graph?all=1",
        "/graph?around=sem-001&depth=2",
        "/graph?around=topic:testing",
    ],
    "files": ["/files", "/files?q=vitest"],
    "file": ["/files/src/app.ts"],
    "handoffs": ["/handoffs"],
    "health": ["/health"],
    "junk": ["/health/junk"],
}
PATHS = [(name, path) for name, paths in PAGES.items() for path in paths]


@pytest.fixture
def visitor(example: Path) -> Iterator[Browser]:
    with Workspace.open(example, origin="owner") as ws, browser(ws) as opened:
        yield opened


@pytest.fixture
def newcomer(ws: Workspace) -> Iterator[Browser]:
    with browser(ws) as opened:
        yield opened


def as_json(path: str) -> str:
    head, mark, query = path.partition("?")
    return f"{head}.json{mark}{query}"


@pytest.mark.parametrize(("name", "path"), PATHS, ids=[path for _, path in PATHS])
def test_a_page_has_html_and_json_that_its_schema_describes(
    visitor: Browser, name: str, path: str
) -> None:
    assert "<h1" in visitor.html(path)
    schema = json.loads((resource("schemas") / f"ui-{name}.schema.json").read_bytes())
    jsonschema.validate(visitor.json(as_json(path)), schema)


@pytest.mark.parametrize("path", ["/timeline", "/graph", "/graph?all=1", "/files", "/handoffs"])
def test_an_empty_memory_says_what_to_do(newcomer: Browser, path: str) -> None:
    assert 'class="empty"' in newcomer.html(path)


def test_the_graph_lists_neighbours_without_a_script(visitor: Browser) -> None:
    text = visitor.html("/graph?around=sem-001")
    assert "derived from →" in text
    assert 'href="/graph?around=' in text


def test_the_map_shows_memory_as_it_was_at_each_commit(example: Path) -> None:
    put_into_git(example)
    with Workspace.open(example, origin="owner") as ws, browser(ws) as visitor:
        first, *_, last = visitor.json("/graph.json?all=1")["moments"]
        late = Path(LATE).stem
        for moment, is_there in ((first, False), (last, True)):
            shown = visitor.json(f"/graph.json?all=1&at={moment['commit']}")
            assert (late in {node["id"] for node in shown["map"]["nodes"]}) is is_there
        assert 'rel="prev"' in visitor.html("/graph?all=1")
        assert first["subject"] in visitor.html(f"/graph?all=1&at={first['commit']}")
        assert visitor.client.get("/graph?all=1&at=nothing").status_code == 404


def test_an_unknown_node_is_not_found(visitor: Browser) -> None:
    assert visitor.client.get("/graph?around=topic:nothing").status_code == 404
    assert visitor.client.get("/graph?around=sem-nothing").status_code == 404


def test_a_handoff_is_accepted_and_closed_on_disk(visitor: Browser) -> None:
    [card] = [
        card
        for row in visitor.json("/handoffs.json")["rows"]
        for card in row["waiting"]
        if card["state"] == "open"
    ]
    assert "Accepted" in visitor.post(f"/handoffs/{card['id']}/accept").text
    assert visitor.site.workspace.get(card["id"]).state == "accepted"  # type: ignore[attr-defined]
    visitor.post(f"/handoffs/{card['id']}/close", status="done", note="Released as 1.0.1")
    closed = visitor.site.workspace.get(card["id"])
    assert (closed.state, closed.note) == ("done", "Released as 1.0.1")  # type: ignore[attr-defined]


def test_a_read_only_page_shows_no_buttons_and_refuses_writes(example: Path) -> None:
    with Workspace.open(example) as ws, browser(ws, read_only=True) as visitor:
        for path in ("/handoffs", "/health"):
            buttons = re.findall(r'action="(/handoffs|/health)', visitor.html(path))
            assert buttons == []
        assert visitor.post("/health/rebuild").status_code == 403


def test_a_write_without_the_token_of_the_page_is_refused(visitor: Browser) -> None:
    assert visitor.client.post("/health/rebuild").status_code == 403


def test_a_problem_of_a_file_is_shown_with_its_advice(visitor: Browser, example: Path) -> None:
    (example / ".loki/memory/semantic/facts/broken.json").write_text("{")
    text = visitor.html("/health")
    assert "broken.json" in text
    assert "Mend what can be mended" in text


@pytest.mark.parametrize("name", ["mend", "rebuild", "adopt", "renew", "trust"])
def test_a_fix_leads_back_to_the_page_and_says_what_it_did(visitor: Browser, name: str) -> None:
    answer = visitor.post(f"/health/{name}")
    assert answer.status_code == 200
    assert 'role="status"' in answer.text


def test_an_unknown_fix_is_not_found(visitor: Browser) -> None:
    assert visitor.post("/health/nothing").status_code == 404


def test_trusting_the_memory_from_the_page_lets_agents_be_told(example: Path) -> None:
    with Workspace.open(example) as ws:
        ws.home.note_trust(is_trusted=False)
        with browser(ws) as visitor:
            assert "Trust this memory" in visitor.html("/health")
            visitor.post("/health/trust")
            assert "Trust this memory" not in visitor.html("/health")


def test_a_change_of_memory_shows_at_the_next_look(visitor: Browser) -> None:
    before = len(visitor.json("/graph.json?all=1")["map"]["nodes"])
    visitor.site.workspace.remember("Releases are tagged on Fridays")
    assert len(visitor.json("/graph.json?all=1")["map"]["nodes"]) == before + 1


HOSTILE = '<script>alert(1)</script><img src="http://example.invalid/x.png">\x1b[31m\u202e'


@pytest.fixture
def hostile(ws: Workspace, project: Path) -> Iterator[Browser]:
    """A store with markup, remote images, escapes and bidi controls in every field."""
    for number in range(3):
        ws.remember(f"{HOSTILE} {number}", category=HOSTILE, by=HOSTILE)
    ws.record(
        {
            "goal": HOSTILE,
            "agent": HOSTILE,
            "outcome": "failure",
            "files_modified": [f"src/{HOSTILE}.py", "a/../../b.py"],
            "errors_encountered": [{"type": HOSTILE, "message": f"Error: {HOSTILE} not found"}],
        }
    )
    ws.team.hand_off(HOSTILE, HOSTILE, HOSTILE, known_issues=[HOSTILE], needs_testing=[HOSTILE])
    (project / ".loki/memory/semantic/facts/bad.json").write_text(json.dumps({"id": HOSTILE}))
    with browser(ws) as opened:
        yield opened


@pytest.mark.parametrize(
    "path", ["/timeline", "/graph", "/graph?all=1", "/files", "/handoffs", "/health"]
)
def test_a_hostile_store_brings_no_markup_into_a_page(hostile: Browser, path: str) -> None:
    text = hostile.html(path)
    assert "<script>alert" not in text
    assert '<img src="http' not in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_the_page_of_a_hostile_file_and_topic_is_escaped_too(hostile: Browser) -> None:
    for file in hostile.json("/files.json")["known"]["files"]:
        answer = hostile.client.get(f"/files/{quote(file['path'])}")
        assert "<script>alert" not in answer.text
    answer = hostile.client.get("/graph", params={"around": f"topic:{HOSTILE}"})
    assert "<script>alert" not in answer.text
