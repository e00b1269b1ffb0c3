"""Commands that work beside sessions: hook, watch, daemon."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import escaped, note, one_line, plain, print_json, say
from loki_memory.daemon.process import UNTIL_IDLE
from loki_memory.hooks.response import answer, show
from loki_memory.models.text import plural

if TYPE_CHECKING:
    from loki_memory.daemon.background import BackgroundState
    from loki_memory.daemon.watcher import WatcherState
    from loki_memory.workspace import Workspace


class HookText(TypedDict):
    """Text for the session, in the format of harnesses."""

    hookEventName: str
    additionalContext: str


class HookOutput(TypedDict, total=False):
    """Printed by `hook`; an empty object if there is nothing to say."""

    hookSpecificOutput: HookText


@command("hook")
@click.argument("event")
@click.option("--wait", is_flag=True, help="Do the work of SessionEnd here, not in a new process.")
def hook_command(session: Session, event: str, wait: bool) -> None:
    """Answer an event of an agent's session (JSON on stdin).

    Prints memory for the session as JSON that Claude Code and Codex understand, or nothing.
    Exits with 0 whatever happens; errors go to the log in this machine's own zone. Events are
    SessionStart, UserPromptSubmit, PreToolUse, PostToolUse, PostToolUseFailure, Stop, PreCompact,
    SubagentStart, SubagentStop, TaskCompleted and SessionEnd.

    \b
    Example:
      echo '{"prompt": "Add an endpoint"}' | loki-mem hook UserPromptSubmit
    """
    response = answer(event, folder=session.directory, wait=wait)
    if session.json:
        result: HookOutput = json.loads(response.out or "{}")
        print_json(result)
    else:
        show(response)
    if response.code:
        sys.exit(response.code)


_ACTIONS = ("start", "stop", "status", "logs")


class LoggedLine(NamedTuple):
    """Printed by `watch`, one per line."""

    told: str


class DaemonOutput(NamedTuple):
    """Printed by `daemon start`, `stop` and `status`."""

    running: bool
    state: WatcherState | None  # null if none answers


class LogLines(NamedTuple):
    """Printed by `daemon logs`."""

    lines: list[str]


@command("watch")
@click.option("--once", is_flag=True, help="Do all the work that is due, then exit.")
@click.option("--log", "to_log", is_flag=True, help="Write to the log of `daemon logs`.")
@click.option(UNTIL_IDLE, is_flag=True, help="End once nobody asked for `daemon.idle_minutes`.")
def watch_command(session: Session, once: bool, to_log: bool, until_idle: bool) -> None:
    """Look after memory while files change, until interrupted.

    It keeps the index up to date, learns from episodes that agents write as files, ingests sessions
    that have gone quiet, and renders CONTINUITY.md for the last goal. It only adds files: those
    that git tracks are left to `consolidate`.

    \b
    Example:
      loki-mem watch --once
    """
    _refuse_without_sockets()
    from loki_memory.daemon.server import log_to_file
    from loki_memory.workspace import Workspace

    workspace = Workspace(session.open().home.in_background())
    workspace.home.is_long_lived = not once
    log = log_to_file(workspace.layout) if to_log else _printer(session)
    if once:
        _look_once(session, workspace, log)
    else:
        _watch(workspace, log, until_idle=until_idle)


def _refuse_without_sockets() -> None:
    """Say that there is no watcher on systems without Unix sockets."""
    from loki_memory.daemon.protocol import CAN_LISTEN

    if not CAN_LISTEN:
        raise click.UsageError(
            "There is no watcher on this system, and none is needed: `loki-mem ingest` and "
            "`loki-mem consolidate` do its work."
        )


def _printer(session: Session) -> Callable[[str], None]:
    """Return the function that prints a line of the log; with --json, each line is an object."""
    return _print_as_json if session.json else lambda text: say(one_line(text))


def _print_as_json(text: str) -> None:
    import orjson

    say(escaped(orjson.dumps(plain(LoggedLine(text))).decode()))


def _look_once(session: Session, workspace: Workspace, log: Callable[[str], None]) -> None:
    """Handle what is new, then do the work that waits for a quiet workspace."""
    from loki_memory.daemon.background import Background
    from loki_memory.daemon.process import leading

    background = Background(workspace, note if session.json else log, 0.0)
    with leading(workspace.layout):
        for clock in (0.0, math.inf):
            background.round(clock)
    session.show(background.standing, lambda: _print_standing(background.standing))


def _watch(workspace: Workspace, log: Callable[[str], None], *, until_idle: bool) -> None:
    from loki_memory.cli import run
    from loki_memory.daemon.run_command import CommandRunner
    from loki_memory.daemon.server import watch

    idle_minutes = workspace.config.get("daemon.idle_minutes") if until_idle else 0
    watch(workspace, CommandRunner(workspace, run).answer, log, idle_minutes)


@command("daemon")
@click.argument("action", type=click.Choice(_ACTIONS), default="status", required=False)
@click.option(
    "-n", "number", default=20, show_default=True, type=click.IntRange(1), help="Lines of the log."
)
def daemon_command(session: Session, action: str, number: int) -> None:
    """Start, stop or query a `watch` in the background.

    While it runs, it answers recall, context, status and hooks faster. Everything works the same
    without it. A session that begins starts one (`daemon.autostart`), which ends by itself after
    `daemon.idle_minutes` without a question.

    \b
    Example:
      loki-mem daemon status
    """
    _refuse_without_sockets()
    from loki_memory.daemon import server

    workspace = session.open()
    if action == "logs":
        lines = server.last_lines(workspace.layout, number)
        session.show(LogLines(lines), lambda: say("\n".join(map(one_line, lines))))
        return
    watcher = _done(action, workspace)
    session.show(watcher, lambda: _print(watcher))


def _done(action: str, workspace: Workspace) -> DaemonOutput:
    """Perform an action, and return the state of the watcher afterwards."""
    from loki_memory.daemon import server
    from loki_memory.daemon.process import is_watched

    layout = workspace.layout
    if action == "start":
        return DaemonOutput(running=True, state=server.start(layout, os.environ))
    if action == "stop" and server.stop(layout):
        note("stopped")
    return DaemonOutput(is_watched(layout), server.ask(layout, server.STATE))


def _print(watcher: DaemonOutput) -> None:
    if not watcher.running:
        say("not running; `loki-mem daemon start` starts it")
    elif watcher.state is None:
        say("running, but does not answer")
    else:
        _print_state(watcher.state)


def _print_state(state: WatcherState) -> None:
    how = "as files change" if state.gets_events else "at intervals: no file events from the kernel"
    say(f"running since {state.since} as process {state.process}, {how}")
    idle = state.idle_minutes
    say(
        f"started by a session; ends after {plural(idle, 'idle minute')}"
        if idle
        else "started by hand"
    )
    _print_standing(state.standing)
    say(f"answered {plural(state.answered, 'command')}")


def _print_standing(standing: BackgroundState) -> None:
    say(f"learned from {plural(standing.learned, 'episode')}, ingested {standing.ingested:,}")
    if standing.trouble:
        say(f"{click.style('trouble:', fg='red')} {one_line(standing.trouble)}")
