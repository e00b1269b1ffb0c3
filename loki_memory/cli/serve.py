"""The commands of the team server: serve, token."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import note, say

if TYPE_CHECKING:
    from loki_memory.server.tokens import NewToken, Token

_LAST_PORT = 65_535
_URL_VARIABLE = "LOKI_DATABASE"
_MISSING = "The team server needs more packages: pip install 'loki-memory[server]'."


class ServerAddress(NamedTuple):
    """Printed by `serve` when it begins to answer."""

    url: str
    repositories: list[str]


class TokenList(NamedTuple):
    """Printed by `token list`."""

    tokens: list[Token]


def _database_option(function: click.decorators.FC) -> click.decorators.FC:
    return click.option(
        "--database",
        required=True,
        envvar=_URL_VARIABLE,
        metavar="URL",
        help=f"postgresql://…; or {_URL_VARIABLE}, which no list of processes shows.",
    )(function)


@command("serve")
@_database_option
@click.option(
    "--repo",
    "repositories",
    multiple=True,
    metavar="[NAME=]PLACE[#BRANCH]",
    help="A repository to fetch: a path or URL. May be repeated.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8420, show_default=True, type=click.IntRange(0, _LAST_PORT), metavar="PORT"
)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where mirrors and replicas are kept; they may be deleted. Default: a cache folder.",
)
@click.option(
    "--poll",
    default=30.0,
    show_default=True,
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="Time between two fetches.",
)
@click.option(
    "--rate",
    "per_minute",
    default=600,
    show_default=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="Requests of one token in a minute.",
)
@click.option(
    "--oauth",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Let in people of an issuer, by rules in a TOML file.",
)
def serve_command(
    session: Session,
    database: str,
    repositories: tuple[str, ...],
    host: str,
    port: int,
    state: Path | None,
    poll: float,
    per_minute: int,
    oauth: Path | None,
) -> None:
    """Serve the memory of many repositories to a team, from PostgreSQL with pgvector.

    The server fetches the repositories itself and reads the memory of their trusted branch; git
    stays the truth, and the database may be dropped. Clients need a token: loki-mem agent token.
    With LOKI_WEBHOOK_SECRET set, a forge that calls /webhook/NAME has it fetched at once.

    \b
    Example:
      loki-mem agent serve --database postgresql://loki@db/loki --repo https://git.example/app.git
    """
    _need_driver()
    from loki_memory.server.projection import RepositorySource
    from loki_memory.server.serving import ServerOptions, serve

    sources = [RepositorySource.parse(text) for text in repositories]
    options = ServerOptions(
        database,
        sources,
        state or _default_state(),
        poll,
        per_minute,
        os.environ.get("LOKI_WEBHOOK_SECRET", ""),
        oauth,
    )
    try:
        listening = socket.create_server((host, port))
    except OSError as error:
        raise click.UsageError(f"{host}:{port} cannot be used: {error.strerror}.") from None
    with listening:
        url = f"http://{host}:{listening.getsockname()[1]}"
        address = ServerAddress(url, [source.name for source in sources])
        session.show(address, lambda: say(f"{url}\nCtrl-C ends it."))
        serve(options, listening, note)


@command("token")
@click.argument("action", type=click.Choice(["add", "list", "revoke", "rotate"]))
@click.argument("name", required=False)
@_database_option
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(["read", "push", "admin"]),
    help="What it may do; may be repeated. Default: read.",
)
@click.option("--repo", "repositories", multiple=True, metavar="NAME", help="Where; repeatable.")
@click.option("--days", default=90, show_default=True, type=click.IntRange(1), metavar="N")
@click.option("--no-expiry", is_flag=True, help="Let it work until it is revoked.")
def token_command(
    session: Session,
    action: str,
    name: str | None,
    database: str,
    scopes: tuple[str, ...],
    repositories: tuple[str, ...],
    days: int,
    no_expiry: bool,
) -> None:
    """Make, list, rotate or revoke the tokens of a team server.

    The secret is printed once, and the database keeps only its hash. A token that is rotated gets a
    new secret; the old one works for ten more minutes.

    \b
    Example:
      loki-mem agent token add ana --scope read --scope push --repo app
    """
    _need_driver()
    from loki_memory.server import tokens
    from loki_memory.server.database import Database

    if action != "list" and not name:
        raise click.UsageError(f"Name the token: loki-mem agent token {action} NAME.")
    opened = Database(database)
    opened.open()
    try:
        with opened.as_owner() as connection:
            if action == "list":
                _show_tokens(session, tokens.listed(connection))
            elif action == "revoke":
                tokens.revoke(connection, name or "")
                say(f"{name} is revoked.")
            elif action == "rotate":
                _show_secret(session, tokens.rotate(connection, name or ""))
            else:
                lasts = None if no_expiry else days
                given = (scopes or ("read",), repositories, lasts)
                _show_secret(session, tokens.make(connection, name or "", *given))
    finally:
        opened.close()


def _show_secret(session: Session, made: NewToken) -> None:
    until = f" until {made.expires[:10]}" if made.expires else ""
    session.show(made, lambda: say(f"{made.secret}\n{made.name} may use it{until}."))


def _show_tokens(session: Session, found: list[Token]) -> None:
    session.show(TokenList(found), lambda: say("\n".join(map(_line, found)) or "None."))


def _line(token: Token) -> str:
    state = "revoked" if token.revoked else f"until {token.expires[:10] or 'revoked'}"
    where = ", ".join(token.repositories) or "no repository"
    return f"{token.name}  {', '.join(token.scopes)}  {where}  {state}"


def _default_state() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "loki-memory-server"


def _need_driver() -> None:
    from importlib.util import find_spec

    if not all(map(find_spec, ("psycopg", "psycopg_pool", "jwt"))):
        raise click.UsageError(_MISSING)
