"""Commands that take memory elsewhere: export, clear with a backup, copy and move."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from loki_memory.cli.common import Session, command, id_argument
from loki_memory.cli.output import note, one_line, plural, progress_bar, remarks, safe, say, size

if TYPE_CHECKING:
    from loki_memory.ingest.local_archive import Exported
    from loki_memory.interop.export_memory import ClearedMemory, ExportedMemory
    from loki_memory.interop.transfer import Transferred
    from loki_memory.workspace import Workspace


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
    remarks(workspace)


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
    remarks(workspace)


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
        note("this is a plan; nothing was written")
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
    """Copy a memory to another scope or to the workspace of another folder.

    It takes its evidence along. A copy in another scope is a memory of its own.

    \b
    Example:
      loki-mem copy sem-001 --scope user
    """
    _transfer(session, memory, to, scope, move=False)


@command("move")
@_options
def move_command(session: Session, memory: str, to: str | None, scope: str | None) -> None:
    """Move a memory to another scope or to the workspace of another folder.

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
    target = session.open(to) if to else workspace
    done = workspace.interop.transfer(memory, target, scope or "", move=move)
    session.show(done, lambda: _print(done))
    workspace.browse.refresh_continuity()
    remarks(workspace)


def _print(done: Transferred) -> None:
    say(f"{click.style(done.id, fg='cyan')}  {one_line(done.title, 100)}")
    say(f"{'moved' if done.moved else 'copied'} to {safe(done.path)}")
