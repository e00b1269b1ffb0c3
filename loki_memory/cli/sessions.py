"""Commands about what happens unasked in sessions: pause, resume, injections."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import one_line, plural, say

if TYPE_CHECKING:
    from loki_memory.injection.log import Injection

_WIDTH = 100


@command("pause")
@click.option("--for", "span", metavar="SPAN", help="How long: 30m, 2h, 1d; without it, on and on.")
def pause_command(session: Session, span: str | None) -> None:
    """Stop capturing sessions and telling them what is known.

    Hooks say and note nothing and `ingest` takes nothing in, on this machine, until the pause is
    over or `resume` ends it. What is asked for (`recall`, `context`) is answered as ever.

    \b
    Example:
      loki-mem pause --for 2h
    """
    pause = session.open().pause(span)
    told = f"until {pause.until}" if pause.until else "until `loki-mem resume`"
    session.show(pause, lambda: say(f"paused {told}"))


@command("resume")
def resume_command(session: Session) -> None:
    """Capture sessions again after a pause.

    \b
    Example:
      loki-mem resume
    """
    was_paused = session.open().resume()
    told = "sessions are captured again" if was_paused else "nothing was paused"
    session.show({"was_paused": was_paused}, lambda: say(told))


@command("injections")
@click.argument("of_session", metavar="[SESSION]", required=False)
@click.option("-n", "--limit", default=20, show_default=True, type=click.IntRange(1), help="Most.")
def injections_command(session: Session, of_session: str | None, limit: int) -> None:
    """Show what sessions were told unasked, when and why.

    The latest come last. SESSION is an id, or how it begins.

    \b
    Example:
      loki-mem injections
    """
    found = session.open().injections(of_session)[-limit:]
    session.show({"injections": found}, lambda: _tell(found))


def _tell(found: list[Injection]) -> None:
    for one in found:
        who = f"session {one.session}" if one.session else "no session named"
        say(f"{one.at}  {one.occasion}  {one_line(who)}  {plural(one.tokens, 'token')}")
        if one.why:
            say(click.style(f"    for: {one_line(one.why, _WIDTH)}", dim=True))
        for told in one.memories:
            title = one_line(told.title, _WIDTH) if told.title else "(gone)"
            say(f"    {click.style(told.id, fg='cyan')}  {title}")
    if not found:
        say("no session was told anything")
