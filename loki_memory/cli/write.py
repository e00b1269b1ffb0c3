"""Commands that write and undo: remember, correct, reject, forget, purge, taint and the like."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from loki_memory.cli.common import (
    KindChoice,
    Session,
    command,
    finish_writing,
    id_argument,
    plan_option,
    standard_input,
)
from loki_memory.cli.output import note, one_line, progress_bar, say
from loki_memory.errors import Ambiguous, InvalidRecord, NotFound, StoreFailed
from loki_memory.models import RELATIONS
from loki_memory.models.base import IMPORTANCE
from loki_memory.models.kinds import FACT_TYPES
from loki_memory.models.text import plural
from loki_memory.models.worded_lesson import refuse_long

if TYPE_CHECKING:
    from loki_memory.browse.purge import Purged, Tainted
    from loki_memory.editing.quarantine import QuarantineCase, QuarantinedMemory


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
@click.argument("words", metavar="TEXT", nargs=-1, required=True)
@click.option(
    "--kind",
    default="fact",
    show_default=True,
    type=KindChoice([*FACT_TYPES, "fact", "pattern", "anti-pattern", "learning"]),
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
    session: Session,
    words: tuple[str, ...],
    sequence: str | None,
    tags: tuple[str, ...],
    **given: Any,
) -> None:
    """Remember a statement: TEXT, or - for standard input.

    \b
    Example:
      loki-mem remember "The staging database is reset every night" --category ops
      loki-mem remember "Use US English everywhere" --kind preference
    """
    workspace = session.open()
    text = " ".join(words)
    if text == "-":
        text = standard_input().decode(errors="replace")
    if not text.strip():
        raise InvalidRecord("there is nothing to remember", advice="Give a text.")
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
            other = "`loki-mem supersede ID TEXT` replaces all that a memory says"
            raise click.UsageError(f"{text!r} is not FIELD=VALUE; {other}.")
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
        say(f"`loki-mem restore {gone.removed[0]}` undoes it")

    session.show(gone, show)


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
    undo = f"`loki-mem restore {memory}` undoes it"
    session.show(result, lambda: say(f"{memory} is kept in {one_line(path)}\n{undo}"))


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
    stored = workspace.pin(workspace.resolve(memory), not off)
    finish_writing(session, workspace, [stored], "no longer pinned" if off else "pinned")


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
@plan_option("Only list what would be set aside.")
def taint_command(session: Session, source: str, why: str, dry_run: bool) -> None:
    """Set everything aside that came from SOURCE.

    SOURCE is an episode's id, a session, a commit, an author or agent, a memory file or a
    transcript. What was derived from it goes along, however many steps away; what a person stated
    stays. `loki-mem quarantine` shows the case, releases or drops it.

    \b
    Example:
      loki-mem taint ep-2026-01-06-001 --why "its output was forged"
    """
    with session.work("searching") as workspace:
        found = workspace.care.taint(source, why, dry_run=dry_run)
    session.show(found, lambda: _print_tainted(found))


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


def _print_cases(cases: list[QuarantineCase], action: str) -> None:
    done = {"list": "in quarantine", "release": "released", "drop": "dropped"}[action]
    for case in cases:
        about = f" ({one_line(case.why)})" if case.why else ""
        number = plural(len(case.memories), "memory")
        say(f"{case.case}  {case.on}  {number} from {one_line(case.source)}{about}: {done}")
        _print_memories(case.memories, "  ")
    if not cases:
        say("nothing is in quarantine")
