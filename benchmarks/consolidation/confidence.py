"""Is confidence what it says: does a remedy of confidence .8 help eight times of ten?

    python benchmarks/consolidation/confidence.py --data FOLDER [--out FILE]

The recorded SQL runs of `intercode_sql` are recorded one after the other, each as an episode, and
learned from at once, as it happens to anybody. When a task meets an error that its anti-pattern was
known for before, that anti-pattern has made a prediction: its first resolution helps again, with
this confidence. That is one event per task and anti-pattern, however often the task met the error:
what counts is the last time, which it got over. Whether the resolution helped is decided by the
query that did, which neither the anti-pattern nor the package had seen: the names that the
resolution brings in must be among those that this query brought in.

The bars are for tasks that were solved, where the query is known to be right. Of the others the
query that ran in the end is known, if one did; with them the table is printed once more.

Beside ours stand formulas for the same predictions. They are told what the anti-pattern's evidence
says: in how many episodes its first resolution helped, of those that overcame the error. Once all
tasks count; once only the first of those with the same answer, so that nobody profits from a task
that is told twice. The interval of a calibration error holds 95 of 100 resamples of the tasks. On
so few predictions even chances that are exactly right have some error: it stands as `by luck`.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1] / "recall"))  # the scripts are no package
from baselines import (
    FORMULAS,
    area_under_curve,
    by_luck,
    calibration_error,
    data_folder,
    in_tenths,
    interval,
    read,
    scorer,
)
from report import add_options, at_least, at_most, finish, number, print_lines, say, workplace

if TYPE_CHECKING:
    from loki_memory import AntiPattern, Workspace

ERROR, PRECISION, SURE = 0.07, 0.95, 0.8
QUICK = 120
_QUOTED = re.compile(r"'([^']*)'")
_VARIES = re.compile(r"'[^']*'|\d+")
_EXAMPLE = ", e.g. "
_RUNNING = " (running "  # what follows tells what was run, after the error's own words

Task = dict[str, Any]


class Belief(NamedTuple):
    """What an anti-pattern said before a task: of which error, how sure, and what to do."""

    what: str
    confidence: float
    do: str
    helped: int  # episodes in which that helped
    overcome: int  # episodes in which that or anything else did


class Prediction(NamedTuple):
    """A belief, and whether what it advised was what helped in a task."""

    belief: Belief
    came_true: bool
    task: int
    was_solved: bool


def predictions(tasks: Sequence[Task], score: ModuleType, place: Path) -> list[Prediction]:
    """What the anti-patterns said of each task before it was recorded."""
    from loki_memory import Workspace

    workspace = Workspace.init(place)
    known: dict[str, Belief] = {}
    found: list[Prediction] = []
    for count, task in enumerate(tasks):
        episode = workspace.record(score.episode(task, count))
        for record in _citing(workspace, episode.id):
            before = known.get(record.id)
            if before and (error := _about(before, task["errors"])):
                helped = _has_helped(before.do, error, score)
                found.append(Prediction(before, helped, count, task["solved"]))
            known |= {record.id: _belief(record)} if record.resolutions else {}
        if count % 200 == 0:
            say(f"{count} of {len(tasks)} tasks")
    return found


def _belief(record: AntiPattern) -> Belief:
    first = record.resolutions[0]
    overcome = {one for way in record.resolutions for one in way.for_}
    overcome.update(record.document().get("otherwise", ()))  # by what is not kept
    sure = record.confidence or 0.0
    return Belief(record.what_fails, sure, first.do, len(first.for_), len(overcome))


def _citing(workspace: Workspace, episode: str) -> Iterator[AntiPattern]:
    """The anti-patterns that rest on an episode."""
    from loki_memory import AntiPattern

    _, incoming = workspace.browse.edges(episode)
    for name in sorted({other for _, other in incoming}):
        record = workspace.get(name)
        if isinstance(record, AntiPattern) and record.depth is None:  # a parent has no remedy
            yield record


def _about(belief: Belief, errors: Iterable[Task]) -> Task | None:
    """The error of a task that an anti-pattern speaks of, as it was met last.

    Of one kind, the one with the same name; any, where the anti-pattern is for all names.
    """
    what = belief.what.rpartition(_RUNNING)[0] or belief.what
    kind = [one for one in errors if one["fix"] and _kind(one["message"]) == _kind(what)]
    same = [one for one in kind if _name(one["message"]) == _name(what)]
    found = same or kind
    return found[-1] if found else None


def _kind(message: str) -> str:
    return _VARIES.sub("*", message)


def _name(message: str) -> str:
    """The last part of the first name that a message quotes."""
    quoted = _QUOTED.search(message)
    return quoted[1].lower().rpartition(".")[2] if quoted else ""


def _has_helped(do: str, error: Task, score: ModuleType) -> bool:
    """Whether what to do is what the task did: it brings in, or leaves out, the same names."""
    exchange, _, _ = do.partition(_EXAMPLE)
    failed, worked = score.identifiers(error["action"]), score.identifiers(error["fix"])
    if exchange.startswith("without "):
        return not score.identifiers(exchange.removeprefix("without ")) & worked
    gained = exchange.partition(" -> ")[2] or exchange.removeprefix("with ")
    return bool((score.identifiers(gained) - failed) & (worked - failed))


# The tables


def measured(chances: Sequence[float], made: Sequence[Prediction]) -> dict[str, Any]:
    outcomes = [one.came_true for one in made]
    sure = [true for chance, true in zip(chances, outcomes, strict=True) if chance >= SURE]
    return {
        "n": len(outcomes),
        "helped": sum(outcomes) / max(1, len(outcomes)),
        "calibration_error": calibration_error(chances, outcomes),
        "interval": interval(_by_task(chances, made), _error),
        "by_luck": by_luck(chances),
        "area_under_curve": area_under_curve(chances, outcomes),
        "sure": len(sure),
        "precision": sum(sure) / max(1, len(sure)),
    }


Pair = tuple[float, bool]  # what was predicted, and whether it came true


def _by_task(chances: Sequence[float], made: Sequence[Prediction]) -> list[list[Pair]]:
    tasks: dict[int, list[Pair]] = defaultdict(list)
    for chance, one in zip(chances, made, strict=True):
        tasks[one.task].append((chance, one.came_true))
    return list(tasks.values())


def _error(tasks: Sequence[Sequence[Pair]]) -> float:
    pairs = [pair for one in tasks for pair in one]
    return calibration_error([chance for chance, _ in pairs], [true for _, true in pairs])


def _line(name: str, row: dict[str, Any]) -> tuple[str, ...]:
    error = (number(row["calibration_error"]), "-".join(map(number, row["interval"])))
    rest = (number(row["by_luck"]), number(row["area_under_curve"]))
    return (
        *(name, str(row["n"]), number(row["helped"]), *error, *rest),
        *(str(row["sure"]), number(row["precision"])),
    )


def compared(made: Sequence[Prediction], title: str) -> dict[str, Any]:
    """One table: ours and every formula on these predictions; then how reliable ours are."""
    said = {"ours": [one.belief.confidence for one in made]}
    for name, formula in FORMULAS.items():
        said[name] = [formula(one.belief.helped, one.belief.overcome) for one in made]
    found: dict[str, Any] = {name: measured(row, made) for name, row in said.items()}
    print(f"\n{title}")
    head = ("", "n", "helped", "ECE", "95 %", "by luck", "AUC", f"n >= {SURE}", "precision there")
    print_lines(head, [_line(name, row) for name, row in found.items()])
    found["ours"]["reliability"] = reliability(said["ours"], [one.came_true for one in made])
    return found


def reliability(chances: Sequence[float], outcomes: Sequence[bool]) -> list[dict[str, Any]]:
    """For each tenth of confidence: what was said, and how often it helped."""
    found = [
        {
            "n": len(one),
            "said": sum(chance for chance, _ in one) / len(one),
            "helped": sum(true for _, true in one) / len(one),
        }
        for _, one in sorted(in_tenths(chances, outcomes).items())
    ]
    print()
    lines = [(number(one["said"]), number(one["helped"]), str(one["n"])) for one in found]
    print_lines(("ours said, on average", "and it helped in", "n"), lines)
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
        made = predictions(every[:limit], score, place / "all")
        first = predictions(score.load(stream)[:limit], score, place / "once")
    whole = compared([one for one in made if one.was_solved], "tasks that were solved")
    once = compared([one for one in first if one.was_solved], "of those, each answer once")
    any_ = compared(made, "all tasks that got over the error, solved or not")
    bars = [
        at_most("calibration error", whole["ours"]["calibration_error"], ERROR),
        at_least("precision where confidence is .8 or more", whole["ours"]["precision"], PRECISION),
    ]
    finish(bars, {"solved": whole, "once": once, "any": any_}, options, start)


if __name__ == "__main__":
    main()
