"""Commands for agents among themselves: ledgers and handoffs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from loki_memory.cli.commit import tell_commit
from loki_memory.cli.common import Session, command, finish_writing
from loki_memory.cli.output import note, one_line, remarks, say, table
from loki_memory.cli.read import show_command
from loki_memory.errors import NoLedger, NotFound
from loki_memory.models import Handoff, Ledger, parse
from loki_memory.workspace import Workspace


@command("ledger")
@click.argument("agent", required=False)
@click.option("--task", help="Check in with this current task.")
@click.option("--goal", help="Check in with this current goal.")
@click.option("--completed", type=click.IntRange(0), help="Tasks completed so far.")
@click.option("--file", "touched", multiple=True, help="A modified file; repeatable.")
@click.option("--commit", help="The last git commit.")
def ledger_command(session: Session, agent: str | None, **given: Any) -> None:
    """List ledgers, show AGENT's, or write a checkpoint into it.

    \b
    Example:
      loki-mem ledger qa-001-testing --task task-042 --goal "Test the search"
    """
    workspace = session.open()
    if agent is None:
        rows = workspace.list(kind="ledger")
        shown = [{"id": r.id, "kind": r.kind, "record": r.document()} for r in rows]
        session.show({"ledgers": shown}, lambda: _tell_ledgers(rows))
        remarks(workspace)
    elif any(value not in (None, ()) for value in given.values()):
        ledger = _checkpoint(workspace, agent, given)
        finish_writing(session, workspace, [workspace.checkpoint(ledger)])
    else:
        ledger_id = parse(Ledger, {"agent_id": agent}).id
        try:
            workspace.get(ledger_id)
        except NotFound:
            raise NoLedger(agent) from None
        click.get_current_context().invoke(show_command, memory=ledger_id, as_json=session.json)


def _checkpoint(workspace: Workspace, agent: str, given: dict[str, Any]) -> dict[str, Any]:
    """The agent's last ledger with what is new."""
    try:
        ledger = workspace.get(parse(Ledger, {"agent_id": agent}).id).document()
    except NotFound:
        ledger = {"agent_id": agent}
    ledger.pop("last_checkpoint", None)
    state, context = dict(ledger.get("state", {})), dict(ledger.get("context", {}))
    new = {
        "tasks_completed": given["completed"],
        "current_task": given["task"],
        "state": {
            **state,
            **_given(files_modified=list(given["touched"]), last_git_commit=given["commit"]),
        },
        "context": {**context, **_given(current_goal=given["goal"])},
    }
    return {**ledger, **_given(**new)}


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, [], {})}


def _tell_ledgers(ledgers: list[Any]) -> None:
    if not ledgers:
        note("no agent has checked in; `loki-mem ledger AGENT --task …` does")
    table(
        [[one_line(r.agent_id), (r.last_checkpoint or "")[:16], _aim(r)] for r in ledgers],
        {0: "cyan"},
    )


def _aim(ledger: Ledger) -> str:
    return one_line(ledger.context.current_goal or ledger.current_task or "-", 90)


@click.group("handoff")
def handoff_command() -> None:
    """Pass work between agents: create, list, accept, close.

    \b
    Example:
      loki-mem handoff create eng-001-backend qa-001-testing "Added search" --test paging
    """


def _subcommand(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    def decorate(function: Callable[..., Any]) -> click.Command:
        made = command(name)(function)
        handoff_command.add_command(made)
        return made

    return decorate


@_subcommand("create")
@click.argument("from_agent", metavar="FROM")
@click.argument("to_agent", metavar="TO")
@click.argument("what_was_done")
@click.option("--artifact", "artifacts", multiple=True, help="A file that was made; repeatable.")
@click.option("--test", "needs_testing", multiple=True, help="What needs testing; repeatable.")
@click.option("--issue", "known_issues", multiple=True, help="A known issue; repeatable.")
@click.option("--pattern", "relevant_patterns", multiple=True, help="A memory's ID; repeatable.")
@click.option("--git-state", help="Where the work stands in git.")
def create(
    session: Session, from_agent: str, to_agent: str, what_was_done: str, **context: Any
) -> None:
    """Hand work over to another agent.

    In a git repository, memory is committed, so that the other one can pull it.

    \b
    Example:
      loki-mem handoff create eng-001-backend qa-001-testing "Added search" --test paging
    """
    workspace = session.open()
    given = {k: list(v) if isinstance(v, tuple) else v for k, v in context.items() if v}
    finish_writing(
        session, workspace, [workspace.hand_off(from_agent, to_agent, what_was_done, **given)]
    )
    tell_commit(workspace.commit(from_agent))


@_subcommand("list")
@click.option("--to", "to_agent", help="Only those to this agent.")
@click.option("--all", "everything", is_flag=True, help="Those that are done or expired, too.")
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
        and to_agent in {None, record.to_agent}
    ]
    shown = [{"id": r.id, "kind": r.kind, "state": r.state, "record": r.document()} for r in found]
    session.show({"handoffs": shown}, lambda: _tell_handoffs(found))
    remarks(workspace)


def _tell_handoffs(found: list[Handoff]) -> None:
    if not found:
        note("none; `loki-mem handoff list --all` shows those that are done")
    table([[r.id, r.state, one_line(r.title(), 90)] for r in found], {0: "cyan", 1: "yellow"})


@_subcommand("accept")
@click.argument("handoff", metavar="ID")
@click.option("--by", help="The agent that takes it on.")
def accept(session: Session, handoff: str, by: str | None) -> None:
    """Take on a handoff, and print what it asks for.

    \b
    Example:
      loki-mem handoff accept handoff-pntnsg6v73 --by ops-001-devops
    """
    workspace = session.open()
    record = workspace.accept(workspace.resolve(handoff), by)
    finish_writing(session, workspace, [record])
    if not session.json:
        for name, value in record.document().get("context", {}).items():
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            if text:
                say(f"  {one_line(name)}: {one_line(text)}")


@_subcommand("close")
@click.argument("handoff", metavar="ID")
@click.option("--note", "remark", help="How it ended.")
@click.option("--expired", is_flag=True, help="It was not done and is no longer wanted.")
def close(session: Session, handoff: str, remark: str | None, expired: bool) -> None:
    """Say that a handoff is done.

    \b
    Example:
      loki-mem handoff close handoff-pxfhe1devs --note "all tests pass"
    """
    workspace = session.open()
    status = "expired" if expired else "done"
    record = workspace.close_handoff(workspace.resolve(handoff), remark, status)
    finish_writing(session, workspace, [record])
