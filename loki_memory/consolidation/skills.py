"""Learn skills: what successful episodes with the same kind of goal did alike.

Goals of one cluster are the stratum. Within it, episodes that made certain moves are compared with
those that did not: across strata, easy goals would make any habit look good. Moves that episodes
with other goals make as often say nothing about this one.

A skill that we wrote is written again when its evidence changes. One that a person wrote, or
changed after us, is left alone: what we would write goes beside it as a proposal.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from loki_memory.consolidation.glance import Glance, glance
from loki_memory.consolidation.kinship import kinds
from loki_memory.consolidation.likeness import FUNCTION_WORDS
from loki_memory.consolidation.lint import lint
from loki_memory.consolidation.sequences import Move, contains, is_command, move
from loki_memory.consolidation.snapshot import Changes, Snapshot, Step, Touched
from loki_memory.consolidation.sources import ids_in, is_live, least_trusted
from loki_memory.consolidation.strangers import Strangers
from loki_memory.consolidation.weigh import Feedback, feedback
from loki_memory.models import Action, AntiPattern, Episode, Skill, tombstone_id
from loki_memory.models.confidence import confidence as weighed
from loki_memory.models.ids import digest, slug

SOURCE = "consolidation"
PROPOSAL = "-proposal"
_GAIN = 0.1  # of the chance to succeed
_ERROR_RATIO = 0.6  # … or errors per task, where success is not rarer
_MINED = 60  # successes of one stratum that are searched; the count goes over all
_COMMON = 0.8  # of the evidence: what is called common
_PRIVATE = frozenset({"local", "session"})  # scopes whose episodes no tracked skill may quote
_CHECK = re.compile(
    r"\b(?:tests?|lint|build|check|verify|tsc|mypy|ruff|pytest|vitest|jest|eslint)\b"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]+")
_NAME_WORDS = 6
_ERRORS = 3
_TERSE = 2  # words: a fix of so few is a command, not what was changed
_LINE = 160


class Stratum(NamedTuple):
    """Episodes with one kind of goal, in the order of time, under the words that they share."""

    name: str
    episodes: list[Episode]

    @property
    def successes(self) -> list[Episode]:
        return [one for one in self.episodes if one.outcome == "success"]

    @property
    def mark(self) -> str:
        """What tells it from any other."""
        return digest("stratum", self.name, *(one.id for one in self.episodes))


class Habit(NamedTuple):
    """Moves that some episodes of a stratum made, and those that did not."""

    moves: tuple[Move, ...]
    users: list[Episode]
    others: list[Episode]

    @property
    def evidence(self) -> list[Episode]:
        return [one for one in self.users if one.outcome == "success"]

    def gain(self) -> float:
        """How much likelier success is with it; few episodes are held back by the priors."""
        with_it = (2 + _successes(self.users)) / (3 + _judged(self.users))
        without = (1 + _successes(self.others)) / (2 + _judged(self.others))
        return with_it - without

    def error_ratio(self) -> float:
        """Errors per episode with it, to those without; 1 where there is nothing to compare."""
        without = _errors(self.others)
        return _errors(self.users) / without if without else 1.0

    def advantage(self) -> int:
        """Whether success is more (1) or less (-1) frequent with it; more if all have it."""
        here, there = _judged(self.users), _judged(self.others)
        if not there:
            return 1
        ahead = _successes(self.users) * there - _successes(self.others) * here
        return (ahead > 0) - (ahead < 0)

    def helps(self, least: int) -> bool:
        """The priors alone are no gain: success must really be more frequent."""
        succeeds = self.gain() >= _GAIN and self.advantage() > 0
        spares_errors = self.error_ratio() <= _ERROR_RATIO and self.advantage() >= 0
        return len(self.evidence) >= least and (succeeds or spares_errors)

    def confidence(self, told: Feedback, snapshot: Snapshot) -> float:
        """Beta(2,1) over sessions: of those that did it, and of those that it was shown to."""
        good = {one.session or one.id for one in self.evidence} | _sessions(snapshot, told.helped)
        bad = {one.session or one.id for one in self.users if one.outcome == "failure"}
        bad |= _sessions(snapshot, told.misled)
        return weighed(len(good), len(bad))


def _sessions(snapshot: Snapshot, episodes: Iterable[str]) -> set[str]:
    known = (snapshot.records.get(one) for one in episodes)
    return {one.session or one.id for one in known if isinstance(one, Episode)}


def proceduralise(snapshot: Snapshot, touched: Touched | None = None) -> Changes:
    """The skills that episodes teach; a kind of goal that is as it was teaches what it taught."""
    anywhere = Strangers.of(snapshot)
    troubles, written, told = Troubles(snapshot), Written(snapshot), feedback(snapshot)
    known = touched and Known(snapshot, touched, anywhere, troubles)
    put: list[Skill] = []
    taught: set[str] = set()
    archive: list[str] = []
    steps: list[Step] = []
    for stratum in snapshot.once("strata", strata):
        if known and known.has(stratum):
            taught.update(_ids(stratum))
            continue
        habit = best_habit(stratum, anywhere)
        skill = habit and _skill(stratum, habit, snapshot, (troubles, told))
        if not habit or not skill or lint(skill):
            continue
        replaced = written.before(skill, stratum)
        taught.add(skill.id)
        old = snapshot.records.get(skill.id)
        if old is None or old.document() != skill.document():
            put.append(skill)
            steps.append(_step(skill, old is None, habit))
        archive += [one.id for one in replaced]
        steps += [
            Step("superseded", one.id, one.title(), (), f"now {skill.id}") for one in replaced
        ]
    for one in _untaught(taught.union(archive), snapshot):
        archive.append(one.id)
        steps.append(Step("retired", one.id, one.title(), (), "episodes no longer teach it"))
    return Changes(tuple(put), tuple(sorted(set(archive))), tuple(steps))


class Known:
    """The kinds of goals that the last run looked at, as they are now."""

    def __init__(
        self, snapshot: Snapshot, touched: Touched, anywhere: Strangers, troubles: Troubles
    ) -> None:
        self._touched = touched
        self._is_same = touched.clusters is None or touched.strangers == anywhere.mark
        self._skills = {one.id: one for one in snapshot.of(Skill) if is_ours(one)}
        self._judged = feedback(snapshot, touched)
        self._troubles = troubles

    def has(self, stratum: Stratum) -> bool:
        """Whether nothing is new: its episodes, what is said of its skill, what goes wrong."""
        if not self._is_same or not self._saw(stratum):
            return False
        skills = [self._skills[name] for name in _ids(stratum) if name in self._skills]
        usual = self._troubles.of(stratum)
        return all(one.id not in self._judged and one.common_errors == usual for one in skills)

    def _saw(self, stratum: Stratum) -> bool:
        if self._touched.clusters is None:
            return not self._touched.holds(one.id for one in stratum.episodes)
        return stratum.mark in self._touched.clusters


def _ids(stratum: Stratum) -> tuple[str, str]:
    """The skill of a stratum, and the proposal that stands beside one that a person wrote."""
    return f"skill-{stratum.name}", f"skill-{stratum.name}{PROPOSAL}"


def _untaught(done: set[str], snapshot: Snapshot) -> list[Skill]:
    """Skills of ours that their episodes, together with those that came since, no longer teach."""
    return [one for one in snapshot.of(Skill) if one.id not in done and _is_due(one, snapshot)]


def _is_due(skill: Skill, snapshot: Snapshot) -> bool:
    """Whether a skill is ours to judge, and all that it was learned from is here."""
    evidence = set(ids_in(skill, "loki-evidence"))
    if not evidence or not is_ours(skill) or _is_pinned(skill) or skill.id in snapshot.archived:
        return False
    return snapshot.records.keys() >= evidence


def _step(skill: Skill, is_new: bool, habit: Habit) -> Step:
    evidence = tuple(ids_in(skill, "loki-evidence"))
    why = f"{len(evidence)} successes; chance of success {habit.gain():+.2f} in this kind of task"
    return Step("learned" if is_new else "strengthened", skill.id, skill.title(), evidence, why)


def strata(snapshot: Snapshot) -> list[Stratum]:
    """Goals of one kind. Clusters whose goals share the same words are one kind."""
    found: dict[str, list[Episode]] = defaultdict(list)
    for cluster in kinds(snapshot):
        is_public = cluster[0].scope not in _PRIVATE
        if is_public and _successes(cluster) >= snapshot.thresholds.skill_successes:
            found[trigger(list(map(glance, cluster)))] += cluster
    return [
        Stratum(name, sorted(found[name], key=lambda one: (one.timestamp, one.id)))
        for name in sorted(found)
        if name
    ]


def trigger(seen: Sequence[Glance]) -> str:
    """The words that goals share, as a name; empty if they share too few to mean something.

    `implement-api-todos-endpoint`: of `Implement POST /api/todos endpoint` and others.
    """
    count = Counter(word for one in seen for word in one.words)
    common = {word for word, n in count.items() if n >= _COMMON * len(seen)} - FUNCTION_WORDS
    shortest = min((one.goal for one in seen), key=lambda goal: (len(goal), goal))
    spoken = dict.fromkeys(word.lower() for word in _WORD.findall(shortest))
    named = [word for word in spoken if word in common][:_NAME_WORDS]
    return slug("-".join(named), 64 - len(PROPOSAL)) if len(named) > 1 else ""


def best_habit(stratum: Stratum, anywhere: Strangers) -> Habit | None:
    """The habit that explains most moves of most successes, among those that help."""
    mined = stratum.successes[-_MINED:]
    chance = anywhere.by_chance(len(mined))
    inside = {one.id for one in stratum.episodes}
    seen = [(one, glance(one).moves()) for one in stratum.episodes]
    found = anywhere.candidates([glance(one).moves() for one in mined])
    candidates = [one for one in found if anywhere.worth(one) > chance]
    for candidate in candidates:
        users = [one for one, made in seen if contains(made, candidate.moves)]
        used = {one.id for one in users}
        others = [one for one in stratum.episodes if one.id not in used]
        habit = Habit(candidate.moves, users, others)
        share = len(users) / len(seen)
        if habit.helps(anywhere.least) and anywhere.is_rarer(habit.moves, share, inside):
            return habit
    return None


def _judged(episodes: Iterable[Episode]) -> int:
    return sum(one.outcome in {"success", "failure"} for one in episodes)


def _successes(episodes: Iterable[Episode]) -> int:
    return sum(one.outcome == "success" for one in episodes)


def _errors(episodes: Sequence[Episode]) -> float:
    return sum(glance(one).errors for one in episodes) / max(1, len(episodes))


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
    written = Skill.from_sections(
        name,
        _when(stratum),
        title=stratum.name.replace("-", " ").capitalize(),
        prerequisites=_prerequisites(habit.evidence),
        steps=_steps(habit),
        common_errors=troubles.of(stratum),
        exit_criteria=_exit_criteria(habit.evidence),
        metadata=_metadata(habit, told.get(f"skill-{name}", Feedback()), snapshot),
    )
    marked = {**written.metadata, "loki-digest": digest("body", written.body)}
    return written.changed(metadata=marked | _reviewed(snapshot.records.get(written.id), written))


def _reviewed(old: object, new: Skill) -> dict[str, str]:
    """What a person said of a skill holds as long as it says the same."""
    if not isinstance(old, Skill) or old.body != new.body or "loki-reviewed" not in old.metadata:
        return {}
    kept = ("loki-reviewed", "loki-origin")
    return {name: old.metadata[name] for name in kept if name in old.metadata}


def is_ours(skill: object) -> bool:
    """Whether we may write here: nobody has, or we did and nobody changed it since."""
    if not isinstance(skill, Skill):
        return skill is None
    mark = digest("body", skill.body)
    return skill.metadata.get("loki-source") == SOURCE and skill.metadata.get("loki-digest") == mark


class Written:
    """Skills of ours that may be replaced, by the first episode of their evidence."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._by_first: dict[str, list[Skill]] = defaultdict(list)
        for one in snapshot.of(Skill):
            evidence = ids_in(one, "loki-evidence")
            if evidence and is_ours(one) and not _is_pinned(one):
                self._by_first[evidence[0]].append(one)

    def before(self, skill: Skill, stratum: Stratum) -> list[Skill]:
        """Those about the same episodes, from when their goals shared other words."""
        inside = {one.id for one in stratum.episodes}
        found = (one for name in inside for one in self._by_first.get(name, ()))
        covered = (one for one in found if inside.issuperset(ids_in(one, "loki-evidence")))
        return sorted((one for one in covered if one.id != skill.id), key=lambda one: one.id)


def _is_pinned(skill: Skill) -> bool:
    return bool((skill.model_extra or {}).get("pinned"))


def _metadata(habit: Habit, told: Feedback, snapshot: Snapshot) -> dict[str, str]:
    evidence = habit.evidence
    compared = sorted({one.id for one in (*habit.users, *habit.others)} - {e.id for e in evidence})
    confidence = habit.confidence(told, snapshot)
    verdicts = {"loki-helped": told.helped, "loki-misled": told.misled}
    return {
        "loki-source": SOURCE,
        "loki-origin": least_trusted((*habit.users, *habit.others)),
        "loki-status": "active" if confidence >= snapshot.thresholds.confident else "candidate",
        "loki-confidence": f"{confidence:.2f}",
        "loki-date": max(one.date for one in evidence),
        "loki-evidence": ", ".join(sorted(one.id for one in evidence)),
        **({"loki-compared": ", ".join(compared)} if compared else {}),
        **{name: ", ".join(sorted(ids)) for name, ids in verdicts.items() if ids},
    }


def _when(stratum: Stratum) -> str:
    """The trigger: the shared words, and the shortest goal as an example."""
    goals = (glance(one).goal for one in stratum.successes)
    shortest = min(goals, key=lambda goal: (len(goal), goal))
    return f"Use when the task is to {stratum.name.replace('-', ' ')}, such as: {_line(shortest)}"


def _prerequisites(evidence: Sequence[Episode]) -> list[str]:
    """Constraints that nearly all had, and files that nearly all started from."""
    constraints = _common(one.context.constraints for one in evidence)
    given = _common(
        {*one.files_read, *one.context.files_involved, *_read_files(one)}
        - {*one.artifacts_produced, *one.files_modified}
        for one in evidence
    )
    return [*map(_line, constraints), *(f"`{path}` exists" for path in given)]


def _read_files(episode: Episode) -> set[str]:
    return {
        one.target
        for one in episode.action_log
        if one.target and one.action.lower().startswith("read") and move(one).place
    }


def _common(values: Iterable[Iterable[str]]) -> list[str]:
    """What nearly all have, in the order of the alphabet."""
    sets = [frozenset(one) for one in values]
    count = Counter(value for one in sets for value in one)
    return sorted(value for value, n in count.items() if value and n >= _COMMON * len(sets))


def _steps(habit: Habit) -> list[str]:
    """The moves in words, and at the end the checks that nearly all made besides."""
    made = {one.head for one in habit.moves}
    checks = [Move(head) for head in _checks(habit.evidence) if head not in made]
    return [_sentence(one, habit.evidence) for one in (*habit.moves, *checks)]


def _sentence(wanted: Move, evidence: Sequence[Episode]) -> str:
    """One step in words: what to run, or which tool to use on which file."""
    made = [one for episode in evidence for one in _first_made(wanted, episode)]
    targets = Counter((one.target or one.action).strip() for one in made)
    if any(map(is_command, made)):
        return f"Run `{_usual(targets, len(made)) or wanted.head}`"
    verb = wanted.head.replace("_", " ").partition(" ")[0].capitalize()
    where = _usual(targets, len(made)) or _pattern_of(targets)
    named = f"`{where}`" if where else f"a {wanted.place} file" if wanted.place else "what it needs"
    return f"{verb} {named} ({wanted.head})"


def _first_made(wanted: Move, episode: Episode) -> list[Action]:
    """The first action of an episode that makes a move: one vote per episode."""
    return next(([one] for one in episode.action_log if move(one) == wanted), [])


def _usual(targets: Counter[str], total: int) -> str:
    """What more than half did literally, if it fits into a line."""
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
        self._told: dict[str, tuple[str, str]] = {}
        self._met: dict[str, list[str]] = defaultdict(list)
        for one in snapshot.of(AntiPattern):
            fix = _line(one.prevention or "")
            if is_live(one) and one.scope not in _PRIVATE and len(fix.split()) > _TERSE:
                self._told[one.id] = (_symptom(one), fix)
                for episode in one.episodes_for():
                    self._met[episode].append(one.id)

    def of(self, stratum: Stratum) -> list[tuple[str, str]]:
        """What went wrong in this kind of task, most often first, and what helped."""
        met = Counter(one for episode in stratum.episodes for one in self._met.get(episode.id, ()))
        often = sorted(met, key=lambda one: (-met[one], one))
        return [self._told[one] for one in often[:_ERRORS]]


def _symptom(error: AntiPattern) -> str:
    """What fails, on one line; a colon ends it where a skill lists errors and fixes."""
    return (
        _line(error.what_fails.replace(". (running", " (running")).replace(": ", " - ").rstrip(".")
    )


def _exit_criteria(evidence: Sequence[Episode]) -> list[str]:
    return [f"`{check}` passes" for check in _checks(evidence)]


def _checks(evidence: Sequence[Episode]) -> list[str]:
    """The tests, linters and builds that nearly all successes ran."""
    return _common(_checks_of(one) for one in evidence)


def _checks_of(episode: Episode) -> set[str]:
    heads = (move(one).head for one in episode.action_log if is_command(one))
    return {head for head in heads if _CHECK.search(head)}


def _line(text: str) -> str:
    """A text on one line, cut at a word."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _LINE else flat[:_LINE].rpartition(" ")[0] + " …"
