"""Fit the chances that recall states, and print how far they are from the truth.

    python benchmarks/recall/calibrate.py --data FOLDER [--quick]

Questions of LoCoMo and BEAM are put to their own conversation, where the data says which turns
answer them, and to others, where nothing does; issues of SWE-ContextBench and prompts of other
projects are put to the sessions of its repositories. Of each question the best match of the store
is noted, with whether it is the question's own store, and of each of the best hits the signals of
`recall/result.py`, with whether it answers. Logistic regressions give the weights of both chances,
every set counting alike. Small parts of LoCoMo and BEAM are stores of their own, so that sizes
vary. The weights of a store's chance are those of the line without issues. The tables show the
calibration error of each set, with the weights of the package and with weights that were fitted on
the other sets alone, and how often recall is silent.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import data
from report import print_lines, say
from silence import renamed
from systems import Ours

from loki_memory import Workspace
from loki_memory.recall.recall import RecallOptions
from loki_memory.recall.result import HIT, STORE, LogisticWeights
from loki_memory.settings import SETTINGS

HITS = 8  # of a question that are looked at
FOREIGN = 20  # questions of other stores that a store is asked
BINS = 10
SMALL = 60  # memories of a part of a store
PARTS = 3  # of each store
ISSUES = "SWE-ContextBench"
FLOOR = next(int(one.default) for one in SETTINGS if one.name == "recall.floor") / 100


class Sample(NamedTuple):
    """What is known of one thing that has a chance, and whether it came true."""

    signals: dict[str, float]
    is_true: bool


class Asked(NamedTuple):
    """One question: the store's best match for it, and its best hits."""

    match: Sample
    hits: list[Sample]


# -- samples ---------------------------------------------------------------------------------------


def ask(
    workspace: Workspace, question: str, is_relevant: Callable[[str], bool], *, is_own: bool
) -> Iterator[Asked]:
    asked = RecallOptions(question, HITS).as_query(workspace.now())
    workspace.home.ensure("folders")
    answer = workspace.home.retriever.answer(asked)
    if answer.best is None:
        return
    names = dict(workspace.index.ask("SELECT row, id FROM memories"))
    hits = [
        Sample(hit.nearness.signals(place), is_own and is_relevant(names[hit.row]))
        for place, hit in enumerate(answer.hits)
        if hit.nearness is not None
    ]
    yield Asked(Sample(answer.best.signals(), is_own), hits)


def of_stores(stores: Sequence[data.Store], most: int) -> Iterator[Asked]:
    """Questions that are put to their own store, and to the others under its names."""
    for number, store in enumerate(stores):
        others = [
            renamed(one.text, data.speakers(other), data.speakers(store))
            for other in stores
            if other.name != store.name
            for one in other.answerable
        ]
        foreign = others[number :: max(1, len(others) // FOREIGN)][:FOREIGN]
        with tempfile.TemporaryDirectory() as folder:
            ours = Ours(store.documents, Path(folder) / "store", bulk=True)
            for own in store.answerable[:most]:
                gold = {name for name, document in ours.documents.items() if document in own.gold}
                yield from ask(ours.workspace, own.text, gold.__contains__, is_own=True)
            for text in foreign:
                yield from ask(ours.workspace, text, bool, is_own=False)
            ours.close()


def parts(stores: Sequence[data.Store]) -> Iterator[data.Store]:
    """Some memories of each store in a store of their own: the same questions, asked of few."""
    for store in stores:
        runs = [store.documents[n : n + SMALL] for n in range(0, len(store.documents), SMALL)]
        for run in runs[1 :: max(1, len(runs) // PARTS)][:PARTS]:
            held = {document.id for document in run}
            questions = [one for one in store.answerable if one.gold <= held]
            yield store._replace(documents=run, questions=questions)


def of_issues(folder: Path, foreign: Sequence[str]) -> Iterator[Asked]:
    """Issues, put to sessions: one is relevant if it edited what the patch changes.

    `foreign` are prompts of other projects, to which no session is.
    """
    sessions = [json.loads(line) for line in (folder / "sessions.jsonl").open(encoding="utf-8")]
    issues = [json.loads(line) for line in (folder / "tasks.jsonl").open(encoding="utf-8")]
    with (
        tempfile.TemporaryDirectory() as place,
        Workspace.init(Path(place)) as workspace,
    ):
        task_of: dict[str, str] = {}
        for session in sessions:
            workspace.ingest([folder / "sessions" / session["file"]])
            for episode in workspace.list(kind="episode"):
                task_of.setdefault(episode.id, session["task"])
        workspace.consolidate()
        for issue in issues:
            helpful = set(issue["relevant"])

            def is_helpful(name: str, helpful: set[str] = helpful) -> bool:
                return not _tasks(workspace, name, task_of).isdisjoint(helpful)

            yield from ask(workspace, issue["statement"], is_helpful, is_own=True)
        for prompt in foreign:
            yield from ask(workspace, prompt, bool, is_own=False)


def _tasks(workspace: Workspace, name: str, task_of: dict[str, str]) -> set[str]:
    """The tasks of the sessions that a memory comes from."""
    if name in task_of:
        return {task_of[name]}
    text = workspace.get(name).model_dump_json()
    return {task_of[found] for found in re.findall(r"ep-[\w-]+", text) if found in task_of}


# -- weights ---------------------------------------------------------------------------------------


def fitted(
    like: LogisticWeights, sets: Sequence[Sequence[Sample]], *, even: bool = False
) -> LogisticWeights:
    """Weights for the same signals by a logistic regression in which every set counts alike.

    `even`: and in each set what is true as much as what is not.
    """
    from sklearn.linear_model import LogisticRegression

    names = [*like.each]
    signals, wanted, shares = [], [], []
    for samples in sets:
        true = sum(sample.is_true for sample in samples)
        for sample in samples:
            alike = true if sample.is_true else len(samples) - true
            signals.append([sample.signals[name] for name in names])
            wanted.append(sample.is_true)
            shares.append(1 / alike if even else 1 / len(samples))
    scale = len(wanted) / sum(shares)
    model = LogisticRegression(C=1e6, max_iter=5000)
    model.fit(signals, wanted, sample_weight=[scale * share for share in shares])
    each = zip(names, map(float, model.coef_[0]), strict=True)
    return LogisticWeights(float(model.intercept_[0]), dict(each))


def without(sets: Mapping[str, Sequence[Sample]], name: str) -> list[Sequence[Sample]]:
    """The sets of other data than one set."""
    source = name.partition(",")[0]
    return [samples for other, samples in sets.items() if other.partition(",")[0] != source]


def error(weights: LogisticWeights, samples: Sequence[Sample]) -> float:
    """Expected calibration error: chances against shares, in ten bins."""
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for sample in samples:
        chance = weights.chance(sample.signals)
        bins[min(int(chance * BINS), BINS - 1)].append((chance, sample.is_true))
    gaps = (abs(sum(c for c, _ in each) - sum(r for _, r in each)) for each in bins)
    return sum(gaps) / max(1, len(samples))


def silence(weights: LogisticWeights, samples: Sequence[Sample], *, own: bool) -> float:
    """The share of questions, own or foreign, whose chance lies below the floor."""
    asked = [sample for sample in samples if sample.is_true == own]
    return sum(weights.chance(sample.signals) < FLOOR for sample in asked) / max(1, len(asked))


def print_hits(sets: Mapping[str, Sequence[Sample]]) -> None:
    lines = []
    for name, samples in sets.items():
        others = fitted(HIT, without(sets, name))
        share = sum(sample.is_true for sample in samples) / len(samples)
        errors = (error(HIT, samples), error(others, samples))
        lines.append((name, str(len(samples)), f"{share:.3f}", *(f"{one:.3f}" for one in errors)))
    pooled = [sample for samples in sets.values() for sample in samples]
    lines.append(("all", str(len(pooled)), "", f"{error(HIT, pooled):.3f}", ""))
    print_lines(("set", "hits", "relevant", "error as shipped", "error, set left out"), lines)
    say(f"weights of hits, all sets: {fitted(HIT, [*sets.values()])}")


def print_matches(sets: Mapping[str, Sequence[Sample]]) -> None:
    lines = []
    for name, samples in sets.items():
        others = fitted(STORE, without(sets, name), even=True)
        rates = [
            silence(weights, samples, own=own)
            for weights in (STORE, others)
            for own in (False, True)
        ]
        lines.append((name, str(len(samples)), *(f"{rate:.3f}" for rate in rates)))
    head = ("set", "questions", "right silence", "false", "right, set left out", "false")
    print_lines(head, lines)
    say(f"weights of matches, all sets: {fitted(STORE, [*sets.values()], even=True)}")
    say(f"… without issues: {fitted(STORE, without(sets, ISSUES), even=True)}")


def all_sets(folder: Path, most: int) -> dict[str, list[Asked]]:
    """The samples of each set, with at most so many questions of a store."""
    locomo, beam = data.locomo(folder), data.beam(folder)
    prompts = [one.question.text for each in data.sessions(folder) for one in each.asked]
    return {
        "LoCoMo": list(of_stores(locomo, most)),
        "LoCoMo, parts": list(of_stores([*parts(locomo)], most)),
        "BEAM": list(of_stores(beam, most)),
        "BEAM, parts": list(of_stores([*parts(beam)], most)),
        ISSUES: list(of_issues(folder / "swe_context", prompts[:80])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    data.add_option(parser)
    parser.add_argument("--quick", action="store_true", help="fewer questions")
    options = parser.parse_args()
    os.environ["LOKI_HOME"] = tempfile.mkdtemp()
    asked = all_sets(data.folder(options), 20 if options.quick else 80)
    print("the chance that a hit is relevant\n")
    print_hits({name: [hit for one in each for hit in one.hits] for name, each in asked.items()})
    print(f"\nthe chance that a store knows about a question, floor {FLOOR:.2f}\n")
    print_matches({name: [one.match for one in each] for name, each in asked.items()})


if __name__ == "__main__":
    main()
