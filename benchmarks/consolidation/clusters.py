"""Do lessons that say one thing end in one group, and confusable ones in two?

    python benchmarks/consolidation/clusters.py [--data FOLDER] [--calibrate]

Lessons in their authors' words (`lesson_clusters`, labelled by hand) are grouped by the package
and, beside it, by average-link over TF-IDF vectors with the threshold that is best *on this set*:
a baseline that nobody can have. Ours has one threshold, found elsewhere: `--calibrate` shows the
curve on questions about databases (`intercode_sql`), where the label is the database. The
measures are written here and share no code with the package.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb, hypot, log
from pathlib import Path
from statistics import mean
from typing import Any

from loki_memory.consolidation.cluster import SUBJECT, groups

B_CUBED, RAND = 0.93, 0.90
CURVE = [n / 100 for n in range(10, 46, 2)]
SIZES = (1, 1, 1, 1, 2, 2, 3, 4, 6)  # of groups, about as lessons have them
# Labels of which no two may meet in a group.
CONFUSABLE = (("t_parallel",), ("shadow_branch",), ("pre_commit", "precommit"))


def b_cubed(found: Sequence[int], gold: Sequence[str]) -> float:
    """The harmonic mean of B-cubed precision and recall."""
    size, label = Counter(found), Counter(gold)
    both = Counter(zip(found, gold, strict=True))
    pairs = list(zip(found, gold, strict=True))
    precision = mean(both[pair] / size[pair[0]] for pair in pairs)
    recall = mean(both[pair] / label[pair[1]] for pair in pairs)
    return 2 * precision * recall / (precision + recall)


def adjusted_rand(found: Sequence[int], gold: Sequence[str]) -> float:
    def pairs(of: Iterable[Any]) -> int:
        return sum(comb(count, 2) for count in Counter(of).values())

    together = pairs(zip(found, gold, strict=True))
    chance = pairs(found) * pairs(gold) / comb(len(gold), 2)
    return (together - chance) / ((pairs(found) + pairs(gold)) / 2 - chance)


def labels(found: Sequence[Sequence[int]], size: int) -> list[int]:
    out = [0] * size
    for name, group in enumerate(found):
        for at in group:
            out[at] = name
    return out


def tf_idf(texts: Sequence[str]) -> list[list[float]]:
    """The baseline's likeness: the cosine of sublinear TF-IDF vectors of words."""
    counts = [Counter(re.findall(r"\w\w+", text.lower())) for text in texts]
    held_by = Counter(word for one in counts for word in one)
    idf = {word: 1 + log((1 + len(texts)) / (1 + n)) for word, n in held_by.items()}
    vectors = [{word: (1 + log(n)) * idf[word] for word, n in one.items()} for one in counts]
    norms = [hypot(*one.values()) for one in vectors]

    def cosine(i: int, j: int) -> float:
        shared = vectors[i].keys() & vectors[j].keys()
        return sum(vectors[i][word] * vectors[j][word] for word in shared) / (norms[i] * norms[j])

    return [[cosine(i, j) for j in range(len(texts))] for i in range(len(texts))]


def average_link(likeness: Sequence[Sequence[float]]) -> dict[float, list[int]]:
    """The labels at each threshold of the curve: the closest two of all are joined in turn."""
    found = [[item] for item in range(len(likeness))]
    average = [list(row) for row in likeness]
    out: dict[float, list[int]] = {}
    left = sorted(CURVE, reverse=True)
    while left:
        pairs = combinations(range(len(found)), 2)
        i, j = max(pairs, key=lambda pair: average[pair[0]][pair[1]], default=(0, 0))
        while left and (i == j or average[i][j] < left[0]):
            out[left.pop(0)] = labels(found, len(likeness))
        one, other = len(found[i]), len(found[j])
        for row in average:
            row[i] = (row[i] * one + row[j] * other) / (one + other)
            del row[j]
        del average[j]
        average[i] = [row[i] for row in average]  # its own row was joined by columns only
        found[i] += found.pop(j)
    return out


def confused(found: Sequence[int], gold: Sequence[str]) -> list[str]:
    """Groups in which confusable lessons met."""
    members: dict[int, set[str]] = defaultdict(set)
    for group, label in zip(found, gold, strict=True):
        members[group].add(label)
    return [
        " + ".join(sorted(met))
        for inside in members.values()
        for words in CONFUSABLE
        if len(met := {one for one in inside if any(word in one for word in words)}) > 1
    ]


def read(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def calibrate(data: Path) -> None:
    """Mean of both measures for each threshold, over samples of questions."""
    about: dict[str, list[str]] = defaultdict(list)
    for task in read(data / "intercode_sql" / "gpt-3.5.jsonl"):
        about[task["db"]].append(task["goal"])
    curve: dict[float, list[float]] = defaultdict(list)
    for seed in range(24):
        chance = random.Random(seed)
        drawn = [
            (goal, base)
            for base in sorted(about)
            for goal in chance.sample(about[base], min(len(about[base]), chance.choice(SIZES)))
        ]
        texts, gold = [goal for goal, _ in drawn], [base for _, base in drawn]
        for threshold in CURVE:
            found = labels(groups(texts, threshold), len(texts))
            curve[threshold].append((b_cubed(found, gold) + adjusted_rand(found, gold)) / 2)
    best = max(mean(values) for values in curve.values())
    print("threshold  mean of B-cubed F1 and adjusted Rand (24 samples)")
    for threshold in CURVE:
        value = mean(curve[threshold])
        print(f"{threshold:9.2f}  {value:.3f}{'  *' if value >= best - 0.01 else ''}")
    print("* within .01 of the best; the middle of these is the threshold")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", type=Path, default=os.environ.get("LOKI_BENCH_DATA"))
    options.add_argument("--calibrate", action="store_true", help="show where SUBJECT comes from")
    given = options.parse_args()
    if given.data is None:
        options.error("give the data folder with --data or LOKI_BENCH_DATA")
    if given.calibrate:
        calibrate(given.data)
        return 0
    items = read(given.data / "lesson_clusters" / "items.jsonl")
    texts, gold = [one["text"] for one in items], [one["cluster"] for one in items]
    ours = labels(groups(texts), len(texts))
    scored = average_link(tf_idf(texts))
    best = max(CURVE, key=lambda at: b_cubed(scored[at], gold) + adjusted_rand(scored[at], gold))
    rows = [
        (f"ours at {SUBJECT}", ours),
        (f"TF-IDF average link, best threshold on this set ({best})", scored[best]),
        ("every lesson alone", list(range(len(texts)))),
    ]
    for name, found in rows:
        print(f"{name:58} B3 {b_cubed(found, gold):.3f}  ARI {adjusted_rand(found, gold):.3f}")
        for met in confused(found, gold):
            print(f"    met: {met}")
    for threshold in (SUBJECT - 0.02, SUBJECT + 0.02):
        near = labels(groups(texts, threshold), len(texts))
        print(
            f"{f'ours at {threshold:.2f}':58} B3 {b_cubed(near, gold):.3f}  "
            f"ARI {adjusted_rand(near, gold):.3f}"
        )
    met = b_cubed(ours, gold) >= B_CUBED and adjusted_rand(ours, gold) >= RAND
    return 0 if met and not confused(ours, gold) else 1


if __name__ == "__main__":
    sys.exit(main())
