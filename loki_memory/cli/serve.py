"""Commands that serve until they are interrupted: mcp, ui, serve, and the tokens of serve."""

from __future__ import annotations

import gc
import os
import socket
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import note, print_json, say
from loki_memory.workspace import Workspace

if TYPE_CHECKING:
    from loki_memory.server.database import Connection
    from loki_memory.server.tokens import NewToken, Token
    from loki_memory.ui.site import UiSite

TOOL_SETS = ("core", "lore", "lynkr", "claude-flow", "loki")
_ANY_PORT, _LAST_PORT = 0, 65_535


class StdioEntry(NamedTuple):
    """An entry of a client's configuration: a program that it starts."""

    command: str
    args: list[str]


class HttpEntry(NamedTuple):
    """An entry of a client's configuration: an address."""

    type: str
    url: str


class ClientConfiguration(NamedTuple):
    """Printed by `mcp`: an entry for the configuration of an MCP client."""

    mcpServers: dict[str, StdioEntry | HttpEntry]  # noqa: N815 - as clients spell it


@command("mcp")
@click.option(
    "--tools",
    "tool_set",
    type=click.Choice(TOOL_SETS),
    default="core",
    show_default=True,
    help="Our tools, or those of another memory system under its names.",
)
@click.option(
    "--http",
    "port",
    is_flag=False,
    flag_value=_ANY_PORT,
    type=click.IntRange(_ANY_PORT, _LAST_PORT),
    metavar="[PORT]",
    help="Serve over HTTP on this machine; without PORT, on a free one.",
)
@click.option(
    "--within",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="Let calls name projects in this folder too; may be repeated.",
)
def mcp_command(session: Session, tool_set: str, port: int | None, within: tuple[str, ...]) -> None:
    """Serve memory to agents over the Model Context Protocol.

    The server talks over standard input and output or, with --http, to several clients at once.
    With --json nothing is served; the entry for a client's configuration is printed.

    \b
    Example:
      loki-mem mcp --tools lore
    """
    if session.json:
        entry = _entry(session.directory, tool_set, port, within)
        print_json(ClientConfiguration({"loki": entry}))
        return
    if port is None:
        gc.disable()  # the SDK makes thousands of classes that stay: saves a seventh of the start
        from loki_memory.mcp.server import serve_stdio

        serve_stdio(tool_set, session.directory, within)
    else:
        _serve_http(tool_set, session.directory, port, within)


def _entry(
    project: str | None, tool_set: str, port: int | None, within: tuple[str, ...]
) -> StdioEntry | HttpEntry:
    """Return the entry of a client's configuration that reaches the server."""
    if port == _ANY_PORT:
        raise click.UsageError("Name the port for clients: --http PORT.")
    if port is not None:
        return HttpEntry("http", f"http://127.0.0.1:{port}/mcp")
    place = [] if project is None else ["-C", os.path.abspath(project)]
    tools = [] if tool_set == TOOL_SETS[0] else ["--tools", tool_set]
    added = [word for folder in within for word in ("--within", os.path.abspath(folder))]
    return StdioEntry("loki-mem", [*place, "mcp", *tools, *added])


def _serve_http(tool_set: str, project: str | None, port: int, within: tuple[str, ...]) -> None:
    from loki_memory.mcp.http import listen, serve_http

    try:
        listening = listen(port)
    except OSError as error:
        raise click.UsageError(f"Port {port} cannot be used: {error.strerror}.") from None
    with listening:
        token = Workspace.user().layout.loki / "mcp-token"
        serve_http(listening, tool_set, project, token, note, within)


_ANY_PORT, _LAST_PORT = 0, 65_535
_A_DAY, _QUIET = 86_400.0, 0.2  # seconds to wait for a change, and for the end of a burst


class UiAddress(NamedTuple):
    """Printed by `ui` when it begins to serve."""

    url: str  # opens one browser, once
    port: int


@command("ui")
@click.option(
    "--port",
    default=_ANY_PORT,
    type=click.IntRange(_ANY_PORT, _LAST_PORT),
    metavar="PORT",
    help="Where to serve; default: a free port.",
)
@click.option("--no-open", is_flag=True, help="Print the address and open no browser.")
@click.option("--read-only", is_flag=True, help="Refuse every change.")
def ui_command(session: Session, port: int, no_open: bool, read_only: bool) -> None:
    """Show memory in a browser, on this machine only.

    The page shows what agents are told and why, beliefs with their evidence and history, and what
    waits for review. The address that is printed opens one browser, once.

    \b
    Example:
      loki-mem ui --read-only
    """
    from loki_memory.ui.server import listen, make_site, serve

    workspace = session.open(reviews=True)
    workspace.home.is_long_lived = True
    try:
        listening = listen(port)
    except OSError as error:
        raise click.UsageError(f"Port {port} cannot be used: {error.strerror}.") from None
    with listening:
        state = _watcher_state(workspace)
        number = listening.getsockname()[1]
        site = make_site(workspace, number, read_only=read_only, watcher_state=state)
        with _file_events(workspace) as wait:
            site.broadcast.follow(lambda: wait() and _take_in(site))
            _announce(session, UiAddress(site.secrets.link(), number), opens=not no_open)
            serve(site, listening)


def _take_in(site: UiSite) -> bool:
    """Read what changed, in the thread of the pages, so that they show it."""
    from loki_memory.ui.site import recompute

    site.worker.submit(site.workspace.home.ensure, "read").result()
    recompute(site.workspace)
    return True


def _announce(session: Session, address: UiAddress, *, opens: bool) -> None:
    if session.json:
        print_json(address)
    else:
        say(f"{address.url}\nCtrl-C ends it.")
    if opens:
        webbrowser.open(address.url)


def _watcher_state(workspace: Workspace) -> Callable[[], str]:
    """The function that tells what the watcher of a workspace does."""
    from loki_memory.daemon import server
    from loki_memory.daemon.process import is_watched

    def state() -> str:
        if not is_watched(workspace.layout):
            return "stopped"
        found = server.ask(workspace.layout, server.STATE)
        return found.standing.doing if found else "idle"

    return state


@contextmanager
def _file_events(workspace: Workspace) -> Iterator[Callable[[], bool]]:
    """Listen to the files of memory; the function waits until they change."""
    from loki_memory.daemon.watcher import EventListener, FileEvents, memory_folders

    events = FileEvents()
    listener = EventListener(events, memory_folders(workspace.layout), polls_only=False)
    listener.renew()
    try:
        yield lambda: events.wait(_A_DAY, _QUIET)
    finally:
        listener.close()


_LAST_PORT = 65_535
_URL_VARIABLE = "LOKI_DATABASE"
_MISSING = "The team server needs more packages: pip install 'loki-memory[server]'."


class ServerAddress(NamedTuple):
    """Printed by `serve` when it begins to answer."""

    url: str
    repositories: list[str]


class TokenList(NamedTuple):
    """Printed by `token list`, `grant` and `revoke`."""

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
    """Serve the memory of many repositories to a team.

    The server fetches the repositories itself and reads the memory of their trusted branch into
    PostgreSQL with pgvector; git stays the truth, and the database may be dropped. Clients need a
    token: loki-mem token. With LOKI_WEBHOOK_SECRET set, a forge that calls /webhook/NAME has
    it fetched at once.

    \b
    Example:
      loki-mem serve --database postgresql://loki@db/loki --repo https://git.example/app.git
    """
    _need_driver()
    from loki_memory.server.projection import RepositorySource
    from loki_memory.server.serving import ServerOptions, serve

    options = ServerOptions(
        database,
        RepositorySource.parse_all(repositories),
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
        address = ServerAddress(url, [source.name for source in options.sources])
        begun = partial(session.show, address, lambda: say(f"{url}\nCtrl-C ends it."))
        serve(options, listening, begun, note)


@command("token")
@click.argument("action", type=click.Choice(["add", "list", "grant", "revoke", "rotate"]))
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
    """Make and change the tokens of a team server: add, list, grant, revoke, rotate.

    The secret is printed once, and the database keeps only its hash. `grant` lets a token reach
    more repositories, `revoke` takes it back, with --repo only there. A token that is rotated gets
    a new secret; the old one works for ten more minutes.

    \b
    Example:
      loki-mem token add ana --scope read --scope push --repo app
      loki-mem token grant ana --repo shop
    """
    _need_driver()
    from loki_memory.server import tokens

    if action != "list" and not name:
        raise click.UsageError(f"Name the token: loki-mem token {action} NAME.")
    if action == "grant" and not repositories:
        raise click.UsageError("Say where it may go: loki-mem token grant NAME --repo NAME.")
    made = None
    with _as_owner(database) as connection:
        if action == "revoke":
            tokens.revoke(connection, name or "", repositories)
        elif action == "grant":
            tokens.grant(connection, name or "", repositories)
        elif action == "rotate":
            made = tokens.rotate(connection, name or "")
        elif action == "add":
            given = (scopes or ("read",), repositories, None if no_expiry else days)
            made = tokens.make(connection, name or "", *given)
        found = [token for token in tokens.listed(connection) if name in {None, token.name}]
        unserved = tokens.unserved(connection, repositories)
    if made:
        _show_secret(session, made)
    else:
        session.show(TokenList(found), lambda: say("\n".join(map(_token_line, found)) or "None."))
    for repository in unserved:
        note(f"nothing of {repository} was fetched yet; `loki-mem serve --repo` names what is")


@contextmanager
def _as_owner(database: str) -> Iterator[Connection]:
    from loki_memory.server.database import Database

    opened = Database(database)
    opened.open()
    try:
        with opened.as_owner() as connection:
            yield connection
    finally:
        opened.close()


def _show_secret(session: Session, made: NewToken) -> None:
    """Print the secret alone, so that a script can keep it; what it is goes beside."""
    session.show(made, lambda: say(made.secret))
    note(f"{made.name} may use it {f'until {made.expires[:10]}' if made.expires else 'for good'}")


def _token_line(token: Token) -> str:
    state = "revoked" if token.revoked else f"until {token.expires[:16] or 'revoked'}"
    where = ", ".join(token.repositories) or "no repository"
    return f"{token.name}  {', '.join(token.scopes)}  {where}  {state}"


def _default_state() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "loki-memory-server"


def _need_driver() -> None:
    from importlib.util import find_spec

    if not all(map(find_spec, ("psycopg", "psycopg_pool", "jwt"))):
        raise click.UsageError(_MISSING)
