"""The command that learns: consolidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from loki_memory.cli.commit import tell_commit
from loki_memory.cli.common import Session, command
from loki_memory.cli.output import note, one_line, plural, progress_bar, remarks, say

if TYPE_CHECKING:
    from loki_memory.consolidation.run import Report

_SHOWN = 40  # lines: more than a screen nobody reads; --json has all


@command("consolidate")
@click.option("--plan", is_flag=True, help="Say what would be done and write nothing.")
@click.option("--since", metavar="WHEN", help="Only what episodes from then on touch: 24h, DATE.")
@click.option("--day", metavar="DATE", help="As of this day instead of the newest episode's.")
def consolidate_command(session: Session, plan: bool, since: str | None, day: str | None) -> None:
    """Learn from the episodes: mistakes, patterns, skills and links.

    Needs no language model, and run again it changes nothing. In a git repository, what was
    learned is committed, and nothing else is.

    \b
    Example:
      loki-mem consolidate --plan
    """
    workspace = session.open()
    with progress_bar("consolidating") as workspace.progress:
        report = workspace.consolidate(day, plan, since)
    session.show({**report._asdict(), "counts": report.counts()}, lambda: _tell(report))
    if not plan:
        for deed in workspace.keep_skills_in_step():
            note(f"{deed.where}: {deed.what}")
        tell_commit(workspace.commit())
    remarks(workspace)


def _tell(report: Report) -> None:
    for step in report.steps[:_SHOWN]:
        rests = f"  ({plural(len(step.evidence), 'episode')})" if step.evidence else ""
        told = f"{one_line(step.title, 100)}{rests}"
        if step.why:
            told += f": {one_line(step.why, 100)}"
        say(f"{step.what.ljust(12)}  {click.style(step.id, fg='cyan')}  {told}")
    if len(report.steps) > _SHOWN:
        say(f"… and {len(report.steps) - _SHOWN} more; --json has all")
    if not report.steps:
        say(f"nothing new in {plural(report.episodes, 'episode')}")
    elif report.planned:
        note("this is a plan; nothing was written")
