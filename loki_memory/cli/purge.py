"""Commands that undo what should never have been kept: purge, taint, quarantine."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from loki_memory.cli.common import Session, command, standard_input
from loki_memory.cli.output import note, one_line, plural, progress_bar, remarks, say
from loki_memory.errors import StoreFailed

if TYPE_CHECKING:
    from loki_memory.browse.purge import Purged
    from loki_memory.browse.taint import Tainted
    from loki_memory.editing.quarantine import QuarantineCase, QuarantinedMemory


class QuarantineOutput(NamedTuple):
    """Printed by `quarantine`."""

    cases: list[QuarantineCase]  # in quarantine, released or dropped, as was asked


@command("purge")
@click.argument("given", metavar="TEXT|ID")
def purge_command(session: Session, given: str) -> None:
    """Remove a text or a memory from everything ever written here.

    Files, views, index, vectors, journal, logs, staged sessions, forgotten copies, CONTINUITY.md,
    published skills and exports lose it at once; nothing brings it back. In memories that say more,
    [PURGED] takes its place. Memory's own branch of git is rewritten; for other branches the
    commands are printed. TEXT may be - for standard input, which keeps it out of the history of
    your shell. Rotate a secret all the same. The exit code is 9 if a file still holds it.

    \b
    Example:
      loki-mem purge anti-ns66z0vk7n
    """
    workspace = session.open()
    text = standard_input().decode(errors="replace") if given == "-" else given
    with progress_bar("removing") as workspace.home.progress:
        done = workspace.care.purge(text.strip())
    session.show(done, lambda: _print_purged(done))
    remarks(workspace)
    if done.left:
        raise click.exceptions.Exit(StoreFailed.exit_code)


def _print_purged(done: Purged) -> None:
    for name in done.removed:
        say(f"removed  {one_line(name)}")
    for path in done.changed:
        say(f"changed  {one_line(path)}")
    if not (done.removed or done.changed or done.rewritten or done.commits):
        say("nothing here holds it")
    if done.rewritten:
        say(f"rewritten: {plural(done.rewritten, 'commit')} of memory's own branch")
    if done.commits:
        number, first = plural(len(done.commits), "commit"), done.commits[-1][:12]
        say(f"git still holds it: {number} brought it, the first is {first}")
    if done.commands:
        say("To take it out of git's history, with everybody who shares it:")
        for line in done.commands:
            say(f"  {line}")
    for path in done.left:
        note(f"{one_line(path)} still holds it")
    say("Not reached:")
    for place in done.unreached:
        say(f"  {place}")


@command("taint")
@click.argument("source")
@click.option("--why", default="", help="The reason, kept with the case.")
@click.option("--dry-run", is_flag=True, help="Only list what would be set aside.")
def taint_command(session: Session, source: str, why: str, dry_run: bool) -> None:
    """Set everything aside that came from SOURCE.

    SOURCE is an episode's id, a session, a commit, an author or agent, a memory file or a
    transcript. What was derived from it goes along, however many steps away; what a person stated
    stays. `loki-mem quarantine` shows the case, releases or drops it.

    \b
    Example:
      loki-mem taint ep-2026-01-06-001 --why "its output was forged"
    """
    workspace = session.open()
    with progress_bar("searching") as workspace.home.progress:
        found = workspace.care.taint(source, why, dry_run=dry_run)
    session.show(found, lambda: _print_tainted(found))
    remarks(workspace)


def _print_tainted(found: Tainted) -> None:
    _print_memories(found.memories)
    number = plural(len(found.memories), "memory")
    if found.case:
        undo = f"loki-mem quarantine release {found.case}"
        say(f"{number} in quarantine as {found.case}; `{undo}` undoes it")
    else:
        say(f"{number} would be set aside")


def _print_memories(memories: list[QuarantinedMemory], margin: str = "") -> None:
    for memory in memories:
        say(f"{margin}{click.style(memory.id, fg='cyan')}  {one_line(memory.title, 100)}")


@command("quarantine")
@click.argument("action", type=click.Choice(["list", "release", "drop"]), default="list")
@click.argument("case", required=False)
def quarantine_command(session: Session, action: str, case: str | None) -> None:
    """List, release or drop what `taint` set aside.

    A released case is memory again; a dropped one is gone for good.

    \b
    Example:
      loki-mem quarantine list
    """
    workspace = session.open()
    if (case is None) != (action == "list"):
        raise click.UsageError("release and drop take a case, list takes none.")
    if case is None:
        cases = workspace.care.quarantine()
    else:
        cases = [workspace.care.release(case) if action == "release" else workspace.care.drop(case)]
    session.show(QuarantineOutput(cases), lambda: _print_cases(cases, action))
    remarks(workspace)


def _print_cases(cases: list[QuarantineCase], action: str) -> None:
    done = {"list": "in quarantine", "release": "released", "drop": "dropped"}[action]
    for case in cases:
        about = f" ({one_line(case.why)})" if case.why else ""
        number = plural(len(case.memories), "memory")
        say(f"{case.case}  {case.on}  {number} from {one_line(case.source)}{about}: {done}")
        _print_memories(case.memories, "  ")
    if not cases:
        say("nothing is in quarantine")
