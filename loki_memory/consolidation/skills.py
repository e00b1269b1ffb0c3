"""Learn skills: what successful episodes with the same kind of goal did alike.

A skill that we wrote is written again when its evidence changes. One that a person wrote, or
changed after us, is left alone: what we would write goes beside it as a proposal.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from loki_memory.consolidation.habits import (
    PROPOSAL,
    Habit,
    Stratum,
    best_habit,
    strangers,
    strata,
)
from loki_memory.consolidation.lint import lint
from loki_memory.consolidation.provenance import differs, ids_in, least_trusted, newest
from loki_memory.consolidation.skill_text import Troubles, exit_criteria, procedure
from loki_memory.consolidation.snapshot import BeliefChange, PhaseChanges, Snapshot, Touched
from loki_memory.consolidation.weigh import Feedback, feedback
from loki_memory.models import Skill, tombstone_id
from loki_memory.models.ids import digest

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
