"""The program: its commands by group, its global options, and the one place that prints errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib import import_module
from io import TextIOWrapper
from typing import Any, NoReturn, cast

import click

from loki_memory import __version__
from loki_memory.cli.output import HELP, fail, wants_colour
from loki_memory.errors import LokiMemoryError, StoreFailed

# Command to module, in the order of a day. Only the module of the command that runs is imported.
GROUPS: dict[str, dict[str, str]] = {
    "Start": {
        "init": "start",
        "install": "install",
        "seed": "start",
        "ingest": "sessions",
        "status": "read",
        "ui": "serve",
        "demo": "start",
    },
    "Remember": {"remember": "write", "lesson": "write", "record": "sessions"},
    "Recall": {
        "recall": "recall",
        "context": "recall",
        "continuity": "recall",
        "list": "read",
        "show": "read",
        "topics": "browse",
        "learnings": "read",
        "skills": "learn",
    },
    "Learn": {"consolidate": "learn", "review": "review", "feedback": "learn"},
    "Correct": {
        "correct": "write",
        "supersede": "write",
        "reject": "write",
        "forget": "write",
        "purge": "write",
        "taint": "write",
        "quarantine": "write",
        "restore": "write",
    },
    "Share": {
        "diff": "review",
        "commit": "history",
        "pull": "history",
        "push": "history",
        "trust": "install",
        "handoff": "team",
        "import": "import_export",
        "export": "import_export",
    },
    "Maintain": {"doctor": "maintain", "config": "maintain", "uninstall": "install"},
}
# Groups of further commands: `loki-mem history log`, and as before `loki-mem log`.
FURTHER: dict[str, dict[str, str]] = {
    "history": {
        "log": "history",
        "blame": "history",
        "bisect": "history",
        "revert": "history",
        "check": "review",
        "verify": "history",
        "resolve": "history",
        "merge-driver": "merge_driver",
    },
    "index": {
        "stats": "read",
        "timeline": "browse",
        "explore": "browse",
        "graph": "browse",
        "traverse": "browse",
        "link": "write",
        "pin": "write",
        "archive": "write",
        "copy": "import_export",
        "move": "import_export",
        "audit": "maintain",
        "dedupe": "learn",
        "clear": "import_export",
        "sync": "maintain",
        "rebuild": "maintain",
        "gc": "maintain",
    },
    "agent": {
        "ledger": "team",
        "injections": "sessions",
        "pause": "sessions",
        "resume": "sessions",
        "staged": "sessions",
        "replay": "sessions",
        "mcp": "serve",
        "serve": "serve",
        "token": "serve",
        "remote": "remote",
        "daemon": "daemon",
        "watch": "daemon",
        "hook": "daemon",
        "completion": "maintain",
    },
}
_ABOUT = {
    "history": "Follow beliefs through git: who, when, why, and undo.",
    "index": "Explore and tidy: topics, links, copies, and the index itself.",
    "agent": "What agents and teams use: sessions, daemon, MCP, hooks, the team server.",
}
# Names that other tools have for these.
ALIASES = {
    "search": "recall",
    "find": "recall",
    "retrieve": "recall",
    "add": "remember",
    "note": "remember",
    "ls": "list",
    "get": "show",
    "undo": "restore",
    "rm": "forget",
    "delete": "forget",
    "remove": "forget",
    "mistakes": "learnings",
}
_INTERNAL = {"hook", "merge-driver"}  # called by git and by clients
_NEAR = 0.75  # how alike a mistyped name must be to what is suggested
_STOPPED, _NO_OUTPUT = 130, 9  # a shell's code for Ctrl-C; the store's for a full disk
COMMANDS = {
    name: module
    for group in (*GROUPS.values(), *FURTHER.values())
    for name, module in group.items()
} | {"version": "maintain"}
_FIRST_STEPS = """\
loki-mem {version}: memory for AI coding agents that lives in your repository.

  loki-mem init                        create .loki/ in this repository
  loki-mem install claude-code         let an agent learn from it and write to it
  loki-mem ingest                      learn from the sessions that you had so far
  loki-mem recall "how do we deploy?"  ask
  loki-mem remember "Deploys need …"   note something for all later sessions
  loki-mem review                      read what was learned
  loki-mem status                      is all well, and what is next?

`loki-mem demo` shows all of it on an example; `loki-mem --help` lists the commands.
"""


def _named(name: str) -> click.Command:
    module = import_module(f"loki_memory.cli.{COMMANDS[name]}")
    command: click.Command = getattr(module, f"{name.replace('-', '_')}_command")
    return command


class _Suggesting(click.Group):
    """A group that says what a mistyped command may have meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = get_close_matches(args[0], [*COMMANDS, *FURTHER, *ALIASES], 2, _NEAR)
            if not near:
                message = f"{error.message} `{ctx.command_path} --help` lists the commands."
            else:
                message = f"{error.message} Did you mean {' or '.join(map(repr, near))}?"
            raise click.UsageError(message, ctx) from None


class FurtherCommands(_Suggesting):
    """One group of further commands, imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(FURTHER[str(self.name)])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return _named(cmd_name) if cmd_name in FURTHER[str(self.name)] else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _section(
            ctx, formatter, "Commands", [n for n in self.list_commands(ctx) if n not in _INTERNAL]
        )


class Commands(_Suggesting):
    """All commands; those of a day are listed by purpose, the others in their groups."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [*(name for names in GROUPS.values() for name in names), *FURTHER]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        name = ALIASES.get(cmd_name, cmd_name)
        if name in FURTHER:
            return _group(name)
        if name == "help":
            return _help
        return _named(name) if name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in GROUPS.items():
            _section(ctx, formatter, title, names)
        _section(ctx, formatter, "Further commands", FURTHER)


def _group(name: str) -> click.Group:
    """One of the groups; called without a command, it prints its help."""
    first = next(iter(FURTHER[name]))
    text = f"{_ABOUT[name]}\n\n\b\nExample:\n  loki-mem {name} {first} --help"
    return FurtherCommands(
        name, help=text, context_settings=HELP, invoke_without_command=True, callback=_print_help
    )


@click.pass_context
def _print_help(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@click.command("help", context_settings=HELP, hidden=True)
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def _help(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Print what `--help` after COMMAND prints."""
    cli.main([*words, "--help"], prog_name="loki-mem", standalone_mode=False)
    ctx.exit()


def _section(
    ctx: click.Context, formatter: click.HelpFormatter, title: str, names: Iterable[str]
) -> None:
    """Write the commands of a section, with the first sentence of each."""
    commands = cast("click.Group", ctx.command)
    found = ((name, commands.get_command(ctx, name)) for name in names)
    with formatter.section(title):
        formatter.write_dl([(name, it.get_short_help_str(66)) for name, it in found if it])


@click.command(cls=Commands, context_settings=HELP, invoke_without_command=True)
@click.option("-C", "directory", metavar="DIR", help="Work in DIR instead of the current folder.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (specified by schemas/).")
@click.version_option(__version__, message="loki-mem %(version)s")
@click.pass_context
def cli(ctx: click.Context, directory: str | None, as_json: bool) -> None:
    """Memory for AI coding agents that lives in your repository.

    \b
    Example:
      loki-mem remember "Contract tests need the database running"
      loki-mem list
    """
    ctx.obj = {"directory": directory, "json": as_json}
    ctx.color = wants_colour()
    if ctx.invoked_subcommand is None:
        click.echo(_FIRST_STEPS.format(version=__version__), nl=False)


def main() -> NoReturn:
    """Run, and turn every error into one sentence and its exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us: `>&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - until we end
    if isinstance(sys.stdout, TextIOWrapper):  # the name of a folder may be any bytes
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code: Any = cli.main(prog_name="loki-mem", standalone_mode=False) or 0
        sys.stdout.flush()
    except LokiMemoryError as error:
        fail(type(error).__name__, str(error), error.exit_code)
        code = error.exit_code
    except click.ClickException as error:
        fail("UsageError", _with_example(error), error.exit_code)
        code = error.exit_code
    except click.Abort:
        fail("Stopped", "stopped.", _STOPPED)
        code = _STOPPED
    except (BrokenPipeError, SystemExit):  # the reader closed the pipe; click exits by itself
        code = 0
    except OSError as error:
        if error.filename:  # a memory file that no error of ours names
            failed = StoreFailed(error.filename, error.strerror or str(error))
            fail("StoreFailed", str(failed), failed.exit_code)
            _leave(failed.exit_code)
        fail("OutputFailed", f"the output cannot be written: {error.strerror}.", _NO_OUTPUT)
        code = _NO_OUTPUT
    _leave(code)


def _with_example(error: click.ClickException) -> str:
    """The complaint of click, and where an example is if it does not say what to type."""
    said = " ".join(error.format_message().split())  # click lists choices on lines of their own
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    typed_wrong = isinstance(error, (click.MissingParameter, click.NoSuchOption))
    if ctx is None or "ou mean" in said or not (typed_wrong or "unexpected extra" in said):
        return said
    return f"{said.rstrip('.')}. `{ctx.command_path} --help` has an example."


def _leave(code: int) -> NoReturn:
    """Exit without a second complaint about a stream that is gone."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)
