"""Commands that look around: topics, timeline, graph, and feedback on what was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from loki_memory.browse import DRAWINGS, TIMELINE_BUDGET, TOPICS_BUDGET, WAYS
from loki_memory.cli.common import Session, command, complete_id, id_argument
from loki_memory.cli.output import note, one_line, safe, say, table
from loki_memory.models.text import plural

if TYPE_CHECKING:
    from loki_memory.browse.topics import Branch, Item, Timeline, Topics
    from loki_memory.index.index import Summary

_PARTS = {
    "blockers": "Blocked by",
    "focus": "Focus",
    "next_up": "Next",
    "key_decisions": "Decisions",
    "recent_actions": "Lately",
}


class NamedMemory(NamedTuple):
    """A memory by its name."""

    id: str
    kind: str
    title: str


class TraversedMemories(NamedTuple):
    """Printed by `traverse`."""

    memories: list[NamedMemory]


@command("topics")
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=TOPICS_BUDGET,
    show_default=True,
    help="At most this many tokens.",
)
def topics_command(session: Session, budget: int) -> None:
    """List the topics of memory, with the tokens that each takes.

    Topics are memories that have others below them, then categories, then kinds.

    \b
    Example:
      loki-mem topics
    """
    workspace = session.open()
    found = workspace.browse.topics(budget)
    session.show(found, lambda: _print_topics(found))


def _print_topics(found: Topics) -> None:
    if not found.topics:
        note('nothing is remembered yet: loki-mem remember "…"')
        return
    for topic in found.topics:
        say(safe(topic.line()))
    more = f"and {plural(found.more, 'more topic')}; " if found.more else ""
    number = plural(found.total_memories, "memory")
    say(click.style(f"{more}{number} in all, {found.total_tokens:,} tokens (estimated)", dim=True))
    note("next: `loki-mem explore TOPIC` opens one, by its id or its name")


@command("timeline")
@click.option("--since", metavar="DATE", help="Only what happened on or after this date.")
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=TIMELINE_BUDGET,
    show_default=True,
    help="At most this many tokens.",
)
def timeline_command(session: Session, since: str | None, budget: int) -> None:
    """Show what happened lately, what was decided, and who is blocked.

    \b
    Example:
      loki-mem timeline --since 2026-01-12
    """
    workspace = session.open()
    found = workspace.browse.timeline(since, budget)
    session.show(found, lambda: _print_timeline(found))


def _print_timeline(found: Timeline) -> None:
    parts: dict[str, list[Item]] = {name: getattr(found, name) for name in _PARTS}
    if not any(parts.values()):
        note("no episode, decision, ledger or handoff matches")
    for name, items in parts.items():
        if items:
            say(click.style(_PARTS[name], bold=True))
        for item in items:
            say(f"  {safe(item.line())}")
    if found.more:
        note(f"{found.more} more; raise --budget")


@command("graph")
@click.argument("memory", metavar="ID", required=False, shell_complete=complete_id)
@click.option("--all", "every", is_flag=True, help="The whole graph, for dot, mermaid or --json.")
@click.option(
    "--depth", type=click.IntRange(1, 3), default=1, show_default=True, help="Links to follow."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(DRAWINGS),
    default="text",
    show_default=True,
    help="How to draw it: for the terminal, for Graphviz, or for Mermaid.",
)
def graph_command(session: Session, memory: str | None, every: bool, depth: int, form: str) -> None:
    """Draw a memory's neighbours in the graph, in both directions.

    ID may also be a file of the project: file:src/app.ts. The beginning of a memory's
    ID is enough if it is unique.

    \b
    Example:
      loki-mem graph sem-001 --depth 2
    """
    if (memory is None) != every:
        raise click.UsageError("name one ID, or say --all.")
    if every and form == "text" and not session.json:
        raise click.UsageError("the whole graph is for --format dot, --format mermaid or --json.")
    workspace = session.open()
    if memory is None:
        found = workspace.browse.whole_graph()
    else:
        name = memory if memory.startswith("file:") else workspace.resolve(memory)
        found = workspace.browse.graph(name, depth)
    session.show(found, lambda: say(safe(workspace.browse.drawing(found, form))))
    if found.more:
        note(f"{plural(found.more, 'neighbour')} left out")


@command("explore")
@click.argument("memory", metavar="TOPIC")
@click.option(
    "--depth", type=click.IntRange(0, 9), default=2, show_default=True, help="Levels to show."
)
def explore_command(session: Session, memory: str, depth: int) -> None:
    """Draw a topic with everything below it.

    TOPIC is the id of a memory, or a category or kind as `loki-mem topics` names it.

    \b
    Example:
      loki-mem explore fact-0d548y5qh8
    """
    workspace = session.open()
    found = workspace.browse.explore(memory, depth)
    session.show(found, lambda: _print_branch(found))


def _print_branch(branch: Branch, lead: str = "", own: str = "") -> None:
    more = f"  ({branch.below} below)" if branch.below and not branch.children else ""
    say(f"{own}{click.style(branch.id, fg='cyan')}  {one_line(branch.title, 90)}{more}")
    for number, child in enumerate(branch.children, 1):
        is_last = number == len(branch.children)
        _print_branch(
            child, lead + ("   " if is_last else "│  "), lead + ("└─ " if is_last else "├─ ")
        )


@command("traverse")
@id_argument
@click.argument("way", type=click.Choice(WAYS))
def traverse_command(session: Session, memory: str, way: str) -> None:
    """List a memory's parent, children or linked memories.

    The subtree is everything below it; associations are the memories that it is linked to.

    \b
    Example:
      loki-mem traverse sem-001 associations
    """
    workspace = session.open()
    found = workspace.browse.traverse(memory, way)
    shown = [NamedMemory(memory.id, memory.kind, memory.title) for memory in found]
    session.show(TraversedMemories(shown), lambda: _print_found(found))


def _print_found(found: Sequence[Summary]) -> None:
    if not found:
        note("there are none")
    table([[memory.id, memory.kind, one_line(memory.title, 100)] for memory in found], {0: "cyan"})
