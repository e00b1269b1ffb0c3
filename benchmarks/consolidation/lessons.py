"""Is the lesson of an earlier task offered before a later one, and at its first error?

    python benchmarks/consolidation/lessons.py --data FOLDER [--out FILE]

Runs the outside scorer `score/lesson_transfer.py` of the data folder, which shares no code with the
package, on the recorded SQL runs of `intercode_sql/`: tasks in order, each recorded as an episode,
consolidated every 25 tasks. The same scorer asks what came last, what came most often, raw BM25
over all lessons, and Loki Mode's rules (`baselines.py`).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "recall"))  # the scripts are no package
from baselines import Frequency, LokiRules, data_folder, scorer
from report import add_options, at_least, finish, number, print_lines, say, workplace

OURS = "ours"
QUICK = 150
BARS = {("before", "hit@1"): 0.80, ("before", "hit@5"): 0.93}
BARS |= {("at_error", "hit@1"): 0.92, ("at_error", "hit@5"): 0.97}


def systems(score: ModuleType) -> dict[str, Callable[[], Any]]:
    """What is asked, by the name of its row."""
    return {
        "recency": partial(score.Lessons, recency=True),
        "frequency": Frequency,
        "raw BM25": partial(score.Lessons, recency=False),
        "Loki Mode's rules": LokiRules,
        OURS: score.Project,
    }


def scored(score: ModuleType, tasks: list[dict[str, Any]]) -> dict[str, Any]:
    """What the scorer says of each system."""
    found = {}
    with workplace() as place:
        tempfile.tempdir = str(place)  # where the scorer makes its workspace
        for name, make in systems(score).items():
            say(f"asking {name}")
            found[name] = score.run(make, tasks)
        tempfile.tempdir = None
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure lesson transfer.")
    add_options(parser)
    data_folder(parser)
    options = parser.parse_args()
    start = time.perf_counter()
    score = scorer(options.data)
    [stream] = sorted((options.data / "intercode_sql").glob("*.jsonl"))[:1]
    found = scored(score, score.load(stream)[: QUICK if options.quick else None])
    heads = ("", "n", "before: hit@1", "hit@5", "at the error: hit@1", "hit@5")
    rows = [
        (name, str(result["answerable"]), *(number(result[moment][hit]) for moment, hit in BARS))
        for name, result in found.items()
    ]
    print_lines(heads, rows)
    bars = [
        at_least(f"{moment} {hit}", found[OURS][moment][hit], wanted)
        for (moment, hit), wanted in BARS.items()
    ]
    finish(bars, found, options, start)


if __name__ == "__main__":
    main()
