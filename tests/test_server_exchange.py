"""Push and pull: merged, capped, redacted, and nothing skipped or doubled."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, product
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pytest
from team_server import Team, make_repository, make_token, team

from loki_memory.server import exchange, tokens

NUMBERS = count()
OF_REPOSITORY = "SELECT id FROM loki.repositories WHERE name = %s"
STATEMENT = "Run `make seed` on port 5433 before the contract tests"


class App(NamedTuple):
    """A repository of a team server, and a token that may read it and push to it."""

    server: Team
    name: str
    writer: str

    @classmethod
    def on(cls, server: Team) -> App:
        number = next(NUMBERS)
        name = f"app-{number}"
        return cls(server, name, make_token(server.database, "read", "push", name=name, at=name))

    def other(self, *scopes: str) -> str:
        """The secret of another token for the same repository."""
        name = f"{self.name}-{next(NUMBERS)}"
        return make_token(self.server.database, *scopes, name=name, at=self.name)

    def send(self, *records: dict[str, Any], secret: str = "", **more: Any) -> Any:
        body = {"project": self.name, "records": list(records), **more}
        answer = self.server.ask("POST", "/push", secret or self.writer, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def pull(self, since: str = "") -> Any:
        return self.server.pull(self.writer, since, self.name).json()

    def records(self, since: str = "") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.pull(since)["records"]
        return found

    def recall(self, query: str) -> Any:
        return self.server.tool(self.writer, "memory_recall", query=query)["hits"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    with team(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def app(server: Team) -> App:
    return App.on(server)


def fact(**fields: Any) -> dict[str, Any]:
    return {"kind": "fact", "record": {"statement": STATEMENT, **fields}}


def ports(first: int, last: int) -> list[dict[str, Any]]:
    """As many different facts."""
    numbers = range(first, last)
    return [fact(statement=f"Port {n} belongs to the proxy of service {n}") for n in numbers]


def test_a_push_is_found_by_recall_as_a_candidate_of_somebody_else(app: App) -> None:
    app.send(fact())
    (hit,) = app.recall("what runs before the tests?")
    assert hit["title"] == STATEMENT
    assert hit["marks"] == ["candidate"]
    opened = app.server.tool(app.writer, "memory_get", memory_id=hit["id"])
    assert opened["record"]["origin"] == "import"


def test_the_same_push_again_changes_nothing(app: App) -> None:
    first = app.send(fact())
    before = app.pull()
    for _ in range(3):
        again = app.send(fact())
        assert again["changed"] == []
        assert again["ids"] == first["ids"]
    assert app.pull() == before


def test_one_belief_of_two_clients_is_merged_with_the_evidence_of_both(app: App) -> None:
    other = app.other("push")
    app.send(fact(source_episodes=["ep-1"], tags=["seed"]))
    app.send(fact(source_episodes=["ep-2"], tags=["tests"]), secret=other)
    (record,) = app.records()
    assert '"ep-1"' in record["content"]
    assert '"ep-2"' in record["content"]
    assert '"seed"' in record["content"]
    assert '"tests"' in record["content"]


def test_the_order_of_two_pushes_does_not_matter(server: Team) -> None:
    ours = fact(source_episodes=["ep-1"], confidence=0.5)
    theirs = fact(source_episodes=["ep-2"], category="testing")
    results = []
    for order in ((ours, theirs), (theirs, ours)):
        app = App.on(server)
        for record in order:
            app.send(record)
        results.append([record["content"] for record in app.records()])
    assert results[0] == results[1]


def test_nothing_that_a_push_says_of_itself_raises_its_trust(app: App) -> None:
    claims = product(("owner", "agent", "import", None), ("active", "rejected", "superseded"))
    for port, (origin, status) in enumerate(claims):
        statement = f"Port {port} belongs to the proxy of service {port}"
        app.send(fact(statement=statement, origin=origin, status=status, id="fact-0000000000"))
    found = app.records()
    assert len(found) == 12
    for record in found:
        assert '"origin": "import"' in record["content"]
        assert '"status": "candidate"' in record["content"]
        assert record["id"] != "fact-0000000000"


def test_a_push_does_not_touch_a_record_of_the_trusted_branch(app: App, tmp_path: Path) -> None:
    clone = make_repository(tmp_path / "app", STATEMENT)
    app.server.fetch(tmp_path / "app", app.name)
    (published,) = app.records()
    app.send(fact(category="planted"))
    found = {record["path"]: record for record in app.records()}
    assert found[published["path"]]["content"] == published["content"]
    (hit,) = app.recall("what runs before the tests?")
    assert hit["marks"] == []
    assert hit["id"] == clone.recall("seed")[0].id


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"kind": "tombstone", "record": {"value": "x"}}, "is not taken"),
        ({"kind": "episode", "record": {"goal": "x"}}, "is not taken"),
        ({"kind": "skill", "record": {"name": "x", "body": "x"}}, "is not taken"),
        ({"kind": "fact", "record": {"statement": ""}}, "statement"),
        ({"kind": "fact", "record": {}}, "statement"),
        ({"kind": "fact", "record": "text"}, "is not taken"),
        ({}, "is not taken"),
        (fact(scope="user"), "is private"),
        (fact(scope="session"), "is private"),
        (fact(statement="Fix the build"), "could be said of any project"),
        (fact(statement="Bake the cake in Rome. " * 60), "is longer than"),
        (fact(key={"statement": "x"}), "names no episode"),
        (fact(confidence=7), "confidence"),
    ],
)
def test_what_is_refused_is_named_and_the_rest_is_taken(
    app: App, record: dict[str, Any], reason: str
) -> None:
    good = fact(statement="The billing worker needs REDIS_URL in staging")
    done = app.send(record, good)
    assert [refusal["number"] for refusal in done["refused"]] == [0]
    assert reason in done["refused"][0]["reason"]
    assert done["ids"][0] == ""
    assert len(done["changed"]) == 1


def test_secrets_and_personal_data_do_not_come_in(app: App) -> None:
    key = "ghp_" + "a1B2" * 9
    app.send(fact(statement=f"The release bot of ana.meier@hooli.com logs in with {key}"))
    (record,) = app.records()
    assert key not in record["content"]
    assert "ana.meier@hooli.com" not in record["content"]


def test_what_a_token_pushed_it_can_withdraw_and_nobody_else(app: App) -> None:
    other = app.other("read", "push")
    (name,) = app.send(fact())["ids"]
    cursor = app.pull()["cursor"]
    assert app.send(secret=other, withdraw=[name])["withdrawn"] == []
    assert app.send(withdraw=[name])["withdrawn"] == [name]
    (record,) = app.records(cursor)
    assert record["gone"]
    with app.server.database.as_owner() as connection:
        (number,) = connection.execute(OF_REPOSITORY, (app.name,)).fetchone() or (0,)
        for table, left in (("records", 1), ("passages", 0)):
            sql = f"SELECT count(*) FROM loki.{table} WHERE repository = {number}"  # noqa: S608
            assert connection.execute(sql.encode()).fetchone() == (left,)
        kept = connection.execute(
            "SELECT content, title FROM loki.records WHERE repository = %s", (number,)
        )
        assert kept.fetchall() == [(b"", "")]
    assert app.recall("make seed") == []
    assert app.send(fact())["changed"] == [name], "it can come back"


def test_a_thousand_records_are_one_push_and_one_more_is_refused(app: App) -> None:
    many = [
        fact(statement=f"Port {5000 + n} belongs to the proxy of service {n}") for n in range(1000)
    ]
    assert len(app.send(*many)["changed"]) == 1000
    body = {"project": app.name, "records": [*many, fact()]}
    answer = app.server.ask("POST", "/push", app.writer, json=body)
    assert answer.status_code == 400
    assert "at most 1000" in answer.json()["error"]


# -- cursors ---------------------------------------------------------------------------------------


def test_pages_of_a_pull_have_every_record_once(app: App) -> None:
    for start in (0, 7, 14):
        app.send(*ports(start, start + 7))
    found: list[str] = []
    cursor, more = "", True
    while more:
        with app.server.database.as_token(app.writer) as connection:
            page = exchange.pull(connection, app.name, cursor, 4)
        found += [record.id for record in page.records]
        cursor, more = page.cursor, page.more
    assert len(found) == len(set(found)) == 21
    assert app.records(cursor) == []


def test_a_cursor_skips_nothing_that_commits_late(app: App) -> None:
    """The second writer waits for the first, so no version is seen before an older one."""
    other = app.other("push")
    cursor = app.pull()["cursor"]
    late = fact(statement="Port 81 is where the metrics listen")
    second = Thread(target=app.send, args=(late,), kwargs={"secret": other})
    with app.server.database.as_token(app.writer) as connection:
        exchange.push(connection, app.name, [fact(statement="Port 80 is where the proxy listens")])
        second.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        while connection.execute(waiting).fetchone() == (0,):
            pass
        between = app.pull(cursor)
        assert between["records"] == []
    second.join()
    found = app.records(between["cursor"])
    assert len(found) == 2


def test_a_cursor_of_another_life_of_the_repository_gets_everything(app: App) -> None:
    for record in ports(0, 5):
        app.send(record)
    old = app.pull()["cursor"]
    with app.server.database.as_owner() as connection:
        connection.execute("DELETE FROM loki.repositories WHERE name = %s", (app.name,))
    with app.server.database.as_owner() as connection:
        tokens.repository_id(connection, app.name)
        connection.execute(
            "INSERT INTO loki.grants SELECT t.id, r.id FROM loki.tokens AS t, "
            "loki.repositories AS r WHERE t.name = %s AND r.name = %s",
            (app.name, app.name),
        )
    app.send(fact())
    assert len(app.records(old)) == 1


def test_a_cursor_that_is_none_gets_everything(app: App) -> None:
    app.send(fact())
    for cursor in ("x", ":", "::", "a:b:c", "0:99999999999999999999:", "é:1:", "0:1:\t"):
        assert len(app.records(cursor)) == 1, cursor
