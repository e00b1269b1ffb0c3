"""The command that records what an agent did: record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import click

from loki_memory.cli.common import (
    Session,
    StoredRecord,
    command,
    input_bytes,
    stored_record,
)
from loki_memory.cli.output import note, one_line, plural, print_json, remarks, say
from loki_memory.errors import InvalidRecord
from loki_memory.models import Episode
from loki_memory.workspace import Workspace


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
        for record in stored[:20]:
            say(f"{click.style(record.id, fg='cyan')}  {one_line(record.title(), 100)}")
        if len(stored) > 20:  # noqa: PLR2004 - a screen
            say(f"… {plural(len(stored), 'episode')} recorded")
        for bad in refused:
            note(f"refused: {bad.error}")
        if not stored and not refused:
            note("there was no episode to record")
    workspace.browse.refresh_continuity()
    remarks(workspace)
    if refused:
        raise click.exceptions.Exit(InvalidRecord.exit_code)
