"""Is confidence what it says: does a remedy of confidence .8 help eight times of ten?

    python benchmarks/consolidation/confidence.py --data FOLDER [--out FILE]

The recorded SQL runs of `intercode_sql` are recorded one after the other, each as an episode, and
learned from at once, as it happens to anybody. When a task meets an error that its anti-pattern was
known for before, that anti-pattern has made a prediction: its first resolution helps again, with
this confidence. Whether it did is decided by the query that solved the task, which neither the
anti-pattern nor the package had seen: the names that the resolution brings in must be among those
that the task's own repair brought in. Tasks that were not solved decide nothing.

Beside ours stand formulas for the same predictions. They are told what the anti-pattern's evidence
says: in how many episodes its first resolution helped, of those that overcame the error. Once all
tasks count; once only the first of those with the same answer, so that nobody profits from a task
that is told twice.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1] / "recall"))  # the scripts are no package
from baselines import FORMULAS, area_under_curve, calibration_error, data_folder, read, scorer
from report import add_options, at_least, at_most, finish, number, print_lines, say, workplace

if TYPE_CHECKING:
    from loki_memory import AntiPattern, Workspace

ERROR, PRECISION, SURE = 0.07, 0.95, 0.8
QUICK = 120
_WORD = re.compile(r"\w+")
_EXAMPLE = ", e.g. "

Task = dict[str, Any]


class Belief(NamedTuple):
    """What an anti-pattern said before a task: of which error, how sure, and what to do."""

    what: str
    confidence: float
    do: str
    helped: int  # episodes in which that helped
    overcome: int  # episodes in which that or anything else did


class Prediction(NamedTuple):
    """A belief, and whether what it advised was what helped."""

    belief: Belief
    came_true: bool


def predictions(tasks: Sequence[Task], score: ModuleType, place: Path) -> list[Prediction]:
    """What the anti-patterns said of each solved task before it was recorded."""
    from loki_memory import Workspace

    workspace = Workspace.init(place)
    known: dict[str, Belief] = {}
    found: list[Prediction] = []
    for count, task in enumerate(tasks):
        episode = workspace.record(score.episode(task, count))
        for record in _citing(workspace, episode.id):
            before = known.get(record.id)
            if before and task["solved"] and (error := _about(before, task["errors"])):
                found.append(Prediction(before, _has_helped(before.do, error, score)))
            known |= {record.id: _belief(record)} if record.resolutions else {}
        if count % 200 == 0:
            say(f"{count} of {len(tasks)} tasks")
    return found


def _belief(record: AntiPattern) -> Belief:
    first = record.resolutions[0]
    overcome = {one for way in record.resolutions for one in way.for_}
    sure = record.confidence or 0.0
    return Belief(record.what_fails, sure, first.do, len(first.for_), len(overcome))


def _citing(workspace: Workspace, episode: str) -> Iterator[AntiPattern]:
    """The anti-patterns that rest on an episode."""
    from loki_memory import AntiPattern

    _, incoming = workspace.edges(episode)
    for name in sorted({other for _, other in incoming}):
        record = workspace.get(name)
        if isinstance(record, AntiPattern) and record.depth is None:  # a parent has no remedy
            yield record


def _about(belief: Belief, errors: Iterable[Task]) -> Task | None:
    """The error of a task that an anti-pattern speaks of: most words of its message are there."""
    said = set(_WORD.findall(belief.what.lower()))
    repaired = [one for one in errors if one["fix"]]

    def shared(error: Task) -> float:
        words = set(_WORD.findall(error["message"].lower()))
        return len(words & said) / max(1, len(words))

    best = max(repaired, key=shared, default=None)
    return best if best and shared(best) > 0.5 else None


def _has_helped(do: str, error: Task, score: ModuleType) -> bool:
    """Whether what to do is what the task did: it brings in, or leaves out, the same names."""
    exchange, _, _ = do.partition(_EXAMPLE)
    failed, worked = score.identifiers(error["action"]), score.identifiers(error["fix"])
    if exchange.startswith("without "):
        return not score.identifiers(exchange.removeprefix("without ")) & worked
    gained = exchange.partition(" -> ")[2] or exchange.removeprefix("with ")
    return bool((score.identifiers(gained) - failed) & (worked - failed))


# The table


def measured(chances: Sequence[float], outcomes: Sequence[bool]) -> dict[str, Any]:
    sure = [true for chance, true in zip(chances, outcomes, strict=True) if chance >= SURE]
    return {
        "n": len(outcomes),
        "helped": sum(outcomes) / max(1, len(outcomes)),
        "calibration_error": calibration_error(chances, outcomes),
        "area_under_curve": area_under_curve(chances, outcomes),
        "sure": len(sure),
        "precision": sum(sure) / max(1, len(sure)),
    }


def _line(name: str, row: dict[str, Any]) -> tuple[str, ...]:
    shares = (row["helped"], row["calibration_error"], row["area_under_curve"])
    return name, str(row["n"]), *map(number, shares), str(row["sure"]), number(row["precision"])


def compared(
    tasks: Sequence[Task], score: ModuleType, title: str, place: Path
) -> dict[str, dict[str, Any]]:
    """One table: ours and every formula on these tasks."""
    made = predictions(tasks, score, place)
    said = {"ours": [one.belief.confidence for one in made]}
    for name, formula in FORMULAS.items():
        said[name] = [formula(one.belief.helped, one.belief.overcome) for one in made]
    found = {name: measured(row, [one.came_true for one in made]) for name, row in said.items()}
    print(f"\n{title}: {len(tasks)} tasks")
    head = ("", "n", "helped", "ECE", "AUC", f"n >= {SURE}", "precision there")
    print_lines(head, [_line(name, row) for name, row in found.items()])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure whether confidence is calibrated.")
    add_options(parser)
    data_folder(parser)
    options = parser.parse_args()
    start = time.perf_counter()
    score = scorer(options.data)
    [stream] = sorted((options.data / "intercode_sql").glob("*.jsonl"))[:1]
    every = [{**task, "errors": list(score.errors(task))} for task in read(stream)]
    limit = QUICK if options.quick else None
    with workplace() as place:
        whole = compared(every[:limit], score, "all tasks", place / "all")
        once = compared(score.load(stream)[:limit], score, "each answer once", place / "once")
    bars = [
        at_most("calibration error", whole["ours"]["calibration_error"], ERROR),
        at_least("precision where confidence is .8 or more", whole["ours"]["precision"], PRECISION),
    ]
    finish(bars, {"all": whole, "once": once}, options, start)


if __name__ == "__main__":
    main()
