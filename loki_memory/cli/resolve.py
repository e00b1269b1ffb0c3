"""The command that mends what a merge left: resolve."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import note, one_line, plural, remarks, safe, say

if TYPE_CHECKING:
    from loki_memory.history.resolve import Resolved

_COLOURS = {"left": "red", "removed": "yellow", "told apart": "yellow"}


class ResolveOutput(NamedTuple):
    """Printed by `resolve`."""

    planned: bool
    resolved: list[Resolved]


@command("resolve")
@click.option("--plan", is_flag=True, help="Say what would be done and write nothing.")
def resolve_command(session: Session, plan: bool) -> None:
    """Mend memory files that a merge left with conflicts.

    Works where the merge driver is not installed, and after merges on a forge. Files that git
    holds as unmerged are marked as resolved; nothing is committed. The exit code is 1 if a file
    is left to you.

    \b
    Example:
      loki-mem resolve --plan
    """
    workspace = session.open()
    found = workspace.history.resolve(plan_only=plan)
    session.show(ResolveOutput(plan, found), lambda: _print(found, plan))
    remarks(workspace)
    if any(file.how == "left" for file in found):
        raise click.exceptions.Exit(1)


def _print(found: list[Resolved], planned: bool) -> None:
    for file in found:
        how = click.style(file.how.ljust(10), fg=_COLOURS.get(file.how, "green"))
        remark = f": {one_line(file.note)}" if file.note else ""
        say(f"{how}  {safe(file.path)}{remark}")
    if not found:
        say("no memory file has a conflict")
    staged = sum(file.staged for file in found)
    if planned and found:
        note("this is a plan; nothing was written")
    elif staged:
        note(
            f"{plural(staged, 'file')} marked as resolved in git's index; commit when you are done"
        )
