"""Commands about capture and injection in sessions: pause, resume, injections."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import one_line, plural, say

if TYPE_CHECKING:
    from loki_memory.injection.told import Injection

_WIDTH = 100


class ResumedCapture(NamedTuple):
    """Printed by `resume`."""

    was_paused: bool


class Injections(NamedTuple):
    """Printed by `injections`."""

    injections: list[Injection]  # the latest last


@command("pause")
@click.option(
    "--for", "span", metavar="SPAN", help="How long: 30m, 2h, 1d. Default: until `resume`."
)
def pause_command(session: Session, span: str | None) -> None:
    """Stop capturing sessions and injecting memory into them.

    Until the pause is over or `resume` ends it, hooks on this machine say and record nothing, and
    `ingest` reads nothing. `recall` and `context` still answer.

    \b
    Example:
      loki-mem pause --for 2h
    """
    pause = session.open().sessions.pause(span)
    end = f"until {pause.until}" if pause.until else "until `loki-mem resume`"
    session.show(pause, lambda: say(f"paused {end}"))


@command("resume")
def resume_command(session: Session) -> None:
    """Capture sessions again after a pause.

    \b
    Example:
      loki-mem resume
    """
    was_paused = session.open().sessions.resume()
    line = "sessions are captured again" if was_paused else "nothing was paused"
    session.show(ResumedCapture(was_paused), lambda: say(line))


@command("injections")
@click.argument("of_session", metavar="[SESSION]", required=False)
@click.option(
    "-n", "--limit", default=20, show_default=True, type=click.IntRange(1), help="How many."
)
def injections_command(session: Session, of_session: str | None, limit: int) -> None:
    """Show what was injected into sessions, when and why.

    The latest come last. SESSION is an id, or the beginning of one.

    \b
    Example:
      loki-mem injections
    """
    found = session.open().browse.injections(of_session)[-limit:]
    session.show(Injections(found), lambda: _print(found))


def _print(found: list[Injection]) -> None:
    for injection in found:
        who = f"session {injection.session}" if injection.session else "no session named"
        cost = plural(injection.tokens, "token")
        say(f"{injection.at}  {injection.occasion}  {one_line(who)}  {cost}")
        if injection.why:
            say(click.style(f"    for: {one_line(injection.why, _WIDTH)}", dim=True))
        for memory in injection.memories:
            title = one_line(memory.title, _WIDTH) if memory.title else "(gone)"
            say(f"    {click.style(memory.id, fg='cyan')}  {title}")
    if not found:
        say("nothing was injected into any session")
