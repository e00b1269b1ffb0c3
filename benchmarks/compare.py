"""Coding-memory retrieval: ours beside grep, BM25, static vectors, MiniLM and mem0, in one run.

    python benchmarks/compare.py --data FOLDER [--peers PYTHON] [--peer-dialogues N] [--out FILE]

Two tasks, whose data and scorers lie in the data folder. *Session recall* (SWE-ContextBench): which
earlier session of a coding agent edited a file that this issue's accepted patch changes? *Changed
rules* (MemoryCode): a mentor changed a coding rule; is the newest statement found, and before all
older ones? Plain rows read the same texts: of a session the first 400 characters of its prompt and
the agent's last message, of a dialogue every turn. Nothing in any row is fitted to these sets.
PYTHON has the packages that `other_systems.py` names; without it there are no rows of them.
Embedding every turn with MiniLM takes long, so `--peer-dialogues N` gives peers only the first N
dialogues of changed rules; a row then says of how many, and the plain rows are printed for the
same dialogues too.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent / "recall"))

from data import Document, add_option, folder
from systems import Bm25, Grep, System, Vectors, static_encode

HERE = Path(__file__).parent
GOAL = 400  # characters of a prompt that an episode keeps


class Case(NamedTuple):
    """One question about the documents of a store."""

    question: str
    wanted: frozenset[str]  # labels of documents that answer it
    older: frozenset[str] = frozenset()  # labels of what was replaced


class Store(NamedTuple):
    texts: list[str]
    labels: list[str]  # a session each
    cases: list[Case]


Rankings = list[list[list[str]]]  # for each store and case, labels, best first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_option(parser)
    parser.add_argument("--peers", help="an interpreter that has the peers installed")
    parser.add_argument(
        "--peer-dialogues", type=int, help="give peers only the first N dialogues of changed rules"
    )
    parser.add_argument("--out", type=Path, help="write all results to this file, as JSON")
    options = parser.parse_args()
    data = folder(options)
    os.environ["LOKI_HOME"] = tempfile.mkdtemp()
    results = {}
    for title, scorer, stores, measure, most in (
        ("session recall", "session_recall.py", _sessions(data), _hits, None),
        ("changed rules", "rule_updates.py", _rules(data), _changes, options.peer_dialogues),
    ):
        rows = _plain_rows(stores, measure)
        rows |= _peer_rows(stores, measure, options.peers, most)
        results[title] = {**rows, "loki-memory": _ours(data, scorer)}
        _print(title, results[title])
    if options.out:
        options.out.write_text(json.dumps(results, indent=1), encoding="utf-8")


# -- tasks ---------------------------------------------------------------------------------------


def _scorer(data: Path, name: str) -> dict[str, Any]:
    """The functions of a scorer."""
    return runpy.run_path(str(data / "score" / name), run_name="scorer")


def _sessions(data: Path) -> list[Store]:
    said = _scorer(data, "session_recall.py")["said"]
    top = data / "swe_context"
    sessions = _lines(top / "sessions.jsonl")
    told = [said(top / "sessions" / session["file"]) for session in sessions]
    texts = [f"{prompt[:GOAL]} {answers[-1] if answers else ''}" for prompt, answers in told]
    tasks = [task for task in _lines(top / "tasks.jsonl") if task["relevant"]]
    cases = [Case(task["statement"], frozenset(task["relevant"])) for task in tasks]
    return [Store(texts, [session["task"] for session in sessions], cases)]


def _rules(data: Path) -> list[Store]:
    turns = _scorer(data, "rule_updates.py")["turns"]
    stores = []
    for dialogue in _lines(data / "memorycode" / "dialogues.jsonl"):
        said = [
            (at, by, text) for at, s in enumerate(dialogue["sessions"]) for by, text in turns(s)
        ]
        cases = [
            Case(
                chain["question"],
                frozenset({str(max(chain["sessions"]))}),
                frozenset(map(str, sorted(chain["sessions"])[:-1])),
            )
            for chain in dialogue["chains"]
        ]
        texts = [f"{by}: {text}" for _, by, text in said]
        stores.append(Store(texts, [str(at) for at, _, _ in said], cases))
    return stores


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# -- rows ----------------------------------------------------------------------------------------

PEERS = {"minilm": "MiniLM int8", "mem0": "mem0, MiniLM, no model"}
Measure = Callable[[list[Store], Rankings], dict[str, float]]


def _plain_rows(stores: list[Store], measure: Measure) -> dict[str, dict[str, float]]:
    encode = static_encode()
    plain: dict[str, Callable[[Sequence[Document]], System]] = {
        "grep": Grep,
        "FTS5 BM25": Bm25,
        "static vectors": lambda documents: Vectors(documents, encode),
    }
    return {name: measure(stores, _ranked(stores, make)) for name, make in plain.items()}


def _peer_rows(
    stores: list[Store], measure: Measure, peers: str | None, most: int | None
) -> dict[str, dict[str, float]]:
    """The rows of peers; of fewer stores than all, beside the plain rows of the same stores."""
    if peers is None:
        return {}
    some = stores[:most]
    rows = {PEERS[name]: measure(some, _of_peer(peers, name, some)) for name in ("minilm", "mem0")}
    if len(some) == len(stores):
        return rows
    rows |= _plain_rows(some, measure)
    asked = sum(len(store.cases) for store in some)
    return {f"{name} ({len(some)} dialogues, {asked} chains)": row for name, row in rows.items()}


def _ranked(stores: list[Store], make: Callable[[Sequence[Document]], System]) -> Rankings:
    found: Rankings = []
    for store in stores:
        system = make(
            [Document(str(at), text, None, "", "") for at, text in enumerate(store.texts)]
        )
        asked = (system.ranked(case.question) for case in store.cases)
        found.append([[store.labels[int(place)] for place in places] for places in asked])
    return found


def _of_peer(python: str, name: str, stores: list[Store]) -> Rankings:
    with tempfile.TemporaryDirectory() as place:
        given, taken = Path(place, "stores.json"), Path(place, "rankings.json")
        asked = [[case.question for case in store.cases] for store in stores]
        pairs = zip(stores, asked, strict=True)
        given.write_text(json.dumps([{"documents": s.texts, "questions": q} for s, q in pairs]))
        script = str(HERE / "other_systems.py")
        subprocess.run([python, script, name, str(given), str(taken)], check=True)
        places = json.loads(taken.read_text(encoding="utf-8"))
    return [
        [[store.labels[at] for at in ranking] for ranking in rankings]
        for store, rankings in zip(stores, places, strict=True)
    ]


def _ours(data: Path, scorer: str) -> dict[str, float]:
    """The figures of the data folder's own scorer, which knows the library face only."""
    command = [sys.executable, str(data / "score" / scorer), str(data), "project"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = json.loads(printed.splitlines()[-1].partition(" ")[2])
    return {name: value for name, value in found.items() if name not in {"issues", "chains", "ms"}}


# -- measures ------------------------------------------------------------------------------------


def _hits(stores: list[Store], rankings: Rankings) -> dict[str, float]:
    """Take the ten best of each question, as the scorer does."""
    ranks = [
        next((rank for rank, label in enumerate(labels[:10]) if label in case.wanted), 99)
        for store, found in zip(stores, rankings, strict=True)
        for case, labels in zip(store.cases, found, strict=True)
    ]
    mrr = sum(1 / (rank + 1) for rank in ranks if rank < 10) / len(ranks)
    shares = {f"hit@{k}": round(sum(rank < k for rank in ranks) / len(ranks), 3) for k in (1, 3, 5)}
    return {**shares, "mrr": round(mrr, 3)}


def _changes(stores: list[Store], rankings: Rankings) -> dict[str, float]:
    first = found = number = 0
    for store, ranked in zip(stores, rankings, strict=True):
        for case, labels in zip(store.cases, ranked, strict=True):
            newest, older = (
                _first(labels[:10], case.wanted, 99),
                _first(labels[:10], case.older, 98),
            )
            number, found, first = number + 1, found + (newest < 5), first + (newest < older)
    return {"newest_first": round(first / number, 3), "hit@5": round(found / number, 3)}


def _first(labels: list[str], wanted: frozenset[str], otherwise: int) -> int:
    return next((rank for rank, label in enumerate(labels) if label in wanted), otherwise)


def _print(title: str, rows: dict[str, dict[str, float]]) -> None:
    names = list(next(iter(rows.values())))
    print(f"\n## {title}\n\n| | {' | '.join(names)} |\n| --- |{' --- |' * len(names)}")
    for system, figures in rows.items():
        print(f"| {system} | {' | '.join(f'{figures[name]:.3f}' for name in names)} |", flush=True)


if __name__ == "__main__":
    main()
