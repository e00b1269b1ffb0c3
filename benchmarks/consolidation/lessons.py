"""Is the lesson of an earlier task offered before a later one, and at its first error?

    python benchmarks/consolidation/lessons.py --data FOLDER [--out FILE]

Runs the outside scorer `score/lesson_transfer.py` of the data folder, which shares no code with the
package, on the recorded SQL runs of `intercode_sql/`: tasks in order, each recorded as an episode,
consolidated every 25 tasks. Recency and raw BM25 over all lessons answer beside ours.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "recall"))  # the scripts are no package
from report import add_options, at_least, finish, number, print_lines, workplace

SYSTEMS = {"recency": "recency", "bm25": "raw BM25", "project": "ours"}
BARS = {("before", "hit@1"): 0.80, ("before", "hit@5"): 0.93}
BARS |= {("at_error", "hit@1"): 0.92, ("at_error", "hit@5"): 0.97}


def scored(data: Path, stream: Path) -> dict[str, Any]:
    """What the scorer says of each system."""
    scorer = data / "score" / "lesson_transfer.py"
    with workplace():
        command = [sys.executable, str(scorer), str(stream), *SYSTEMS]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    lines = (line.partition(" ") for line in done.stdout.splitlines())
    return {name: json.loads(result) for name, _, result in lines}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure lesson transfer.")
    add_options(parser)
    folder = os.environ.get("LOKI_BENCH_DATA")
    parser.add_argument("--data", type=Path, default=folder, required=not folder, help="the data")
    options = parser.parse_args()
    start = time.perf_counter()
    [stream] = sorted((Path(options.data) / "intercode_sql").glob("*.jsonl"))[:1]
    found = scored(Path(options.data), stream)
    heads = ("", "n", "before: hit@1", "hit@5", "at the error: hit@1", "hit@5")
    rows = [
        (
            SYSTEMS[name],
            str(result["answerable"]),
            *(number(result[moment][hit]) for moment, hit in BARS),
        )
        for name, result in found.items()
    ]
    print_lines(heads, rows)
    ours = found["project"]
    bars = [
        at_least(f"{moment} {hit}", ours[moment][hit], wanted)
        for (moment, hit), wanted in BARS.items()
    ]
    finish(bars, found, options, start)


if __name__ == "__main__":
    main()
