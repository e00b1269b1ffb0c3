"""Commands for agents among themselves: ledgers and handoffs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from loki_memory.cli.common import (
    Session,
    StoredRecord,
    command,
    finish_writing,
    is_terminal,
    stored_record,
)
from loki_memory.cli.output import (
    HELP,
    bullets,
    note,
    one_line,
    print_json,
    safe,
    say,
    table,
)
from loki_memory.cli.read import show_command
from loki_memory.errors import InvalidRecord, NoLedger, NotFound
from loki_memory.models import Handoff, Ledger, Memory
from loki_memory.models.team import is_addressed, is_role
from loki_memory.models.text import plural
from loki_memory.team import BUDGET

if TYPE_CHECKING:
    from loki_memory.team.brief import Brief, BriefSection
    from loki_memory.workspace import Workspace

_WHOLE = 1_000_000  # tokens: a plan is shown with nothing left out
_budget = click.option(
    "--budget",
    type=click.IntRange(1),
    default=BUDGET,
    show_default=True,
    help="At most this many tokens.",
)


class LedgerOutput(NamedTuple):
    """An agent's ledger, and whether a checkpoint waits to be written into it."""

    id: str
    kind: str
    record: dict[str, Any]
    waiting: bool


class Ledgers(NamedTuple):
    """Printed by `ledger`: all of them, or an agent's."""

    ledgers: list[LedgerOutput]


class BriefOutput(NamedTuple):
    """A brief, as parts and as Markdown."""

    subject: str
    sections: list[BriefSection]  # without empty ones
    left_out: int  # lines that did not fit
    more: str  # the command that shows them
    tokens: int
    text: str


class ResumeOutput(NamedTuple):
    """Printed by `ledger AGENT --resume`."""

    brief: BriefOutput


class HandoffOutput(NamedTuple):
    """A handoff and its state."""

    id: str
    kind: str
    state: str
    record: dict[str, Any]


class Handoffs(NamedTuple):
    """Printed by `handoff list`."""

    handoffs: list[HandoffOutput]


class PlannedHandoff(NamedTuple):
    """A handoff that is not written."""

    id: str
    kind: str
    record: dict[str, Any]


class HandoffPlan(NamedTuple):
    """Printed by `handoff create --plan`."""

    planned: PlannedHandoff


class AcceptedHandoff(NamedTuple):
    """Printed by `handoff accept`, and by `ledger` for a checkpoint with `--resume`."""

    stored: list[StoredRecord]
    brief: BriefOutput


@command("ledger")
@click.argument("agent", required=False)
@click.option("--task", help="The current task; writes a checkpoint.")
@click.option("--goal", help="The current goal; writes a checkpoint.")
@click.option("--completed", type=click.IntRange(0), help="Tasks completed so far.")
@click.option("--file", "touched", multiple=True, help="A modified file; repeatable.")
@click.option("--commit", help="The last git commit.")
@click.option("--resume", is_flag=True, help="Print what AGENT needs to carry on.")
@_budget
def ledger_command(
    session: Session, agent: str | None, resume: bool, budget: int, **given: Any
) -> None:
    """List ledgers, show AGENT's, or write a checkpoint into it.

    With --resume, print where AGENT stood, what it has taken on and what waits for it, mistakes
    to avoid and relevant memories, within a budget of tokens.

    \b
    Example:
      loki-mem ledger qa-001-testing --task task-042 --goal "Test the search"
      loki-mem ledger eng-001-backend --resume --budget 400
    """
    workspace = session.open()
    fields = _fields(given)
    if agent is None:
        if resume or fields:
            raise click.UsageError("name the AGENT.")
        _list(session, workspace)
    elif fields:
        ledger = workspace.team.check_in(agent, **fields)
        brief = workspace.team.resume_brief(agent, budget) if resume else None
        _report(session, workspace, ledger, brief)
    elif resume:
        brief = workspace.team.resume_brief(agent, budget)
        session.show(ResumeOutput(_printed(brief)), lambda: _print(brief))
    else:
        _show(session, workspace, agent)


def _fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the options into fields of a ledger."""
    state = _without_empty(files_modified=list(given["touched"]), last_git_commit=given["commit"])
    return _without_empty(
        tasks_completed=given["completed"],
        current_task=given["task"],
        state=state,
        context=_without_empty(current_goal=given["goal"]),
    )


def _without_empty(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, [], {})}


def _list(session: Session, workspace: Workspace) -> None:
    rows = workspace.team.ledgers()
    waiting = workspace.team.waiting_checkpoints()
    shown = [_described(ledger, waiting) for ledger in rows]
    session.show(Ledgers(shown), lambda: _print_ledgers(rows))
    if waiting:
        agents = plural(len(waiting), "agent")
        note(f"checkpoints of {agents} are waiting; `loki-mem commit` writes them")


def _described(ledger: Ledger, waiting: Mapping[str, Ledger]) -> LedgerOutput:
    return LedgerOutput(ledger.id, ledger.kind, ledger.document(), ledger.agent_id in waiting)


def _print_ledgers(found: list[Ledger]) -> None:
    if not found:
        note("no agent has checked in; `loki-mem ledger AGENT --task …` does")
    table(
        [[one_line(r.agent_id), (r.last_checkpoint or "")[:16], _aim(r)] for r in found],
        {0: "cyan"},
    )


def _aim(ledger: Ledger) -> str:
    return one_line(ledger.context.current_goal or ledger.current_task or "-", 90)


def _show(session: Session, workspace: Workspace, agent: str) -> None:
    """Print a ledger as its file has it, and the checkpoint that waits to be written."""
    ledger = workspace.team.ledger_of(agent)
    if ledger is None:
        raise NoLedger(agent)
    waiting = workspace.team.waiting_checkpoints()
    if session.json:
        print_json(Ledgers([_described(ledger, waiting)]))
        return
    try:
        workspace.get(ledger.id)
        click.get_current_context().invoke(show_command, memory=ledger.id, as_json=False)
    except NotFound:
        say(click.style(ledger.id, fg="cyan"))
    if ledger.agent_id in waiting:
        say(click.style("a checkpoint that waits to be written:", bold=True))
        bullets(one_line(line) for line in _flat(waiting[ledger.agent_id].document()))


def _flat(document: Mapping[str, Any], inside: str = "") -> list[str]:
    lines = []
    for name, value in document.items():
        if isinstance(value, dict):
            lines += _flat(value, f"{inside}{name}.")
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list) else value
            lines.append(f"{inside}{name}: {text}")
    return lines


def _report(session: Session, workspace: Workspace, record: Memory, brief: Brief | None) -> None:
    """Print the record that was stored, with its brief if there is one."""
    if brief is None or not session.json:
        finish_writing(session, workspace, [record])
        if brief is not None:
            _print(brief)
        return
    print_json(AcceptedHandoff([stored_record(workspace, record)], _printed(brief)))


def _print(brief: Brief) -> None:
    say(safe(brief.text()).rstrip("\n"))


def _printed(brief: Brief) -> BriefOutput:
    return BriefOutput(*brief, brief.tokens, brief.text())


@click.group("handoff", context_settings=HELP, invoke_without_command=True)
@click.pass_context
def handoff_command(ctx: click.Context) -> None:
    """Pass work between agents: create, list, accept, close.

    \b
    Example:
      loki-mem handoff create eng-001-backend qa-001-testing "Added search" --test paging
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _subcommand(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    def decorate(function: Callable[..., Any]) -> click.Command:
        made = command(name)(function)
        handoff_command.add_command(made)
        return made

    return decorate


@_subcommand("create")
@click.argument("from_agent", metavar="FROM")
@click.argument("to_agent", metavar="TO")
@click.argument("what", required=False)
@click.option("--artifact", "artifacts", multiple=True, help="A file that was made; repeatable.")
@click.option("--test", "needs_testing", multiple=True, help="What needs testing; repeatable.")
@click.option("--issue", "known_issues", multiple=True, help="A known issue; repeatable.")
@click.option("--pattern", "relevant_patterns", multiple=True, help="A memory's ID; repeatable.")
@click.option("--git-state", help="The state of git, instead of what git reports.")
@click.option("--plan", is_flag=True, help="Show what would be handed over, and write nothing.")
def create(
    session: Session, from_agent: str, to_agent: str, what: str | None, plan: bool, **context: Any
) -> None:
    """Hand work over to another agent, or to a role such as qa.

    Memory adds what FROM recorded since its last handoff to what you give: goals that it
    reached, files that it changed, tests that fail, errors that nothing resolved, memories that
    helped, and the state of git. WHAT was done is asked for only if no success is recorded.

    An agent in another clone gets it through git: commit memory and push.

    \b
    Example:
      loki-mem handoff create eng-001-backend qa-001-testing "Added search" --test paging
      loki-mem handoff create eng-002-frontend qa --plan
    """
    workspace = session.open()
    given = {k: list(v) if isinstance(v, tuple) else v for k, v in context.items() if v}
    make = workspace.team.draft_handoff if plan else workspace.team.hand_off
    try:
        handoff = make(from_agent, to_agent, what, **given)
    except InvalidRecord as error:
        if error.field != "what_was_done" or not is_terminal():
            raise
        what = click.prompt("What was done", err=True)
        handoff = make(from_agent, to_agent, what, **given)
    if plan:
        _print_plan(session, workspace, handoff)
        return
    finish_writing(session, workspace, [handoff])
    if workspace.history.is_automatic():
        for text in workspace.history.commit(from_agent).remarks():
            note(text)


def _print_plan(session: Session, workspace: Workspace, planned: Handoff) -> None:
    result = HandoffPlan(PlannedHandoff(planned.id, planned.kind, planned.document()))
    brief = workspace.team.handoff_brief(planned, _WHOLE)
    session.show(result, lambda: _print(brief))


@_subcommand("list")
@click.option("--to", "to_agent", help="Only those to this agent, or to its role.")
@click.option("--all", "everything", is_flag=True, help="Include those that are done or expired.")
def list_handoffs(session: Session, to_agent: str | None, everything: bool) -> None:
    """List handoffs that are open or accepted.

    \b
    Example:
      loki-mem handoff list --to qa-001-testing
    """
    workspace = session.open()
    found = [
        record
        for record in workspace.list(kind="handoff")
        if isinstance(record, Handoff)
        and (everything or record.state in {"open", "accepted"})
        and (to_agent is None or is_addressed(record.to_agent or "", to_agent))
    ]
    shown = [HandoffOutput(r.id, r.kind, r.state, r.document()) for r in found]
    session.show(Handoffs(shown), lambda: _print_handoffs(found))


def _print_handoffs(found: list[Handoff]) -> None:
    if not found:
        note("none; `loki-mem handoff list --all` shows those that are done")
    table([[r.id, r.state, one_line(r.title(), 90)] for r in found], {0: "cyan", 1: "yellow"})


@_subcommand("accept")
@click.argument("handoff", metavar="ID")
@click.option("--by", help="The agent that takes it on; its ledger will refer to it.")
@_budget
def accept(session: Session, handoff: str, by: str | None, budget: int) -> None:
    """Accept a handoff, and print what is needed to carry on.

    That is: what was done, whether HEAD moved since, what to test, known issues, the statement of
    each relevant pattern, and which artifacts are missing or changed since.

    \b
    Example:
      loki-mem handoff accept handoff-pntnsg6v73 --by ops-001-devops
    """
    workspace = session.open()
    record = workspace.team.accept(workspace.resolve(handoff), by)
    brief = workspace.team.handoff_brief(record, budget)
    _report(session, workspace, record, brief)
    if by is None and is_role(record.to_agent or ""):
        note("no ledger refers to it: --by AGENT says who takes it on")


@_subcommand("close")
@click.argument("handoff", metavar="ID")
@click.option("--note", "remark", help="How it ended.")
@click.option("--expired", is_flag=True, help="It was not done and is no longer wanted.")
def close(session: Session, handoff: str, remark: str | None, expired: bool) -> None:
    """Mark a handoff as done.

    \b
    Example:
      loki-mem handoff close handoff-pxfhe1devs --note "all tests pass"
    """
    workspace = session.open()
    status = "expired" if expired else "done"
    record = workspace.team.close_handoff(workspace.resolve(handoff), remark, status)
    finish_writing(session, workspace, [record])
