"""Commands about the work of agents: record, ingest, staged, replay, pause, resume, injections."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from loki_memory.cli.common import Session, StoredRecord, command, input_bytes, stored_record
from loki_memory.cli.output import (
    named,
    note,
    one_line,
    print_json,
    progress_bar,
    remarks,
    say,
    say_first,
    table,
)
from loki_memory.errors import InvalidRecord
from loki_memory.models import Episode
from loki_memory.models.text import plural
from loki_memory.workspace import Workspace

if TYPE_CHECKING:
    from loki_memory.ingest.replay import Replay
    from loki_memory.ingest.run import Ingested, Waiting
    from loki_memory.injection.told import Injection


class InputLine(NamedTuple):
    """One episode of the input, and where it was read."""

    file: str
    line: int
    value: Any


class RefusedInput(NamedTuple):
    """A line of input that is not an episode, and why."""

    line: int
    error: str


class RecordedEpisodes(NamedTuple):
    """Printed by `record`."""

    stored: list[StoredRecord]
    refused: list[RefusedInput]


@command("record")
@click.argument("files", nargs=-1, metavar="[FILE]…", type=click.Path())
@click.option(
    "--from-gate",
    "report",
    metavar="FILE",
    type=click.Path(),
    help="Record a gate's report; - for stdin.",
)
@click.option("--gate", help="The gate's name, if the report does not say.")
@click.option("--goal", help="Record this goal instead of reading files.")
@click.option(
    "--outcome",
    type=click.Choice(["success", "failure", "partial", "unknown"]),
    help="How it ended.",
)
@click.option("--agent", help="Who did it.")
@click.option("--task", help="The task's id.")
@click.option("--file", "touched", multiple=True, help="A file that was touched; repeatable.")
@click.option("--error", help="An error that occurred.")
@click.option("--resolution", help="What resolved it.")
def record_command(
    session: Session,
    files: tuple[str, ...],
    report: str | None,
    gate: str | None,
    goal: str | None,
    **given: Any,
) -> None:
    """Record episodes from files, standard input (-) or options.

    A file holds one JSON object, a list of them, or one per line (JSONL). Lines that are not
    episodes are reported and skipped, and the exit code is then 4; all others are recorded.

    With --from-gate, FILE is a report of tests, a linter or a review: JUnit XML, the JSON of
    ESLint or ruff, SARIF, or {"gate": …, "outcome": …, "failures": [{"message": …}]}.
    --outcome, --goal, --agent and --task supply what it does not say.

    \b
    Example:
      loki-mem record --goal "Add search" --outcome success --agent eng-001-backend
      loki-mem record episodes.jsonl
      loki-mem record --from-gate junit.xml --agent ci
    """
    workspace = session.open()
    if report is not None:
        if files:
            raise click.UsageError("a gate's report is recorded by itself, without FILE.")
        _report(session, workspace, [_verdict(workspace, report, gate, goal, given)], [])
        return
    if gate is not None:
        raise click.UsageError("--gate names the gate of a report: give --from-gate FILE.")
    if goal is None and not files:
        raise click.UsageError("name a FILE, - for standard input, or give --goal.")
    given_ = [
        InputLine(name, line, value) for name in files for line, value in _lines(workspace, name)
    ]
    if goal is not None:
        given_.append(InputLine("options", 0, _from_options(goal, given)))
    good, refused = _sorted_out(workspace, given_)
    _report(session, workspace, workspace.record(good) if good else [], refused)


def _verdict(
    workspace: Workspace, report: str, gate: str | None, goal: str | None, given: dict[str, Any]
) -> Episode:
    known = {"gate": gate, "goal": goal, **{n: given[n] for n in ("outcome", "agent", "task")}}
    data = input_bytes(report)
    try:
        return workspace.sessions.record_verdict(
            data, **{n: text for n, text in known.items() if text}
        )
    except InvalidRecord as error:
        raise error.at(_called(report)) from None


def _from_options(goal: str, given: dict[str, Any]) -> dict[str, Any]:
    episode = {
        "context": {"goal": goal, "files_involved": list(given["touched"])},
        "task_id": given["task"],
        "agent": given["agent"],
        "outcome": given["outcome"],
        "artifacts_produced": list(given["touched"]) or None,
    }
    if given["error"]:
        met = {"message": given["error"], "resolution": given["resolution"]}
        episode["errors_encountered"] = [{k: v for k, v in met.items() if v}]
    return {name: value for name, value in episode.items() if value is not None}


def _lines(workspace: Workspace, name: str) -> Iterator[tuple[int, Any]]:
    data = input_bytes(name)
    try:
        yield from workspace.sessions.episodes_in(data)
    except InvalidRecord as error:
        raise error.at(_called(name)) from None


def _called(name: str) -> str:
    return "standard input" if name == "-" else name


def _sorted_out(
    workspace: Workspace, lines: list[InputLine]
) -> tuple[list[Episode], list[RefusedInput]]:
    good: list[Episode] = []
    bad: list[RefusedInput] = []
    for name, number, value in lines:
        try:
            if isinstance(value, InvalidRecord):
                raise value
            good.append(workspace.sessions.valid_episode(_recorded(value)))
        except InvalidRecord as error:
            bad.append(RefusedInput(number, str(error.at(_called(name), number))))
    return good, bad


def _recorded(value: Any) -> Any:
    """An episode without the claim that it was captured from a client's transcript."""
    if not isinstance(value, dict):
        return value
    return {name: entry for name, entry in value.items() if name != "captured"}


def _report(
    session: Session, workspace: Workspace, stored: list[Episode], refused: list[RefusedInput]
) -> None:
    if session.json:
        described = [stored_record(workspace, episode) for episode in stored]
        print_json(RecordedEpisodes(described, refused))
    else:
        say_first([named(record.id, record.title()) for record in stored])
        for bad in refused:
            note(f"refused: {bad.error}")
        if not stored and not refused:
            note("there was no episode to record")
    workspace.browse.refresh_continuity()
    if refused:
        raise click.exceptions.Exit(InvalidRecord.exit_code)


_POLL_SECONDS = 2.0
_REFUSED_SHOWN = 10  # refused lines; --json has more
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
    session.show(done, lambda: _print_ingested(done))
    workspace.browse.refresh_continuity()
    if follow:
        remarks(workspace)
    elif done.failed:
        raise click.exceptions.Exit(InvalidRecord.exit_code)
    while follow and not done.off:
        time.sleep(_POLL_SECONDS)
        done = workspace.ingest(paths or None, source)
        if done.lines or done.episodes or done.changed:
            session.show(done, lambda: _print_ingested(done))  # noqa: B023 - called at once


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


def _print_ingested(done: Ingested) -> None:
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
    for refused in done.reasons[:_REFUSED_SHOWN]:
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


def _play(replay: Replay) -> None:
    say(f"{click.style(replay.id, fg='cyan')}  {one_line(replay.goal, 100)}  ({replay.outcome})")
    table([(step.at, one_line(step.action), one_line(step.told, 120)) for step in replay.actions])
    for file in replay.files:
        state = click.style(file.state.ljust(10), fg=_COLOURS.get(file.state))
        say(f"  {state} {one_line(file.path)}")


_WIDTH = 100


class ResumedCapture(NamedTuple):
    """Printed by `resume`."""

    was_paused: bool


class Injections(NamedTuple):
    """Printed by `injections`."""

    injections: list[Injection]  # the latest last


@command("pause")
@click.option(
    "--for", "span", metavar="SPAN", help="How long: 30m, 2h, 1d. Default: until `resume`."
)
def pause_command(session: Session, span: str | None) -> None:
    """Stop capturing sessions and injecting memory into them.

    Until the pause is over or `resume` ends it, hooks on this machine say and record nothing, and
    `ingest` reads nothing. `recall` and `context` still answer.

    \b
    Example:
      loki-mem pause --for 2h
    """
    pause = session.open().sessions.pause(span)
    end = f"until {pause.until}" if pause.until else "until `loki-mem resume`"
    session.show(pause, lambda: say(f"paused {end}"))


@command("resume")
def resume_command(session: Session) -> None:
    """Capture sessions again after a pause.

    \b
    Example:
      loki-mem resume
    """
    was_paused = session.open().sessions.resume()
    line = "sessions are captured again" if was_paused else "nothing was paused"
    session.show(ResumedCapture(was_paused), lambda: say(line))


@command("injections")
@click.argument("of_session", metavar="[SESSION]", required=False)
@click.option(
    "-n", "--limit", default=20, show_default=True, type=click.IntRange(1), help="How many."
)
def injections_command(session: Session, of_session: str | None, limit: int) -> None:
    """Show what was injected into sessions, when and why.

    The latest come last. SESSION is an id, or the beginning of one.

    \b
    Example:
      loki-mem injections
    """
    found = session.open().browse.injections(of_session)[-limit:]
    session.show(Injections(found), lambda: _print_injections(found))


def _print_injections(found: list[Injection]) -> None:
    for injection in found:
        who = f"session {injection.session}" if injection.session else "no session named"
        cost = plural(injection.tokens, "token")
        say(f"{injection.at}  {injection.occasion}  {one_line(who)}  {cost}")
        if injection.why:
            say(click.style(f"    for: {one_line(injection.why, _WIDTH)}", dim=True))
        for memory in injection.memories:
            title = one_line(memory.title, _WIDTH) if memory.title else "(gone)"
            say(f"    {click.style(memory.id, fg='cyan')}  {title}")
    if not found:
        say("nothing was injected into any session")
