"""Commands around merging: resolve, install, uninstall."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import note, one_line, plural, remarks, safe, say

if TYPE_CHECKING:
    from loki_memory.installing.git import Deed
    from loki_memory.versioning.resolving import Resolved

_COLOURS = {"left": "red", "removed": "yellow", "told apart": "yellow"}


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
    found = workspace.mend_conflicts(plan_only=plan)
    session.show({"planned": plan, "resolved": found}, lambda: _tell(found, plan))
    remarks(workspace)
    if any(one.how == "left" for one in found):
        raise click.exceptions.Exit(1)


def _tell(found: list[Resolved], planned: bool) -> None:
    for one in found:
        how = click.style(one.how.ljust(10), fg=_COLOURS.get(one.how, "green"))
        said = f": {one_line(one.note)}" if one.note else ""
        say(f"{how}  {safe(one.path)}{said}")
    if not found:
        say("no memory file has a conflict")
    staged = sum(one.staged for one in found)
    if planned and found:
        note("this is a plan; nothing was written")
    elif staged:
        note(
            f"{plural(staged, 'file')} marked as resolved in git's index; commit when you are done"
        )


@command("install")
@click.argument("target")
def install_command(session: Session, target: str) -> None:
    """Install memory into TARGET: git.

    git: records are merged field by field in this clone. It writes to .git/config and to
    .loki/.gitattributes, nowhere else.

    \b
    Example:
      loki-mem install git
    """
    _change(session, target, undo=False)


@command("uninstall")
@click.argument("target")
def uninstall_command(session: Session, target: str) -> None:
    """Remove what `install TARGET` added.

    \b
    Example:
      loki-mem uninstall git
    """
    _change(session, target, undo=True)


def _change(session: Session, target: str, *, undo: bool) -> None:
    from loki_memory.installing.git import TARGETS

    if target not in TARGETS:
        raise click.UsageError(f"{target!r} is not one of: {', '.join(TARGETS)}.")
    workspace = session.open()
    chosen = TARGETS[target]
    deeds = (chosen.uninstall if undo else chosen.install)(workspace)
    session.show({"target": target, "deeds": deeds}, lambda: _tell_deeds(deeds))
    remarks(workspace)


def _tell_deeds(deeds: list[Deed]) -> None:
    for what, where, did in deeds:
        verb = click.style("done" if did else "as it was", fg="green" if did else None)
        say(f"{verb}  {safe(where)}: {one_line(what)}")
