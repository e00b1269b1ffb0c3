"""Commands that write: record, remember, correct, reject, forget, restore, archive, pin, link."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import click

from loki_memory.cli.common import (
    Session,
    StoredRecord,
    command,
    finish_writing,
    id_argument,
    input_bytes,
    standard_input,
    stored_record,
)
from loki_memory.cli.output import note, one_line, plural, print_json, remarks, say
from loki_memory.errors import Ambiguous, InvalidRecord, NotFound
from loki_memory.models import RELATIONS, Episode
from loki_memory.models.base import IMPORTANCE
from loki_memory.models.kinds import FACT_TYPES
from loki_memory.models.worded_lesson import refuse_long
from loki_memory.workspace import Workspace


class ImportanceType(click.FloatRange):
    """A number from 0 to 1, or a word for one."""

    name = "number, high, medium or low"

    def __init__(self) -> None:
        super().__init__(0, 1)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        found: float = super().convert(IMPORTANCE.get(str(value).lower(), value), param, ctx)
        return found


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


class ArchivedRecord(NamedTuple):
    """Printed by `archive`."""

    id: str
    path: str


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
    workspace.continuity(if_used=True)
    remarks(workspace)
    if refused:
        raise click.exceptions.Exit(InvalidRecord.exit_code)


@command("remember")
@click.argument("text")
@click.option(
    "--kind",
    default="fact",
    show_default=True,
    type=click.Choice([*FACT_TYPES, "fact", "pattern", "anti-pattern", "learning"]),
    help="What it is; the first five are types of facts.",
)
@click.option("--category", help="A word to file it under.")
@click.option("--tag", "tags", multiple=True, help="A word to find it by; may be repeated.")
@click.option(
    "--scope",
    default="project",
    type=click.Choice(["project", "local", "user", "session"]),
    help="project: shared by git; local, session: this machine; user: all your projects.",
)
@click.option(
    "--importance",
    type=ImportanceType(),
    metavar="NUMBER|WORD",
    help="A number from 0 to 1, or high (0.9), medium (0.5) or low (0.2).",
)
@click.option("--parent", metavar="ID", help="The topic above it.")
@click.option("--by", help="Who said it.")
@click.option("--session", "sequence", help="The conversation it belongs to.")
@click.option("--at", metavar="TIME", help="When it was said.")
def remember_command(
    session: Session, text: str, sequence: str | None, tags: tuple[str, ...], **given: Any
) -> None:
    """Remember a statement: TEXT, or - for standard input.

    \b
    Example:
      loki-mem remember "The staging database is reset every night" --category ops
      loki-mem remember "Use US English everywhere" --kind preference
    """
    workspace = session.open()
    if text == "-":
        text = standard_input().decode(errors="replace")
    refuse_long(statement=text)
    details = {"tags": list(tags)} if tags else None
    stored = workspace.remember(text, session=sequence, details=details, **given)
    finish_writing(session, workspace, [stored])


@command("lesson")
@click.argument("when", metavar="WHEN")
@click.option("--do", "do", required=True, metavar="TEXT", help="What to do then.")
@click.option("--why", default="", metavar="TEXT", help="The reason, if it is not obvious.")
@click.option("--error", default="", metavar="TEXT", help="The error that it is about.")
@click.option("--category", help="A word to file it under.")
@click.option("--session", "sequence", help="The session that it was learned in.")
def lesson_command(
    session: Session,
    when: str,
    do: str,
    why: str,
    error: str,
    category: str | None,
    sequence: str | None,
) -> None:
    """Put a lesson into words: WHEN it applies, and what to do then.

    With --error it is a warning, shown whenever that error occurs again.

    \b
    Example:
      loki-mem lesson "the types of an API change" --do "run npm run types before the tests"
    """
    from loki_memory.models.worded_lesson import lesson

    workspace = session.open()
    worded = lesson(when, do, why, error)
    stored = workspace.remember(
        worded.text, worded.kind, category, session=sequence, details=worded.details
    )
    finish_writing(session, workspace, [stored])


@command("supersede")
@click.argument("old", metavar="ID")
@click.argument("new", metavar="OTHER")
def supersede_command(session: Session, old: str, new: str) -> None:
    """Replace a belief by another: its id, or the text of a new one.

    The old belief is kept, but no longer recalled.

    \b
    Example:
      loki-mem supersede sem-001 "Handlers return void, and the linter checks it"
    """
    workspace = session.open()
    stored = workspace.supersede(old, new)
    finish_writing(session, workspace, [stored])


@command("correct")
@id_argument
@click.argument("fields", nargs=-1, required=True, metavar="FIELD=VALUE…")
def correct_command(session: Session, memory: str, fields: tuple[str, ...]) -> None:
    """Change fields of a memory. VALUE is read as JSON, or as text if it is not JSON.

    The earlier text of a belief is kept in its history.

    \b
    Example:
      loki-mem correct sem-001 confidence=0.6 'conditions=["TypeScript strict mode"]'
    """
    workspace = session.open()
    changes = dict(_fields(fields))
    refuse_long(**changes)
    stored = workspace.correct(workspace.resolve(memory), **changes)
    finish_writing(session, workspace, [stored])


def _fields(given: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    import orjson

    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"{text!r} is not FIELD=VALUE.")
        try:
            yield name, orjson.loads(value)
        except orjson.JSONDecodeError:
            yield name, value


@command("reject")
@id_argument
@click.option("--why", default="", help="The reason, shown to whoever tries to store it again.")
def reject_command(session: Session, memory: str, why: str) -> None:
    """Reject what a memory says, permanently.

    It is no longer recalled, and never stored again, however it is spelled.

    \b
    Example:
      loki-mem reject anti-ns66z0vk7n --why "the proxy was the wrong fix"
    """
    workspace = session.open()
    stone = workspace.reject(workspace.resolve(memory), why)
    remark = f"rejected; `loki-mem restore {stone.id}` undoes it"
    finish_writing(session, workspace, [stone], remark)


@command("forget")
@id_argument
@click.option("--why", default="", help="The reason, kept on this machine only.")
def forget_command(session: Session, memory: str, why: str) -> None:
    """Remove a memory, and whatever was derived from it alone.

    Git keeps the history; `loki-mem restore ID` brings it back on this machine.

    \b
    Example:
      loki-mem forget ep-2026-01-06-001 --why "a test run"
    """
    workspace = session.open()
    gone = workspace.forget(workspace.resolve(memory), why)

    def show() -> None:
        for name in gone.removed:
            say(f"forgotten  {name}")
        for name in gone.changed:
            say(f"changed    {name} (no longer refers to it)")

    session.show(gone, show)
    remarks(workspace)


@command("restore")
@id_argument
def restore_command(session: Session, memory: str) -> None:
    """Undo an archive, a forget or a reject.

    \b
    Example:
      loki-mem restore tomb-zkfr79ncf1
    """
    workspace = session.open()
    try:
        memory = workspace.resolve(memory)
    except Ambiguous:
        raise
    except NotFound:
        pass  # the index has no archived or forgotten memory
    finish_writing(session, workspace, [workspace.restore(memory)], "restored")


@command("archive")
@id_argument
def archive_command(session: Session, memory: str) -> None:
    """Take a memory out of the index and the views, but keep its file.

    The file is kept under archive/; `loki-mem restore ID` brings it back.

    \b
    Example:
      loki-mem archive ep-2026-01-06-001
    """
    workspace = session.open()
    memory = workspace.resolve(memory)
    path = workspace.archive(memory)
    result = ArchivedRecord(memory, str(workspace.layout.resolve(path)))
    session.show(result, lambda: say(f"{memory} is kept in {one_line(path)}"))
    remarks(workspace)


@command("pin")
@id_argument
@click.option("--off", is_flag=True, help="Unpin it.")
def pin_command(session: Session, memory: str, off: bool) -> None:
    """Keep a memory from being forgotten because of its age.

    \b
    Example:
      loki-mem pin sem-001
    """
    workspace = session.open()
    finish_writing(session, workspace, [workspace.pin(workspace.resolve(memory), not off)])


@command("link")
@click.argument("a", metavar="ID")
@click.argument("relation", type=click.Choice(RELATIONS), metavar="RELATION")
@click.argument("b", metavar="OTHER")
def link_command(session: Session, a: str, relation: str, b: str) -> None:
    """State how a memory relates to another.

    \b
    RELATION is derived_from, related_to, contradicts, elaborates, example_of,
    supersedes, superseded_by or supports.

    \b
    Example:
      loki-mem link sem-001 related_to sem-qn3nbpznby
    """
    workspace = session.open()
    stored = workspace.link(workspace.resolve(a), relation, workspace.resolve(b))
    finish_writing(session, workspace, [stored])
