"""The command by which a user trusts what a clone brought."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import note, one_line, plural, remarks, say

if TYPE_CHECKING:
    from loki_memory.browse.trust import BroughtMemories, BroughtMemory
    from loki_memory.workspace import Workspace

_SHOWN = 20  # suspicious texts, about a screen; --json has all


@command("trust")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--revoke", is_flag=True, help="Tell agents nothing of it any more.")
def trust_command(session: Session, yes: bool, revoke: bool) -> None:
    """Show what came with this clone, and let agents be told of it.

    Until you trust a workspace on this machine, hooks and CONTINUITY.md say nothing of its memory
    unasked; `recall` and `list` show all of it. `init` and `install` trust it too. The exit code
    is 1 if you do not trust it.

    \b
    Example:
      loki-mem trust --yes
    """
    workspace = session.open()
    workspace.home.ensure("current")
    found = workspace.browse.brought()
    if not session.json:
        print_brought(found)
    if revoke:
        workspace.home.note_trust(is_trusted=False)
    elif not found.trusted and (yes or (not session.json and _agrees())):
        workspace.home.note_trust(is_trusted=True)
        workspace.history.renew_review()
    found = workspace.browse.brought()
    session.show(found, lambda: _print_verdict(found))
    remarks(workspace)
    if not found.trusted and not revoke:
        raise click.exceptions.Exit(1)


def note_what_came(workspace: Workspace) -> None:
    """Say how many memories a command makes trusted that came with a clone."""
    if workspace.home.trust().is_trusted:
        return
    workspace.home.ensure("current")
    number = sum(workspace.browse.brought().counts.values())
    if number:
        them = "it" if number == 1 else "them"
        came = (
            f"{plural(number, 'memory')} came with this folder, and agents are told of {them} now"
        )
        note(f"{came}; `loki-mem trust --revoke` takes that back")


def _agrees() -> bool:
    """Ask on a terminal; elsewhere nobody can agree."""
    if not sys.stdin.isatty():
        note("this is no terminal: `loki-mem trust --yes` trusts it")
        return False
    return click.confirm("Shall agents be told of it?", default=False, err=True)


def _print_verdict(found: BroughtMemories) -> None:
    if found.trusted:
        say(click.style(f"trusted {one_line(found.why)}", fg="green"))
    else:
        say(click.style(f"not trusted: {one_line(found.why)}", fg="yellow"))


def print_brought(found: BroughtMemories) -> None:
    """Print what came with a clone: counts, some titles, and what is suspicious."""
    say(click.style(one_line(found.workspace), bold=True))
    if found.remote:
        say(f"  from      {one_line(found.remote)}")
    kinds = (plural(number, kind) for kind, number in found.counts.items())
    say(f"  memory    {', '.join(kinds) or 'none'}")
    for memory in found.titles:
        say(_line("such as", memory))
    for memory in found.suspicious[:_SHOWN]:
        say(click.style(_line("look at", memory), fg="red"))
    if len(found.suspicious) > _SHOWN:
        say(f"  look at   {len(found.suspicious) - _SHOWN} more; --json has all")
    if found.unreviewed:
        are = "is" if found.unreviewed == 1 else "are"
        say(f"  review    {found.unreviewed} of these {are} not reviewed, and not told either way")


def _line(label: str, memory: BroughtMemory) -> str:
    return f"  {label}   {memory.id}  {one_line(memory.text, 100)}"
