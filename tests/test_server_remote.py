"""`loki-mem remote`: what a client pulls from a team server, pushes to it, and does without it."""

from __future__ import annotations

import json
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from team_server import Team, listening, make_repository, make_token, opened

from loki_memory import Workspace
from loki_memory.cli.main import cli
from loki_memory.errors import NoRemote, RemoteFailed
from loki_memory.home.place import user_layout
from loki_memory.remote import client
from loki_memory.remote.cached import CachedRepository, is_record
from loki_memory.remote.hints import in_time
from loki_memory.remote.servers import RemoteServer, keep

LESSON = "The payment tests need a running Redis, started with `make redis`, on port 6380."
QUESTION = "what do the payment tests need"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Team]:
    with opened() as database:
        yield Team(tmp_path / "server", database)


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """The checkout of the user, with one candidate."""
    with make_repository(tmp_path / "app", "The app listens on port 8080") as workspace:
        learn(workspace)
    return tmp_path / "app"


def learn(workspace: Workspace) -> None:
    """Capture one session, so that there is a candidate."""
    stated = {"text": LESSON, "type": "gotcha", "score": 0.5}
    workspace.record(
        {
            "goal": "please make the payment tests pass again",
            "timestamp": "2026-03-01T09:00:00Z",
            "session": "session-1",
            "agent": "claude-code",
            "outcome": "success",
            "scope": "local",
            "captured": True,
            "statements": [stated],
        }
    )
    workspace.consolidate()
    workspace.flush()


def run(place: Path, *words: str, given: str = "") -> Result:
    return CliRunner().invoke(cli, ["-C", str(place), *words], input=given)


def added(place: Path, url: str, secret: str, *words: str) -> Result:
    done = run(place, "remote", "add", "team", url, *words, given=secret)
    assert not done.exception, done.output
    return done


def synced(place: Path, *words: str) -> dict[str, Any]:
    done = run(place, "remote", "sync", "--json", *words)
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)["remotes"]
    return dict(found)


def elsewhere(place: Path, question: str) -> list[dict[str, Any]]:
    done = run(place, "recall", question, "--everywhere", "--json")
    return list(json.loads(done.stdout)["elsewhere"])


def test_a_lesson_of_another_repository_is_recalled_marked_and_only_on_request(
    server: Team, app: Path, tmp_path: Path
) -> None:
    make_repository(tmp_path / "shop", "Payment webhooks must be verified with the raw body")
    server.fetch(tmp_path / "shop", "shop")
    server.fetch(app, "app")
    secret = make_token(server.database, at="app shop")
    with listening(server) as url:
        assert "2 repositories" in added(app, url, secret).output
        assert synced(app)["repositories"] == 2
    # From here on there is no server, and none is needed.
    question = "how are payment webhooks verified"
    (hit,) = elsewhere(app, question)
    assert (hit["repository"], hit["pushed"]) == ("shop", False)
    printed = run(app, "recall", question, "--everywhere").output
    assert "(of shop)" in printed
    assert "raw body" not in run(app, "recall", question).output, "told only to who asks"
    assert "raw body" in run(app, "remote", "show", hit["id"][:10]).output


def test_candidates_are_pushed_only_when_the_user_says_so(server: Team, app: Path) -> None:
    server.fetch(app, "app")
    secret = make_token(server.database, "read", "push")
    with listening(server) as url:
        added(app, url, secret)
        done = synced(app)
        assert (done["pushed"], done["waiting"]) == ([], 1)
        assert len(synced(app, "--share")["pushed"]) == 1
        assert synced(app, "--share")["pushed"] == [], "the same again changes nothing"


def test_what_is_no_candidate_any_more_is_taken_back_from_the_server(
    server: Team, app: Path
) -> None:
    server.fetch(app, "app")
    with listening(server) as url:
        added(app, url, make_token(server.database, "read", "push"))
        (name,) = synced(app, "--share")["pushed"]
        with Workspace.open(app) as workspace:
            for shift in workspace.history.candidates().shifts:
                workspace.care.purge(shift.id)
        assert synced(app)["withdrawn"] == [name], "without --share, too"
    kept = server.database
    with kept.as_owner() as connection:
        left = connection.execute("SELECT content FROM loki.records WHERE id = %s", (name,))
        assert [bytes(row[0]) for row in left.fetchall()] == [b""]


def test_a_teammate_sees_what_was_pushed_as_not_reviewed(
    server: Team, app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.fetch(app, "app")
    with listening(server) as url:
        added(app, url, make_token(server.database, "read", "push"))
        synced(app, "--share")
        assert elsewhere(app, QUESTION) == [], "the user has it already"
        monkeypatch.setenv("LOKI_HOME", str(tmp_path / "ben" / ".loki"))
        clone = tmp_path / "clone" / "app"
        make_repository(clone, "The app listens on port 8080")
        added(clone, url, make_token(server.database, "read", name="ben"))
        synced(clone)
    (hit,) = elsewhere(clone, QUESTION)
    assert (hit["repository"], hit["pushed"]) == ("app", True)
    assert "not reviewed" in run(clone, "recall", QUESTION, "--everywhere").output


def test_without_its_server_a_client_says_so_and_keeps_what_it_has(
    server: Team, app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(tmp_path / "shop", "Payment webhooks must be verified with the raw body")
    server.fetch(tmp_path / "shop", "shop")
    with listening(server) as url:
        added(app, url, make_token(server.database, at="shop"), "--share")
        synced(app)
    monkeypatch.setattr("loki_memory.remote.client._PATIENCE", 0)
    done = run(app, "remote", "sync")
    assert done.exit_code == 17
    assert "does not answer" in done.output
    assert "the last sync failed" in run(app, "status").output
    (listed,) = json.loads(run(app, "remote", "list", "--json").stdout)["remotes"]
    assert (listed["waiting"], bool(listed["problem"])) == (1, True)
    assert len(elsewhere(app, "how are payment webhooks verified")) == 1


def test_the_lag_behind_a_server_is_counted(server: Team, app: Path, tmp_path: Path) -> None:
    make_repository(tmp_path / "shop", "Payment webhooks must be verified with the raw body")
    server.fetch(tmp_path / "shop", "shop")
    secret = make_token(server.database, "read", "push", at="shop")
    with listening(server) as url:
        added(app, url, secret)
        behind = [lag(app)]
        synced(app)
        behind.append(lag(app))
        pushed = [{"kind": "fact", "record": {"statement": "The shop closes at noon on Sundays"}}]
        client.push(RemoteServer("team", url, secret), {"project": "shop", "records": pushed})
        behind.append(lag(app))
    assert behind == [1, 0, 1]


def lag(place: Path) -> int:
    (listed,) = json.loads(run(place, "remote", "list", "--json").stdout)["remotes"]
    return int(listed["behind"])


def test_a_repository_that_the_token_lost_leaves_the_cache(
    server: Team, app: Path, tmp_path: Path
) -> None:
    make_repository(tmp_path / "shop", "Payment webhooks must be verified with the raw body")
    server.fetch(tmp_path / "shop", "shop")
    server.fetch(app, "app")
    with listening(server) as url:
        added(app, url, make_token(server.database, at="app shop"))
        synced(app)
        with server.database.as_owner() as connection:
            connection.execute(
                "DELETE FROM loki.grants USING loki.repositories AS r "
                "WHERE r.id = repository AND r.name = 'shop'"
            )
        synced(app)
    assert not CachedRepository("team", "shop").folder.exists()


def test_a_token_is_kept_where_only_its_user_reads_it_and_goes_with_its_server(
    server: Team, app: Path
) -> None:
    with listening(server) as url:
        added(app, url, make_token(server.database))
    file = user_layout().local / "remotes.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    run(app, "remote", "remove", "team")
    assert "loki_" not in file.read_text()
    assert run(app, "remote", "remove", "team").exception.__class__ is NoRemote


@pytest.mark.parametrize(
    "url", ["http://memory.example", "ftp://127.0.0.1", "https://ana:x@h.example", "memory.example"]
)
def test_a_token_is_sent_over_tls_only(app: Path, url: str) -> None:
    done = run(app, "remote", "add", "team", url, given="loki_x")
    assert done.exit_code == 1
    assert "is no address of a server" in str(done.exception)


def test_a_revoked_token_is_told_apart_from_a_server_that_is_down(server: Team, app: Path) -> None:
    with listening(server) as url:
        keep(RemoteServer("team", url, "loki_wrong"))
        done = run(app, "remote", "sync")
    assert "refuses" in done.output
    assert done.exit_code == 16


def test_a_database_that_was_made_anew_gets_the_shared_candidates_again(
    server: Team, app: Path, tmp_path: Path
) -> None:
    server.fetch(app, "app")
    with listening(server) as url:
        added(app, url, make_token(server.database, "read", "push"), "--share")
        (name,) = synced(app)["pushed"]
    with opened() as database:
        anew = Team(tmp_path / "anew", database)
        anew.fetch(app, "app")
        with listening(anew) as url:
            added(app, url, make_token(database, "read", "push"), "--share")
            assert synced(app)["pushed"] == [name]
            assert synced(app)["pushed"] == []


@pytest.mark.parametrize(
    ("path", "pushed"),
    [
        ("../../x.json", False),
        ("/etc/x.json", False),
        ("semantic/facts/../../../x.json", False),
        ("local/semantic/facts/x.json", False),
        ("semantic/facts/x.json", True),
        ("notes.txt", False),
    ],
)
def test_a_server_names_no_other_files_than_records(path: str, pushed: bool) -> None:
    assert not is_record(path, pushed=pushed)


PROMPT = "Fix the payment webhooks so that the raw body is verified before parsing"


def prompted(place: Path) -> str:
    """What a prompt is told by the hook."""
    event = {"session_id": "s", "prompt": PROMPT, "cwd": str(place), "hook_event_name": "x"}
    return run(place, "hook", "UserPromptSubmit", given=json.dumps(event)).output


def test_a_prompt_asks_a_server_only_where_its_user_set_that(
    server: Team, app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(tmp_path / "shop", "Payment webhooks must be verified with the raw body")
    server.fetch(tmp_path / "shop", "shop")
    with listening(server) as url:
        added(app, url, make_token(server.database, at="shop"))
        assert "raw body" not in prompted(app)
        monkeypatch.setenv("LOKI_REMOTE_HOOKS", "true")
        assert "of shop, may not hold here" in prompted(app)
        assert "raw body" not in prompted(app), "once in a session"


def test_a_proxy_never_gets_a_token_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "")
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.settimeout(0)
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        nobody = RemoteServer("team", "http://127.0.0.1:9", "loki_x")
        with pytest.raises(RemoteFailed):
            client.get(nobody, "/status", client.StatusAnswer, patience=0, timeout=0.2)
        with pytest.raises(BlockingIOError):  # nobody has connected
            proxy.accept()


def test_a_server_that_is_slow_does_not_hold_a_prompt_up(app: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes connections, and says nothing
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert in_time(RemoteServer("team", url, "loki_x"), PROMPT, "app", 0.05) is None
