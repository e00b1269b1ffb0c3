"""The command that shows memory in a browser: ui."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import print_json, say

if TYPE_CHECKING:
    from loki_memory.ui.site import UiSite
    from loki_memory.workspace import Workspace

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
    from loki_memory.daemon.file_events import EventListener, FileEvents
    from loki_memory.daemon.watcher import memory_folders

    events = FileEvents()
    listener = EventListener(events, memory_folders(workspace.layout), is_deaf=False)
    listener.attend()
    try:
        yield lambda: events.wait(_A_DAY, _QUIET)
    finally:
        listener.close()
