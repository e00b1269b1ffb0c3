"""The command that serves memory to agents: mcp."""

from __future__ import annotations

import gc
import os
from typing import NamedTuple

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import note, print_json
from loki_memory.workspace import Workspace

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
