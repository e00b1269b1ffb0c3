"""The command that merges what says the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import note, one_line, plural, progress_bar, remarks, say

if TYPE_CHECKING:
    from loki_memory.consolidation.dedupe import Deduplicated


@command("dedupe")
@click.option("--plan", is_flag=True, help="List what says the same and write nothing.")
def dedupe_command(session: Session, plan: bool) -> None:
    """Merge patterns and facts that say the same in almost the same words.

    The best confirmed one stays as it is. The others are kept, superseded by it, and no longer
    recalled. Beliefs that differ in a value, a name or a negation are never merged.

    \b
    Example:
      loki-mem dedupe --plan
    """
    workspace = session.open()
    with progress_bar("comparing") as workspace.home.progress:
        done = workspace.care.dedupe(plan_only=plan)
    session.show(done, lambda: _print(done))
    if not plan:
        workspace.continuity(if_used=True)
    remarks(workspace)


def _print(done: Deduplicated) -> None:
    for step in done.merged:
        line = f"{one_line(step.title, 90)}: {step.why}"
        say(f"{step.what}  {click.style(step.id, fg='cyan')}  {line}")
    verb = "would change" if done.planned else "changed"
    count = plural(len(done.merged), "memory")
    say(f"{verb} {count}" if done.merged else "nothing says the same as something else")
    if done.planned:
        note("this is a plan; nothing was written")
