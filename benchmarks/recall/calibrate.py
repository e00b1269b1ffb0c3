"""Fit the chance that a memory is relevant, and print how far it is from the truth.

    python benchmarks/recall/calibrate.py --data FOLDER [--quick]

Questions of LoCoMo and BEAM are put to their own conversation, where the data says which turns
answer them, and to others, where nothing does; issues of SWE-ContextBench and prompts of other
projects are put to the sessions of its repositories. For each of the best hits the signals of
`recall/result.py` are noted, with whether the hit answers. A logistic regression gives the
weights, every set counting alike. The table shows the calibration error of each set: with the
weights of the package, and with weights that were fitted on the other sets alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from math import exp, log1p
from pathlib import Path
from typing import NamedTuple

import data
from report import print_lines, say
from systems import Ours

from loki_memory import Workspace
from loki_memory.recall.recall import RecallOptions
from loki_memory.recall.result import BIAS, WEIGHTS

HITS = 8  # of a question that are looked at
FOREIGN = 20  # questions of other stores that a store is asked
BINS = 10


class Sample(NamedTuple):
    """One hit of one question."""

    alike: float
    cosine: float
    place: float
    is_relevant: bool

    def signals(self) -> tuple[float, float, float]:
        return self.alike, self.cosine, self.place


class Weights(NamedTuple):
    bias: float
    each: tuple[float, ...]

    def chance(self, sample: Sample) -> float:
        odds = self.bias + sum(
            weight * signal for weight, signal in zip(self.each, sample.signals(), strict=True)
        )
        return 1 / (1 + exp(-odds))


# -- samples ---------------------------------------------------------------------------------------


def hits(workspace: Workspace, question: str) -> Iterator[tuple[str, int, float, float]]:
    """(id, place, MaxSim, cosine) of the best memories for a question."""
    asked = RecallOptions(question, HITS).asked(workspace.now())
    workspace.home.ensure("folders")
    answer = workspace.home.retriever.answer(asked)
    names = dict(workspace.index.ask("SELECT row, id FROM memories"))
    for place, hit in enumerate(answer.hits):
        if hit.nearness is not None:
            yield names[hit.row], place, hit.nearness.alike, hit.nearness.cosine


def of_stores(stores: Sequence[data.Store], most: int) -> Iterator[Sample]:
    """Samples of questions that are put to their own store, and to the others."""
    for number, store in enumerate(stores):
        with tempfile.TemporaryDirectory() as folder:
            ours = Ours(store.documents, Path(folder) / "store", bulk=True)
            for question in store.answerable[:most]:
                yield from _samples(ours, question.text, question.gold)
            others = [one for other in stores if other is not store for one in other.answerable]
            for question in others[number :: max(1, len(others) // FOREIGN)][:FOREIGN]:
                yield from _samples(ours, question.text, frozenset())
            ours.close()


def _samples(ours: Ours, question: str, gold: frozenset[str]) -> Iterator[Sample]:
    for name, place, alike, cosine in hits(ours.workspace, question):
        yield Sample(alike, cosine, log1p(place), ours.documents.get(name) in gold)


def of_issues(folder: Path, foreign: Sequence[str]) -> Iterator[Sample]:
    """Samples of issues, put to sessions: one is relevant if it edited what the patch changes.

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
            for name, number, alike, cosine in hits(workspace, issue["statement"]):
                tasks = _tasks(workspace, name, task_of)
                is_relevant = not tasks.isdisjoint(issue["relevant"])
                yield Sample(alike, cosine, log1p(number), is_relevant)
        for prompt in foreign:
            for _, number, alike, cosine in hits(workspace, prompt):
                yield Sample(alike, cosine, log1p(number), is_relevant=False)


def _tasks(workspace: Workspace, name: str, task_of: dict[str, str]) -> set[str]:
    """The tasks of the sessions that a memory comes from."""
    if name in task_of:
        return {task_of[name]}
    text = workspace.get(name).model_dump_json()
    return {task_of[found] for found in re.findall(r"ep-[\w-]+", text) if found in task_of}


# -- weights ---------------------------------------------------------------------------------------


def fitted(sets: Sequence[Sequence[Sample]]) -> Weights:
    """Weights of a logistic regression in which every set counts alike."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    signals = np.array([sample.signals() for samples in sets for sample in samples])
    wanted = np.array([sample.is_relevant for samples in sets for sample in samples])
    shares = np.concatenate([np.full(len(samples), 1 / len(samples)) for samples in sets])
    model = LogisticRegression(C=1e6, max_iter=1000)
    model.fit(signals, wanted, sample_weight=shares * len(wanted) / len(sets))
    return Weights(float(model.intercept_[0]), tuple(map(float, model.coef_[0])))


def error(weights: Weights, samples: Sequence[Sample]) -> float:
    """Expected calibration error: chances against shares, in ten bins."""
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for sample in samples:
        chance = weights.chance(sample)
        bins[min(int(chance * BINS), BINS - 1)].append((chance, sample.is_relevant))
    gaps = (abs(sum(c for c, _ in each) - sum(r for _, r in each)) for each in bins)
    return sum(gaps) / max(1, len(samples))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    data.add_option(parser)
    parser.add_argument("--quick", action="store_true", help="fewer questions")
    options = parser.parse_args()
    folder = data.folder(options)
    os.environ["LOKI_HOME"] = tempfile.mkdtemp()
    most = 20 if options.quick else 80
    prompts = [one.question.text for each in data.sessions(folder) for one in each.asked]
    sets = {
        "LoCoMo": list(of_stores(data.locomo(folder), most)),
        "BEAM": list(of_stores(data.beam(folder), most)),
        "SWE-ContextBench": list(of_issues(folder / "swe_context", prompts[:80])),
    }
    shipped = Weights(BIAS, (WEIGHTS["alike"], WEIGHTS["cosine"], WEIGHTS["place"]))
    head = ("set", "hits", "relevant", "error as shipped", "error, set left out")
    lines = []
    for name, samples in sets.items():
        others = fitted([each for other, each in sets.items() if other != name])
        share = sum(sample.is_relevant for sample in samples) / len(samples)
        errors = (error(shipped, samples), error(others, samples))
        lines.append((name, str(len(samples)), f"{share:.3f}", *(f"{one:.3f}" for one in errors)))
    pooled = [sample for samples in sets.values() for sample in samples]
    lines.append(("all", str(len(pooled)), "", f"{error(shipped, pooled):.3f}", ""))
    print_lines(head, lines)
    say(f"weights of all sets: {fitted([*sets.values()])}")


if __name__ == "__main__":
    main()
