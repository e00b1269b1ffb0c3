"""Who may see what: decided by PostgreSQL, whatever the server around it does."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import NamedTuple

import psycopg
import pytest
from team_server import make_token, opened

from loki_memory.errors import InvalidRecord, NotFound, NoToken
from loki_memory.server import records, tokens
from loki_memory.server.database import REQUESTS, Connection, Database

REPOSITORIES = [f"repo-{number}" for number in range(12)]
FACT = b'{"statement": "We deploy on Fridays from repository %d"}'
TABLES = (
    "repositories",
    "tokens",
    "grants",
    "sessions",
    "session_grants",
    "records",
    "passages",
    "audit",
)


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    """Twelve repositories with a record from git and a pushed one each."""
    with opened() as database:
        with database.as_owner() as connection:
            pusher = tokens.make(connection, "pusher", ["push"], REPOSITORIES, None)
            (token,) = connection.execute("SELECT id FROM loki.tokens").fetchone() or (0,)
            for name in REPOSITORIES:
                number = tokens.repository_id(connection, name)
                path = f"semantic/facts/fact-{number}.json"
                rows = [records.row_of(path, FACT % number)]
                records.put(connection, number, 1, rows)
                pushed = [records.row_of(f"local/{path}", FACT % number)]
                records.put(connection, number, 1, pushed, pushed_by=token)
        assert pusher.secret
        yield database


class Access(NamedTuple):
    """A random token, and what it should see."""

    secret: str
    scopes: list[str]
    granted: list[int]
    state: str


def random_access(chance: random.Random, number: int) -> Access:
    scopes = chance.sample(["read", "push", "admin"], chance.randint(1, 3))
    granted = sorted(chance.sample(range(1, len(REPOSITORIES) + 1), chance.randint(0, 5)))
    state = chance.choice(["valid", "valid", "valid", "expired", "revoked"])
    return Access(f"secret-{number}", scopes, granted, state)


def insert(connection: Connection, access: Access) -> None:
    made = connection.execute(
        "INSERT INTO loki.tokens (name, hash, scopes, expires, revoked) "
        "VALUES (%s, %s, %s, CASE %s WHEN 'expired' THEN now() - interval '1 s' END, "
        "CASE %s WHEN 'revoked' THEN now() END) RETURNING id",
        (
            access.secret,
            sha256(access.secret.encode()).digest(),
            access.scopes,
            access.state,
            access.state,
        ),
    ).fetchone()
    assert made is not None
    connection.execute(
        "INSERT INTO loki.grants SELECT %s, unnest(%s::int[])", (made[0], access.granted)
    )


def seen(connection: Connection, table: str, column: str = "repository") -> set[int]:
    rows = connection.execute(f"SELECT DISTINCT {column} FROM loki.{table}".encode())  # noqa: S608
    return {number for (number,) in rows.fetchall()}


def test_a_thousand_random_tokens_see_the_rows_of_their_repositories_and_no_other(
    database: Database,
) -> None:
    chance = random.Random(23)  # noqa: S311
    accesses = [random_access(chance, number) for number in range(1000)]
    with database.as_owner() as connection:
        for access in accesses:
            insert(connection, access)
    with database.as_owner() as connection:
        connection.execute(f"SET LOCAL ROLE {REQUESTS}".encode())
        for access in accesses:
            connection.execute("SELECT set_config('app.token', %s, true)", (access.secret,))
            granted = set(access.granted) if access.state == "valid" else set()
            readable = granted if "read" in access.scopes else set()
            pushable = granted if "push" in access.scopes else set()
            pushed = connection.execute(
                "SELECT DISTINCT repository FROM loki.records WHERE pushed_by IS NULL"
            )
            assert {number for (number,) in pushed.fetchall()} == readable, access
            assert seen(connection, "records") == readable | pushable, access
            assert seen(connection, "passages") == readable | pushable, access
            assert seen(connection, "repositories", "id") == readable | pushable, access


@pytest.fixture
def visitor(database: Database) -> Iterator[Connection]:
    """A connection of its own as a user who is nothing but a member of the application role."""
    with database.as_owner() as connection:
        address = connection.info.dsn
        connection.execute("DROP ROLE IF EXISTS visitor")
        connection.execute(f"CREATE ROLE visitor LOGIN IN ROLE {REQUESTS}".encode())
    with psycopg.connect(address, user="visitor", autocommit=True) as visitor:
        yield visitor


@pytest.mark.parametrize(
    "forged",
    [
        "",
        "1",
        "pusher",
        "postgres",
        "' OR true --",
        sha256(b"secret-1").hexdigest(),
        "\\x" + sha256(b"secret-1").hexdigest(),
    ],
)
def test_the_application_role_sees_nothing_with_forged_settings(
    visitor: Connection, forged: str
) -> None:
    for name in ("app.token", "app.repository", "app.user", "role_is_owner.x"):
        visitor.execute("SELECT set_config(%s, %s, false)", (name, forged))
    for table in ("records", "passages"):
        assert seen(visitor, table) == set()
    assert seen(visitor, "repositories", "id") == set()
    assert visitor.execute("SELECT loki.token(), loki.reach('read')").fetchone() == (None, [])


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM loki.tokens",
        "SELECT * FROM loki.grants",
        "SELECT * FROM loki.audit",
        "INSERT INTO loki.grants VALUES (1, 1)",
        "UPDATE loki.tokens SET scopes = '{read,push,admin}'",
        "UPDATE loki.repositories SET version = 0",
        "DELETE FROM loki.records",
        "TRUNCATE loki.records",
        "ALTER TABLE loki.records DISABLE ROW LEVEL SECURITY",
        "CREATE POLICY mine ON loki.records USING (true)",
        "DROP POLICY reading ON loki.records",
        "SET ROLE postgres",
        "SET SESSION AUTHORIZATION postgres",
        "SET row_security = off; SELECT * FROM loki.records",
        "CREATE FUNCTION loki.token() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE TABLE loki.mine (x int)",
        "COPY loki.records TO PROGRAM 'cat'",
    ],
)
def test_the_application_role_may_not_work_around_the_policies(
    visitor: Connection, statement: str
) -> None:
    with pytest.raises(
        (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidTableDefinition)
    ):
        visitor.execute(statement.encode())


def test_a_temporary_table_does_not_take_the_place_of_the_tokens(visitor: Connection) -> None:
    visitor.execute("CREATE TEMP TABLE tokens (id int, hash bytea, scopes text[])")
    visitor.execute("CREATE TEMP TABLE grants (token int, repository int)")
    visitor.execute("INSERT INTO tokens VALUES (1, sha256('x'), '{read}')")
    visitor.execute("INSERT INTO grants VALUES (1, 1)")
    visitor.execute("SET search_path = pg_temp, loki; SELECT set_config('app.token', 'x', false)")
    assert seen(visitor, "records") == set()


def write_as(database: Database, secret: str, statement: str) -> int:
    with database.as_token(secret) as connection:
        return connection.execute(statement.encode()).rowcount


PLANT = (
    "INSERT INTO loki.records VALUES (1, '{path}', 9, 'fact-x', 'fact', 'planted', 'active', '', "
    "'e', 'x', {by})"
)


def test_a_leaked_read_token_cannot_write(database: Database) -> None:
    secret = make_token(database, "read", name="reader", at="repo-0")
    for by in ("NULL", "1", "loki.token()"):
        with pytest.raises(psycopg.Error, match=r"row-level security|records_check"):
            write_as(database, secret, PLANT.format(path="local/x.json", by=by))
    assert write_as(database, secret, "UPDATE loki.records SET title = 'x'") == 0
    assert write_as(database, secret, "DELETE FROM loki.passages") == 0
    with database.as_token(secret) as connection:
        found = connection.execute("SELECT loki.next_version(1)").fetchone()
        assert found == (None,)


def test_a_push_token_cannot_change_what_git_holds_nor_push_for_another(
    database: Database,
) -> None:
    secret = make_token(database, "read", "push", name="writer", at="repo-0")
    git_rows = "UPDATE loki.records SET title = 'x' WHERE pushed_by IS NULL"
    assert write_as(database, secret, git_rows) == 0
    for path, by in (("semantic/facts/x.json", "NULL"), ("local/x.json", "1")):
        with pytest.raises(psycopg.Error, match="row-level security"):
            write_as(database, secret, PLANT.format(path=path, by=by))
    elsewhere = PLANT.format(path="local/x.json", by="loki.token()").replace("(1,", "(2,", 1)
    with pytest.raises(psycopg.Error, match="row-level security"):
        write_as(database, secret, elsewhere)


def test_every_table_with_data_forces_row_level_security(database: Database) -> None:
    with database.as_owner() as connection:
        rows = connection.execute(
            "SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class "
            "WHERE relnamespace = 'loki'::regnamespace AND relkind = 'r'"
        ).fetchall()
        role = connection.execute(
            "SELECT rolbypassrls, rolsuper, rolcanlogin FROM pg_roles WHERE rolname = %s",
            (REQUESTS,),
        ).fetchone()
    assert {name for name, on, forced in rows if on and forced} == set(TABLES)
    assert {name for name, _, _ in rows} == {*TABLES, "migrations"}
    assert role == (False, False, False)


# -- tokens ----------------------------------------------------------------------------------------


def test_a_secret_is_nowhere_in_the_database(database: Database) -> None:
    secret = make_token(database, name="hidden", at="repo-0")
    with database.as_owner() as connection:
        row = connection.execute("SELECT t::text, hash FROM loki.tokens AS t WHERE name = 'hidden'")
        text, hashed = row.fetchone() or ("", b"")
    assert secret.startswith("loki_")
    assert len(secret) > 40
    assert secret not in text
    assert hashed == sha256(secret.encode()).digest()


def reaches(database: Database, secret: str) -> bool:
    with database.as_token(secret) as connection:
        return bool(seen(connection, "records"))


def change(database: Database, function: Callable[[Connection], object]) -> object:
    with database.as_owner() as connection:
        return function(connection)


def test_a_rotated_token_has_a_new_secret_and_the_old_one_ends_soon(database: Database) -> None:
    old = make_token(database, "read", name="rotated", at="repo-0 repo-1")
    new = change(database, lambda connection: tokens.rotate(connection, "rotated"))
    assert isinstance(new, tokens.NewToken)
    assert reaches(database, old)
    assert reaches(database, new.secret)
    listed = change(database, tokens.listed)
    assert isinstance(listed, list)
    found = {token.name: token for token in listed if token.name.startswith("rotated")}
    assert found["rotated"].repositories == ["repo-0", "repo-1"]
    assert found["rotated"].expires == ""
    (before,) = (token for name, token in found.items() if name != "rotated")
    assert before.expires != ""


def test_a_revoked_token_ends_at_once(database: Database) -> None:
    secret = make_token(database, name="revoked", at="repo-0")
    assert reaches(database, secret)
    change(database, lambda connection: tokens.revoke(connection, "revoked"))
    assert not reaches(database, secret)
    with pytest.raises(NotFound):
        change(database, lambda connection: tokens.revoke(connection, "revoked"))
    with pytest.raises(NotFound):
        change(database, lambda connection: tokens.rotate(connection, "revoked"))


def test_a_token_is_granted_more_and_loses_some(database: Database) -> None:
    secret = make_token(database, name="granted", at="repo-0")
    change(database, lambda connection: tokens.grant(connection, "granted", ["repo-1", "repo-0"]))
    assert reached(database, secret) == {"repo-0", "repo-1"}
    change(database, lambda connection: tokens.revoke(connection, "granted", ["repo-0"]))
    assert reached(database, secret) == {"repo-1"}
    with pytest.raises(NoToken):
        change(database, lambda connection: tokens.grant(connection, "nobody", ["repo-0"]))


def reached(database: Database, secret: str) -> set[str]:
    with database.as_token(secret) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM loki.repositories")}


def test_a_name_is_given_once_while_its_token_works_and_scopes_are_known_ones(
    database: Database,
) -> None:
    make_token(database, name="twice", at="repo-0")
    with pytest.raises(InvalidRecord, match="is taken"):
        make_token(database, name="twice", at="repo-0")
    change(database, lambda connection: tokens.revoke(connection, "twice"))
    assert reaches(database, make_token(database, name="twice", at="repo-0"))
    with pytest.raises(InvalidRecord, match="read, push, admin"):
        make_token(database, "write", name="odd", at="repo-0")
