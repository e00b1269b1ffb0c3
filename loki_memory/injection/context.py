"""The context before a task.

Only what this project's own people and agents have seen is put into a context; what was imported
or comes from outside waits until it is asked for. Where nobody asked for a context either, it holds
only what is proven (`index.gate`). Order is stable (by id within a group), so that a prompt
cache holds while memory does not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import InvalidRecord
from loki_memory.injection.gate import Gate, is_silent
from loki_memory.injection.line import InjectedLine, bullet, injected_line, line, line_of_hit
from loki_memory.injection.mistakes import mistakes
from loki_memory.injection.session_state import clone_line
from loki_memory.models.fence import fenced
from loki_memory.models.text import tokens
from loki_memory.recall.recall import RecallOptions, note_shown, recall
from loki_memory.recall.result import Recollection

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

# As in Loki Mode's documents: five beliefs, three episodes, skills that fit.
_BELIEFS, EPISODES, _SKILLS, WARNINGS = 5, 3, 3, 8
_LOOKED_AT = 40  # hits among which each group finds its own
_NEAR = 0.2  # of the best chance, below which nothing is injected
FORMATS = ("compact", "detailed", "json", "system", "preamble")

_HEADINGS = {
    "avoid_these": "Mistakes to avoid",
    "relevant_patterns": "What was learned",
    "applicable_skills": "Skills that apply",
    "episodes": "What happened before",
}
_PARAGRAPH = "\n\n"


class TaskContext(NamedTuple):
    """The memories for a task; each group in the order of its ids."""

    goal: str
    task: str
    relevant_patterns: list[InjectedLine]
    avoid_these: list[InjectedLine]
    applicable_skills: list[InjectedLine]
    episodes: list[InjectedLine]
    tokens: int  # of all lines, estimated as bytes / 4
    filtered: int  # withheld because their scores were too low
    withheld: str = ""  # why nothing is told: the memories came with a clone that nobody trusts

    def groups(self) -> dict[str, list[InjectedLine]]:
        return {
            "relevant_patterns": self.relevant_patterns,
            "avoid_these": self.avoid_these,
            "applicable_skills": self.applicable_skills,
            "episodes": self.episodes,
        }

    def text(self, form: str) -> str:
        """Format the context as a harness injects it. Equal memory gives equal bytes."""
        if form not in FORMATS:
            raise InvalidRecord(f"{form!r} is not a format", advice=f"Use: {', '.join(FORMATS)}.")
        every = self.groups()
        groups = {
            name: list(filter(None, (bullet(line(injected)) for injected in every[name])))
            for name in _HEADINGS
        }
        if not any(groups.values()):
            return self.withheld
        if form == "compact":
            every_line = chain.from_iterable(groups.values())
            return "\n".join(["# Context", fenced("\n".join(every_line))]) + "\n"
        top = {
            "detailed": "# Context",
            "system": "## Relevant Context from Previous Conversations",
            "preamble": "Before I begin, this is what I remember of this project.",
        }[form]
        level = "##" if form == "detailed" else "###"
        parts: list[str] = []
        for name, lines in groups.items():
            if lines:
                head = f"{level} {_HEADINGS[name]}" if form != "preamble" else f"{_HEADINGS[name]}:"
                parts.append("\n".join([head, *lines]))
        return f"{top}\n\n{fenced(_PARAGRAPH.join(parts))}\n"


class _Group(NamedTuple):
    kinds: tuple[str, ...]
    most: int


_GROUPS = {
    "avoid_these": _Group(("anti-pattern", "learning"), WARNINGS),
    "relevant_patterns": _Group(("pattern", "fact"), _BELIEFS),
    "applicable_skills": _Group(("skill",), _SKILLS),
    "episodes": _Group(("episode",), EPISODES),
}


def context(
    workspace: OpenWorkspace,
    goal: str,
    phase: str,
    files: Sequence[str],
    error: str,
    budget: int,
    session: str | None = None,
) -> TaskContext:
    """Build the context of a task, within a budget of tokens."""
    if not goal.strip():
        raise InvalidRecord("is empty", field="goal", advice="Say what the task is about.")
    gate = Gate(workspace)
    found, task, filtered = found_for(workspace, goal, phase, files, error, gate, session=session)
    kept, used = _within(found, budget)
    hits = [hit for group in found.values() for hit, _ in group]
    note_shown(workspace, "context", goal, hits, session)
    groups = {name: sorted(lines, key=lambda line: line.id) for name, lines in kept.items()}
    why = _why_withheld(workspace)
    return TaskContext(goal, task, **groups, tokens=used, filtered=filtered, withheld=why)


def _why_withheld(workspace: OpenWorkspace) -> str:
    """One line about memories that came with an untrusted clone; empty in a trusted one."""
    if workspace.home.trust().is_trusted:
        return ""
    workspace.home.ensure("folders")
    return clone_line(workspace)


def found_for(
    workspace: OpenWorkspace,
    goal: str,
    phase: str,
    files: Sequence[str],
    error: str,
    gate: Gate,
    *,
    unasked: bool = False,
    session: str | None = None,
) -> tuple[dict[str, list[tuple[Recollection, InjectedLine]]], str, int]:
    """Find the memories of each group, best first, without withheld ones; none if memory is off.

    Unasked, only what passes the whole gate.
    """
    if is_silent(workspace):
        return {name: [] for name in _GROUPS}, "", 0
    options = RecallOptions(goal, _LOOKED_AT, files=files, error=error, session=session)
    asked = options.asked(workspace.now(), injected=True, unasked=unasked)
    hits, _ = recall(workspace, asked, phase=phase)
    least = _NEAR * hits[0].score if hits and not hits.in_few else 0.0
    above = [hit for hit in hits if hit.score >= least]
    near = [hit for hit, _ in gate.passed(above)] if unasked else gate.asked(above)
    groups: dict[str, list[tuple[Recollection, InjectedLine]]] = {}
    for name, group in _GROUPS.items():
        chosen = [hit for hit in near if hit.kind in group.kinds][: group.most]
        if name == "avoid_these":
            groups[name] = warnings(workspace, chosen, gate, unasked=unasked)
        else:
            lines = (
                (hit, injected_line(workspace, hit, gate.held.record(workspace, hit.id)))
                for hit in chosen
            )
            groups[name] = with_text(lines)
    return groups, hits.task, hits.filtered


def warnings(
    workspace: OpenWorkspace,
    hits: Sequence[Recollection],
    gate: Gate,
    *,
    unasked: bool = False,
) -> list[tuple[Recollection, InjectedLine]]:
    """Earlier mistakes: those near the goal, and the most frequent ones."""
    found = mistakes(workspace, hits, WARNINGS, gate.held, unasked=unasked)
    if unasked:
        found = [(hit, text) for hit, text in found if gate.admits(hit)]
    return with_text((hit, line_of_hit(hit, text)) for hit, text in found)


def with_text(
    found: Iterable[tuple[Recollection, InjectedLine]],
) -> list[tuple[Recollection, InjectedLine]]:
    """Drop memories without text."""
    return [(hit, line) for hit, line in found if line.text]


def _within(
    found: dict[str, list[tuple[Recollection, InjectedLine]]], budget: int
) -> tuple[dict[str, list[InjectedLine]], int]:
    """Take the best of each group in turn, as long as the lines fit."""
    kept: dict[str, list[InjectedLine]] = {name: [] for name in found}
    used, depth = 0, max(map(len, found.values()), default=0)
    for rank_ in range(depth):
        for name, group in found.items():
            if rank_ < len(group):
                injected = group[rank_][1]
                cost = tokens(bullet(line(injected)) + "\n")
                if used + cost <= budget:
                    kept[name].append(injected)
                    used += cost
    return kept, used
