"""Commands that review: diff, review, check."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import (
    note,
    one_line,
    page,
    print_json,
    progress_bar,
    say,
)
from loki_memory.errors import NoHistory
from loki_memory.models.text import plural, revealed
from loki_memory.workspace import Workspace

if TYPE_CHECKING:
    from loki_memory.history.belief_diff import Shift
    from loki_memory.history.check import Fault
    from loki_memory.history.file_changes import FieldChange, FileChange, RecordChange
    from loki_memory.history.report import Cause, Review, Unreadable
    from loki_memory.models import Memory

_SHORT, _BESIDE = 40, 90  # characters: of fields that stand side by side, and of their line
_FEW = 3  # episodes behind a belief; --all names every one
_READ = 5  # episodes that are named of each change that is read in full
_COLOURS = {
    **dict.fromkeys(("learned", "added", "updated", "strengthened", "restored"), "green"),
    **dict.fromkeys(("corrected", "revised", "reviewed"), "cyan"),
    **dict.fromkeys(("contradicted", "rejected", "removed"), "red"),
    **dict.fromkeys(("weakened", "superseded", "retired"), "yellow"),
}
_READ_FIRST = ("candidate", "learned", "added", "updated", "corrected", "revised", "contradicted")
_FORMATS = click.Choice(["text", "markdown", "json"])
_CHOICES = {
    "a": "accept",
    "e": "edit",
    "r": "reject",
    "s": "skip",
    "v": "view evidence",
    "q": "quit",
}
# Named here so that help costs no pydantic; a test compares them with those of checking.py.
_CHECKS = [
    "secret",
    "zone",
    "review",
    "invalid",
    "lost",
    "dangling",
    "contradiction",
    "citation",
    "continuity",
]


class ReviewOutput(NamedTuple):
    """Printed by `diff` and `review`."""

    before: str
    after: str
    shifts: list[Shift]
    evidence: list[Cause]  # the episodes behind the shifts
    invalid: list[Unreadable]
    counts: dict[str, int]
    records: list[RecordChange]  # every field that differs, of every memory
    files: list[FileChange]  # every other file below .loki that differs


class CheckOutput(NamedTuple):
    """Printed by `check`."""

    ok: bool
    exit_code: int
    findings: list[Fault]


@command("diff")
@click.argument("span", required=False, metavar="[A[..B]]")
@click.option("--format", "form", type=_FORMATS, default="text", help="How to print it.")
@click.option("--all", "every", is_flag=True, help="List every field and all episodes.")
def diff_command(session: Session, span: str | None, form: str, every: bool) -> None:
    """Show what changed in memory, belief by belief.

    Compares A with B, where A is the last commit by default, and B the working tree. A...B shows
    what B has since it left A, as in a pull request, and A^! what the commit A did. A and B are
    commits, branches, tags or dates.

    \b
    Example:
      loki-mem diff main...HEAD --format markdown
    """
    with session.work("comparing") as workspace:
        found = workspace.history.diff(span)
    _show(session, form, found, lambda: _lines(found, every=every))


@command("review")
@click.argument("span", required=False, metavar="[A]")
@click.option("--format", "form", type=_FORMATS, default="text", help="How to print it.")
@click.option("--interactive", "-i", is_flag=True, help="Accept, edit or reject one by one.")
@click.option(
    "--candidates", is_flag=True, help="Show lessons of this machine that are not published."
)
def review_command(
    session: Session, span: str | None, form: str, interactive: bool, candidates: bool
) -> None:
    """Read the new beliefs, and the evidence for each.

    A belief is new if it was added after this branch left the default branch, or after A. With
    --interactive you decide about each: one that you accept is yours, one that you reject is never
    learned again. A candidate that you accept becomes a file in .loki/memory.

    \b
    Example:
      loki-mem review --format markdown
    """
    if interactive and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("--interactive asks questions, and there is no terminal to ask on.")
    if ".." in (span or ""):
        raise click.UsageError("review goes up to the working tree: name one commit or branch.")
    workspace = session.open(reviews=True)
    found, asked = _waiting_for_decision(workspace, span, candidates=candidates)
    if interactive:
        _step_through(workspace, found, asked)
        workspace.consolidate(learn=False, commit=False)
    else:
        _show(session, form, found, lambda: _to_read(found))


def _waiting_for_decision(
    workspace: Workspace, span: str | None, *, candidates: bool
) -> tuple[Review, list[Shift]]:
    """Everything that waits for a decision; in a folder without git, the candidates."""
    try:
        if not candidates:
            with progress_bar("comparing") as workspace.home.progress:
                return workspace.history.review(span)
    except NoHistory:
        if span:
            raise
        note("without git nothing says what is new: these are the candidates of this machine")
    found = workspace.history.candidates()
    return found, found.shifts


@command("check")
@click.argument("span", required=False, metavar="[A..B]")
@click.option(
    "--continuity-budget", type=click.IntRange(1), metavar="N", help="Allow this many tokens."
)
@click.option(
    "--skip", multiple=True, type=click.Choice(_CHECKS), help="A check to skip; repeatable."
)
def check_command(
    session: Session, span: str | None, continuity_budget: int | None, skip: tuple[str, ...]
) -> None:
    """Find what should not be merged; the exit code says what.

    \b
    20  secret         a file holds one
    27  zone           a link, or a tracked file that belongs to one machine
    28  review         a person has to look: a command, hidden text, a claim, settings
    21  invalid        a file is not a record
    22  lost           a belief is gone and nothing supersedes it
    23  dangling       evidence or a link leads nowhere
    24  contradiction  two beliefs contradict each other and both hold
    25  citation       the code that a belief cites has changed
    26  continuity     CONTINUITY.md says more than --continuity-budget

    If several are found, the first of this list decides. With A..B or A...B only what changed is
    checked; otherwise, and without git, everything is.

    \b
    Example:
      loki-mem check --skip citation
    """
    from loki_memory.history import exit_code

    with session.work("checking") as workspace:
        found = workspace.history.check(span, continuity_budget=continuity_budget)
    found = [fault for fault in found if fault.check not in skip]
    code = exit_code(found)
    session.show(CheckOutput(not found, code, found), lambda: _print_findings(found))
    if code:
        raise click.exceptions.Exit(code)


def _print_findings(found: list[Fault]) -> None:
    width = max((len(fault.check) for fault in found), default=0)
    for fault in found:
        where = fault.id or fault.path
        kind = click.style(fault.check.ljust(width), fg="red")
        say(f"{kind}  {click.style(one_line(where), fg='cyan')}  {one_line(fault.said, 200)}")
        advice = f"{fault.path}: {fault.advice}" if fault.id else fault.advice
        say(f"{' ' * width}  {one_line(advice)}")
    say(plural(len(found), "fault") if found else click.style("no fault found", fg="green"))


# -- showing ---------------------------------------------------------------------------------------


def _show(session: Session, form: str, found: Review, lines: Callable[[], Iterator[str]]) -> None:
    if session.json or form == "json":
        print_json(_output(found))
    elif form == "markdown":
        say(found.markdown().rstrip("\n"))
    else:
        page("\n".join(lines()))


def _output(found: Review) -> ReviewOutput:
    return ReviewOutput(
        before=found.before,
        after=found.after,
        shifts=found.shifts,
        evidence=list(found.evidence.values()),
        invalid=found.invalid,
        counts=found.counts(),
        records=list(found.records),
        files=list(found.files),
    )


def _lines(found: Review, *, every: bool) -> Iterator[str]:
    yield f"{one_line(found.before)} -> {one_line(found.after)}"
    for word, shifts in found.by_word().items():
        yield f"{_word(word)}  {len(shifts):,}"
        for shift in shifts:
            yield from _shift(found, shift, None if every else _FEW, every=every)
    yield from _rest(found, every=every)


def _to_read(found: Review) -> Iterator[str]:
    """Print what is new first, then everything else, and what to do with it."""
    between = f"{one_line(found.before)} -> {one_line(found.after)}"
    yield "lessons of this machine that are not published" if found.is_of_candidates else between
    for shift in sorted(found.shifts, key=lambda shift: shift.what not in _READ_FIRST):
        yield ""
        yield f"{_word(shift.what)}  {shift.kind}"
        yield from _shift(found, shift, _READ)
    yield from _rest(found)
    if found.is_of_candidates and found.shifts:
        yield "next: `loki-mem review --candidates -i` decides one by one"
    elif found.shifts:
        yield "next: `loki-mem review -i` decides one by one, `loki-mem commit` shares them"
    elif not found.is_of_candidates:
        yield "next: `loki-mem review --candidates` shows what waits on this machine"


def _rest(found: Review, *, every: bool = False) -> Iterator[str]:
    """Print everything that is no change of a belief."""
    quiet = found.quiet()
    if quiet:
        yield f"{_word('beside beliefs')}  {len(quiet):,}"
    for change in quiet:
        yield f"  {click.style(one_line(change.id), fg='cyan')}  {one_line(revealed(change.title))}"
        yield from _fields(change.fields)
    if found.files:
        yield f"{_word('other files')}  {len(found.files):,}"
    for file in found.files:
        yield from _file(file)
    yield from _unreadable(found)
    if not every and any(_split(found, shift)[1] for shift in found.shifts):
        yield "dates, keys and scores of what is new are left out; `loki-mem diff --all` shows them"
    if found.is_empty:
        yield _nothing(found)


def _file(file: FileChange) -> Iterator[str]:
    """Print a file with its lines, which of our own new files nobody needs to read."""
    is_ours = file.is_as_init_writes_it()
    what = "as `loki-mem init` writes it" if is_ours else file.what
    yield f"  {click.style(one_line(file.path), fg='cyan')}  {what}"
    yield from (f"      {one_line(revealed(line))}" for line in file.lines if not is_ours)


def _nothing(found: Review) -> str:
    if not found.is_of_candidates:
        return "no belief changed"
    return "no candidate waits; `loki-mem ingest` and `loki-mem consolidate` find new ones"


def _word(word: str) -> str:
    return click.style(word, fg=_COLOURS.get(word), bold=True)


def _split(found: Review, shift: Shift) -> tuple[list[FieldChange], list[FieldChange]]:
    """Part the fields that a reader needs from those that only the tool reads."""
    from loki_memory.history import bookkeeping

    needed: list[FieldChange] = []
    other: list[FieldChange] = []
    for field in found.fields(shift):
        (other if bookkeeping(field, shift) else needed).append(field)
    return needed, other


def _shift(found: Review, shift: Shift, most: int | None, *, every: bool = False) -> Iterator[str]:
    weight = shift.weight()
    said = f"{one_line(revealed(shift.title))}{f'  ({weight})' if weight else ''}"
    yield f"  {click.style(one_line(shift.id), fg='cyan')}  {said}"
    yield from (f"      {one_line(revealed(detail))}" for detail in shift.details)
    needed, other = _split(found, shift)
    yield from _fields([*needed, *other] if every else needed)
    yield from (f"      {line}" for line in _evidence(found, shift, most))


def _fields(fields: Iterable[FieldChange]) -> Iterator[str]:
    """List fields: short ones side by side, each long one on a line of its own."""
    words = [one_line(field.words()) for field in fields]
    short = [text for text in words if len(text) <= _SHORT]
    yield from (f"      {text}" for text in words if len(text) > _SHORT)
    yield from (f"      {line}" for line in _side_by_side(short))


def _side_by_side(texts: Iterable[str]) -> Iterator[str]:
    """Join short texts to lines; none is broken."""
    line = ""
    for text in texts:
        if line and len(line) + len(text) > _BESIDE:
            yield line
            line = ""
        line = f"{line} · {text}" if line else text
    if line:
        yield line


def _evidence(found: Review, shift: Shift, most: int | None) -> Iterator[str]:
    """List the episodes behind a change, one line each."""
    for name in shift.caused_by[:most]:
        cause = found.evidence.get(name)
        if cause is None:
            yield f"from {one_line(name)} (not here)"
            continue
        by = f", by {one_line(cause.agent)}" if cause.agent else ""
        yield f"from {one_line(name)} {one_line(cause.goal, 100)}: {cause.outcome}{by}"
    rest = shift.caused_by[most:] if most is not None else ()
    if rest:
        yield f"and {plural(len(rest), 'episode')} more: {', '.join(map(one_line, rest))}"


def _unreadable(found: Review) -> Iterator[str]:
    if found.invalid:
        yield f"{click.style('cannot be read', fg='red', bold=True)}  {len(found.invalid):,}"
    yield from (
        f"  {one_line(problem.path)}  {one_line(problem.reason)}" for problem in found.invalid
    )


# -- deciding --------------------------------------------------------------------------------------


def _step_through(workspace: Workspace, found: Review, asked: list[Shift]) -> None:
    if not asked:
        say("every new belief has been reviewed")
        return
    done: dict[str, int] = {}
    for number, shift in enumerate(asked, 1):
        say(f"\n{number} of {len(asked)}  {_word(shift.what)}  {shift.kind}")
        for line in _shift(found, shift, 0 if shift.caused_by else None):
            say(line)
        verdict = _decide(workspace, found, shift)
        if verdict == "quit":
            break
        done[verdict] = done.get(verdict, 0) + 1
    say(", ".join(f"{count} {verdict}" for verdict, count in done.items()) or "nothing decided")


def _decide(workspace: Workspace, found: Review, shift: Shift) -> str:
    """Ask the user until something is decided about a belief."""
    asked = ", ".join(f"[{key}]{word[1:]}" for key, word in _CHOICES.items())
    while True:
        key = click.prompt(asked, type=click.Choice(list(_CHOICES)), show_choices=False)
        if key == "v":
            _print(_evidence(found, shift, None) if shift.caused_by else ["it rests on no episode"])
            continue
        verdict = _ANSWERS[key](workspace, shift.id)
        if verdict:
            return verdict


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        say(f"      {line}")


def _accept(workspace: Workspace, memory_id: str) -> str:
    workspace.history.approve(memory_id)
    return "accepted"


def _edit(workspace: Workspace, memory_id: str) -> str:
    from loki_memory.history import statement

    record = workspace.get(memory_id)
    text = _edited(record, statement(record))
    if not text or text == statement(record):
        note("nothing was changed")
        return ""
    workspace.history.reword(memory_id, text)
    return "edited"


def _edited(record: Memory, text: str) -> str:
    """Return the text from the user's editor if the environment names one, else from a prompt."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if editor:
        return (click.edit(text, editor=editor, extension=".md") or "").strip()
    if record.kind == "skill":
        note("a skill is more than a line; set EDITOR to edit it here")
        return ""
    return str(click.prompt("new text", default=text)).strip()


def _reject(workspace: Workspace, memory_id: str) -> str:
    why = click.prompt("why (shown when it is tried again)", default="", show_default=False)
    workspace.reject(memory_id, why)
    return "rejected"


_ANSWERS: dict[str, Callable[[Workspace, str], str]] = {
    "a": _accept,
    "e": _edit,
    "r": _reject,
    "s": lambda *_: "skipped",
    "q": lambda *_: "quit",
}
