"""The command that verifies what is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import note, one_line, plural, progress_bar, remarks, say

if TYPE_CHECKING:
    from loki_memory.integrity.findings import IntegrityFinding
    from loki_memory.integrity.verify import Stale, Verified

_SHOWN = 40  # lines of one kind, about a screen; --json has all


@command("verify")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--adopt", is_flag=True, help="Accept records as they are: these IDs, or all.")
@click.option("--fix", is_flag=True, help="Renew citations whose code still says the same.")
def verify_command(session: Session, ids: tuple[str, ...], adopt: bool, fix: bool) -> None:
    """Find what is lost or damaged, what was edited by hand, and stale citations.

    Compares every record with the chain of writes, the chain with the anchors in commits, and
    citations with the code. The exit code is 1 while something is missing or damaged; edits by
    hand stay in use, and a commit adopts them.

    \b
    Example:
      loki-mem verify --adopt
    """
    if ids and not adopt:
        raise click.UsageError("ids are for --adopt; without it everything is verified.")
    workspace = session.open()
    with progress_bar("verifying") as workspace.home.progress:
        found = workspace.history.verify(adopt=ids if adopt else None, fix=fix)
    session.show(found, lambda: _print(found))
    remarks(workspace)
    if not found.well:
        raise click.exceptions.Exit(1)


def _print(found: Verified) -> None:
    for path in found.adopted[:_SHOWN]:
        say(f"{click.style('adopted', fg='cyan')}  {one_line(path)}")
    by_hand = [finding for finding in found.findings if finding.is_by_hand]
    others = [finding for finding in found.findings if not finding.is_by_hand]
    for finding in others[:_SHOWN]:
        say(_line(finding))
    if len(others) > _SHOWN:
        say(f"… and {len(others) - _SHOWN} more; --json has all")
    _print_by_hand(by_hand)
    for stale in found.stale[:_SHOWN]:
        _print_stale(stale)
    chain = f"{plural(found.lines, 'line')} by {plural(found.writers, 'writer')}"
    say(f"{plural(found.records, 'record')}, {chain}, {plural(found.anchors, 'anchor')}")
    if not found.findings:
        say(click.style("every record is as it was written", fg="green"))
    elif others:
        note("restore the files, or accept them as they are: loki-mem verify --adopt ID")


def _line(found: IntegrityFinding) -> str:
    last = f"; last good: {found.writer}, line {found.seq}" if found.seq else ""
    named = f"{found.id}  " if found.id else ""
    line = f"{named}{found.path}: {found.said}{last}"
    return f"{click.style(found.what, fg='red')}  {one_line(line)}"


def _print_by_hand(found: list[IntegrityFinding]) -> None:
    """Print one line for all records that were written or edited by hand: that is no alarm."""
    if not found:
        return
    examples = ", ".join(finding.id or finding.path for finding in found[:3])
    more = ", …" if len(found) > 3 else ""  # noqa: PLR2004 - as many as are named
    line = f"{plural(len(found), 'record')} ({examples}{more}); a commit adopts them"
    say(f"{click.style('by hand', fg='yellow')}  {one_line(line)}")


def _print_stale(stale: Stale) -> None:
    what = click.style("renewed" if stale.renewed else "stale", fg="yellow")
    cited = f"{stale.id}  cites {', '.join(stale.cites)}, changed since"
    say(f"{what}  {one_line(cited)}")
