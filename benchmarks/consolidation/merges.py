"""Does consolidation merge what says the same, and only that?

    python benchmarks/consolidation/merges.py --data FOLDER [--out FILE]

The questions of `intercode_sql` are remembered as facts of their database, and consolidated. Two
questions with the same SQL as their answer are duplicates: two people asked for one thing in their
own words. Every fact that was superseded is one decision: right if the fact that stays in its place
has the same answer. A duplicate that was not merged is missed; how many there are is what the
answers say. Plain likenesses at usual thresholds decide beside ours, each question in turn against
those that were kept.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1] / "recall"))  # the scripts are no package
from baselines import data_folder, likenesses, merged, read
from report import add_options, at_least, finish, number, print_lines, workplace

PRECISION = 0.90
PLAIN = (("words", 0.7), ("trigrams", 0.7), ("trigrams", 0.9), ("TF-IDF", 0.7), ("TF-IDF", 0.9))
QUICK = 200


class Question(NamedTuple):
    """What was asked of which database, and what answers it."""

    text: str
    base: str
    answer: tuple[str, str]


def questions(data: Path) -> list[Question]:
    """Those of all recorded streams, each once."""
    found: dict[str, Question] = {}
    for path in sorted((data / "intercode_sql").glob("*.jsonl")):
        for task in read(path):
            sql = " ".join(task["gold"].lower().split()).rstrip("; ")
            found.setdefault(task["goal"], Question(task["goal"], task["db"], (task["db"], sql)))
    return list(found.values())


def duplicates(asked: Sequence[Question]) -> int:
    """How many merges would leave one question for each answer."""
    return len(asked) - len({one.answer for one in asked})


Decision = tuple[Question, Question]  # what was merged, and what stays


def ours(asked: Sequence[Question], place: Path) -> list[Decision]:
    """The decisions of a consolidation, read from the links of what it superseded."""
    from loki_memory import Workspace

    workspace = Workspace.init(place)
    known = {workspace.remember(one.text, kind="fact", category=one.base).id: one for one in asked}
    workspace.consolidate()
    return [
        (known[fact.id], known[link.to])
        for fact in workspace.list(kind="fact", status="superseded")
        for link in fact.links
        if link.relation == "superseded_by" and link.to in known
    ]


def plain(asked: Sequence[Question]) -> dict[str, list[Decision]]:
    """What thresholds of plain likeness decide, within each database as ours."""
    shelves: dict[str, list[Question]] = defaultdict(list)
    for one in asked:
        shelves[one.base].append(one)
    found: dict[str, list[Decision]] = defaultdict(list)
    for shelf in shelves.values():
        measures = likenesses([one.text for one in shelf])
        for name, threshold in PLAIN:
            pairs = merged(len(shelf), measures[name], threshold)
            found[f"{name} >= {threshold}"] += [(shelf[i], shelf[j]) for i, j in pairs]
    return found


def measured(decisions: Sequence[Decision], all_duplicates: int) -> dict[str, Any]:
    right = sum(one.answer == other.answer for one, other in decisions)
    return {
        "merged": len(decisions),
        "precision": right / max(1, len(decisions)),
        "recall": right / max(1, all_duplicates),
    }


def wrong(decisions: Iterable[Decision]) -> list[tuple[str, str]]:
    return [(one.text, other.text) for one, other in decisions if one.answer != other.answer]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what consolidation merges.")
    add_options(parser)
    data_folder(parser)
    options = parser.parse_args()
    start = time.perf_counter()
    asked = questions(options.data)[: QUICK if options.quick else None]
    with workplace() as place:
        decisions = {"ours": ours(asked, place / "store"), **plain(asked)}
    total = duplicates(asked)
    rows = {name: measured(made, total) for name, made in decisions.items()}
    print(f"{len(asked)} questions, {total} duplicates")
    print_lines(
        ("", "merged", "precision", "recall"),
        [(name, str(row["merged"]), *_shares(row)) for name, row in rows.items()],
    )
    for one, other in wrong(decisions["ours"]):
        print(f"wrong: {one} | {other}")
    counts = Counter(one.base for one in asked)
    result = {"questions": len(asked), "bases": len(counts), "duplicates": total, "rows": rows}
    bars = [at_least("precision of what is merged", rows["ours"]["precision"], PRECISION)]
    finish(bars, {**result, "wrong": wrong(decisions["ours"])}, options, start)


def _shares(row: dict[str, Any]) -> tuple[str, str]:
    return number(row["precision"]), number(row["recall"])


if __name__ == "__main__":
    main()
