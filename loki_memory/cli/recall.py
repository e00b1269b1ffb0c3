"""Commands that bring memory to an agent: recall, context, continuity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from loki_memory.cli.common import KindChoice, Session, command, standard_input
from loki_memory.cli.output import (
    coloured_status,
    note,
    one_line,
    print_json,
    progress_bar,
    say,
)
from loki_memory.models.kinds import KINDS, SCOPES, STATUSES
from loki_memory.models.text import plural

if TYPE_CHECKING:
    from loki_memory.browse.topics import PlaceStep
    from loki_memory.recall.result import ExplainedRecollection, Recollection, Recollections
    from loki_memory.remote.everywhere import ElsewhereHit
    from loki_memory.workspace import Workspace

_TASKS = ("exploration", "implementation", "debugging", "review", "refactoring")
_FORMATS = ("compact", "detailed", "json", "system", "preamble")
_FAINT, _FAINTER = 0.05, 0.2  # a chance below which, and a share of the best, hits are not printed


class RecallOutput(NamedTuple):
    """Printed by `recall`."""

    hits: Sequence[Recollection | ExplainedRecollection]  # best first
    counts: str  # people or files that were asked for, counted
    filtered: int  # found, and withheld because nothing was near enough
    certainty: float
    task: str  # the type of task that was asked for or detected
    took_ms: float
    places: dict[str, list[PlaceStep]]  # with --by-topic: the topics above each hit, topmost first
    elsewhere: Sequence[ElsewhereHit]  # with --everywhere: hits of other repositories


class ContinuityOutput(NamedTuple):
    """Printed by `continuity`: the path of the file, or with `--stdout` the block."""

    path: str
    block: str


@command("recall")
@click.argument("query", nargs=-1)
@click.option("-k", type=click.IntRange(1), help="How many hits; by default recall.limit, 5.")
@click.option("--kind", "kinds", multiple=True, type=KindChoice(KINDS), help="Only these kinds.")
@click.option("--task", type=click.Choice(_TASKS), help="The type of task; detected by default.")
@click.option(
    "--file", "files", multiple=True, metavar="PATH", help="A file you work on; repeatable."
)
@click.option("--error", metavar="TEXT", help="An error that occurred; - for stdin.")
@click.option("--deep", is_flag=True, help="Also follow links, evidence, files and names.")
@click.option("--scope", type=click.Choice(SCOPES), help="Only this scope.")
@click.option("--session", "of_session", metavar="ID", help="The session that asks.")
@click.option("--status", type=click.Choice(STATUSES), help="Include memories with this status.")
@click.option("--under", metavar="ID", help="Only memories below this topic.")
@click.option("--budget", type=click.IntRange(1), metavar="TOKENS", help="At most this many.")
@click.option("--as-of", metavar="REV|DATE", help="Ask memory as it was then.")
@click.option("--by-topic", is_flag=True, help="The best hit of each topic, with its place.")
@click.option("--explain", is_flag=True, help="Show the parts of each score.")
@click.option("--everywhere", is_flag=True, help="Also what `remote sync` pulled, marked, last.")
def recall_command(
    session: Session,
    query: tuple[str, ...],
    explain: bool,
    by_topic: bool,
    everywhere: bool,
    error: str | None,
    **options: Any,
) -> None:
    """Recall the memories that matter for QUERY, best first.

    An id, `sem-*`, `category:testing`, `tag:…`, `agent:…`, `branch:…`, `file:…`,
    `since:2026-11-01` or `until:…` is looked up exactly.

    \b
    Example:
      loki-mem recall "handler without a return type"
      loki-mem recall "what went wrong last week"
      loki-mem recall "who worked on src/app.ts"
      loki-mem recall "what changes together with src/app.ts"
    """
    workspace = session.open()
    text = " ".join(query)
    options["error"] = _error(error)
    options["session"] = options.pop("of_session")
    options["k"] = options["k"] or workspace.config.get("recall.limit")
    if not text.strip() and not options["error"]:
        raise click.UsageError("Say what to recall, or give --error.")
    if by_topic and explain:
        raise click.UsageError("--explain shows the parts of all hits; leave --by-topic out.")
    with progress_bar("embedding") as workspace.home.progress:
        found = workspace.recall(text, **options)
    places = _best_of_topics(workspace, found) if by_topic else {}
    parts = _explained(workspace, text, options) if explain else []
    elsewhere = _elsewhere(workspace, text, options, found) if everywhere else []
    session.show(
        _output(found, parts, places, elsewhere), lambda: _print(found, parts, places, elsewhere)
    )


def _elsewhere(
    workspace: Workspace, text: str, options: dict[str, Any], found: Recollections
) -> list[ElsewhereHit]:
    """Recall from other repositories, as far as they were pulled."""
    from loki_memory.remote.everywhere import everywhere

    names = ("k", "kinds", "task", "error")
    asked = {name: options[name] for name in names}
    return everywhere(workspace, text, {hit.id for hit in found}, **asked)


def _error(given: str | None) -> str | None:
    return standard_input().decode("utf-8", "replace") if given == "-" else given


def _best_of_topics(workspace: Workspace, found: Recollections) -> dict[str, list[PlaceStep]]:
    """Keep the best hit of each tree of topics; returns the places of these."""
    places = {hit.id: workspace.browse.place_of(hit.id) for hit in found}
    best: dict[str, Recollection] = {}
    for hit in found:
        top = places[hit.id][0].id if places[hit.id] else hit.id
        best.setdefault(top, hit)
    found[:] = best.values()
    return {hit.id: places[hit.id] for hit in found}


def _explained(workspace: Workspace, text: str, options: dict[str, Any]) -> list[dict[str, float]]:
    as_of = options.pop("as_of")
    home = workspace if as_of is None else workspace.history.as_of(as_of)
    return home.browse.explain(text, **{k: v for k, v in options.items() if k != "budget"})


def _output(
    found: Recollections,
    parts: list[dict[str, float]],
    places: dict[str, list[PlaceStep]],
    elsewhere: Sequence[ElsewhereHit],
) -> RecallOutput:
    return RecallOutput(
        hits=found.explained(parts),
        counts=found.counts,
        filtered=found.filtered,
        certainty=found.certainty,
        task=found.task,
        took_ms=round(found.took * 1000, 1),
        places=places,
        elsewhere=elsewhere,
    )


def _print(
    found: Recollections,
    parts: list[dict[str, float]],
    places: dict[str, list[PlaceStep]],
    elsewhere: Sequence[ElsewhereHit],
) -> None:
    _print_found(found, parts, places)
    least = _least(elsewhere)
    for hit in (hit for hit in elsewhere if hit.score >= least):
        kept = (
            "pushed by a teammate, not reviewed" if hit.pushed else f"of {one_line(hit.repository)}"
        )
        mark = click.style(f"({kept})", fg="yellow")
        say(f"{click.style(hit.id, fg='cyan')}  {one_line(hit.title, 160)} {mark}")
        if hit.remedy:
            say(f"    -> {one_line(hit.remedy, 240)}")
    if elsewhere:
        note("what holds elsewhere need not hold here; `loki-mem remote show ID` opens one")


def _least(found: Sequence[Recollection] | Sequence[ElsewhereHit]) -> float:
    """The score below which a hit is hardly about what was asked; never that of the best."""
    return min(_FAINT, _FAINTER * found[0].score) if found else 0.0


def _print_found(
    found: Recollections, parts: list[dict[str, float]], places: dict[str, list[PlaceStep]]
) -> None:
    if found.counts:
        say(found.counts)
    faint = 0
    least = _least(found)
    for number, hit in enumerate(found):
        if number and hit.score < least:
            faint += 1
            continue
        _print_hit(hit)
        if places.get(hit.id):
            say(f"    in {one_line(' > '.join(step.title for step in places[hit.id]), 160)}")
        if number < len(parts):
            made_of = "  ".join(f"{name} {value:.2f}" for name, value in parts[number].items())
            say(click.style(f"    {made_of}", dim=True))
    _print_notes(found)
    if faint:
        note(f"{plural(faint, 'memory')} more, hardly about that; --json lists all")


def _print_notes(found: Recollections) -> None:
    if found.doubt:
        note(found.doubt)
    if found.cut:
        note(f"{plural(found.cut, 'memory')} more, for which the budget has no room")
    elif not found and found.filtered:
        note(
            f"nothing is about that; {plural(found.filtered, 'memory')} below the floor not shown "
            "(LOKI_RECALL_FLOOR=0 shows them)"
        )
    elif not found:
        note("nothing is remembered about that")


def _print_hit(hit: Recollection) -> None:
    state = "" if hit.status == "active" else f" {coloured_status(hit.status)}"
    stale = click.style(" (the code it cites has changed)", fg="yellow") if hit.stale else ""
    doubt = click.style(" (edited by hand)", fg="yellow") if hit.unverified else ""
    alien = click.style(" (not reviewed)", fg="yellow") if hit.unreviewed else ""
    said = f"{one_line(hit.title, 160)}{state}{stale}{doubt}{alien}"
    say(f"{click.style(hit.id, fg='cyan')}  {said}")
    if hit.remedy:
        say(f"    -> {one_line(hit.remedy, 240)}")
    if hit.excerpt:
        say(f"    {one_line(hit.excerpt, 240)}")
    known = [f"{hit.score:.2f}", *hit.why]
    if hit.confidence is not None:
        known.append(f"confidence {hit.confidence:g}")
    if hit.evidence:
        known.append(plural(hit.evidence, "episode"))
    if hit.age_days is not None:
        known.append("today" if not hit.age_days else f"{hit.age_days} d ago")
    if hit.scope != "project":
        known.append(hit.scope)
    say(click.style(f"    {one_line('; '.join(known))}", dim=True))


@command("context")
@click.argument("goal", nargs=-1)
@click.option("--phase", metavar="PHASE", help="Development, testing, review, …")
@click.option(
    "--file", "files", multiple=True, metavar="PATH", help="A file you work on; repeatable."
)
@click.option("--error", metavar="TEXT", help="An error that occurred; - for stdin.")
@click.option(
    "--budget",
    default=800,
    show_default=True,
    type=click.IntRange(1),
    help="At most this many tokens.",
)
@click.option("--session", "of_session", metavar="ID", help="The session that will see it.")
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    help="`system` and `preamble` are for a harness; by default context.format, detailed.",
)
def context_command(
    session: Session,
    goal: tuple[str, ...],
    form: str | None,
    error: str | None,
    of_session: str | None,
    **options: Any,
) -> None:
    """Show what to know before a task: mistakes, lessons and skills.

    The same memory gives the same bytes, so that prompt caches stay valid.

    \b
    Example:
      loki-mem context "Add a PATCH endpoint" --file src/routes/todos.ts
    """
    with session.work("embedding") as workspace:
        found = workspace.context(
            " ".join(goal), error=_error(error), session=of_session, **options
        )
    form = form or workspace.config.text("context.format")
    if session.json or form == "json":
        print_json(found)
    else:
        text = found.text(form)
        if text:
            say(text.rstrip("\n"))
        else:
            note("nothing in memory bears on this")


@command("continuity")
@click.option("--goal", metavar="TEXT", help="The next goal; without it, the last one.")
@click.option("--agent", metavar="ID", help="Write for this agent, in a file of its own.")
@click.option(
    "--file", "files", multiple=True, metavar="PATH", help="A file you work on; repeatable."
)
@click.option("--budget", type=click.IntRange(0), metavar="TOKENS", help="At most this many.")
@click.option("--session", "of_session", metavar="ID", help="The session that will see it.")
@click.option("--stdout", "to_stdout", is_flag=True, help="Print the block and write nothing.")
@click.option("--as-of", metavar="REV|DATE", help="Print the block of that commit or day.")
def continuity_command(
    session: Session, to_stdout: bool, as_of: str | None, of_session: str | None, **options: Any
) -> None:
    """Write what matters now into .loki/CONTINUITY.md.

    Only the marked block is rewritten; the rest of the file stays as it is. What an agent notes
    under Mistakes & Learnings or Key Decisions becomes memory, once.

    \b
    Example:
      loki-mem continuity --goal "Add a PATCH endpoint" --stdout
    """
    workspace = session.open()
    path, block = "", ""
    with progress_bar("embedding") as workspace.home.progress:
        if to_stdout or as_of is not None:
            block = workspace.browse.continuity_block(as_of=as_of, session=of_session, **options)
        else:
            path = str(workspace.continuity(session=of_session, **options))
    result = ContinuityOutput(path, block)
    session.show(result, lambda: say(block.rstrip("\n") or one_line(path)))
