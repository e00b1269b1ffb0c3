"""The REST interface under `/api/memory/`, and its OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ui_client import BASE, Browser, browser

from loki_memory import Workspace
from loki_memory.schema import openapi
from loki_memory.ui.rest import ENDPOINTS, TOP

READING = {
    "summary": "",
    "episodes": "?limit=3",
    "episodes/{id}": "",
    "patterns": "",
    "patterns/{id}": "",
    "skills": "",
    "skills/{id}": "",
    "economics": "",
    "index": "",
    "timeline": "?since=2026-01-10",
    "search": "?q=sqlite+locked&limit=2",
    "stats": "",
    "files": "?q=src",
    "file": "?path=src/routes/todos.ts",
}
IDS = {"episodes": "ep-2026-01-06-001", "patterns": "sem-001", "skills": "skill-release-checklist"}


@pytest.fixture
def visitor(example: Path) -> Iterator[Browser]:
    with Workspace.open(example, origin="owner") as ws, browser(ws) as opened:
        yield opened


def described(path: str, method: str = "get") -> dict[str, Any]:
    """The schema that the document gives for the answer of a path."""
    document = openapi()
    answer = document["paths"][f"{TOP}/{path}"][method]["responses"]["200"]
    return {**answer["content"]["application/json"]["schema"], "components": document["components"]}


def post(visitor: Browser, path: str, body: Any, **headers: str) -> Any:
    sent = {"origin": BASE, **headers}
    return visitor.client.post(f"{TOP}/{path}", json=body, headers=sent)


@pytest.mark.parametrize("path", READING)
def test_an_answer_is_as_the_document_says(visitor: Browser, path: str) -> None:
    address = path.replace("{id}", IDS.get(path.partition("/")[0], ""))
    found = visitor.json(f"{TOP}/{address}{READING[path]}")
    jsonschema.validate(found, described(path))


def test_every_endpoint_is_tried_here() -> None:
    tried = {*READING, "consolidate", "retrieve"}
    assert tried == {endpoint.path for endpoint in ENDPOINTS}


def test_the_document_is_served_and_refers_to_nothing_that_is_missing(visitor: Browser) -> None:
    document = visitor.json("/schemas/openapi.json")
    assert document == openapi()
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert set(references(document)) <= known
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    names = [
        operation["operationId"]
        for path in document["paths"].values()
        for operation in path.values()
    ]
    assert len(names) == len(set(names)) == len(ENDPOINTS)


def references(value: Any) -> Iterator[str]:
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for name, part in parts:
        if name == "$ref":
            yield part
        elif isinstance(part, dict | list):
            yield from references(part)


def test_the_summary_counts_as_loki_mode_does(visitor: Browser) -> None:
    found = visitor.json(f"{TOP}/summary")
    assert found["episodic"] == {"count": 27, "latestDate": "2026-01-16"}
    assert found["semantic"]["antiPatterns"] == 3
    assert found["procedural"] == {"skills": 3}


def test_a_question_is_asked_by_post_without_a_write_token(visitor: Browser) -> None:
    answer = post(visitor, "retrieve", {"query": "sqlite locked", "top_k": 2})
    jsonschema.validate(answer.json(), described("retrieve", "post"))
    assert any("SQLite" in hit["title"] for hit in answer.json()["hits"])


def test_consolidation_needs_the_token_and_a_page_that_may_write(example: Path) -> None:
    with Workspace.open(example) as ws, browser(ws) as visitor:
        assert post(visitor, "consolidate", {}).status_code == 403
        token = visitor.site.secrets.csrf
        answer = post(visitor, "consolidate", {}, **{"x-csrf-token": token})
        assert answer.status_code == 200
        jsonschema.validate(answer.json(), described("consolidate", "post"))
    with Workspace.open(example) as ws, browser(ws, read_only=True) as visitor:
        token = visitor.site.secrets.csrf
        assert post(visitor, "consolidate", {}, **{"x-csrf-token": token}).status_code == 403


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("episodes?limit=many", 422),
        ("episodes?limit=0", 422),
        ("search?q=x&limit=100000", 422),
        ("patterns/sem-nothing", 404),
        ("patterns/fact-tqyb3q4z23", 404),
        ("timeline?since=someday", 422),
    ],
)
def test_what_makes_no_sense_is_refused_in_json(visitor: Browser, path: str, code: int) -> None:
    answer = visitor.client.get(f"{TOP}/{path}")
    assert answer.status_code == code
    assert answer.json()["message"]


@pytest.mark.parametrize("body", [b"{", b"[]", b"x" * 2_000_000])
def test_a_body_that_is_no_object_is_refused(visitor: Browser, body: bytes) -> None:
    answer = visitor.client.post(f"{TOP}/retrieve", content=body, headers={"origin": BASE})
    assert answer.status_code == 422


def test_a_process_without_the_cookie_gets_401(visitor: Browser) -> None:
    visitor.client.cookies.clear()
    assert visitor.client.get(f"{TOP}/summary").status_code == 401
