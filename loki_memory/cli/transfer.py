"""Commands that bring a memory to another scope or workspace: copy, move."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from loki_memory.cli.common import Session, command, id_argument
from loki_memory.cli.output import one_line, remarks, safe, say

if TYPE_CHECKING:
    from loki_memory.interop.transfer import Transferred

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
    workspace.continuity(if_used=True)
    remarks(workspace)


def _print(done: Transferred) -> None:
    say(f"{click.style(done.id, fg='cyan')}  {one_line(done.title, 100)}")
    say(f"{'moved' if done.moved else 'copied'} to {safe(done.path)}")
