"""Does recall find a memory that is asked for in other words?

    python benchmarks/recall/paraphrase.py [--quick] [--out FILE]

Two sets of questions about the example workspace, each with the ids of the memories that answer
it, the one that was meant first. In `questions.json` a question shares no content word with what
its memory states; in `paraphrases.json` with no text of the record at all, logs and file names
included, so that BM25 can only guess. The program ends with an error at one that shares a word.
BM25 and plain static vectors answer beside ours, from every text of the same records.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from data import Document
from measures import Score, as_json, content_words, grouped, mean, score, shared
from report import add_options, at_least, finish, number, print_lines, workplace
from systems import Bm25, System, Vectors, static_encode

from loki_memory import Workspace
from loki_memory.resources import resource

HERE = Path(__file__).resolve().parent
SHOWN = 3
SETS = ("questions", "paraphrases")
NOT_RECALLED = {"ledger", "link", "tombstone"}
NOT_TEXT = {"id", "session", "at", "timestamp", "origin", "git_commit", "links", "to", "relation"}


class Pair(NamedTuple):
    query: str
    ids: list[str]


class Answer(NamedTuple):
    pair: Pair
    kind: str
    ranked: list[str]
    score: Score  # against every memory that answers
    meant: Score  # against the one that was meant


def pairs(name: str) -> list[Pair]:
    text = (HERE / f"{name}.json").read_text(encoding="utf-8")
    return [Pair(**one) for one in json.loads(text)]


def common_words(workspace: Workspace, pair: Pair, *, anywhere: bool) -> Iterator[str]:
    """What a question and its answers share, and must not: anywhere, or with what they state."""
    for one in pair.ids:
        memory = workspace.get(one)
        text = " ".join(texts(memory.document())) if anywhere else memory.title()
        said = content_words(text)
        for asked, word in shared(content_words(pair.query), said):
            yield f"{pair.query!r} shares {asked!r} with {word!r} of {one}"


def texts(value: Any) -> Iterator[str]:
    """Every text of a record, but for ids and dates."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in NOT_TEXT:
                yield from texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from texts(inner)
    else:
        yield str(value)


def answers(workspace: Workspace, asked: Sequence[Pair]) -> Iterator[Answer]:
    for pair in asked:
        ranked = [hit.id for hit in workspace.recall(pair.query, k=SHOWN)]
        kind = workspace.get(pair.ids[0]).kind
        yield Answer(pair, kind, ranked, score(ranked, pair.ids), score(ranked, pair.ids[:1]))


def plain_scores(workspace: Workspace, asked: Sequence[Pair]) -> dict[str, list[Score]]:
    """What others make of the same records."""
    documents = [
        Document(memory.id, " ".join(texts(memory.document())), None, "", "")
        for memory in workspace.list()
        if memory.kind not in NOT_RECALLED
    ]
    systems: dict[str, System] = {
        "FTS5 BM25": Bm25(documents),
        "static vectors": Vectors(documents, static_encode()),
    }
    return {
        name: [score(system.ranked(pair.query)[:SHOWN], pair.ids) for pair in asked]
        for name, system in systems.items()
    }


def print_answers(found: Sequence[Answer], plain: Mapping[str, list[Score]]) -> None:
    groups = grouped((one.kind, one.score) for one in found)
    lines = [
        *plain.items(),
        ("ours", [one.score for one in found]),
        ("ours, only the one meant", [one.meant for one in found]),
        *((f"ours, about {kind}", scores) for kind, scores in groups.items()),
    ]
    print_lines(("", "n", "hit@1", "hit@3", "MRR"), [_line(*line) for line in lines])


def _line(name: str, scores: Sequence[Score]) -> tuple[str, ...]:
    one = mean(scores)
    return (name, str(len(scores)), *map(number, (one.hit1, one.hit3, one.mrr)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure recall by questions in other words.")
    add_options(parser)
    options = parser.parse_args()
    start = time.perf_counter()
    bars, results = [], {}
    with workplace() as folder:
        derived = shutil.ignore_patterns("cache", "local")
        shutil.copytree(resource("example_workspace"), folder / "example", ignore=derived)
        with Workspace.open(folder / "example") as workspace:
            workspace.sync()
            workspace.home.embed()
            for name in SETS:
                found, plain = measured(workspace, name, options.quick)
                print(f"{name}.json")
                print_answers(found, plain)
                hit3 = mean([one.score for one in found]).hit3
                bars.append(at_least(f"{name} hit@3", hit3, 0.7))
                results[name] = as_result(found, plain)
    finish(bars, results, options, start)


def measured(
    workspace: Workspace, name: str, quick: bool
) -> tuple[list[Answer], dict[str, list[Score]]]:
    asked = pairs(name)[: 20 if quick else None]
    anywhere = name == "paraphrases"
    faults = [fault for pair in asked for fault in common_words(workspace, pair, anywhere=anywhere)]
    if faults:
        sys.exit("\n".join(faults))
    return list(answers(workspace, asked)), plain_scores(workspace, asked)


def as_result(found: Sequence[Answer], plain: Mapping[str, list[Score]]) -> dict[str, Any]:
    questions = [
        {**one.pair._asdict(), "kind": one.kind, "ranked": one.ranked, **as_json(one.score)}
        for one in found
    ]
    others = {name: as_json(mean(scores)) for name, scores in plain.items()}
    return {"plain": others, "questions": questions}


if __name__ == "__main__":
    main()
