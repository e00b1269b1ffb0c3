"""The command that takes in what other systems remember: import."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from loki_memory.cli.common import Session, StoredRecord, command, stored_record
from loki_memory.cli.output import note, one_line, plural, remarks, safe, say

if TYPE_CHECKING:
    from loki_memory.install.edits import InstallStep
    from loki_memory.interop.import_memory import Imported, RefusedMemory

_SHOWN = 40  # lines, about a screen; --json has all


class ImportOutput(NamedTuple):
    """Printed by `import`."""

    source: str
    planned: bool
    files: list[str]
    facts: list[StoredRecord]  # new ones
    known: int
    refused: list[RefusedMemory]
    written_back: InstallStep | None


@command("import")
@click.argument("source")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--scope", type=click.Choice(["project", "local"]), default="project")
@click.option("--write-back", is_flag=True, help="Then list our memories in its MEMORY.md.")
@click.option("--plan", is_flag=True, help="Say what would be done and write nothing.")
def import_command(
    session: Session,
    source: str,
    path: Path | None,
    scope: str,
    write_back: bool,
    plan: bool,
) -> None:
    """Take in what another system remembers, as facts.

    SOURCE is claude-memory: the MEMORY.md and topic files that Claude Code keeps for this
    repository, or those in PATH. Facts that are known already, or were removed, stay as they are.
    Imported facts are recalled, but not injected until a user or an agent remembers or corrects
    them.

    \b
    Example:
      loki-mem import claude-memory README.md --plan
    """
    from loki_memory.interop.import_memory import SOURCES

    if source not in SOURCES:
        raise click.UsageError(f"{source!r} is not one of: {', '.join(SOURCES)}.")
    workspace = session.open()
    found = workspace.interop.import_memory(source, path, scope, plan)
    step = workspace.interop.write_back(source, path, plan) if write_back else None
    facts = [stored_record(workspace, fact) for fact in found.facts]
    result = ImportOutput(
        found.source, found.planned, found.files, facts, found.known, found.refused, step
    )
    session.show(result, lambda: _print(found, step))
    remarks(workspace)


def _print(found: Imported, step: InstallStep | None) -> None:
    for fact in found.facts[:_SHOWN]:
        say(f"{click.style(fact.id, fg='cyan')}  {one_line(fact.title(), 100)}")
    if len(found.facts) > _SHOWN:
        say(f"… and {len(found.facts) - _SHOWN} more; --json has all")
    for where, text, why in found.refused:
        say(f"{click.style('refused', fg='yellow')}  {safe(where)}: {one_line(text, 60)}: {why}")
    files, new = plural(len(found.files), "file"), plural(len(found.facts), "new fact")
    say(f"{new} in {files}, {found.known:,} known, {len(found.refused):,} refused")
    if step is not None:
        say(f"{'done' if step.did else 'as it was'}  {safe(step.where)}: {one_line(step.what)}")
    if found.planned:
        note("this is a plan; nothing was written")
