"""Do lessons that say one thing end in one group, and confusable ones in two?

    python benchmarks/consolidation/clusters.py --data FOLDER [--out FILE]

Lessons in their authors' words (`lesson_clusters`, labelled by hand) are grouped project by
project. A threshold that is tuned on the lessons that it is measured on says little about the next
project, so each project is reported with the threshold that is best on all the others: `left out`.
Of thresholds that are equally good (within .02 of the best sum of B-cubed F1 and adjusted Rand) the
lowest counts, in every row: a project whose lessons repeat each other word for word is grouped as
well by any stricter one. The last column has what the worst of them comes to. The package has one
threshold for all projects, `SUBJECT`, for which all of them were looked at; its rows are printed
too. Plain TF-IDF with average link stands beside it; Loki Mode's rules put lessons into buckets by
a key word.

Then all lessons are remembered and consolidated. Some are confusable: nearly the same words about
the same thing, and opposite advice, or an old fact and a new one. None of those may be in one
group, or merged. The measures are written here and share no code with the package.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from math import comb
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1] / "recall"))  # the scripts are no package
from baselines import bucket, data_folder, read
from report import Bar, add_options, at_least, at_most, finish, number, print_lines, workplace

from loki_memory.consolidation.clustering import SUBJECT, clusters

B_CUBED = 0.88
CURVE = [n / 100 for n in range(10, 51)]
NEAR = 0.02
HEADS = ("", "project", "threshold", "B-cubed F1", "adjusted Rand", "B-cubed F1 at worst")
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


class Lessons(NamedTuple):
    """The lessons of one project, and the label of each."""

    texts: list[str]
    gold: list[str]

    def scores(self, found: Sequence[int]) -> Scores:
        return Scores(b_cubed(found, self.gold), adjusted_rand(found, self.gold))


class Scores(NamedTuple):
    """How well a grouping agrees with the labels."""

    b_cubed: float
    adjusted_rand: float


class Row(NamedTuple):
    """What a method comes to on one project, at a threshold from elsewhere."""

    method: str
    project: str
    threshold: float | None
    scores: Scores
    worst: float | None = None  # B-cubed F1 at any of the equally good thresholds


Grouping = Callable[[Sequence[str], float], list[int]]


def ours(texts: Sequence[str], threshold: float) -> list[int]:
    return labels(clusters(texts, threshold), len(texts))


def tf_idf(texts: Sequence[str], threshold: float) -> list[int]:
    """Plain TF-IDF with average link."""
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.feature_extraction.text import TfidfVectorizer

    linked = AgglomerativeClustering(
        None, metric="cosine", linkage="average", distance_threshold=1 - threshold
    )
    found: list[int] = linked.fit_predict(TfidfVectorizer().fit_transform(texts).toarray()).tolist()
    return found


def left_out(projects: Mapping[str, Lessons], method: str, group: Grouping) -> list[Row]:
    """Each project at the threshold that is best on all others."""
    curves = {
        name: {at: lessons.scores(group(lessons.texts, at)) for at in CURVE}
        for name, lessons in projects.items()
    }
    rows = []
    for name in curves if len(curves) > 1 else ():
        others = [curve for other, curve in curves.items() if other != name]
        total = {at: mean(sum(curve[at]) for curve in others) for at in CURVE}
        good = [at for at in CURVE if total[at] >= max(total.values()) - NEAR]
        worst = min(curves[name][at].b_cubed for at in good)
        rows.append(Row(f"{method}, left out", name, good[0], curves[name][good[0]], worst))
    return rows


def at_one_threshold(projects: Mapping[str, Lessons]) -> list[Row]:
    """What is shipped, and what takes no threshold."""
    rows = []
    for name, (texts, gold) in projects.items():
        score = Lessons(texts, gold).scores
        kinds = sorted({bucket(text) for text in texts})
        rows += [
            Row("ours, as shipped", name, SUBJECT, score(ours(texts, SUBJECT))),
            Row("Loki Mode's buckets", name, None, score([kinds.index(bucket(t)) for t in texts])),
            Row("every lesson alone", name, None, score(range(len(texts)))),
        ]
    return sorted(rows, key=lambda row: row.method, reverse=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the grouping of lessons.")
    add_options(parser)
    data_folder(parser)
    options = parser.parse_args()
    start = time.perf_counter()
    items = read(options.data / "lesson_clusters" / "items.jsonl")
    projects: dict[str, Lessons] = defaultdict(lambda: Lessons([], []))
    for item in items:
        projects[item["project"]].texts.append(item["text"])
        projects[item["project"]].gold.append(item["cluster"])
    mine = left_out(projects, "ours", ours)
    rows = [*mine, *left_out(projects, "TF-IDF", tf_idf), *at_one_threshold(projects)]
    texts, gold = [one["text"] for one in items], [one["cluster"] for one in items]
    with workplace() as place:
        confusable = families(gold, ours(texts, SUBJECT), merges(texts, place / "store"))
    print_lines(HEADS, map(_cells, rows))
    _tell(confusable)
    told = {"rows": [_plain(row) for row in rows], "confusable": [f._asdict() for f in confusable]}
    finish([*_bars(mine, rows), _met(confusable)], told, options, start)


def _cells(row: Row) -> tuple[str, ...]:
    at = "" if row.threshold is None else f"{row.threshold:.2f}"
    worst = "" if row.worst is None else number(row.worst)
    return row.method, row.project, at, *map(number, row.scores), worst


def _plain(row: Row) -> dict[str, Any]:
    return {**row._asdict(), "scores": row.scores._asdict()}


def _bars(mine: Sequence[Row], rows: Sequence[Row]) -> list[Bar]:
    """Left out where there is another project to tune on; else as shipped."""
    barred = mine or [row for row in rows if row.method == "ours, as shipped"]
    return [at_least(f"B-cubed F1, {row.project}", row.scores.b_cubed, B_CUBED) for row in barred]


def _met(confusable: Iterable[Family]) -> Bar:
    met = sum(len(one.grouped) + len(one.merged) for one in confusable)
    return at_most("confusable lessons that met", met, 0)


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
