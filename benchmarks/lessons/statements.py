"""Statements that ingestion keeps, measured by what careful readers learned from the same sessions.

    python benchmarks/lessons/statements.py --data DIR [--show 10]

Prints for each project the share of gold items that the kept statements of the session state, the
share of statements that state one, how many there are of each type, and their mean length. With
`--refit` it fits the weights of the score on each project in turn and prints how well they order
the sentences of the other one (AUC), beside the weights in use. The scorer of the data folder
decides what "states" means; it is called from there.

The weights in use lie halfway between those of a hand-labelled study and a fit on both projects.
When they were chosen, weights fitted on one project alone ordered the other one with AUC .775
(entireio/cli) and .720 (entire-bmad), those of the study with .755 and .689.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loki_memory.errors import InvalidRecord
from loki_memory.ingest.claude_code import ClaudeCode
from loki_memory.ingest.json_lines import opened, pieces
from loki_memory.ingest.statement_score import WEIGHTS, features, is_refused
from loki_memory.ingest.statements import FoundStatement, sentences_of, statements
from loki_memory.ingest.turns import Turn, checked
from loki_memory.ingest.utterances import Prose, utterances

_PRIOR = 0.03  # how strongly a fit is held at the weights in use


class Session(NamedTuple):
    """A session with gold: its prose, and the items that a reader learned from it."""

    project: str
    prose: Prose
    gold: list[str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("LOKI_BENCH_DATA"), required=False)
    parser.add_argument("--show", type=int, default=0, help="print as many statements per project")
    parser.add_argument(
        "--refit", action="store_true", help="fit weights on one, test on the other"
    )
    options = parser.parse_args()
    if not options.data:
        parser.error("give the data folder with --data or LOKI_BENCH_DATA")
    data = Path(options.data)
    scorer = _scorer(data)
    sessions = list(_sessions(data, scorer))
    match = _matcher(data, scorer, sessions)
    for project in sorted({session.project for session in sessions}):
        _report(
            project,
            [one for one in sessions if one.project == project],
            match,
            scorer,
            options.show,
        )
    if options.refit:
        _refit(sessions, match, scorer)


def _scorer(data: Path) -> ModuleType:
    sys.path.insert(0, str(data / "score"))
    return import_module("gold_lessons")


def _sessions(data: Path, scorer: ModuleType) -> Iterator[Session]:
    items, meta = scorer.gold(data)
    for name in sorted(meta, key=lambda session: meta[session]["start"]):
        gold = [item["text"] for item in items if item["session"] == name]
        turns = sorted(_turns(Path(meta[name]["file"])), key=Turn.order)
        yield Session(meta[name]["project"], utterances(turns), gold)


def _turns(path: Path) -> Iterator[Turn]:
    dialect = ClaudeCode()
    with opened(path) as stream:
        for piece in pieces(stream):
            for value in piece.values:
                try:
                    yield from map(checked, dialect.turns(value) or ())
                except InvalidRecord:
                    continue


def _matcher(data: Path, scorer: ModuleType, sessions: list[Session]) -> Any:
    prose = [
        sentence
        for session in sessions
        for utterance in session.prose.utterances
        if utterance.source == "say"
        for sentence in scorer.sentences(utterance.text)
    ]
    gold = [text for session in sessions for text in session.gold]
    return scorer.Matcher(scorer.Embedding(data / "../model"), prose + gold)


def _report(
    project: str, sessions: list[Session], match: Any, scorer: ModuleType, show: int
) -> None:
    stated: list[bool] = []
    useful: list[bool] = []
    kept: list[FoundStatement] = []
    for session in sessions:
        found = statements(*session.prose)
        scores = match.scores([one.text for one in found], match.items(session.gold))
        hits = scores >= scorer.THRESHOLD
        stated += hits.any(0).tolist() if len(found) else [False] * len(session.gold)
        useful += hits.any(1).tolist()
        kept += found
    types = ", ".join(
        f"{name} {count}" for name, count in Counter(o.type for o in kept).most_common()
    )
    length = float(np.mean([len(one.text) for one in kept])) if kept else 0.0
    print(f"{project}: {len(sessions)} sessions, {len(kept)} statements of {length:.0f} characters")
    print(f"  gold stated {np.mean(stated):.3f} of {len(stated)}")
    print(f"  statements that state gold {np.mean(useful):.3f}")
    print(f"  {types}")
    for one in kept[:show]:
        print(f"    {one.score:.2f} {one.type}: {one.text}")


# -- weights ---------------------------------------------------------------------------------------


def _refit(sessions: list[Session], match: Any, scorer: ModuleType) -> None:
    from sklearn.metrics import roc_auc_score

    rows: defaultdict[str, list[list[float]]] = defaultdict(list)
    labels: defaultdict[str, list[bool]] = defaultdict(list)
    for session in sessions:
        for text, source, restated in sentences_of(session.prose.utterances):
            if not is_refused(text, source):
                found = features(text, source, restated)
                rows[session.project].append([found[name] for name in WEIGHTS])
                best = match.scores([text], match.items(session.gold)).max()
                labels[session.project].append(bool(best >= scorer.THRESHOLD))
    used = np.array(list(WEIGHTS.values()))
    for project in sorted(rows):
        others = [name for name in rows if name != project]
        weights = _fit(
            np.vstack([rows[name] for name in others]),
            np.concatenate([labels[name] for name in others]),
            used,
        )
        here, truth = np.array(rows[project]), labels[project]
        before, after = (roc_auc_score(truth, here @ values) for values in (used, weights))
        print(f"{project}: AUC {before:.3f} with the weights in use, {after:.3f} fitted elsewhere")


def _fit(
    rows: NDArray[np.float64], labels: NDArray[np.bool_], prior: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Logistic regression that is held near the weights in use; the bias is free."""
    from scipy.optimize import minimize

    truth = labels.astype(float)

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        scores = rows @ weights
        away = weights - prior
        away[0] = 0.0
        chance = 1 / (1 + np.exp(-scores))
        value = float(np.mean(np.logaddexp(0, scores) - truth * scores) + _PRIOR * (away**2).sum())
        return value, rows.T @ (chance - truth) / len(truth) + 2 * _PRIOR * away

    found: NDArray[np.float64] = minimize(loss, prior.copy(), jac=True, method="L-BFGS-B").x
    return found


if __name__ == "__main__":
    main()
