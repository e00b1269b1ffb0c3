"""The program: its commands by group, its global options, and the one place that prints errors."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from loki_memory import __version__
from loki_memory.cli.output import HELP, fail, wants_colour
from loki_memory.errors import LokiMemoryError, StoreFailed

# Command to module. Only the module of the command that runs is imported.
GROUPS: dict[str, dict[str, str]] = {
    "Write": {
        "record": "write",
        "remember": "write",
        "lesson": "write",
        "correct": "write",
        "supersede": "write",
        "reject": "write",
        "forget": "write",
        "restore": "write",
        "archive": "write",
        "pin": "write",
        "link": "write",
    },
    "Learn": {
        "consolidate": "consolidate",
        "ingest": "ingest",
        "staged": "ingest",
        "replay": "ingest",
        "import": "import_memory",
        "export": "import_memory",
    },
    "Recall": {
        "recall": "recall",
        "context": "recall",
        "continuity": "recall",
        "feedback": "browse",
        "topics": "browse",
        "timeline": "browse",
        "graph": "browse",
        "explore": "browse",
        "traverse": "browse",
    },
    "Read": {
        "status": "read",
        "show": "read",
        "list": "read",
        "learnings": "read",
        "skills": "skills",
        "stats": "read",
    },
    "Agents": {
        "ledger": "team",
        "handoff": "team",
        "mcp": "mcp",
        "hook": "hook",
        "injections": "sessions",
        "pause": "sessions",
        "resume": "sessions",
    },
    "Review": {"diff": "review", "review": "review", "check": "review", "verify": "verify"},
    "History": {
        "commit": "commit",
        "pull": "commit",
        "push": "commit",
        "log": "history",
        "blame": "history",
        "bisect": "history",
        "revert": "history",
        "resolve": "resolve",
        "merge-driver": "merge_driver",
    },
    "Maintain": {
        "init": "maintain",
        "trust": "trust",
        "watch": "daemon",
        "daemon": "daemon",
        "sync": "maintain",
        "rebuild": "maintain",
        "doctor": "maintain",
        "gc": "maintain",
        "install": "install",
        "uninstall": "install",
        "config": "maintain",
        "demo": "demo",
        "completion": "maintain",
    },
}
_STOPPED, _NO_OUTPUT = 130, 9  # a shell's code for Ctrl-C; the store's for a full disk
_MODULES = {name: module for group in GROUPS.values() for name, module in group.items()}


class Commands(click.Group):
    """Commands that are imported when they are called, and listed by purpose."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _MODULES:
            return None
        module = import_module(f"loki_memory.cli.{_MODULES[cmd_name]}")
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in GROUPS.items():
            rows = []
            for name in names:
                command = self.get_command(ctx, name)
                if command is not None:
                    rows.append((name, command.get_short_help_str(66)))
            with formatter.section(title):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = get_close_matches(args[0], _MODULES, 1)
            if not near:
                raise
            message = f"{error.message} Did you mean {near[0]!r}?"
            raise click.UsageError(message, ctx) from None


@click.command(cls=Commands, context_settings=HELP)
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


def main() -> NoReturn:
    """Run, and turn every error into one sentence and its exit code."""
    try:
        code: Any = cli.main(prog_name="loki-mem", standalone_mode=False) or 0
        sys.stdout.flush()
    except LokiMemoryError as error:
        fail(type(error).__name__, str(error), error.exit_code)
        code = error.exit_code
    except click.ClickException as error:
        fail("UsageError", error.format_message(), error.exit_code)
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


def _leave(code: int) -> NoReturn:
    """Exit without a second complaint about a stream that is gone."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)
