"""Commands that write: remember, correct, reject, forget, restore, archive, pin, link."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import click

from loki_memory.cli.common import (
    Session,
    command,
    finish_writing,
    id_argument,
    standard_input,
)
from loki_memory.cli.output import one_line, remarks, say
from loki_memory.errors import Ambiguous, NotFound
from loki_memory.models import RELATIONS
from loki_memory.models.base import IMPORTANCE
from loki_memory.models.kinds import FACT_TYPES
from loki_memory.models.worded_lesson import refuse_long


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


class ArchivedRecord(NamedTuple):
    """Printed by `archive`."""

    id: str
    path: str


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
