"""Commands that take memory in and elsewhere: import, export, copy, move, clear."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from loki_memory.cli.common import Session, StoredRecord, command, id_argument, stored_record
from loki_memory.cli.output import (
    SCREEN,
    named,
    note,
    note_plan,
    one_line,
    progress_bar,
    safe,
    say,
    say_first,
    size,
)
from loki_memory.errors import NotAWorkspace
from loki_memory.models.text import plural

if TYPE_CHECKING:
    from loki_memory.ingest.local_archive import Exported, Merged
    from loki_memory.install.edits import InstallStep
    from loki_memory.interop.export_memory import ClearedMemory, ExportedMemory
    from loki_memory.interop.import_memory import Imported
    from loki_memory.interop.sources.source import RefusedMemory
    from loki_memory.interop.transfer import Transferred
    from loki_memory.workspace import Workspace

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
    session.show(_output(workspace, found, step), lambda: _print_imported(found, step))


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


def _print_merged(done: Merged, plan: bool) -> None:
    say_first([_refused(one_line(reason, 160)) for reason in done.refused])
    came = ", ".join(plural(number, f"new {kind}") for kind, number in sorted(done.added.items()))
    say(came or "nothing new")
    if done.joined:
        say(f"{plural(len(done.joined), 'candidate')} got more evidence")
    if done.uses:
        say(f"{plural(done.uses, 'memory')} with uses of the other machine")
    say(f"{done.known:,} known, {len(done.refused):,} refused")
    if plan:
        note_plan()


def _print_imported(found: Imported, step: InstallStep | None) -> None:
    records = [named(record.id, record.title()) for record in found.records]
    say_first(records, _SAMPLES if found.planned else SCREEN)
    say_first([_refused(_refusal(refused)) for refused in found.refused])
    if found.left_out:
        fields = (f"{safe(name)} ({count:,})" for name, count in found.left_out.items())
        say(f"fields without a place here: {', '.join(fields)}")
    say(_counts(found))
    if step is not None:
        say(f"{'done' if step.did else 'as it was'}  {safe(step.where)}: {one_line(step.what)}")
    if found.planned:
        note_plan()
    elif any(getattr(record, "origin", "") == "import" for record in found.records):
        say("recall finds them; agents are told of what you accept: `loki-mem review -i`")


def _refused(line: str) -> str:
    return f"{click.style('refused', fg='yellow')}  {line}"


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


_FORMATS = ("jsonl", "markdown", "okf")


@command("export")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice(_FORMATS),
    help="By default by the name: FILE.md, a folder (OKF) without a suffix, else JSON lines.",
)
@click.option("--html", is_flag=True, help="One page for a browser, which needs nothing else.")
@click.option("--local", is_flag=True, help="What exists on this machine only, instead.")
def export_command(
    session: Session, file: Path, format_: str | None, html: bool, local: bool
) -> None:
    """Write the shared memory to FILE, in a format that others read.

    JSON lines, a Markdown page, or a bundle of the Open Knowledge Format 0.2 (a new folder). Each
    holds the records word for word: `loki-mem import FILE --as-is` gives them back as they were,
    except that secrets in known formats are replaced.
    Archived and private memory is left out.

    With --html: the beliefs with evidence, history and links as one page of at most 5 MB, for
    people; it asks for nothing from the network, and secrets in known formats are replaced.

    With --local: captured sessions, candidates, private notes, and how often memories were used.
    `loki-mem import FILE` merges them on another machine or into another clone. That file holds
    private text; only you can read it.

    \b
    Example:
      loki-mem export ../memory.md
      loki-mem export --html ../memory.html
      loki-mem export --local ../todo-api.jsonl
    """
    if local and format_ not in {None, "jsonl"}:
        raise click.UsageError("--local writes JSON lines; leave --format out.")
    if html and (local or format_):
        raise click.UsageError("--html is a format of its own; leave --local and --format out.")
    workspace = session.open()
    if html:
        shown = _export_html(workspace, file)
        session.show(shown, lambda: _print_html(shown))
    elif local:
        with progress_bar("exporting") as workspace.home.progress:
            done = workspace.sessions.export_local(file)
        session.show(done, lambda: _print_local(done))
        note("the file holds private text of your sessions; keep it to yourself")
    else:
        with progress_bar("exporting") as workspace.home.progress:
            written = workspace.interop.export_memory(file, format_ or _format_of(file))
        session.show(written, lambda: _print_exported(written))


class ExportedHtml(NamedTuple):
    """Printed by `export --html`."""

    path: str
    format: Literal["html"]
    beliefs: int
    left_out: int  # beliefs that did not fit into the file
    bytes: int
    unread: list[str]  # files that hold no readable record, and are left out


def _export_html(workspace: Workspace, path: Path) -> ExportedHtml:
    from loki_memory.ui.export_page import export_page

    made = export_page(workspace)
    workspace.interop.write_page(path, made.html)
    counted = (made.beliefs, made.left_out, len(made.html), made.unread)
    return ExportedHtml(str(path), "html", *counted)


def _print_html(done: ExportedHtml) -> None:
    say(f"{plural(done.beliefs, 'belief')}  (html)")
    say(f"{safe(done.path)}  {size(done.bytes)}")
    if done.left_out:
        note(f"{plural(done.left_out, 'belief')} did not fit into 5 MB")
    for line in done.unread:
        note(f"left out: {line}")


def _format_of(path: Path) -> str:
    return {".md": "markdown", "": "okf"}.get(path.suffix, "jsonl")


def _print_local(done: Exported) -> None:
    kinds = ", ".join(plural(number, kind) for kind, number in done.records.items())
    uses = f", uses of {plural(done.uses, 'memory')}" if done.uses else ""
    say(f"{kinds or 'no records'}{uses}")
    say(f"{safe(done.path)}  {size(done.bytes)}")


def _print_exported(done: ExportedMemory) -> None:
    say(f"{_kinds(done.records)}  ({done.format})")
    say(safe(done.path))
    for line in done.unread:
        note(f"left out: {line}")


def _kinds(records: dict[str, int]) -> str:
    return ", ".join(plural(number, kind) for kind, number in records.items()) or "no records"


@command("clear")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--plan", is_flag=True, help="Say what would be removed and write nothing.")
@click.option("--backup", type=click.Path(path_type=Path), metavar="FILE", help="Where to keep it.")
def clear_command(session: Session, yes: bool, plan: bool, backup: Path | None) -> None:
    """Remove all memory of this project, after writing a backup of it.

    Shared, private and archived records go; settings, your own memory of all projects, and what git
    has committed stay. `loki-mem import BACKUP --as-is` brings everything back.

    \b
    Example:
      loki-mem clear --plan
    """
    workspace = session.open()
    if not plan and not yes:
        _confirm(workspace.interop.clear_memory(backup, plan_only=True))
    with progress_bar("clearing") as workspace.home.progress:
        done = workspace.interop.clear_memory(backup, plan_only=plan)
    session.show(done, lambda: _print_cleared(done))
    if not plan:
        workspace.browse.refresh_continuity()


def _confirm(plan: ClearedMemory) -> None:
    """Ask a person at a terminal; without one, the option must say it."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to ask at; use --yes to remove all memory.")
    say(f"{_kinds(plan.removed)} will be removed; backup: {safe(plan.backup)}")
    click.confirm("Remove all of it?", abort=True)


def _print_cleared(done: ClearedMemory) -> None:
    say(f"{'would remove' if done.planned else 'removed'} {_kinds(done.removed)}")
    for line in done.left:
        say(f"left  {one_line(line, 160)}")
    if done.planned:
        note_plan()
        return
    say(f"backup  {safe(done.backup)}")
    say(f"        `loki-mem import {safe(done.backup)} --as-is` brings it back")


_SCOPES = click.Choice(["project", "local", "user"])


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    scope = click.option("--scope", type=_SCOPES, help="Its scope there.")
    to = click.option("--to", metavar="DIR", help="The workspace of another folder.")
    return id_argument(to(scope(function)))


@command("copy")
@_options
def copy_command(session: Session, memory: str, to: str | None, scope: str | None) -> None:
    """Copy a memory to another scope or another project.

    It takes its evidence along. A copy in another scope is a memory of its own.

    \b
    Example:
      loki-mem copy sem-001 --scope user
    """
    _transfer(session, memory, to, scope, move=False)


@command("move")
@_options
def move_command(session: Session, memory: str, to: str | None, scope: str | None) -> None:
    """Move a memory to another scope or another project.

    It takes its evidence along and keeps its id.

    \b
    Example:
      loki-mem move fact-2f61dyj12e --scope local
    """
    _transfer(session, memory, to, scope, move=True)


def _transfer(
    session: Session, memory: str, to: str | None, scope: str | None, *, move: bool
) -> None:
    if not to and not scope:
        raise click.UsageError("say where to: --scope local, --scope user, or --to DIR.")
    workspace = session.open()
    try:
        target = session.open(to) if to else workspace
    except NotAWorkspace as error:
        raise error.naming("--to DIR") from None
    done = workspace.interop.transfer(memory, target, scope or "", move=move)
    session.show(done, lambda: _print_transferred(done))
    workspace.browse.refresh_continuity()


def _print_transferred(done: Transferred) -> None:
    say(named(done.id, done.title))
    say(f"{'moved' if done.moved else 'copied'} to {safe(done.path)}")
