"""A habit in words: when to follow it, what it needs, its steps, what goes wrong, how it ends."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from loki_memory.consolidation.features import EpisodeFeatures
from loki_memory.consolidation.habits import PRIVATE, Habit, Stratum
from loki_memory.consolidation.provenance import is_live
from loki_memory.consolidation.snapshot import Snapshot
from loki_memory.consolidation.step_sequences import Move
from loki_memory.models import AntiPattern
from loki_memory.models.prompt_injection import gives_instructions, pipes_download
from loki_memory.models.text import shorten

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
