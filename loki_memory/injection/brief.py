"""The brief: what an agent is told when its session begins, in ten lines at most.

First the routine, the rules that linters enforce and what people asked for, then gates that fail,
open handoffs, and the lessons: those nearest to the goal, or without a goal the mistakes that came
again and what people noted last; at the end what several sessions said, and conventions. There are
no headings; where nothing is worth telling, nothing is told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.index import gate
from loki_memory.injection.context import warnings
from loki_memory.injection.gate import (
    RESUMED,
    Gate,
    as_hit,
    is_silent,
    linter_rule,
    told_before,
)
from loki_memory.injection.line import BulletLine, bullet, gist, tellable
from loki_memory.injection.nearest import SessionGoal, general, nearest, noted
from loki_memory.injection.told import ToldLine, distinct, note_told, told_lines
from loki_memory.models.text import tokens
from loki_memory.recall.result import Recollection

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace
    from loki_memory.models import Handoff

_LINES, _TOKENS = 10, 400  # at most
_RULES, _FAILING, _HANDOFFS, _MISTAKES = 4, 2, 2, 3
_NEAR, _OFTEN = 5, 2  # lessons near the goal, and mistakes for any goal
_AGAIN = 2  # episodes that met a mistake which is told without a goal
_GENERAL = 4  # sentences of sessions for any work
_EXAMPLE = re.compile(r"(?<=\.) E\.g\. .*?(?= \(\d+ episodes\)$|$)")
_FEW, _MOST = 2, 6  # rules of linters that are told in one line; a single one has its own
_VERDICTS = 30  # of gates that are looked at


def brief(
    workspace: OpenWorkspace,
    goal: str,
    handoffs: Iterable[Handoff],
    session: str,
    surface: str,
    files: Sequence[str] = (),
) -> str:
    """The lines for a session that begins; empty if there is nothing to tell.

    A session that is resumed has what it was told before.
    """
    known = told_before(workspace, session) if surface == RESUMED else set()
    every = brief_lines(workspace, goal, handoffs, session, files)
    lines = [told for told in every if told.id not in known]
    note_told(workspace, lines, surface, goal, session)
    return "\n".join(told.text for told in lines)


def brief_lines(
    workspace: OpenWorkspace,
    goal: str,
    handoffs: Iterable[Handoff],
    session: str = "",
    files: Sequence[str] = (),
) -> list[ToldLine]:
    """The lines of a brief, each with its memory; the journal does not note them."""
    if is_silent(workspace):
        return []
    workspace.home.ensure("folders")
    passes = Gate(workspace)
    rules = distinct(islice(told_lines(passes, _rules(workspace)), _RULES))
    often = _often(workspace, passes)
    known = {name for told in (*rules, *often.line) for name in (told.id, *told.others)}
    parts = (
        rules,
        often.line,
        islice(_failing(workspace, passes), _FAILING),
        islice(map(_handoff, handoffs), _HANDOFFS),
        _near(workspace, SessionGoal(goal, files), passes, known, session) if goal.strip() else (),
        islice(_in_words(passes, often.others), _OFTEN if goal.strip() else _MISTAKES),
        () if goal.strip() else told_lines(passes, noted(workspace)),
        islice(told_lines(passes, general(workspace)), _GENERAL),
    )
    return list(_fitting(distinct(chain.from_iterable(parts))))


def _fitting(lines: Iterable[ToldLine]) -> Iterator[ToldLine]:
    """The first lines that fit; a line that is too long does not keep out a shorter one."""
    room = _TOKENS
    for told in islice(lines, _LINES):
        if tokens(told.text) <= room:
            room -= tokens(told.text)
            yield told


def _rules(workspace: OpenWorkspace) -> Iterator[Recollection]:
    """The routine, and what people asked for."""
    for home in workspace.homes:
        yield from (as_hit("fact", rule) for rule in gate.standing(home.index, _RULES))


def _failing(workspace: OpenWorkspace, passes: Gate) -> Iterator[ToldLine]:
    """Gates that failed last: commands that sessions ran here, and verdicts that were recorded."""
    from loki_memory.ingest.gate_runs import failing_gates

    for run in failing_gates(workspace):
        said = tellable("gate", {}, f"`{run.command}` failed last: {run.complaint or 'no details'}")
        yield ToldLine("", bullet(BulletLine("", "gate", said)))
    yield from _verdicts(workspace, passes)


def _verdicts(workspace: OpenWorkspace, passes: Gate) -> Iterator[ToldLine]:
    """Gates of the project whose last verdict was a failure, newest first."""
    seen: set[str] = set()
    for verdict in gate.verdicts(workspace.index, "", _VERDICTS):
        if verdict.gate in seen:
            continue
        seen.add(verdict.gate)
        record = json.loads(verdict.body)
        met = [error.get("message", "") for error in record.get("errors_encountered") or ()]
        if record.get("outcome") == "failure" and record["id"] not in passes.held:
            said = f"{verdict.gate} failed last: {'; '.join(filter(None, met[:2])) or 'no details'}"
            told = bullet(BulletLine(record["id"], "episode", tellable("episode", record, said)))
            if told:
                yield ToldLine(record["id"], told)


def _handoff(handoff: Handoff) -> ToldLine:
    said = gist(handoff.kind, handoff.title(), handoff.document())
    text = tellable(handoff.kind, {}, said)
    return ToldLine(handoff.id, bullet(BulletLine(handoff.id, handoff.kind, text)))


def _near(
    workspace: OpenWorkspace, work: SessionGoal, passes: Gate, known: set[str], session: str
) -> Iterator[ToldLine]:
    """The lessons nearest to the work, without those that are known."""
    lessons = nearest(workspace, work, session)
    at_place = {lesson.hit.id for lesson in lessons if lesson.near.is_at_place}
    hits = (lesson.hit for lesson in lessons if lesson.hit.id not in known)
    return islice(told_lines(passes, hits, at_place), _NEAR)


def _in_words(passes: Gate, mistakes: Iterable[Recollection]) -> Iterator[ToldLine]:
    """Lines of mistakes without the example of what helped, which is told when it is needed."""
    for told in told_lines(passes, mistakes):
        yield told._replace(text=_EXAMPLE.sub("", told.text))


class _Often(NamedTuple):
    """The mistakes that came again: the rules of linters in one line, and the others."""

    line: Sequence[ToldLine]  # none if there are few rules
    others: Sequence[Recollection]


def _often(workspace: OpenWorkspace, passes: Gate) -> _Often:
    """The mistakes that came again, those of most sessions first.

    What mends a breach of a linter's rule is told when the linter reports it. Before that its name
    is enough, and one line has room for several.
    """
    found = [
        hit
        for hit, _ in warnings(workspace, (), passes, unasked=True)
        if hit.evidence >= _AGAIN or not hit.evidence
    ]
    broken = {hit.id: rule for hit, record in passes.passed(found) if (rule := linter_rule(record))}
    if len(broken) < _FEW:
        return _Often((), found)
    names = ", ".join(f"`{rule}`" for rule in list(dict.fromkeys(broken.values()))[:_MOST])
    text = bullet(BulletLine("", "memory", f"Linters here refused most often: {names}."))
    first, *more = broken
    line = ToldLine(first, text, tuple(more))
    return _Often([line], [hit for hit in found if hit.id not in broken])
