"""Where do the thresholds of consolidation come from?

    python benchmarks/consolidation/calibrate.py --data FOLDER [--out FILE]

Questions about databases (`intercode_sql`) carry labels that nobody set by hand for likeness: the
form of the SQL within the database that a question is about (one *kind* of task), and the SQL
itself (the *same* request). The threshold for lessons about one subject is `clusters.py`'s.

    cluster  clusters of goals by the package, as patterns and skills see them
    merge    pairs with the package's guards (values, negation, directions, bounds, names)

Merging is shown for three representations: J (all words), J3 (trigrams in the stems of content
words, which is what ships) and the bundled static vectors. A threshold belongs to one of them and
means nothing for another. Clusters choose the best F1, merging the smallest threshold with a
precision of .9 or more. What is shipped should be within .01 of the best, or as precise.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1] / "recall"))  # the scripts are no package
from baselines import data_folder, read
from report import Bar, add_options, finish, number, print_lines

from loki_memory.consolidation.clustering import clusters
from loki_memory.consolidation.similarity import grams, jaccard, sameness, words
from loki_memory.consolidation.snapshot import Thresholds

PRECISE, NEAR = 0.9, 0.01
PART = 200  # tasks
CLUSTER_CURVE = [n / 100 for n in range(20, 85, 5)]
MERGE_CURVE = [n / 100 for n in range(20, 100, 5)]
LITERAL = re.compile(r"'[^']*'|\"[^\"]*\"|\b\d+(?:\.\d+)?\b")
NAME = re.compile(r"\b[a-z_]\w*\b")
KEYWORDS = frozenset(
    NAME.findall(
        "select from where group by order having join on as and or not in is null count sum avg "
        "min max distinct limit desc asc between like union intersect except exists"
    )
)


class Point(NamedTuple):
    """What a threshold comes to."""

    threshold: float
    precision: float
    recall: float
    f1: float


class Curve(NamedTuple):
    """All points of one threshold, the one that is chosen, and the one that is shipped, if any."""

    name: str
    points: list[Point]
    chosen: float | None
    shipped: float | None
    agrees: bool | None


Task = dict[str, Any]


# What is one kind of task


def kinds(tasks: Sequence[Task]) -> Curve:
    """Clusters of goals; the label is database and form of the SQL.

    In parts, because a component of too many members is cut at higher thresholds than asked for.
    """
    shuffled = random.Random(0).sample(tasks, len(tasks))
    parts = [shuffled[at : at + PART] for at in range(0, len(shuffled) - PART + 1, PART)]
    points = [_kind_point(parts, threshold) for threshold in CLUSTER_CURVE]
    return _best("cluster", points, Thresholds().cluster)


def _kind_point(parts: Sequence[Sequence[Task]], threshold: float) -> Point:
    counts = [0, 0, 0]
    for part in parts:
        forms = [(task["db"], shape(task["gold"])) for task in part]
        found = clusters([task["goal"] for task in part], threshold)
        counts = list(map(sum, zip(counts, _joined(found, forms), strict=True)))
    return _point(threshold, *counts)


def shape(sql: str) -> str:
    """SQL without its names and values: `select # from # where # = #`."""
    bare = LITERAL.sub("#", sql.lower())
    return " ".join(NAME.sub(lambda one: one[0] if one[0] in KEYWORDS else "#", bare).split())


def _joined(found: Sequence[Sequence[int]], forms: Sequence[Any]) -> tuple[int, int, int]:
    """Pairs that are together and belong so, that are together, that belong together."""
    right = sum(_pairs(forms[at] for at in cluster) for cluster in found)
    return right, sum(comb(len(cluster), 2) for cluster in found), _pairs(forms)


def _pairs(of: Iterable[Any]) -> int:
    return sum(comb(count, 2) for count in Counter(of).values())


# What says the same


def sames(tasks: Sequence[Task]) -> list[Curve]:
    """Pairs of questions about one database, for each representation; the label is the SQL."""
    texts = sorted({task["goal"] for task in tasks})
    answer = {task["goal"]: (task["db"], _plain(task["gold"])) for task in tasks}
    shelves: dict[str, list[int]] = defaultdict(list)
    for at, text in enumerate(texts):
        shelves[answer[text][0]].append(at)
    pairs = [pair for shelf in shelves.values() for pair in combinations(shelf, 2)]
    duplicates = _pairs(answer.values())
    allowed = [pair for pair in pairs if sameness(*(texts[at] for at in pair)) > 0]
    is_same = {pair: answer[texts[pair[0]]] == answer[texts[pair[1]]] for pair in allowed}
    shipped = {"J3": Thresholds().merge}
    return [
        _precise(f"merge, {name}", _curve(measure, is_same, duplicates), shipped.get(name))
        for name, measure in representations(texts).items()
    ]


def _plain(sql: str) -> str:
    return " ".join(sql.lower().split()).rstrip("; ")


Likeness = Callable[[int, int], float]


def representations(texts: Sequence[str]) -> dict[str, Likeness]:
    from loki_memory.embedding import load

    model = load()
    vectors = model.embed([model.tokens(text) for text in texts])
    return {
        "J": lambda i, j: jaccard(words(texts[i]), words(texts[j])),
        "J3": lambda i, j: jaccard(grams(texts[i]), grams(texts[j])),
        "static vectors": lambda i, j: float(vectors[i] @ vectors[j]),
    }


def _curve(measure: Likeness, is_same: dict[tuple[int, int], bool], duplicates: int) -> list[Point]:
    found = [(measure(*pair), same) for pair, same in is_same.items()]
    points = []
    for threshold in MERGE_CURVE:
        together = [same for likeness, same in found if likeness >= threshold]
        points.append(_point(threshold, sum(together), len(together), duplicates))
    return points


# Choosing


def _point(threshold: float, right: int, together: int, belong: int) -> Point:
    precision, recall = right / max(1, together), right / max(1, belong)
    both = precision + recall
    return Point(threshold, precision, recall, 2 * precision * recall / both if both else 0.0)


def _best(name: str, points: list[Point], shipped: float) -> Curve:
    """The middle of the thresholds that are as good as the best."""
    best = max(one.f1 for one in points)
    good = [one.threshold for one in points if one.f1 >= best - NEAR]
    near = min(points, key=lambda one: abs(one.threshold - shipped))
    return Curve(name, points, good[len(good) // 2], shipped, near.f1 >= best - NEAR)


def _precise(name: str, points: list[Point], shipped: float | None) -> Curve:
    """The smallest threshold that is precise; any that is precise is sound."""
    precise = [one.threshold for one in points if one.precision >= PRECISE]
    agrees = None if shipped is None else shipped in precise
    return Curve(name, points, min(precise, default=None), shipped, agrees)


def _tell(curve: Curve) -> None:
    print(f"\n{curve.name}: chosen {curve.chosen}, shipped {curve.shipped or '-'}")
    heads = ("threshold", "precision", "recall", "F1", "")
    print_lines(heads, [(*_cells(one), _marks(one, curve)) for one in curve.points])


def _cells(point: Point) -> tuple[str, ...]:
    return f"{point.threshold:.2f}", *map(number, (point.precision, point.recall, point.f1))


def _marks(point: Point, curve: Curve) -> str:
    chosen = "chosen" if point.threshold == curve.chosen else ""
    shipped = "shipped" if point.threshold == curve.shipped else ""
    return " ".join(filter(None, (chosen, shipped)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Derive the thresholds of consolidation.")
    add_options(parser)
    data_folder(parser)
    options = parser.parse_args()
    start = time.perf_counter()
    [stream] = sorted((options.data / "intercode_sql").glob("*.jsonl"))[:1]
    tasks = read(stream)[: 200 if options.quick else None]
    curves = [kinds(tasks), *sames(tasks)]
    for curve in curves:
        _tell(curve)
    bars = [
        Bar(f"{one.name}: {one.shipped}", f"{one.chosen}", one.shipped, one.agrees)
        for one in curves
        if one.shipped is not None and one.agrees is not None
    ]
    told = [{**one._asdict(), "points": [p._asdict() for p in one.points]} for one in curves]
    finish(bars, {"curves": told}, options, start)


if __name__ == "__main__":
    main()
