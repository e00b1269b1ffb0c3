"""The context before a task.

Only what this project's own people and agents have seen is put into a context; what was imported
or comes from outside waits until it is asked for. Where nobody asked for a context either, it holds
only what is proven (`index.gate`). Order is stable (by id within a group), so that a prompt
cache holds while memory does not change.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import chain, islice
from math import exp2
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import InvalidRecord
from loki_memory.index import gate as index_gate
from loki_memory.injection.gate import Gate, Withheld, is_silent
from loki_memory.injection.line import InjectedLine, bullet, injected_line, line
from loki_memory.injection.session_state import clone_line
from loki_memory.models.error_signature import signature
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

_HALF_LIFE = 30  # days; of the decayed counters in the study the best predictor of reuse
_FIRST = 5  # of the most frequent mistakes, before others near the goal
_NEARNESS = 3  # the nearest counts as if 1 + this many times as many sessions had met it
_OF_COMMAND = 2  # lines about one command
_RUNNING = re.compile(r"\s*\(running ([^()]*)\)$")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


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
    asked = options.as_query(workspace.now(), injected=True, unasked=unasked)
    hits, _ = recall(workspace, asked, phase=phase)
    least = _NEAR * hits[0].score if hits and not hits.in_few else 0.0
    above = [hit for hit in hits if hit.score >= least]
    near = [hit for hit, _ in gate.passed(above)] if unasked else gate.shown(above)
    groups: dict[str, list[tuple[Recollection, InjectedLine]]] = {}
    for name, group in _GROUPS.items():
        chosen = [hit for hit in near if hit.kind in group.kinds][: group.most]
        if name == "avoid_these":
            groups[name] = warnings(workspace, chosen, gate, unasked=unasked)
        else:
            groups[name] = injected(workspace, chosen, gate.held)
    return groups, hits.task, hits.filtered


def injected(
    workspace: OpenWorkspace, hits: Iterable[Recollection], held: Withheld
) -> list[tuple[Recollection, InjectedLine]]:
    """The lines of memories, with the words that may be told; without those that have none."""
    return list(_injected(workspace, hits, held))


def _injected(
    workspace: OpenWorkspace, hits: Iterable[Recollection], held: Withheld
) -> Iterator[tuple[Recollection, InjectedLine]]:
    for hit in hits:
        line = injected_line(workspace, hit, held.record(workspace, hit.id))
        if line.text:
            yield hit, line


# -- mistakes to avoid -----------------------------------------------------------------------------

# Warnings that most sessions met come first, where a session counts less with its age, and one near
# the goal counts as if it had been met more often. A command has few lines, and complaints that
# differ only in the names they mention have one.


class Mistake(NamedTuple):
    """A warning, and the sessions that met it."""

    hit: Recollection
    met: Mapping[str, str]  # session -> its last day; empty if it was only stated

    @property
    def command(self) -> str:
        """The command or tool; empty if the warning names none."""
        found = _RUNNING.search(self.hit.title)
        return found[1] if found else ""

    def complaint(self) -> str:
        """Say what fails, without the names in it."""
        text = _RUNNING.sub("", self.hit.title)
        known = signature(text)
        return known.broad if known else text


def warnings(
    workspace: OpenWorkspace,
    hits: Sequence[Recollection],
    gate: Gate,
    *,
    unasked: bool = False,
) -> list[tuple[Recollection, InjectedLine]]:
    """Earlier mistakes, best first: the most frequent ones, and those near the goal."""
    known = {mistake.hit.id: mistake for mistake in _mistakes(workspace, gate.held, unasked)}
    for hit in hits:
        met = known[hit.id] if hit.id in known else Mistake(hit, {})
        known[hit.id] = Mistake(hit._replace(evidence=max(hit.evidence, met.hit.evidence)), met.met)
    ordered = in_order(known.values(), [hit.id for hit in hits])
    near = [known[hit.id] for hit in hits]
    every = {m.hit.id: m for m in [*ordered[:_FIRST], *near, *ordered[_FIRST:]]}
    told = (mistake.hit for mistake in distinct(every.values()))
    passed = filter(gate.admits, told) if unasked else gate.shown(told)
    return list(islice(_injected(workspace, passed, gate.held), WARNINGS))


def in_order(found: Iterable[Mistake], near: Sequence[str]) -> list[Mistake]:
    """The warnings by the sessions that met them; `near` are ids, the nearest to the goal first."""
    every = list(found)
    newest = max((day for mistake in every for day in mistake.met.values()), default="")
    ranks = {name: rank for rank, name in enumerate(near, 1)}

    def weight(mistake: Mistake) -> float:
        nearness = _NEARNESS / ranks[mistake.hit.id] if mistake.hit.id in ranks else 0
        return _weight(mistake.met, newest) * (1 + nearness)

    return sorted(every, key=lambda m: (-weight(m), -(m.hit.confidence or 0), m.hit.id))


def distinct(found: Iterable[Mistake]) -> Iterator[Mistake]:
    """The first of complaints that differ only in the names they mention, few of each command."""
    seen: set[str] = set()
    lines: Counter[str] = Counter()
    for mistake in found:
        complaint, command = mistake.complaint(), mistake.command
        if complaint not in seen and (not command or lines[command] < _OF_COMMAND):
            seen.add(complaint)
            lines[command] += 1
            yield mistake


def _weight(met: Mapping[str, str], newest: str) -> float:
    """Count sessions by their age; a warning that was only stated counts as one of today."""
    if not met:
        return 1.0
    return round(sum(exp2(-_days(day, newest) / _HALF_LIFE) for day in met.values()), 6)


def _days(day: str, newest: str) -> int:
    return (date.fromisoformat(newest) - date.fromisoformat(day)).days if day else 0


def _mistakes(workspace: OpenWorkspace, held: Withheld, unasked: bool) -> Iterator[Mistake]:
    """The warnings of the project with the words that may be told, each with its sessions."""
    hits: dict[str, Recollection] = {}
    met: defaultdict[str, dict[str, str]] = defaultdict(dict)
    episodes: Counter[str] = Counter()
    for row in index_gate.warnings(workspace.index, unasked=unasked):
        hits[row.id] = Recollection(
            row.id, "anti-pattern", row.title, confidence=row.confidence, status=row.status
        )
        if row.episode:
            session, day = row.session or row.episode, row.at[:10] or _day(row.episode)
            met[row.id][session] = max(day, met[row.id].get(session, ""))
            episodes[row.id] += row.episode not in held
    for hit in held.passing(hits.values()):
        number = episodes[hit.id]
        why = (f"met in {number} episodes",) if number else ()
        yield Mistake(hit._replace(evidence=number, why=why), met[hit.id])


def _day(episode: str) -> str:
    """The day in the id of an episode, for archived ones."""
    found = _DAY.search(episode)
    return found[0] if found else ""


# -- within a budget -------------------------------------------------------------------------------


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
