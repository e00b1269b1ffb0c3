"""Commands that take in what agents did: ingest, staged, replay."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import note, one_line, plural, progress_bar, remarks, say, table
from loki_memory.errors import InvalidRecord

if TYPE_CHECKING:
    from loki_memory.ingest.replay import Replay
    from loki_memory.ingest.run import Ingested, Waiting
    from loki_memory.workspace import Workspace

_POLL_SECONDS = 2.0
_SHOWN = 10  # refused lines; --json has more
_COLOURS = {"missing": "red", "changed": "yellow", "unchanged": "green"}


class IngestPlan(NamedTuple):
    """Printed by `ingest --plan`."""

    files: list[str]


class StagedSessions(NamedTuple):
    """Printed by `staged`."""

    staged: list[Waiting]


@command("ingest")
@click.argument("paths", nargs=-1, type=click.Path(exists=True))
@click.option("--from", "source", metavar="AGENT", help="Who wrote them, such as codex.")
@click.option("--plan", is_flag=True, help="List the transcripts that would be read, and stop.")
@click.option("--follow", is_flag=True, help="Keep reading what is appended, until interrupted.")
def ingest_command(
    session: Session, paths: tuple[str, ...], source: str | None, plan: bool, follow: bool
) -> None:
    """Read transcripts of agents' sessions into episodes.

    Without PATHS (files, or folders of .jsonl and .jsonl.gz files) it reads the sessions that
    agents had in this repository, once they have been quiet for a while. A transcript that you name
    is read at once, whichever repository it belongs to; reading it again adds nothing. Then
    `consolidate` learns from the episodes. Lines that cannot be read are reported and counted. A
    session that cannot be recorded is reported and waits, and the exit code is 4.

    \b
    Example:
      loki-mem ingest --plan
    """
    workspace = session.open()
    if plan:
        _show_plan(session, workspace)
        return
    if not paths:
        _say_where_they_are_kept(workspace)
    with progress_bar("reading") as workspace.home.progress:
        done = workspace.ingest(paths or None, source)
    session.show(done, lambda: _print(done))
    workspace.browse.refresh_continuity()
    remarks(workspace)
    if done.failed and not follow:
        raise click.exceptions.Exit(InvalidRecord.exit_code)
    while follow and not done.off:
        time.sleep(_POLL_SECONDS)
        done = workspace.ingest(paths or None, source)
        if done.lines or done.episodes or done.changed:
            session.show(done, lambda: _print(done))  # noqa: B023 - called at once


def _show_plan(session: Session, workspace: Workspace) -> None:
    files = [str(path) for path in workspace.sessions.to_be_taken()]
    session.show(IngestPlan(files), lambda: _list(files))


def _list(files: list[str]) -> None:
    for path in files:
        say(one_line(path))
    if not files:
        say("no session of this repository was found")


_WHERE = {
    "local": "sessions become episodes that stay on this machine; `loki-mem consolidate` learns "
    "from them, and writes lessons that several sessions confirm to .loki/memory",
    "project": "sessions of this repository become episodes in .loki/memory, which git tracks; "
    "`loki-mem config capture.scope local` keeps them on this machine",
}


def _say_where_they_are_kept(workspace: Workspace) -> None:
    """Explain, before the first ingest, who will see the episodes."""
    if not workspace.sessions.has_ingested():
        note(_WHERE[workspace.config.text("capture.scope")])


def _print(done: Ingested) -> None:
    if done.off:
        say(done.off)
        return
    if not (done.files or done.episodes or done.staged):
        say("no transcripts: no known agent has worked in this folder yet")
        say(
            "next: `loki-mem install claude-code` connects one; `loki-mem ingest FILE` reads a file"
        )
        return
    counts = {"refused": done.refused, "not complete yet": done.waiting}
    rest = "".join(f", {count:,} {word}" for word, count in counts.items() if count)
    say(f"{plural(done.files, 'file')}: {plural(done.lines, 'new line')}{rest}")
    gone_on = f", {done.changed:,} continued" if done.changed else ""
    say(f"{plural(done.episodes, 'new episode')}{gone_on}, {plural(done.errors, 'error')}")
    if done.episodes:
        say("next: `loki-mem consolidate` learns from them")
    if done.staged:
        are = "is" if done.staged == 1 else "are"
        say(f"{plural(done.staged, 'session')} {are} waiting; `loki-mem staged` says for what")
    for refused in done.reasons[:_SHOWN]:
        note(f"{refused.path}{f':{refused.line}' if refused.line else ''} {refused.reason}")
    for failed in done.failed:
        note(f"session {failed.session} could not be recorded: {failed.reason}")
    for path in done.rewritten:
        note(f"{path} was rewritten, so it was read from the beginning")
    for kind, times in done.unknown.items():
        note(f"{plural(times, 'line')} of the unknown type {kind!r}")


@command("staged")
def staged_command(session: Session) -> None:
    """List sessions that are read but not yet turned into episodes.

    \b
    Example:
      loki-mem staged
    """
    waiting = session.open().sessions.staged()
    rows = [
        (
            one_line(part.what),
            plural(part.turns, "turn"),
            one_line(part.why),
        )
        for part in waiting
    ]
    session.show(
        StagedSessions(waiting), lambda: table(rows) if rows else say("nothing is waiting")
    )


@command("replay")
@click.argument("episode")
def replay_command(session: Session, episode: str) -> None:
    """Show what was done in an episode, and what became of its files.

    \b
    Example:
      loki-mem replay ep-2026-01-06-001
    """
    workspace = session.open()
    replay = workspace.sessions.replay(episode)
    session.show(replay, lambda: _play(replay))
    remarks(workspace)


def _play(replay: Replay) -> None:
    say(f"{click.style(replay.id, fg='cyan')}  {one_line(replay.goal, 100)}  ({replay.outcome})")
    table([(step.at, one_line(step.action), one_line(step.told, 120)) for step in replay.actions])
    for file in replay.files:
        state = click.style(file.state.ljust(10), fg=_COLOURS.get(file.state))
        say(f"  {state} {one_line(file.path)}")
