"""Commands that move memory: import from other systems, export and import of this machine's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from loki_memory.cli.common import Session, StoredRecord, command, stored_record
from loki_memory.cli.output import note, one_line, plural, remarks, safe, say, size

if TYPE_CHECKING:
    from loki_memory.ingest.local_archive import Exported, Merged
    from loki_memory.install.edits import InstallStep
    from loki_memory.interop.import_memory import Imported, RefusedMemory

_SHOWN = 40  # lines, about a screen; --json has all


class ImportedArchive(NamedTuple):
    """Printed by `import` of an exported file."""

    added: dict[str, int]  # new records by kind
    joined: list[str]  # candidates that got more evidence
    known: int
    refused: list[str]
    uses: int  # memories with uses of the other machine
    planned: bool


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
@click.option(
    "--scope",
    type=click.Choice(["project", "local"]),
    default="project",
    show_default=True,
    help="Share the facts by git, or keep them on this machine.",
)
@click.option("--write-back", is_flag=True, help="Then list our memories in its MEMORY.md.")
@click.option("--other-project", is_flag=True, help="Take in a FILE of another project.")
@click.option("--plan", is_flag=True, help="Say what would be done and write nothing.")
def import_command(
    session: Session,
    source: str,
    path: Path | None,
    scope: str,
    write_back: bool,
    other_project: bool,
    plan: bool,
) -> None:
    """Import what another memory system knows, or an exported FILE.

    Such a FILE, made by `loki-mem export`, holds what existed on one machine only. It is merged
    into this machine's own zone; what is here stays. Import only files that you exported yourself.

    Otherwise SOURCE is claude-memory: the MEMORY.md and topic files that Claude Code keeps for this
    repository, or those in PATH. Facts that are known already, or that were removed, are left as
    they are. Imported facts are recalled when somebody asks; they are not injected until a user or
    an agent remembers or corrects them.

    \b
    Example:
      loki-mem import claude-memory README.md --plan
    """
    from loki_memory.interop.import_memory import SOURCES

    if source not in SOURCES:
        if not os.path.isfile(source):
            raise click.UsageError(f"{source!r} is no file, and not one of: {', '.join(SOURCES)}.")
        _import_file(session, source, other_project, plan)
        return
    workspace = session.open()
    found = workspace.interop.import_memory(source, path, scope, plan)
    step = workspace.interop.write_back(source, path, plan) if write_back else None
    facts = [stored_record(workspace, fact) for fact in found.facts]
    result = ImportOutput(
        found.source, found.planned, found.files, facts, found.known, found.refused, step
    )
    session.show(result, lambda: _print(found, step))
    remarks(workspace)


def _import_file(session: Session, file: str, other_project: bool, plan: bool) -> None:
    workspace = session.open()
    done = workspace.sessions.import_local(file, other_project, plan)
    session.show(ImportedArchive(*done, planned=plan), lambda: _print_merged(done, plan))
    remarks(workspace)


def _print_merged(done: Merged, plan: bool) -> None:
    for reason in done.refused[:_SHOWN]:
        say(f"{click.style('refused', fg='yellow')}  {one_line(reason, 160)}")
    came = ", ".join(plural(number, f"new {kind}") for kind, number in sorted(done.added.items()))
    say(came or "nothing new")
    if done.joined:
        say(f"{plural(len(done.joined), 'candidate')} got more evidence")
    if done.uses:
        say(f"{plural(done.uses, 'memory')} with uses of the other machine")
    say(f"{done.known:,} known, {len(done.refused):,} refused")
    if plan:
        note("this is a plan; nothing was written")


@command("export")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--local", is_flag=True, required=True, help="What exists on this machine only.")
def export_command(session: Session, file: Path, local: bool) -> None:  # noqa: ARG001 - it must be said
    """Write what exists on this machine only to FILE.

    That is: captured sessions, candidates, private notes, and how often memories were used.
    `loki-mem import FILE` merges them on another machine or into another clone. The file holds
    private text; only you can read it. Shared memory travels with git.

    \b
    Example:
      loki-mem export --local ../todo-api.jsonl
    """
    workspace = session.open()
    done = workspace.sessions.export_local(file)
    session.show(done, lambda: _print_exported(done))
    note("the file holds private text of your sessions; keep it to yourself")
    remarks(workspace)


def _print_exported(done: Exported) -> None:
    kinds = ", ".join(plural(number, kind) for kind, number in done.records.items())
    uses = f", uses of {plural(done.uses, 'memory')}" if done.uses else ""
    say(f"{kinds or 'no records'}{uses}")
    say(f"{safe(done.path)}  {size(done.bytes)}")


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
