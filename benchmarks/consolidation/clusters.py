"""Do lessons that say one thing end in one group, and confusable ones in two?

    python benchmarks/consolidation/clusters.py --data FOLDER [--out FILE]

Lessons in their authors' words (`lesson_clusters`, labelled by hand) are grouped by the package
and, beside it, by average-link over TF-IDF vectors with the threshold that is best *on this set*:
a baseline that nobody can have. Ours has one threshold, found elsewhere (`calibrate.py`). Loki
Mode's rules put lessons into buckets by a key word.

Then the same lessons are remembered and consolidated. Some are confusable: nearly the same words
about the same thing, and opposite advice, or an old fact and a new one. None of those may be in one
group, or merged. The measures are written here and share no code with the package.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1] / "recall"))  # the scripts are no package
from baselines import bucket, cosine, data_folder, read, tf_idf
from report import add_options, at_least, at_most, finish, number, print_lines, workplace

from loki_memory.consolidation.average_link import SUBJECT, groups

B_CUBED, RAND = 0.93, 0.90
CURVE = [n / 100 for n in range(10, 46, 2)]
# Families of which no two labels may meet, by what their labels contain.
CONFUSABLE = {
    "t.Parallel() required, and forbidden with chdir": ("t_parallel",),
    "old and new format of shadow branches": ("shadow_branch",),
    "different lessons about pre-commit": ("pre_commit", "precommit"),
}


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


class Family(NamedTuple):
    """Lessons that are easily taken for each other: how many pairs, and which of them met."""

    name: str
    pairs: int
    grouped: list[str]
    merged: list[str]


def families(
    gold: Sequence[str], found: Sequence[int], merged: Iterable[tuple[int, int]]
) -> list[Family]:
    """What became of every confusable family."""
    together = {frozenset(pair) for pair in merged}
    return [_family(name, words, gold, found, together) for name, words in CONFUSABLE.items()]


def _family(
    name: str,
    words: Sequence[str],
    gold: Sequence[str],
    found: Sequence[int],
    together: set[frozenset[int]],
) -> Family:
    inside = [at for at, label in enumerate(gold) if any(word in label for word in words)]
    pairs = [pair for pair in combinations(inside, 2) if gold[pair[0]] != gold[pair[1]]]
    grouped = [pair for pair in pairs if found[pair[0]] == found[pair[1]]]
    merged = [pair for pair in pairs if frozenset(pair) in together]
    return Family(name, len(pairs), _named(grouped, gold), _named(merged, gold))


def _named(pairs: Iterable[tuple[int, int]], gold: Sequence[str]) -> list[str]:
    return sorted({" + ".join(sorted((gold[one], gold[other]))) for one, other in pairs})


def merges(texts: Sequence[str], place: Path) -> list[tuple[int, int]]:
    """Pairs of lessons of which consolidation superseded one by the other."""
    from loki_memory import Workspace

    workspace = Workspace.init(place)
    known = {workspace.remember(text, kind="fact").id: at for at, text in enumerate(texts)}
    workspace.consolidate()
    return [
        (known[fact.id], known[link.to])
        for fact in workspace.list(kind="fact", status="superseded")
        for link in fact.links
        if link.relation == "superseded_by" and link.to in known
    ]


def partitions(texts: Sequence[str], gold: Sequence[str]) -> dict[str, list[int]]:
    """How each row of the table groups the lessons; ours first."""
    vectors = tf_idf(texts)
    scored = average_link([[cosine(one, other) for other in vectors] for one in vectors])
    best = max(CURVE, key=lambda at: b_cubed(scored[at], gold) + adjusted_rand(scored[at], gold))
    kinds = sorted({bucket(text) for text in texts})
    rows = {
        f"ours at {threshold:.2f}": labels(groups(texts, threshold), len(texts))
        for threshold in (SUBJECT, SUBJECT - 0.02, SUBJECT + 0.02)
    }
    return {
        **rows,
        f"TF-IDF average link, best threshold on this set ({best})": scored[best],
        "Loki Mode's rules: buckets": [kinds.index(bucket(text)) for text in texts],
        "every lesson alone": list(range(len(texts))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the grouping of lessons.")
    add_options(parser)
    data_folder(parser)
    options = parser.parse_args()
    start = time.perf_counter()
    items = read(options.data / "lesson_clusters" / "items.jsonl")
    texts, gold = [one["text"] for one in items], [one["cluster"] for one in items]
    found = partitions(texts, gold)
    scores = {
        name: {"b_cubed": b_cubed(row, gold), "adjusted_rand": adjusted_rand(row, gold)}
        for name, row in found.items()
    }
    ours = next(iter(found))
    with workplace() as place:
        confusable = families(gold, found[ours], merges(texts, place / "store"))
    print_lines(
        ("", "B-cubed F1", "adjusted Rand"),
        [(name, *map(number, row.values())) for name, row in scores.items()],
    )
    _tell(confusable)
    met = sum(len(one.grouped) + len(one.merged) for one in confusable)
    bars = [
        at_least("B-cubed F1", scores[ours]["b_cubed"], B_CUBED),
        at_least("adjusted Rand", scores[ours]["adjusted_rand"], RAND),
        at_most("confusable lessons that met", met, 0),
    ]
    told = [one._asdict() for one in confusable]
    finish(bars, {"rows": scores, "confusable": told}, options, start)


def _tell(confusable: Iterable[Family]) -> None:
    print()
    print_lines(
        ("must stay apart", "pairs", "in one group", "merged"),
        [
            (one.name, str(one.pairs), str(len(one.grouped)), str(len(one.merged)))
            for one in confusable
        ],
    )
    for one in confusable:
        for met in (*one.grouped, *one.merged):
            print(f"met: {met}")


if __name__ == "__main__":
    main()
