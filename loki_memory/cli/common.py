"""Shared by all commands: the workspace to work in, and printing as text or JSON."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from loki_memory.cli.output import HELP, named, print_json, progress_bar, remarks, say
from loki_memory.errors import LokiMemoryError
from loki_memory.workspace import Workspace

if TYPE_CHECKING:
    from loki_memory.models import Memory

_MOST = 1 << 63  # SQLite's integers and those of JSON end here


class StoredRecord(NamedTuple):
    """A record that a command wrote."""

    id: str
    kind: str
    title: str
    path: str
    record: dict[str, Any]


class StoredRecords(NamedTuple):
    """Printed by commands that write records."""

    stored: list[StoredRecord]


class Session:
    """One run of the program."""

    def __init__(self, directory: str | None, as_json: bool) -> None:
        self.directory = directory
        self.json = as_json
        self._opened: list[Workspace] = []

    def open(self, directory: str | None = None, *, reviews: bool = False) -> Workspace:
        """Open the workspace of this run, or of a folder, as an agent's: agents have terminals too.

        Only whoever reviews memory at a terminal, record by record, speaks as its owner.
        """
        folder = self.directory if directory is None else directory
        origin = "owner" if reviews and is_terminal() else "agent"
        self._opened.append(Workspace.open(folder, origin=origin))
        return self._opened[-1]

    @contextmanager
    def work(self, label: str) -> Iterator[Workspace]:
        """Open the workspace of this run, and show on a terminal that work goes on."""
        workspace = self.open()
        with progress_bar(label) as workspace.home.progress:
            yield workspace

    def end(self, *, finished: bool) -> None:
        """Flush what was written; after a command that was carried out, print what it noticed."""
        for workspace in self._opened:
            workspace.flush()
            if finished:
                remarks(workspace)

    def show(self, result: tuple[Any, ...], otherwise: Callable[[], object]) -> None:
        """Print a result: as JSON if that was asked for, else for people.

        It is a named tuple, from whose class the schema of the JSON is made.
        """
        if self.json:
            print_json(result)
        else:
            otherwise()


def is_terminal() -> bool:
    """Check if somebody, or something, could answer a question."""
    return sys.stdin is not None and sys.stdin.isatty()


def command(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Declare a command that takes a Session first, and `--json` like all of them."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        @click.pass_context
        @functools.wraps(function)
        def run(ctx: click.Context, /, *args: Any, as_json: bool, **options: Any) -> None:
            _check_words(ctx)
            given = ctx.find_root().obj
            session = Session(given["directory"], as_json or given["json"])
            finished = False
            try:
                function(session, *args, **options)
                finished = True
            except click.exceptions.Exit:  # a command that was carried out, with a code
                finished = True
                raise
            finally:
                session.end(finished=finished)

        option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
        return click.command(name, context_settings=HELP)(option(run))

    return decorate


def _check_words(ctx: click.Context) -> None:
    """Refuse what no record can hold: words that are not UTF-8, and numbers beyond 64 bits.

    The name of a file may be any bytes.
    """
    for parameter in ctx.command.params:
        given = ctx.params.get(parameter.name or "")
        for word in given if isinstance(given, tuple) else (given,):
            if parameter.type is click.STRING and isinstance(word, str) and not _is_utf8(word):
                raise click.BadParameter("it is not UTF-8 text.", ctx, parameter)
            if isinstance(word, int) and not -_MOST <= word < _MOST:
                raise click.BadParameter("it is too large.", ctx, parameter)


def _is_utf8(word: str) -> bool:
    """Check if a word of the command line was UTF-8: other bytes became halves of surrogates."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


class KindChoice(click.Choice[str]):
    """A kind of memory, in the plural too: `facts` is `fact`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        singular = value.removesuffix("s")
        return super().convert(singular if singular in self.choices else value, param, ctx)


def plan_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare `--plan`, by the name that other tools have for it too."""
    return click.option("--plan", "--dry-run", "dry_run", is_flag=True, help=text)


def complete_id(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click's signature
    """The ids that begin as what was typed, for the shell's completion."""
    try:
        with Workspace.open(ctx.find_root().params.get("directory")) as workspace:
            homes = workspace.homes.fresh()
            return [name for home in homes for name in home.index.ids_starting(incomplete)]
    except LokiMemoryError:
        return []


id_argument = click.argument("memory", metavar="ID", shell_complete=complete_id)


_LARGEST_INPUT = 256 << 20  # bytes; a month of sessions has a tenth of it


def standard_input() -> bytes:
    """Read all of standard input; nothing if it is closed."""
    return sys.stdin.buffer.read() if sys.stdin is not None else b""


def input_bytes(name: str) -> bytes:
    """Read a file, or standard input (-), up to a size that fits into memory."""
    if name == "-":
        return standard_input()
    try:
        with open(name, "rb") as file:
            data = file.read(_LARGEST_INPUT + 1)
    except OSError as error:
        raise click.UsageError(f"{name}: {error.strerror}") from None
    if len(data) > _LARGEST_INPUT:
        raise click.UsageError(f"{name} is larger than {_LARGEST_INPUT >> 20} MB: split it.")
    return data


def finish_writing(
    session: Session, workspace: Workspace, records: Iterable[Memory], remark: str = ""
) -> None:
    """Report what was stored."""
    stored = list(records)
    described = [stored_record(workspace, record) for record in stored]
    session.show(StoredRecords(described), lambda: _print(stored, remark))
    workspace.browse.refresh_continuity()


def stored_record(workspace: Workspace, record: Memory) -> StoredRecord:
    """Describe a record as every command that writes one prints it."""
    try:
        path = str(workspace.browse.where(record.id))
    except LokiMemoryError:
        path = ""
    return StoredRecord(record.id, record.kind, record.title(), path, record.document())


def _print(stored: list[Memory], remark: str) -> None:
    for record in stored:
        say(named(record.id, record.title()))
    if remark:
        say(remark)
