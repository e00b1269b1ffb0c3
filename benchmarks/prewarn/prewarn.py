"""Would memory have warned of the errors that a session met again?

    python benchmarks/prewarn/prewarn.py --data FOLDER [--project OWNER/NAME] [--out FILE]

Runs the outside scorer `score/prewarn.py` of the data folder, which shares no code with the
package: the transcripts of a project are ingested in the order of time, memory is consolidated
after each, and before each session, from its first prompt alone, CONTINUITY.md is rendered within
1,000 tokens. Only the first five lines under "Mistakes to Avoid" count. Beside what the scorer
says: how many of these lines were not needed, how many bytes they are, and how many of the errors
that were warned of came with a remedy.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1] / "recall"))  # the scripts are no package
sys.path.append(str(Path(__file__).resolve().parents[1] / "consolidation"))
from baselines import data_folder, scorer
from report import add_options, at_least, at_most, finish, number, print_lines, say, workplace

OURS, THEIRS = "project", "frequency"
PAIRS, EVENTS, BYTES = 0.88, 0.42, 4096


class Shown(NamedTuple):
    """What was put before one session, and the errors that it then met."""

    lines: list[str]
    size: int  # bytes of the whole file; 0 if there is none
    met: list[str]  # signatures


def watched(system: type, found: list[Shown]) -> type:
    """One of the scorer's own classes, which also notes what it showed."""

    class Watched(system):  # type: ignore[misc, valid-type]
        def lessons(self, prompt: str) -> list[str]:
            lines: list[str] = super().lessons(prompt)
            file = self.ws.layout.loki / "CONTINUITY.md" if hasattr(self, "ws") else None
            found.append(Shown(lines, file.stat().st_size if file else 0, []))
            return lines

        def learn(self, session: str, events: list[dict[str, Any]]) -> None:
            if events:
                found[-1].met.extend(one["signature"] for one in events)
            super().learn(session, events)

    return Watched


def scored(
    score: ModuleType, data: Path, project: str
) -> tuple[dict[str, Any], dict[str, list[Shown]]]:
    """What the scorer says of both systems, and what each of them showed."""
    shown: dict[str, list[Shown]] = {THEIRS: [], OURS: []}
    vars(score)["Frequency"] = watched(score.Frequency, shown[THEIRS])
    vars(score)["Project"] = watched(score.Project, shown[OURS])
    told = io.StringIO()
    with workplace() as place, contextlib.redirect_stdout(told):
        tempfile.tempdir = str(place)  # where the scorer makes its workspace
        score.main(data, project, [THEIRS, OURS])
        tempfile.tempdir = None
    lines = (line.partition(" ") for line in told.getvalue().splitlines())
    return {name: json.loads(result) for name, _, result in lines}, shown


def described(score: ModuleType, shown: list[Shown]) -> dict[str, float]:
    """What the lines cost, and what they were good for."""
    lines = [(line, one) for one in shown for line in one.lines]
    false = [line for line, one in lines if not any(score.warns(line, met) for met in one.met)]
    warnings: dict[str, list[str]] = defaultdict(list)
    for number_, one in enumerate(shown):
        for met in one.met:
            warnings[f"{number_} {met}"] += [line for line in one.lines if score.warns(line, met)]
    warned = [those for those in warnings.values() if those]
    remedied = [those for those in warned if any(" -> " in line for line in those)]
    return {
        "lines": len(lines) / max(1, len(shown)),
        "false": len(false) / max(1, len(lines)),
        "bytes": sum(len(line.encode()) for line, _ in lines) / max(1, len(shown)),
        "largest": max((one.size for one in shown), default=0),
        "remedied": len(remedied) / max(1, len(warned)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what memory warns of.")
    add_options(parser)
    data_folder(parser)
    parser.add_argument("--project", default="entireio/cli", help="whose sessions")
    options = parser.parse_args()
    start = time.perf_counter()
    score = scorer(options.data, "prewarn")
    say("ingesting and consolidating session by session")
    found, shown = scored(score, options.data, options.project)
    costs = {name: described(score, some) for name, some in shown.items()}
    rows = [
        (
            name,
            str(one["pairs"]),
            number(one["prewarned"]),
            number(one["events_warned"]),
            *(f"{costs[name][what]:.2f}" for what in ("lines", "false", "remedied")),
            f"{costs[name]['bytes']:.0f}",
        )
        for name, one in found.items()
    ]
    heads = ("", "pairs", "warned of", "of all errors", "lines", "not needed", "with a remedy")
    print_lines((*heads, "bytes"), rows)
    bars = [
        at_least("warned of", found[OURS]["prewarned"], PAIRS),
        at_least("of all errors", found[OURS]["events_warned"], EVENTS),
        at_most("bytes of CONTINUITY.md", costs[OURS]["largest"], BYTES),
    ]
    finish(bars, {"systems": found, "costs": costs}, options, start)


if __name__ == "__main__":
    main()
