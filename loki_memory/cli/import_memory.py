"""The command that takes memory in: of other systems, and what was exported."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from loki_memory.cli.common import Session, StoredRecord, command, stored_record
from loki_memory.cli.output import note, one_line, plural, progress_bar, remarks, safe, say

if TYPE_CHECKING:
    from loki_memory.ingest.local_archive import Merged
    from loki_memory.install.edits import InstallStep
    from loki_memory.interop.import_memory import Imported
    from loki_memory.interop.sources.source import RefusedMemory
    from loki_memory.workspace import Workspace

_SHOWN = 40  # lines, about a screen; --json has all
_SAMPLES = 3  # records that a plan shows


class ImportedArchive(NamedTuple):
    """Printed by `import` of a file of `export --local`."""

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
    records: list[StoredRecord]  # new ones
    known: int
    refused: list[RefusedMemory]
    left_out: dict[str, int]  # fields that have no place here, with how often they were met
    written_back: InstallStep | None


@command("import")
@click.argument("source", type=click.Path())
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--from", "name", metavar="NAME", help="The system, where PATH does not tell.")
@click.option(
    "--scope",
    type=click.Choice(["project", "local"]),
    help="Share all by git, or keep all on this machine; by default only episodes stay here.",
)
@click.option("--as-is", is_flag=True, help="PATH is your own export: keep origins, rejections.")
@click.option("--write-back", is_flag=True, help="Then list our memories in its MEMORY.md.")
@click.option("--other-project", is_flag=True, help="Take in memory of other projects, too.")
@click.option("--plan", is_flag=True, help="Show counts and samples and write nothing.")
def import_command(
    session: Session,
    source: str,
    path: Path | None,
    name: str | None,
    scope: str | None,
    as_is: bool,
    write_back: bool,
    other_project: bool,
    plan: bool,
) -> None:
    """Import the memory of another system, or an exported file.

    SOURCE is a file or folder, which says by itself what it is, or the name of a system:
    basic-memory, beads, claude-flow, claude-mem, claude-memory, loki, lore, lynkr, mcp-memory,
    mem0, okf, rules (CLAUDE.md, AGENTS.md, Cursor, Copilot), serena. Of a system that is named,
    PATH is its file or folder; else its usual places are tried.

    What is known already, or was removed, is left as it is. Imported memory is recalled when
    somebody asks; it is not injected until a user or an agent remembers or corrects it. Databases
    of others are opened for reading only. What cannot be mapped is listed.

    A file made by `loki-mem export --local` is merged into this machine's own zone; import only
    files that you exported yourself.

    \b
    Example:
      loki-mem import rules README.md --plan
    """
    name, path = _place(source, path, name or "")
    workspace = session.open()
    if not name and path is not None and workspace.sessions.is_local_archive(path):
        _import_file(session, workspace, str(path), other_project, plan)
        return
    with progress_bar("importing") as workspace.home.progress:
        found = workspace.interop.import_memory(
            name, path, scope=scope or "", plan_only=plan, every_project=other_project, as_is=as_is
        )
    step = workspace.interop.write_back(found.source, path, plan) if write_back else None
    session.show(_output(workspace, found, step), lambda: _print(found, step))
    remarks(workspace)


def _place(source: str, path: Path | None, name: str) -> tuple[str, Path | None]:
    """The name of the system, empty if PATH has to tell, and its file or folder."""
    from loki_memory.interop import import_sources

    known = import_sources()
    if source in known and not name:
        return source, path
    if not os.path.exists(source):
        raise click.UsageError(f"{source!r} is no file, and not one of: {', '.join(known)}.")
    return name, Path(source)


def _output(workspace: Workspace, found: Imported, step: InstallStep | None) -> ImportOutput:
    records = [stored_record(workspace, record) for record in found.records]
    return ImportOutput(
        found.source,
        found.planned,
        found.files,
        records,
        found.known,
        found.refused,
        found.left_out,
        step,
    )


def _import_file(
    session: Session, workspace: Workspace, file: str, other_project: bool, plan: bool
) -> None:
    with progress_bar("importing") as workspace.home.progress:
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


def _print(found: Imported, step: InstallStep | None) -> None:
    shown = _SAMPLES if found.planned else _SHOWN
    for record in found.records[:shown]:
        say(f"{click.style(record.id, fg='cyan')}  {one_line(record.title(), 100)}")
    if len(found.records) > shown:
        say(f"… and {len(found.records) - shown:,} more; --json has all")
    for refused in found.refused[:_SHOWN]:
        say(f"{click.style('refused', fg='yellow')}  {_refusal(refused)}")
    if len(found.refused) > _SHOWN:
        say(f"… and {len(found.refused) - _SHOWN:,} more; --json has all")
    if found.left_out:
        fields = (f"{safe(name)} ({count:,})" for name, count in found.left_out.items())
        say(f"fields without a place here: {', '.join(fields)}")
    say(_counts(found))
    if step is not None:
        say(f"{'done' if step.did else 'as it was'}  {safe(step.where)}: {one_line(step.what)}")
    if found.planned:
        note("this is a plan; nothing was written")


def _refusal(refused: RefusedMemory) -> str:
    count = f" ({refused.entries:,} entries)" if refused.entries > 1 else ""
    what = one_line(refused.what, 60)
    return f"{safe(refused.where)}: {what}: {one_line(refused.why, 160)}{count}"


def _counts(found: Imported) -> str:
    kinds = Counter(record.kind for record in found.records)
    new = ", ".join(plural(number, f"new {kind}") for kind, number in sorted(kinds.items()))
    refused = sum(refused.entries for refused in found.refused)
    files = plural(len(found.files), "file")
    return f"{new or 'nothing new'} in {files}, {found.known:,} known, {refused:,} refused"
