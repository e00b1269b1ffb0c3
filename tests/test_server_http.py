"""The server over HTTP: refusals in sentences, tools that only read, and what is counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from team_server import Team, make_repository, make_token, team

from loki_memory.server import replicas, tokens
from loki_memory.server.app import refused
from loki_memory.server.requests import RateLimit, RequestMetrics

INJECTIONS = [
    "'; DROP TABLE loki.records; --",
    "' OR '1'='1",
    '" OR ""="',
    "1; SELECT pg_sleep(10)",
    "') UNION SELECT secret FROM loki.tokens --",
    "app' AND loki.reach('read') IS NOT NULL --",
    "%s %(x)s %% {}",
    "\\'; SELECT 1; --",
    "$1 $$; DROP SCHEMA loki CASCADE; $$",
    "app\u2019; DROP TABLE loki.records --",
    "E'\\x27'",
    "/**/UNION/**/SELECT/**/NULL",
    "a & b | !c <-> (d",
    "\\",
    "' || current_setting('app.token') || '",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """Two repositories: a token for one, another for both."""
    folder = tmp_path_factory.mktemp("team")
    with team(folder / "server") as running:
        make_repository(
            folder / "app",
            "Deploys of the app run on Fridays with the blue script",
            "Contract tests need the database on port 5433",
        )
        make_repository(
            folder / "shop",
            "Deploys of the shop run on Mondays with the green script",
            "Prices are kept in cents, never in floats",
        )
        running.fetch(folder / "app", "app")
        running.fetch(folder / "shop", "shop")
        yield running


@pytest.fixture(scope="module")
def reader(server: Team) -> str:
    return make_token(server.database, "read", name="reader", at="app")


@pytest.fixture(scope="module")
def lead(server: Team) -> str:
    return make_token(server.database, "read", "push", "admin", name="lead", at="app shop")


@pytest.mark.parametrize("path", ["/mcp", "/push", "/pull", "/status", "/metrics", "/nothing"])
@pytest.mark.parametrize("given", ["", "Bearer", "Bearer x", "Basic eDp4", "bearer", "Bearer é"])
def test_nobody_without_a_token_is_answered(server: Team, path: str, given: str) -> None:
    headers = {"Authorization": given.encode()} if given else {}
    answer = server.client.request("POST", path, headers=headers)
    assert answer.status_code == 401
    assert answer.json()["error"] == "the bearer token is missing, wrong, expired or revoked"
    assert answer.headers["www-authenticate"] == "Bearer"


def test_health_is_told_to_anybody(server: Team) -> None:
    assert server.ask("GET", "/healthz", "").text == "ok\n"


@pytest.mark.parametrize("project", ["shop", "none", "", "APP", *INJECTIONS])
def test_a_repository_that_a_token_does_not_reach_is_refused_like_one_that_is_not_there(
    server: Team, reader: str, project: str
) -> None:
    pulled = server.pull(reader, project=project)
    pushed = server.push(reader, "Deploys need the VPN to be connected", project=project)
    assert (pulled.status_code, pushed.status_code) == (403, 403)
    assert f"this token may not read {project!r}" in pulled.json()["error"]
    told = server.call(reader, "memory_recall", query="deploys", project=project or "-")
    assert told.json()["result"]["isError"]
    assert "shop run on Mondays" not in told.text


def test_a_token_for_reading_may_not_push(server: Team, reader: str) -> None:
    answer = server.push(reader, "Deploys need the VPN to be connected")
    assert answer.status_code == 403
    assert "this token may not push to 'app'" in answer.json()["error"]
    assert server.pull(reader).json()["records"].__len__() == 2


@pytest.mark.parametrize("text", INJECTIONS)
def test_text_is_never_taken_for_sql(server: Team, lead: str, text: str) -> None:
    before = len(server.pull(lead, project="shop").json()["records"])
    server.tool(lead, "memory_recall", query=text, project="shop")
    server.tool(lead, "memory_recall_elsewhere", query=text, project="app")
    server.call(lead, "memory_get", memory_id=text, project="shop")
    assert server.pull(lead, since=text, project="shop").status_code == 200
    statement = f"The parser must take {text} as the name of table 17"
    (name,) = server.push(lead, statement, project="shop").json()["ids"]
    body = {"project": "shop", "withdraw": [text, name]}
    assert server.ask("POST", "/push", lead, json=body).json()["withdrawn"] == [name]
    assert len(server.pull(lead, project="shop").json()["records"]) == before


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'{"project": 1}', b'{"project": "app", "recs": []}', b"\xff"],
)
def test_a_body_that_is_no_push_is_refused_in_a_sentence(
    server: Team, lead: str, body: bytes
) -> None:
    answer = server.ask("POST", "/push", lead, content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_a_nul_is_refused_and_a_large_body_too(server: Team, lead: str) -> None:
    assert server.pull(lead, project="a\0b").status_code == 400
    answer = server.ask("POST", "/push", lead, content=b" " * (17 << 20))
    assert answer.status_code == 413


# -- tools -----------------------------------------------------------------------------------------


def test_the_tools_only_read(server: Team, reader: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"Accept": "application/json", "Authorization": f"Bearer {reader}"}
    found = server.client.post("/mcp", json=body, headers=headers).json()["result"]["tools"]
    assert {tool["name"] for tool in found} == {
        "memory_recall",
        "memory_get",
        "memory_context",
        "memory_status",
        "memory_recall_elsewhere",
    }
    assert all(tool["annotations"]["readOnlyHint"] for tool in found)
    assert all("project" in tool["inputSchema"]["properties"] for tool in found)


def test_the_only_repository_of_a_token_need_not_be_named(
    server: Team, reader: str, lead: str
) -> None:
    assert server.tool(reader, "memory_recall", query="deploys")["hits"]
    refused = server.call(lead, "memory_recall", query="deploys").json()["result"]
    assert "Name one of these: app, shop." in refused["content"][0]["text"]


def test_a_memory_is_opened_with_its_place_in_the_repository(server: Team, reader: str) -> None:
    (hit, *_) = server.tool(reader, "memory_recall", query="contract tests")["hits"]
    found = server.tool(reader, "memory_get", memory_id=hit["id"])
    assert found["record"]["statement"] == "Contract tests need the database on port 5433"
    assert found["path"] == f".loki/memory/semantic/facts/{hit['id']}.json"


def test_a_brief_and_the_state_are_served_and_no_path_of_the_server(
    server: Team, reader: str
) -> None:
    brief = server.tool(reader, "memory_context", goal="deploy the app with the blue script")
    assert "Fridays" in str(brief)
    state = server.call(reader, "memory_status")
    assert state.json()["result"]["structuredContent"]["workspace"] == "app"
    assert str(server.folder) not in state.text


def test_the_past_is_not_served(server: Team, reader: str) -> None:
    refused = server.call(reader, "memory_recall", query="deploys", as_of="HEAD").json()["result"]
    assert refused["isError"]
    assert "the server keeps the present only" in refused["content"][0]["text"]


def test_lessons_of_other_repositories_are_marked_and_only_those_of_the_token(
    server: Team, reader: str, lead: str
) -> None:
    found = server.tool(lead, "memory_recall_elsewhere", query="when do deploys run", project="app")
    assert [(hit["repository"], hit["title"]) for hit in found["elsewhere"]] == [
        ("shop", "Deploys of the shop run on Mondays with the green script")
    ]
    assert server.tool(reader, "memory_recall_elsewhere", query="deploys")["elsewhere"] == []


def test_pushed_candidates_are_not_told_to_other_repositories(server: Team, lead: str) -> None:
    server.push(lead, "The carrier pigeon of the shop leaves at noon", project="shop")
    found = server.tool(lead, "memory_recall_elsewhere", query="carrier pigeon", project="app")
    assert "pigeon" not in str(found["elsewhere"])


# -- who read what, and how often ------------------------------------------------------------------


def test_every_read_and_push_is_in_the_audit(server: Team) -> None:
    secret = make_token(server.database, "read", "push", name="watched", at="shop")
    hits = server.tool(secret, "memory_recall", query="prices in cents")["hits"]
    server.tool(secret, "memory_get", memory_id=hits[0]["id"])
    server.tool(secret, "memory_status")
    pushed = server.push(secret, "The checkout worker reads queue 7", project="shop").json()["ids"]
    server.pull(secret, project="shop")
    with server.database.as_owner() as connection:
        rows: list[Any] = connection.execute(
            "SELECT a.act, a.ids, r.name FROM loki.audit AS a "
            "JOIN loki.repositories AS r ON r.id = a.repository "
            "JOIN loki.tokens AS t ON t.id = a.token WHERE t.name = 'watched' ORDER BY a.id"
        ).fetchall()
    assert [(act, name) for act, _, name in rows] == [
        ("memory_recall", "shop"),
        ("memory_get", "shop"),
        ("memory_status", "shop"),
        ("push", "shop"),
        ("pull", "shop"),
    ]
    assert rows[0][1] == [hit["id"] for hit in hits]
    assert rows[1][1] == [hits[0]["id"]]
    assert rows[3][1] == pushed
    assert pushed[0] in rows[4][1]


def test_status_says_what_a_token_reaches_and_how_fresh_it_is(server: Team, reader: str) -> None:
    found = server.ask("GET", "/status", reader).json()
    (app,) = found["repositories"]
    assert (found["token"], found["scopes"], app["name"]) == ("reader", ["read"], "app")
    assert (app["records"], app["pushed"], app["problem"]) == (2, 0, "")
    assert len(app["commit"]) == 40
    assert app["fetched_seconds_ago"] >= 0


def test_metrics_are_for_administrators(server: Team, reader: str, lead: str) -> None:
    assert server.ask("GET", "/metrics", reader).status_code == 403
    text = server.ask("GET", "/metrics", lead).text
    assert 'loki_records{repository="app"} 2' in text
    assert 'loki_requests_total{path="/mcp",status="200"}' in text
    assert 'path="other",status="401"' in text
    assert 'loki_fetch_failing{repository="shop"} 0' in text


def test_a_token_that_asks_too_often_waits_and_others_do_not(tmp_path: Path) -> None:
    with team(tmp_path / "server", per_minute=3) as server:
        first = make_token(server.database, name="a")
        second = make_token(server.database, name="b")
        codes = [server.ask("GET", "/status", first).status_code for _ in range(4)]
        assert codes == [200, 200, 200, 429]
        refused = server.ask("GET", "/status", first)
        assert "asks too often" in refused.json()["error"]
        assert int(refused.headers["retry-after"]) >= 1
        assert server.ask("GET", "/status", second).status_code == 200


def test_replicas_that_were_used_least_lately_are_closed(
    server: Team, lead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "MOST_OPEN", 1)
    for _ in range(2):
        for project in ("app", "shop"):
            assert server.tool(lead, "memory_recall", query="category:ops", project=project)
            files = [Path(file.path) for file in psutil.Process().open_files()]
            indexes = [file for file in files if file.name == "index.db"]
            opened = {file.parts[-4] for file in indexes if "replicas" in file.parts}
            assert opened == {project}


def test_a_full_disk_is_told_apart_from_a_database_that_is_away() -> None:
    full = refused(psycopg.errors.DiskFull("could not extend file"))
    assert (full.status_code, b"no room left" in full.body) == (507, True)
    assert refused(psycopg.OperationalError("connection lost")).status_code == 503


def test_a_bucket_fills_up_again() -> None:
    limit = RateLimit(60)
    assert [limit.wait(1, 0.0) for _ in range(60)] == [0.0] * 60
    assert limit.wait(1, 0.0) == 1.0
    assert limit.wait(1, 1.0) == 0.0
    assert limit.wait(1, 1.0) > 0
    assert limit.wait(2, 1.0) == 0.0


def test_metrics_are_in_the_format_of_prometheus() -> None:
    metrics = RequestMetrics()
    metrics.count("/pull", 200, 0.03)
    metrics.count("/pull", 503, 7.0)
    text = metrics.text([("loki_records", 'a"b\\c\nd', 3.0)])
    assert 'loki_request_seconds_bucket{path="/pull",le="0.05"} 1' in text
    assert 'loki_request_seconds_bucket{path="/pull",le="+Inf"} 2' in text
    assert 'loki_request_seconds_count{path="/pull"} 2' in text
    assert 'loki_records{repository="a\\"b\\\\c\\nd"} 3' in text


def test_a_revoked_token_is_refused_at_the_next_request(server: Team) -> None:
    secret = make_token(server.database, name="leaver", at="app")
    assert server.ask("GET", "/status", secret).status_code == 200
    with server.database.as_owner() as connection:
        tokens.revoke(connection, "leaver")
    assert server.ask("GET", "/status", secret).status_code == 401
