"""Render what matters now as the block of CONTINUITY.md, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.continuity.block import sealed
from loki_memory.injection.line import (
    GOAL_LIMIT,
    TEXT_LIMIT,
    BulletLine,
    bullet,
    labelled,
    one_line,
)
from loki_memory.injection.repetition import fullest, repeats
from loki_memory.models.fence import fenced
from loki_memory.models.text import BYTES_PER_TOKEN
from loki_memory.resources import template

if TYPE_CHECKING:
    from jinja2 import Template

# The order in which sections take lines, and the share of the bytes that each may fill then.
# Mistakes come first, with room for five long ones in the usual 1,000 tokens: avoiding them saves
# most. Ledgers and handoffs are short and cannot be searched for. Relevant memories fill the rest,
# and then every section that still has lines.
_TURNS = (
    ("standing", 0.2),
    ("mistakes", 0.5),
    ("ledger", 0.1),
    ("handoffs", 0.1),
    ("memories", 1.0),
    ("standing", 1.0),
    ("mistakes", 1.0),
    ("ledger", 1.0),
    ("handoffs", 1.0),
)

Lists = Mapping[str, Sequence[str]]


class Now(NamedTuple):
    """The content of the block for one agent; every list best first."""

    goal: str
    memories: Sequence[BulletLine]
    mistakes: Sequence[BulletLine]  # anti-patterns and learnings
    handoffs: Sequence[BulletLine] = ()  # open ones to this agent, or to all
    ledger: Sequence[str] = ()  # "current task: task-7", "blocked by: …", "next: …"
    standing: Sequence[BulletLine] = ()  # routine, preferences and rules, whatever the goal is


def render(now: Now, budget: int) -> str:
    """Render the block with its markers, within `budget` tokens; equal input gives equal bytes.

    Lines are whole or left out, and the last line counts those left out. A budget too small for
    that gives up the goal, then all but the markers; these alone (about 30 tokens) are rendered
    however small the budget is, because a block without markers could not be found again.
    """
    lists = _bullets(now)
    goal = one_line(now.goal, GOAL_LIMIT)
    goal = goal and labelled("goal", goal)
    total = _count(lists)
    for head, more in ((goal, 0), (goal, total), ("", total)):
        room = _room(budget, head, lists, more)
        kept = _fill(lists, room)
        left = total - _count(kept)
        if room >= 0 and (more or not left):
            return _block(head, kept, left)
    return sealed("")


def _count(lists: Lists) -> int:
    return sum(map(len, lists.values()))


def _bullets(now: Now) -> dict[str, list[str]]:
    ledger = (one_line(entry, TEXT_LIMIT) for entry in now.ledger)
    standing = fullest(list(filter(None, map(bullet, now.standing))))
    memories = filter(None, map(bullet, now.memories))
    return {
        "standing": standing,
        "memories": [
            line for line in memories if not any(repeats(line, rule) for rule in standing)
        ],
        "mistakes": list(filter(None, map(bullet, now.mistakes))),
        "handoffs": list(filter(None, map(bullet, now.handoffs))),
        "ledger": [labelled("ledger", entry) for entry in ledger if entry],
    }


def _room(budget: int, goal: str, lists: Lists, more: int) -> int:
    """The bytes that are left for lines, never more than the lines have."""
    shape = {name: [""] * bool(lines) for name, lines in lists.items()}  # headings take room too
    return budget * BYTES_PER_TOKEN - len(_block(goal, shape, more).encode())


def _fill(lists: Lists, room: int) -> dict[str, Sequence[str]]:
    """The first lines of every list, as many as fit."""
    taken = dict.fromkeys(lists, 0)
    whole = room
    for name, share in _TURNS:
        costs = [len(line.encode()) + 1 for line in lists[name][taken[name] :]]
        turn = min(room, max(int(share * whole), costs[0] if costs else 0))
        for cost in costs:
            turn -= cost
            if turn < 0:
                break
            room -= cost
            taken[name] += 1
    return {name: lines[: taken[name]] for name, lines in lists.items()}


def _block(goal: str, lists: Lists, more: int) -> str:
    return sealed(f"{fenced(_template().render(goal=goal, more=more, **lists))}\n")


@cache
def _template() -> Template:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    environment = SandboxedEnvironment(
        undefined=StrictUndefined,
        autoescape=False,  # Markdown, and `line` has made every text inert
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.from_string(template("continuity.md.j2"))
