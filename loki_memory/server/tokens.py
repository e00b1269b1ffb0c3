"""Tokens: who may read or push which repositories, and until when.

The secret is shown once, when it is made. The database has its SHA-256 only: a secret of 256 random
bits needs no slow hash.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import InvalidRecord, NoToken

if TYPE_CHECKING:
    from loki_memory.server.database import Connection

SCOPES = ("read", "push", "admin")
_PREFIX = "loki_"  # by which scanners of repositories know a secret of ours
_BYTES = 32
_MINUTES = 10  # that the old secret of a rotated token still works
_RETIRE = "UPDATE loki.tokens SET name = name || ' #' || id"  # its name is free again


class Token(NamedTuple):
    """A token, without its secret."""

    name: str
    scopes: list[str]
    repositories: list[str]
    created: str
    expires: str  # empty if it does not
    revoked: str  # empty if it is not


class NewToken(NamedTuple):
    """A token that was just made, with its secret."""

    name: str
    secret: str
    expires: str


def make(
    connection: Connection,
    name: str,
    scopes: Sequence[str],
    repositories: Sequence[str],
    days: int | None,
) -> NewToken:
    """Make a token for some repositories, which need not have been fetched yet.

    It may have the name of one that has ended; of that one the audit keeps the number.
    """
    if not name or any(scope not in SCOPES for scope in scopes) or not scopes:
        advice = f"Give it a name, and scopes among {', '.join(SCOPES)}."
        raise InvalidRecord("is no token", field="token", advice=advice)
    connection.execute(
        f"{_RETIRE} WHERE name = %s AND (revoked IS NOT NULL OR expires < now())", (name,)
    )
    secret = f"{_PREFIX}{secrets.token_urlsafe(_BYTES)}"
    lasts = None if days is None else timedelta(days=days)
    made = connection.execute(  # by the clock of the database, which also ends it
        "INSERT INTO loki.tokens (name, hash, scopes, expires) VALUES (%s, %s, %s, now() + %s) "
        "ON CONFLICT (name) DO NOTHING RETURNING expires",
        (name, sha256(secret.encode()).digest(), list(scopes), lasts),
    ).fetchone()
    if made is None:
        advice = "Rotate it, grant it more repositories, or choose another name."
        raise InvalidRecord("is taken", field=name, advice=advice)
    grant(connection, name, repositories)
    return NewToken(name, secret, made[0].isoformat() if made[0] else "")


def grant(connection: Connection, name: str, repositories: Sequence[str]) -> None:
    """Let a token reach more repositories; raises NoToken."""
    token = _working(connection, name)[0]
    for repository in dict.fromkeys(repositories):
        connection.execute(
            "INSERT INTO loki.grants VALUES (%s, %s) ON CONFLICT DO NOTHING",
            (token, repository_id(connection, repository)),
        )


def unserved(connection: Connection, repositories: Sequence[str]) -> list[str]:
    """Repositories of which nothing was ever fetched: not served yet, or misspelt."""
    rows = connection.execute(
        "SELECT name FROM loki.repositories WHERE name = ANY (%s) AND fetched IS NULL "
        "ORDER BY name",
        (list(repositories),),
    )
    return [name for (name,) in rows.fetchall()]


def repository_id(connection: Connection, name: str) -> int:
    """The number of a repository, which is added if it is not there yet."""
    connection.execute(
        "INSERT INTO loki.repositories (name) VALUES (%s) ON CONFLICT DO NOTHING", (name,)
    )
    found = connection.execute("SELECT id FROM loki.repositories WHERE name = %s", (name,))
    row = found.fetchone()
    assert row is not None  # noqa: S101 - inserted above
    return int(row[0])


def rotate(connection: Connection, name: str) -> NewToken:
    """Give a token a new secret; the old one works for ten more minutes, under another name."""
    old, scopes, ends = _working(connection, name)
    connection.execute(
        f"{_RETIRE}, expires = least(expires, now() + %s) WHERE id = %s",
        (timedelta(minutes=_MINUTES), old),
    )
    made = make(connection, name, scopes, (), None)
    connection.execute("UPDATE loki.tokens SET expires = %s WHERE name = %s", (ends, name))
    connection.execute(
        "INSERT INTO loki.grants SELECT t.id, g.repository FROM loki.tokens AS t, loki.grants AS g "
        "WHERE t.name = %s AND g.token = %s",
        (name, old),
    )
    return made._replace(expires=ends.isoformat() if ends else "")


def revoke(connection: Connection, name: str, repositories: Sequence[str] = ()) -> None:
    """Revoke a token at once, or its reach of some repositories only; raises NoToken."""
    token = _working(connection, name)[0]
    if not repositories:
        connection.execute("UPDATE loki.tokens SET revoked = now() WHERE id = %s", (token,))
    connection.execute(
        "DELETE FROM loki.grants WHERE token = %s AND repository IN "
        "(SELECT id FROM loki.repositories WHERE name = ANY (%s))",
        (token, list(repositories)),
    )


def _working(connection: Connection, name: str) -> tuple[int, list[str], datetime | None]:
    """The number, scopes and end of a token that is not revoked; raises NoToken."""
    found = connection.execute(
        "SELECT id, scopes, expires FROM loki.tokens WHERE name = %s AND revoked IS NULL", (name,)
    ).fetchone()
    if found is None:
        raise NoToken(name)
    return found


def listed(connection: Connection) -> list[Token]:
    """All tokens, by name."""
    rows = connection.execute(
        "SELECT t.name, t.scopes, coalesce(array_agg(r.name ORDER BY r.name) "
        "FILTER (WHERE r.name IS NOT NULL), '{}'), t.created::text, coalesce(t.expires::text, ''), "
        "coalesce(t.revoked::text, '') FROM loki.tokens AS t "
        "LEFT JOIN loki.grants AS g ON g.token = t.id "
        "LEFT JOIN loki.repositories AS r ON r.id = g.repository GROUP BY t.id ORDER BY t.name"
    )
    return [Token(*row) for row in rows.fetchall()]
