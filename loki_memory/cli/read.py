"""Commands that read: status, show, list, learnings, stats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import click

from loki_memory.cli.common import KindChoice, Session, command, id_argument
from loki_memory.cli.output import (
    bullets,
    coloured_status,
    indented,
    note,
    one_line,
    print_json,
    safe,
    say,
    size,
    table,
)
from loki_memory.models.kinds import FACT_TYPES, KINDS
from loki_memory.models.text import plural

if TYPE_CHECKING:
    from loki_memory.browse.metrics import Metrics
    from loki_memory.browse.status import Stats, Status
    from loki_memory.index.index import Summary
    from loki_memory.journal import Uses
    from loki_memory.journal.tally import Economics
    from loki_memory.models import Memory
    from loki_memory.remote.shared import RemoteStanding

_DATE_LENGTH = len("2026-01-06")
_TOOLS = 5  # of which metrics are printed; --json has all


class OutgoingLink(NamedTuple):
    """A link that leaves a memory."""

    relation: str
    to: str


IncomingLink = TypedDict(
    "IncomingLink", {"relation": str, "from": str}
)  # no class has a field `from`


class ShownRecord(NamedTuple):
    """Printed by `show`."""

    id: str
    kind: str
    title: str
    path: str
    record: dict[str, Any]
    links: list[OutgoingLink]
    referred_to_by: list[IncomingLink]
    uses: Uses  # on this machine
    unverified: bool  # edited by hand, and not committed
    unreviewed: bool
    worded: str  # by the user's language model: so it is told unasked; empty if it is not


class ListedMemory(NamedTuple):
    """One line of a listing."""

    id: str
    kind: str
    title: str
    status: str
    scope: str
    at: str
    agent: str
    confidence: float | None
    pinned: bool


class Listing(NamedTuple):
    """Printed by `list`, `learnings` and `skills`."""

    memories: list[ListedMemory]
    total: int  # without --limit


@command("status")
def status_command(session: Session) -> None:
    """Show whether all is well and, if not, what to do next.

    \b
    Example:
      loki-mem status
    """
    workspace = session.open()
    found = workspace.status()
    session.show(found, lambda: _print_status(found))


def _print_status(found: Status) -> None:
    say(click.style(found.workspace, bold=True))
    kinds = (plural(number, kind) for kind, number in found.counts.items())
    say(f"  memory    {', '.join(kinds) or 'empty'}")
    if found.private:
        _print_private(found)
    if not found.local.startswith(found.workspace):
        say(f"  local     {safe(found.local)}")
    if found.above:
        say(f"  above     {safe(found.above)} has memory of its own, not shown here:")
        say(f"            loki-mem list --project {safe(found.above)}")
    where = "tracked with the project in git" if found.git else "a plain folder, without git"
    say(f"  history   {where}")
    if found.trusted:
        waits = f"; {found.unreviewed} not reviewed: loki-mem review" if found.unreviewed else ""
        say(f"  trust     trusted on this machine{waits}")
    else:
        say(click.style("  trust     not trusted on this machine", fg="yellow"))
    say(f"  index     {size(found.index_bytes)}, may be deleted at any time")
    if found.open_handoffs:
        say(f"  handoffs  {found.open_handoffs} open: loki-mem handoff list")
    for remote in found.remotes:
        say(f"  remote    {_about_remote(remote)}")
    if found.capture:
        say(click.style(f"  sessions  {one_line(found.capture)}", fg="yellow"))
    if found.well:
        say(click.style("  all is well", fg="green"))
    for step in found.next:
        say(click.style(f"  next      {step}", fg="yellow"))


def _print_private(found: Status) -> None:
    private = (plural(number, kind) for kind, number in found.private.items())
    say(f"  private   {', '.join(private)} of these are on this machine only")
    say("            (`loki-mem export --local FILE` takes them along)")
    if found.candidates:
        say(f"  waiting   {plural(found.candidates, 'candidate')}: loki-mem review --candidates -i")


def _about_remote(remote: RemoteStanding) -> str:
    waits = f", {plural(remote.waiting, 'candidate')} to push" if remote.waiting else ""
    failed = "; the last sync failed: loki-mem remote sync" if remote.problem else ""
    return f"{remote.name}: synced {remote.synced or 'never'}{waits}{failed}"


@command("show")
@id_argument
def show_command(session: Session, memory: str) -> None:
    """Show all of a memory, its evidence and what refers to it.

    The beginning of an ID is enough if it is unique.

    \b
    Example:
      loki-mem show sem-001
    """
    workspace = session.open()
    memory = workspace.resolve(memory)
    record = workspace.get(memory)
    path = str(workspace.browse.where(memory))
    out, back = workspace.browse.edges(memory)
    result = ShownRecord(
        id=record.id,
        kind=record.kind,
        title=record.title(),
        path=path,
        record=record.document(),
        links=[OutgoingLink(relation, target) for relation, target in out],
        referred_to_by=[{"relation": relation, "from": source} for relation, source in back],
        uses=workspace.browse.uses(memory),
        unverified=workspace.history.is_unverified(memory),
        unreviewed=workspace.history.is_unreviewed(memory),
        worded=workspace.browse.wording(memory).text,
    )
    if result.unverified:
        workspace.notices.append("this record was edited by hand and is not committed")
    if result.unreviewed:
        workspace.notices.append("this record came with a branch that nobody reviewed")
    session.show(result, lambda: _print_record(record, (out, back), result))
    workspace.browse.opened(memory)


def _print_record(
    record: Memory,
    edges: tuple[list[tuple[str, str]], list[tuple[str, str]]],
    shown: ShownRecord,
) -> None:
    uses = shown.uses
    say(f"{click.style(record.id, fg='cyan')}  {click.style(record.kind, dim=True)}")
    document = record.document()
    body = document.pop("body", None)
    for name, value in document.items():
        if name not in {"id", "$schema", "links"}:
            _print_field(name, value)
    if shown.worded:
        _print_field("told as", shown.worded)
    if body is not None:
        say()
        say(safe(body.rstrip()))
        say()
    for title, pairs in zip(("refers to", "referred to by"), edges, strict=True):
        if pairs:
            say(click.style(title, bold=True))
            bullets(f"{one_line(other)} ({one_line(relation)})" for relation, other in pairs)
    if uses.times:
        judged = f", helpful {uses.helpful}, not {uses.unhelpful}" * bool(
            uses.helpful + uses.unhelpful
        )
        times = plural(uses.times, "time")
        say(click.style(f"used {times} here, last on {uses.last[:_DATE_LENGTH]}{judged}", dim=True))
    say(click.style(one_line(shown.path), dim=True))


def _print_field(name: str, value: Any, depth: int = 0) -> None:
    indent = "  " * depth
    label = click.style(one_line(name), bold=True)
    if isinstance(value, dict):
        say(f"{indent}{label}")
        for inner, item in value.items():
            _print_field(inner, item, depth + 1)
    elif isinstance(value, list):
        say(f"{indent}{label}{'' if value else '  none'}")
        for item in value:
            say(f"{indent}  - {indented(_inline(item), f'{indent}    ')}")
    else:
        say(f"{indent}{label}  {indented(str(value), f'{indent}    ')}")


def _inline(item: Any) -> str:
    if isinstance(item, dict):
        return safe(", ".join(f"{name}: {_inline(value)}" for name, value in item.items()))
    if isinstance(item, list):
        return safe(", ".join(map(str, item)))
    return safe(str(item))


@command("list")
@click.option(
    "--kind", type=KindChoice([*KINDS, *FACT_TYPES]), help="Only this kind, or type of fact."
)
@click.option(
    "--status",
    metavar="STATUS",
    help="Only this status; `all` includes what is superseded, rejected or retired.",
)
@click.option("--since", metavar="DATE", help="Only memories from this date on.")
@click.option(
    "--scope", type=click.Choice(["project", "local", "user", "session"]), help="Only this scope."
)
@click.option("-n", "--limit", type=click.IntRange(1), help="At most this many.")
@click.option("--project", metavar="DIR", help="The memory of another folder's workspace.")
def list_command(session: Session, limit: int | None, project: str | None, **filters: Any) -> None:
    """List memories, newest first, one line each.

    \b
    Example:
      loki-mem list --kind pattern --since 2026-01-01
    """
    workspace = session.open(project)
    found = workspace.browse.summaries(**filters)
    empty = "nothing matches; --status all shows hidden memories too"
    if not any(filters.values()):
        empty = 'nothing is remembered yet: loki-mem remember "…"'
        hidden = len(workspace.browse.summaries(status="all")) if not found else 0
        if hidden:
            empty = f"{plural(hidden, 'memory')} hidden; `loki-mem list --status all` shows them"
    show_list(session, found, limit, empty)


def show_list(session: Session, found: list[Summary], limit: int | None, empty: str) -> None:
    shown = found[:limit]
    if session.json:
        print_json(Listing([_listed(summary) for summary in shown], len(found)))
        return
    if not found:
        note(empty)
    table([_row(summary) for summary in shown], {0: "cyan"})
    if len(shown) < len(found):
        note(f"{len(found) - len(shown)} more; raise --limit")


def _listed(summary: Summary) -> ListedMemory:
    return ListedMemory(*summary[:8], bool(summary.pinned))  # `show` has the path


def _row(summary: Summary) -> list[str]:
    scope = "" if summary.scope == "project" else f" [{summary.scope}]"
    state = "" if summary.status == "active" else f" {coloured_status(summary.status)}"
    title = one_line(summary.title, 90) + state + scope
    return [summary.id, summary.kind, summary.at[:_DATE_LENGTH], title]


@command("learnings")
@click.option("--since", metavar="DATE", help="Only learnings from this date on.")
@click.option("-n", "--limit", type=click.IntRange(1), help="At most this many.")
def learnings_command(session: Session, since: str | None, limit: int | None) -> None:
    """List what was learned from errors, newest first.

    These are the notes that somebody wrote down, and every anti-pattern with a remedy, on each day
    of an episode that it rests on.

    \b
    Example:
      loki-mem learnings --since 2026-01-10
    """
    workspace = session.open()
    found = workspace.browse.learnings(since)
    empty = 'none yet; `loki-mem remember --kind learning "…"` adds one'
    show_list(session, found, limit, empty)


@command("stats")
@click.option(
    "--economics", is_flag=True, help="Show the tokens that memory has sent, by occasion."
)
@click.option("--since", metavar="DATE", help="With --economics: from that day on.")
@click.option("--metrics", is_flag=True, help="Sum the last seven days, into .loki/metrics too.")
def stats_command(session: Session, economics: bool, since: str | None, metrics: bool) -> None:
    """Count the memories by kind, status, agent, day and the like.

    With --metrics, sum the work of the last seven days: outcomes, errors, retries, and how often
    each tool failed. It is written to `.loki/metrics`, where Loki Mode has it, and git ignores it.

    \b
    Example:
      loki-mem stats
      loki-mem stats --metrics
    """
    workspace = session.open()
    if metrics:
        work = workspace.browse.metrics()
        session.show(work, lambda: _print_metrics(work))
    elif economics:
        spent = workspace.browse.economics(since)
        session.show(spent, lambda: _print_economics(spent))
    else:
        found = workspace.browse.stats()
        session.show(found, lambda: _print_stats(found))


def _print_metrics(work: Metrics) -> None:
    say(f"{work.since} to {work.until}: {plural(work.tasks, 'task')}")
    for outcome, number in work.outcomes.items():
        say(f"  {safe(outcome).ljust(8)}  {number:,}")
    if work.median_seconds is not None:
        say(f"  duration  {work.median_seconds:,.0f} s (median)")
    say(f"  errors    {work.errors:,}, {work.resolved:,} of them resolved")
    say(f"  retries   {work.retries:,}")
    say(f"  sent      {work.tokens_sent:,} tokens by memory")
    for use in work.tools[:_TOOLS]:
        say(f"  {one_line(use.tool, 40)}  {plural(use.calls, 'call')}, {use.failed:,} failed")
    say(f"written to .loki/metrics: {', '.join(work.written) or 'nothing'}")
    if work.kept:
        note(f"left as it is, because somebody else wrote it: {', '.join(work.kept)}")


def _print_economics(spent: Economics) -> None:
    """Print sums over the journal; only the tokens are an estimate, bytes / 4."""
    for entry in spent.sent:
        times = plural(entry.times, "time")
        say(f"sent     {entry.tokens:,} tokens by {safe(entry.surface)}, {times}")
    if not spent.sent:
        say("sent     nothing yet")
    say(f"opened   {spent.opened:,} tokens of {plural(spent.opens, 'memory')}")
    for outcome, number in spent.outcomes.items():
        say(f"{safe(outcome).ljust(7)}  {plural(number, 'task')}")
    for sentence in spent.advice:
        say(click.style(sentence, fg="yellow"))
    note("tokens are estimated as bytes / 4")


def _print_stats(found: Stats) -> None:
    for name, value in found._asdict().items():
        if isinstance(value, dict):
            pairs = "  ".join(f"{safe(key)} {number:,}" for key, number in value.items())
            say(f"{click.style(name.ljust(12), bold=True)}  {pairs or '-'}")
        else:
            say(
                f"{click.style(name.replace('_', ' ').ljust(12), bold=True)}  {_shown(name, value)}"
            )


def _shown(name: str, value: float) -> str:
    if name.endswith("rate"):
        return f"{value:.1%} (`loki-mem audit` names them)"
    return size(int(value)) if name.endswith("bytes") else f"{value:,}"
