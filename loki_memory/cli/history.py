"""Commands that ask where a belief comes from and since when: log, blame, bisect, revert."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import (
    coloured_status,
    note,
    one_line,
    plural,
    progress_bar,
    remarks,
    say,
)

if TYPE_CHECKING:
    from loki_memory.history.bisect import BisectTurn
    from loki_memory.history.blame import Blame, BlameSource, BlameStep
    from loki_memory.history.revert import Reverted

_SHORT = 10  # digits of a commit
_LOG = 20


class LogOutput(NamedTuple):
    """Printed by `log`."""

    commits: list[BlameStep]  # newest first


@command("log")
@click.argument("memory_id", metavar="[ID]", required=False)
@click.option(
    "-n", "limit", default=_LOG, show_default=True, type=click.IntRange(1), help="How many commits."
)
def log_command(session: Session, memory_id: str | None, limit: int) -> None:
    """Show the history of memory, or of one belief, by commit.

    \b
    Example:
      loki-mem log sem-001
    """
    workspace = session.open()
    with progress_bar("reading") as workspace.home.progress:
        steps = workspace.history.log(memory_id, limit)
    session.show(LogOutput(steps), lambda: _print_log(steps, memory_id))
    remarks(workspace)


def _print_log(steps: Iterable[BlameStep], memory_id: str | None) -> None:
    found = list(steps)
    for step in found:
        _print_step(step, listed=memory_id is not None)
    if not found:
        note(f"no commit has {memory_id or 'any memory'} yet: loki-mem commit")


def _print_step(step: BlameStep, *, listed: bool) -> None:
    """Print a commit in one line, then its changes, unless its subject says them already."""
    name = click.style(step.commit[:_SHORT], fg="yellow")
    who = step.agent or step.author
    say(f"{name}  {step.at[:10]}  {one_line(step.subject, 80)}  {click.style(who, dim=True)}")
    if listed or not step.subject.startswith("memory: "):
        for line, details in step.lines():
            say(f"    {one_line(line, 140)}")
            for detail in details:
                say(click.style(f"        {one_line(detail, 130)}", dim=True))


@command("blame")
@click.argument("memory_id", metavar="ID")
def blame_command(session: Session, memory_id: str) -> None:
    """Show where a belief comes from: its episodes, and each commit.

    \b
    Example:
      loki-mem blame sem-001
    """
    workspace = session.open()
    with progress_bar("reading") as workspace.home.progress:
        found = workspace.history.blame(memory_id)
    session.show(found, lambda: _print_blame(found))
    remarks(workspace)


def _print_blame(found: Blame) -> None:
    state = coloured_status(found.status) if found.status else ""
    sure = "" if found.confidence is None else f"confidence {found.confidence:g}"
    say(f"{click.style(found.id, fg='cyan')}  {one_line(found.title, 120)}")
    say(f"    {'  '.join(filter(None, (found.kind, state, sure)))}")
    if found.stated_by:
        say(f"\nStated by {found.stated_by}")
    for speaks, title in (("for", "Rests on"), ("against", "Against it")):
        sources = [source for source in found.sources if source.speaks == speaks]
        if sources:
            say(f"\n{title}")
            for source in sources:
                _print_source(source)
    if found.reviewed:
        say("\nReviewed")
        for review in found.reviewed:
            say(f"    {one_line(' '.join(str(value) for value in review.values()), 100)}")
    if found.steps:
        say("\nCommits")
        for step in found.steps:
            _print_step(step, listed=True)
    else:
        note("no commit has it yet: loki-mem commit")


def _print_source(source: BlameSource) -> None:
    where = f"code {source.commit[:_SHORT]}" if source.commit else ""
    kept = "" if source.kept == "live" else source.kept
    known = (source.outcome, source.agent, source.session, where, kept)
    say(f"    {click.style(source.id, fg='cyan')}  {one_line(source.goal, 100)}")
    say(click.style(f"        {one_line('; '.join(filter(None, known)), 120)}", dim=True))


@command("bisect")
@click.argument("between", metavar="[GOOD..BAD]", required=False)
@click.option("--query", required=True, metavar="TEXT", help="The question to recall.")
@click.option("--expect", metavar="ID", help="A memory that should be recalled and is not.")
@click.option("--reject", "unwanted", metavar="ID", help="One that is recalled and should not be.")
@click.option("-k", default=5, show_default=True, type=click.IntRange(1), help="Hits to look at.")
def bisect_command(
    session: Session, query: str, expect: str | None, unwanted: str | None, **options: object
) -> None:
    """Find the commit at which a recall changed, and what it did.

    \b
    Example:
      loki-mem bisect --query "logs of staging" --reject fact-2f61dyj12e
    """
    if bool(expect) == bool(unwanted):
        raise click.UsageError("Give either --expect ID or --reject ID.")
    workspace = session.open()
    with progress_bar("embedding") as workspace.home.progress:
        turn = workspace.history.bisect(query, expect=expect, reject=unwanted, **options)  # type: ignore[arg-type]
    session.show(turn, lambda: _print_turn(turn))
    remarks(workspace)


def _print_turn(turn: BisectTurn) -> None:
    _print_step(turn.step, listed=True)
    say(f"recalled before: {', '.join(turn.before) or 'nothing'}")
    say(f"recalled since:  {', '.join(turn.after) or 'nothing'}")
    note(f"{plural(turn.tried, 'commit')} tried")


@command("revert")
@click.argument("name", metavar="RUN|COMMIT")
def revert_command(session: Session, name: str) -> None:
    """Undo what one commit did to memory, and commit the result.

    Episodes and later changes stay. The next consolidate may learn the same beliefs from the same
    episodes again; `reject` is permanent.

    \b
    Example:
      loki-mem revert HEAD
    """
    workspace = session.open()
    with progress_bar("reverting") as workspace.home.progress:
        done = workspace.history.revert(name)
    session.show(done, lambda: _print_reverted(done))
    for text in done.committed.remarks():
        note(text)
    remarks(workspace)


def _print_reverted(done: Reverted) -> None:
    for verb, names in (
        ("removed", done.removed),
        ("restored", done.written),
        ("kept", done.kept),
    ):
        for name in names:
            since = "  changed since" if verb == "kept" else ""
            say(f"{verb.ljust(10)}  {click.style(name, fg='cyan')}{since}")
    if not (done.removed or done.written or done.kept):
        note(f"{done.commit[:_SHORT]} changed no belief")
