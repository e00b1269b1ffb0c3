"""The call of a forge: who may make the server fetch, and what the audit says of it."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest
from team_server import Team, commit, make_repository, make_token, opened, team

from loki_memory.server.projection import Mirror, RepositorySource
from loki_memory.server.serving import Fetcher
from loki_memory.server.webhook import Webhook

SECRET, BODY = "shared with the forge", b'{"ref": "refs/heads/main"}'
SIGNATURE = hmac.new(SECRET.encode(), BODY, sha256).hexdigest()
GOOD = {
    "github": {"X-Hub-Signature-256": f"sha256={SIGNATURE}"},
    "gitea": {"X-Gitea-Signature": SIGNATURE},
    "gitlab": {"X-Gitlab-Token": SECRET},
}


@pytest.fixture
def fetched() -> list[str]:
    return []


@pytest.fixture
def server(tmp_path: Path, fetched: list[str]) -> Iterator[Team]:
    def fetch_soon(name: str) -> bool:
        fetched.append(name)
        return name == "app"

    with team(tmp_path, webhook=Webhook(SECRET, fetch_soon)) as found:
        yield found


def call(server: Team, headers: dict[str, str], body: bytes = BODY, name: str = "app") -> Any:
    sent = {name.encode(): value.encode() for name, value in headers.items()}
    return server.client.post(f"/webhook/{name}", content=body, headers=sent)


def test_a_signed_call_has_the_repository_fetched_and_is_in_the_audit(
    server: Team, fetched: list[str]
) -> None:
    make_token(server.database)  # which adds the repository
    for headers in GOOD.values():
        assert call(server, headers).status_code == 202
    assert fetched == ["app"] * 3
    with server.database.as_owner() as connection:
        found = connection.execute("SELECT act, who, token FROM loki.audit ORDER BY id").fetchall()
    assert found == [("webhook", forge, None) for forge in GOOD]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Hub-Signature-256": SIGNATURE[:-1] + "g"},
        {"X-Hub-Signature-256": ""},
        {"X-Gitea-Signature": "é"},
        {"X-Gitlab-Token": "guessed"},
        {"X-Gitlab-Token": "guessed", **GOOD["github"]},
        {"Authorization": f"Bearer {SECRET}"},
    ],
)
def test_a_call_that_does_not_know_the_secret_does_nothing(
    server: Team, fetched: list[str], headers: dict[str, str]
) -> None:
    assert call(server, headers).status_code == 401
    assert fetched == []


def test_a_signature_is_of_the_body_that_came_with_it(server: Team, fetched: list[str]) -> None:
    assert call(server, GOOD["github"], BODY + b" ").status_code == 401
    assert call(server, GOOD["github"], name="other").status_code == 404
    assert fetched == ["other"]


def test_without_a_secret_no_forge_may_call(tmp_path: Path) -> None:
    with team(tmp_path, webhook=Webhook("", lambda _: True)) as server:
        empty = hmac.new(b"", BODY, sha256).hexdigest()
        assert call(server, {"X-Hub-Signature-256": f"sha256={empty}"}).status_code == 404
        assert call(server, {"X-Gitlab-Token": ""}).status_code == 404


def test_a_call_is_not_held_up_by_the_time_between_two_fetches(tmp_path: Path) -> None:
    workspace = make_repository(tmp_path / "app", "We deploy on Fridays")
    source = RepositorySource("app", str(tmp_path / "app"))
    moved = Event()
    with opened() as database:
        fetcher = Fetcher(database, [Mirror(source, tmp_path / "mirrors")], lambda _: moved.set())
        with fetcher.running(poll=3600):
            assert moved.is_set(), "the first round comes before anything is answered"
            moved.clear()
            workspace.remember("We deploy on Mondays from now on")
            commit(tmp_path / "app")
            assert fetcher.fetch_soon("app")
            assert not fetcher.fetch_soon("shop")
            assert moved.wait(60)
        with database.as_owner() as connection:
            count = "SELECT count(*) FROM loki.records WHERE kind = 'fact'"
            assert connection.execute(count).fetchone() == (2,)


def test_nobody_else_writes_an_entry_without_a_token(tmp_path: Path) -> None:
    with team(tmp_path) as server:
        secret = make_token(server.database, "read", "push")
        with (
            pytest.raises(psycopg.errors.InsufficientPrivilege),
            server.database.as_token(secret) as connection,
        ):
            connection.execute(
                "INSERT INTO loki.audit (who, act, ids) VALUES ('github', 'webhook', '{}')"
            )
