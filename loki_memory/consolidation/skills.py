"""Learn skills: what successful episodes with the same kind of goal did alike.

A skill that we wrote is written again when its evidence changes. One that a person wrote, or
changed after us, is left alone: what we would write goes beside it as a proposal.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from loki_memory.consolidation.actions import Move
from loki_memory.consolidation.features import EpisodeFeatures
from loki_memory.consolidation.habits import (
    PRIVATE,
    PROPOSAL,
    Habit,
    Stratum,
    best_habit,
    strangers,
    strata,
)
from loki_memory.consolidation.lint import lint
from loki_memory.consolidation.provenance import differs, ids_in, is_live, least_trusted, newest
from loki_memory.consolidation.snapshot import BeliefChange, PhaseChanges, Snapshot, Touched
from loki_memory.consolidation.weigh import Feedback, feedback
from loki_memory.models import AntiPattern, Skill, tombstone_id
from loki_memory.models.ids import digest
from loki_memory.models.prompt_injection import gives_instructions, pipes_download
from loki_memory.models.text import shorten

SOURCE = "consolidation"
_SESSIONS = 3  # that did the same
_NO_TASK = re.compile(r"\s*(?:/[\w-]|~|\[|<)")  # how a goal begins that names no work


def proceduralise(snapshot: Snapshot, touched: Touched | None = None) -> PhaseChanges:  # noqa: ARG001 - a kind of goals depends on all of them
    """The skills that episodes teach."""
    anywhere = strangers(snapshot)
    troubles, written, told = Troubles(snapshot), WrittenSkill(snapshot), feedback(snapshot)
    put: list[Skill] = []
    taught: set[str] = set()
    archive: list[str] = []
    steps: list[BeliefChange] = []
    for stratum in strata(snapshot):
        habit = best_habit(stratum, anywhere)
        skill = habit and _skill(stratum, habit, snapshot, (troubles, told))
        if not habit or not skill or _is_unfit(habit) or lint(skill):
            continue
        replaced = written.before(skill, stratum)
        taught.add(skill.id)
        old = snapshot.records.get(skill.id)
        if differs(skill, snapshot.records):
            put.append(skill)
            steps.append(_step(skill, old is None, habit))
        archive += [entry.id for entry in replaced]
        steps += [
            BeliefChange("superseded", entry.id, entry.title(), (), f"now {skill.id}")
            for entry in replaced
        ]
    for entry in _untaught(taught.union(archive), snapshot):
        archive.append(entry.id)
        steps.append(
            BeliefChange("retired", entry.id, entry.title(), (), "episodes no longer teach it")
        )
    return PhaseChanges(tuple(put), tuple(sorted(set(archive))), tuple(steps))


def _is_unfit(habit: Habit) -> bool:
    """Tell whether too few sessions did it, or their goals name no task but a command or path."""
    sessions = {episode.session or episode.id for episode in habit.evidence}
    named = sum(_NO_TASK.match(episode.goal) is not None for episode in habit.evidence)
    return len(sessions) < _SESSIONS or 2 * named > len(habit.evidence)


def _untaught(done: set[str], snapshot: Snapshot) -> list[Skill]:
    """Skills of ours that their episodes, together with those that came since, no longer teach."""
    return [
        skill for skill in snapshot.of(Skill) if skill.id not in done and _is_due(skill, snapshot)
    ]


def _is_due(skill: Skill, snapshot: Snapshot) -> bool:
    """Check whether a skill is ours to judge, and all that it was learned from is here."""
    evidence = set(ids_in(skill, "loki-evidence"))
    if not evidence or not is_ours(skill) or _is_pinned(skill) or skill.id in snapshot.archived:
        return False
    return snapshot.records.keys() >= evidence


def _step(skill: Skill, is_new: bool, habit: Habit) -> BeliefChange:
    evidence = tuple(ids_in(skill, "loki-evidence"))
    why = f"{len(evidence)} successes; chance of success {habit.gain():+.2f} in this kind of task"
    return BeliefChange(
        "learned" if is_new else "strengthened", skill.id, skill.title(), evidence, why
    )


def _skill(
    stratum: Stratum,
    habit: Habit,
    snapshot: Snapshot,
    known: tuple[Troubles, Mapping[str, Feedback]],
) -> Skill | None:
    """The skill under the name that is free for it; None if a person rejected it."""
    name, (troubles, told) = stratum.name, known
    if not is_ours(snapshot.records.get(f"skill-{name}")):
        name += PROPOSAL
        if not is_ours(snapshot.records.get(f"skill-{name}")):
            return None
    if {tombstone_id(stratum.name), tombstone_id(name)} & snapshot.rejected:
        return None
    words = procedure(stratum, habit)
    written = Skill.from_sections(
        name,
        words.when,
        title=stratum.name.replace("-", " ").capitalize(),
        prerequisites=words.prerequisites,
        steps=words.steps,
        common_errors=troubles.of(stratum),
        exit_criteria=exit_criteria(words.checks),
        metadata=_metadata(habit, told.get(f"skill-{name}", Feedback()), snapshot),
    )
    marked = {**written.metadata, "loki-digest": digest("body", written.body)}
    return written.changed(metadata=marked | _reviewed(snapshot.records.get(written.id), written))


def _reviewed(old: object, new: Skill) -> dict[str, str]:
    """Return what a person said of a skill holds as long as it says the same."""
    if not isinstance(old, Skill) or old.body != new.body or "loki-reviewed" not in old.metadata:
        return {}
    kept = ("loki-reviewed", "loki-origin")
    return {name: old.metadata[name] for name in kept if name in old.metadata}


def is_ours(skill: object) -> bool:
    """Check whether we may write here: nobody has, or we did and nobody changed it since."""
    if not isinstance(skill, Skill):
        return skill is None
    mark = digest("body", skill.body)
    return skill.metadata.get("loki-source") == SOURCE and skill.metadata.get("loki-digest") == mark


class WrittenSkill:
    """Skills of ours that may be replaced, by the first episode of their evidence."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._by_first: dict[str, list[Skill]] = defaultdict(list)
        for skill in snapshot.of(Skill):
            evidence = ids_in(skill, "loki-evidence")
            if evidence and is_ours(skill) and not _is_pinned(skill):
                self._by_first[evidence[0]].append(skill)

    def before(self, skill: Skill, stratum: Stratum) -> list[Skill]:
        """Return those about the same episodes, from when their goals shared other words."""
        inside = {episode.id for episode in stratum.episodes}
        found = (entry for name in inside for entry in self._by_first.get(name, ()))
        covered = (entry for entry in found if inside.issuperset(ids_in(entry, "loki-evidence")))
        return sorted(
            (entry for entry in covered if entry.id != skill.id), key=lambda entry: entry.id
        )


def _is_pinned(skill: Skill) -> bool:
    return bool((skill.model_extra or {}).get("pinned"))


def _metadata(habit: Habit, told: Feedback, snapshot: Snapshot) -> dict[str, str]:
    evidence = habit.evidence
    compared = newest(
        {user.id for user in (*habit.users, *habit.others)} - {e.id for e in evidence}
    )
    confidence = habit.confidence(told, snapshot)
    verdicts = {"loki-helped": told.helped, "loki-misled": told.misled}
    return {
        "loki-source": SOURCE,
        "loki-origin": least_trusted((*habit.users, *habit.others)),
        "loki-status": "active" if confidence >= snapshot.thresholds.confident else "candidate",
        "loki-confidence": f"{confidence:.2f}",
        "loki-date": max(episode.date for episode in evidence),
        "loki-evidence": ", ".join(newest(episode.id for episode in evidence)),
        **({"loki-compared": ", ".join(compared)} if compared else {}),
        **{name: ", ".join(newest(ids)) for name, ids in verdicts.items() if ids},
    }


# -- A habit in words: when to follow it, what it needs, its steps, what goes wrong, how it ends. --

_COMMON = 0.8  # of the evidence: what is called common
_ERRORS = 3
_TERSE = 2  # words: a fix of so few is a command, not what was changed
_LINE = 160


class Procedure(NamedTuple):
    """The words of a habit: they follows from episodes alone."""

    when: str
    prerequisites: list[str]
    steps: list[str]
    checks: list[str]


def procedure(stratum: Stratum, habit: Habit) -> Procedure:
    """The habit of a kind of goals in words."""
    ran = _common(episode.checks for episode in habit.evidence)
    return Procedure(when(stratum), prerequisites(habit.evidence), steps(habit, ran), ran)


def when(stratum: Stratum) -> str:
    """The trigger: the shared words, and the shortest goal as an example."""
    goals = (success.goal for success in stratum.successes)
    shortest = min(goals, key=lambda goal: (len(goal), goal))
    return f"Use when the task is to {stratum.name.replace('-', ' ')}, such as: {_line(shortest)}"


def prerequisites(evidence: Sequence[EpisodeFeatures]) -> list[str]:
    """Constraints that nearly all had, and files that nearly all started from."""
    constraints = _common(episode.constraints for episode in evidence)
    given = _common(episode.needed for episode in evidence)
    return [*map(_line, constraints), *(f"`{path}` exists" for path in given)]


def _common(values: Iterable[Iterable[str]]) -> list[str]:
    """Return what nearly all have, in the order of the alphabet."""
    sets = [frozenset(entry) for entry in values]
    count = Counter(value for entry in sets for value in entry)
    return sorted(value for value, n in count.items() if value and n >= _COMMON * len(sets))


def steps(habit: Habit, checks: Iterable[str]) -> list[str]:
    """The moves in words, and at the end the checks that nearly all made besides."""
    made = {move.head for move in habit.moves}
    besides = [Move(head) for head in checks if head not in made]
    return [_sentence(move, habit.evidence) for move in (*habit.moves, *besides)]


def _sentence(wanted: Move, evidence: Sequence[EpisodeFeatures]) -> str:
    """One step in words: what to run, or which tool to use on which file."""
    made = [first_action for episode in evidence for first_action in episode.first_actions(wanted)]
    targets = Counter(entry.done for entry in made)
    if any(entry.is_command for entry in made):
        return f"Run `{_usual(targets, len(made)) or wanted.head}`"
    verb = wanted.head.replace("_", " ").partition(" ")[0].capitalize()
    where = _usual(targets, len(made)) or _pattern_of(targets)
    named = f"`{where}`" if where else f"a {wanted.place} file" if wanted.place else "what it needs"
    return f"{verb} {named} ({wanted.head})"


def _usual(targets: Counter[str], total: int) -> str:
    """Return what more than half did literally, if it fits into a line."""
    usual, count = min(targets.items(), key=lambda pair: (-pair[1], pair[0]))
    fits = len(usual) <= _LINE and "\n" not in usual and "`" not in usual
    return usual if fits and count * 2 > total else ""


def _pattern_of(targets: Iterable[str]) -> str:
    """`src/routes/*.ts` for files of one folder and one extension."""
    folders = {path.rpartition("/")[0] for path in targets}
    endings = {path.rpartition(".")[2] for path in targets}
    if len(folders) > 1 or len(endings) > 1 or not min(folders):
        return ""
    return f"{min(folders)}/*.{min(endings)}"


class Troubles:
    """Errors with a fix that can be told, by the episodes that met them."""

    def __init__(self, snapshot: Snapshot) -> None:
        errors = [antipattern for antipattern in snapshot.of(AntiPattern) if is_live(antipattern)]
        self._told = {
            error.id: error for error in errors if error.scope not in PRIVATE and _is_told(error)
        }
        self._met: dict[str, set[str]] = defaultdict(set)
        for error in errors:
            above = (link.to for link in error.links if link.relation == "example_of")
            kinds = self._told.keys() & {error.id, *above}
            for episode in error.evidence.for_ if kinds else ():
                self._met[episode].update(kinds)

    def of(self, stratum: Stratum) -> list[tuple[str, str]]:
        """Return what went wrong in this kind of task, most often first, and what helped."""
        met = Counter(
            entry for episode in stratum.episodes for entry in self._met.get(episode.id, ())
        )
        often = sorted(met, key=lambda entry: (-met[entry], entry))
        told = (self._told[entry] for entry in often[:_ERRORS])
        return [(_symptom(entry), _line(entry.prevention or "")) for entry in told]


def _is_told(error: AntiPattern) -> bool:
    planted = gives_instructions(error.what_fails) or pipes_download(error.prevention or "")
    return len(_line(error.prevention or "").split()) > _TERSE and not planted


def _symptom(error: AntiPattern) -> str:
    """Return what fails, on one line; a colon ends it where a skill lists errors and fixes."""
    return (
        _line(error.what_fails.replace(". (running", " (running")).replace(": ", " - ").rstrip(".")
    )


def exit_criteria(checks: Iterable[str]) -> list[str]:
    return [f"`{check}` passes" for check in checks]


def _line(text: str) -> str:
    """A text on one line, cut at a word."""
    return shorten(" ".join(text.split()), _LINE, at_word=True)
