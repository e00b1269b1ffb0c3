"""How well recall finds what answers a question: LoCoMo, BEAM, and earlier coding sessions.

    python benchmarks/recall/quality.py --data FOLDER [--only NAME] [--quick] [--out FILE]

One memory per turn, message or session, through the library face; grep, BM25, static vectors and
their plain fusion answer the same questions in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import data
from data import Document, Question, Store
from measures import Score, as_json, grouped, mean, score, tokens
from report import Bar, add_options, at_least, finish, number, print_lines, say, workplace
from systems import Encode, Ours, full_text, minilm_encode, plain_systems, static_encode

OURS = "ours"
BM25 = "FTS5 BM25"
SHOWN = 5  # hits that tokens are counted for
HEAD = ("", "n", "R@1", "R@5", "R@10", "NDCG@10", "MRR", "hit@5")


class Answer(NamedTuple):
    """What one system said to one question."""

    system: str
    store: str
    question: Question
    ranked: list[str]
    score: Score
    milliseconds: float
    lines: int | None = None  # tokens of the lines shown, ours only
    texts: int | None = None  # … and of the full texts behind them
    certainty: float | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.question.id,
            "category": self.question.category,
            "gold": sorted(self.question.gold),
            "ranked": self.ranked[:10],
            **as_json(self.score),
            "ms": round(self.milliseconds, 2),
            "certainty": self.certainty,
        }


# -- asking ----------------------------------------------------------------------------------------


def ask_plain(store: Store, encoders: Mapping[str, Encode]) -> Iterator[Answer]:
    for name, system in plain_systems(store.documents, encoders).items():
        for question in store.answerable:
            start = time.perf_counter()
            ranked = system.ranked(question.text)
            took = (time.perf_counter() - start) * 1e3
            yield Answer(name, store.name, question, ranked, score(ranked, question.gold), took)


def ask_ours(store: Store, folder: Path, *, bulk: bool) -> Iterator[Answer]:
    ours = Ours(store.documents, folder, bulk=bulk)
    texts = {document.id: full_text(document) for document in store.documents}
    for question in store.answerable:
        yield our_answer(ours, store.name, question, texts)
    ours.close()


def our_answer(ours: Ours, store: str, question: Question, texts: Mapping[str, str]) -> Answer:
    start = time.perf_counter()
    hits = ours.recalled(question.text)
    took = (time.perf_counter() - start) * 1e3
    ranked = [ours.documents[hit.id] for hit in hits]
    lines = tokens(f"[{hit.id}] {hit.title}" for hit in hits[:SHOWN])
    full = tokens(texts[one] for one in ranked[:SHOWN])
    return Answer(
        OURS,
        store,
        question,
        ranked,
        score(ranked, question.gold),
        took,
        lines,
        full,
        hits.certainty,
    )


def ask(
    stores: Sequence[Store], folder: Path, encoders: Mapping[str, Encode], *, bulk: bool
) -> list[Answer]:
    answers: list[Answer] = []
    for store in stores:
        say(f"{store.name}: {len(store.documents)} documents, {len(store.answerable)} questions …")
        answers += ask_plain(store, encoders)
        answers += ask_ours(store, folder / store.name, bulk=bulk)
    return answers


def ask_sessions(
    project: data.Project, folder: Path, encoders: Mapping[str, Encode]
) -> list[Answer]:
    """In the order of time: a question sees the sessions that began before it."""
    say(f"{project.name}: {len(project.documents)} documents, {len(project.asked)} questions …")
    ours = Ours((), folder)
    seen: list[Document] = []
    answers: list[Answer] = []
    waiting = iter(project.documents)
    coming = next(waiting, None)
    for one in project.asked:
        while coming is not None and coming.at < one.at:
            ours.add(coming)
            seen.append(coming)
            coming = next(waiting, None)
        answers += _session_answers(one, seen, ours, encoders)
    ours.close()
    return answers


def _session_answers(
    asked: data.Asked, seen: list[Document], ours: Ours, encoders: Mapping[str, Encode]
) -> Iterator[Answer]:
    gold = asked.question.gold & {document.id for document in seen}
    if not gold:
        return
    question = asked.question._replace(gold=gold)
    yield from ask_plain(Store("sessions", seen, [question]), encoders)
    texts = {document.id: document.text for document in seen}
    yield our_answer(ours, "sessions", question, texts)


# -- the outside scorer ----------------------------------------------------------------------------


def outside(from_data: Path, folder: Path) -> list[float] | None:
    """R@1, R@5, R@10, NDCG@10 as the scorer in the data folder measures them, or None."""
    scorer = from_data / "score" / "locomo.py"
    if not scorer.exists():
        return None
    say("the scorer of the data folder …")
    folder.mkdir()
    command = [sys.executable, str(scorer), str(from_data / "locomo"), str(folder), "project"]
    environment = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    found = json.loads(done.stdout.split(" ", 1)[1])["all"]
    return [float(value) for value in found[:4]]


# -- tables ----------------------------------------------------------------------------------------


def print_set(title: str, answers: Sequence[Answer]) -> None:
    print(f"\n## {title}\n")
    print_lines(HEAD, [_line(name, scores) for name, scores in _by_system(answers).items()])
    ours = [answer for answer in answers if answer.system == OURS]
    categories = grouped((answer.question.category, answer.score) for answer in ours)
    if len(categories) > 1:
        print()
        print_lines(("ours by category", *HEAD[1:]), [_line(*item) for item in categories.items()])
    print(f"\ntokens per query, {SHOWN} hits: {_tokens(ours)}")
    silent = sum(not answer.ranked for answer in ours)
    usual = median(answer.milliseconds for answer in ours)
    print(
        f"ours answered nothing to {silent} of {len(ours)}, and took {usual:.1f} ms at the median"
    )


def _line(name: str, scores: Sequence[Score]) -> tuple[str, ...]:
    one = mean(scores)
    shown = (one.r1, one.r5, one.r10, one.ndcg, one.mrr, one.hit5)
    return (name, str(len(scores)), *map(number, shown))


def _by_system(answers: Iterable[Answer]) -> dict[str, list[Score]]:
    systems: dict[str, list[Score]] = {}
    for answer in answers:
        systems.setdefault(answer.system, []).append(answer.score)
    return systems


def _tokens(ours: Sequence[Answer]) -> str:
    lines, texts = (
        sum(getattr(answer, name) for answer in ours) / len(ours) for name in ("lines", "texts")
    )
    return f"{lines:.0f} for the lines shown, {texts:.0f} for their full texts (estimates)"


class Newer(NamedTuple):
    """Does the statement that holds now come before the one it replaced?"""

    first: int
    behind: int
    neither: int

    @classmethod
    def of(cls, answers: Iterable[Answer]) -> Newer:
        ranks = [
            (
                _rank(answer.ranked, answer.question.newer),
                _rank(answer.ranked, answer.question.older),
            )
            for answer in answers
            if answer.question.newer
        ]
        neither = sum(new == old for new, old in ranks)
        first = sum(new < old for new, old in ranks)
        return cls(first, len(ranks) - first - neither, neither)


def _rank(ranked: Sequence[str], wanted: frozenset[str]) -> int:
    return next((rank for rank, one in enumerate(ranked) if one in wanted), len(ranked))


def print_newer(answers: Sequence[Answer]) -> dict[str, Any]:
    found = {
        system: Newer.of(answer for answer in answers if answer.system == system)
        for system in _by_system(answers)
    }
    print("\nnewer statement ranked above the one it replaces, within what was returned:\n")
    print_lines(
        ("", "newer first", "older first", "neither found"),
        [(name, *map(str, newer)) for name, newer in found.items()],
    )
    return {name: newer._asdict() for name, newer in found.items()}


def results(answers: Sequence[Answer]) -> dict[str, Any]:
    """Everything about one set, as JSON."""
    return {
        system: {
            "mean": as_json(mean(scores)),
            "categories": {
                name: as_json(mean(group))
                for name, group in grouped(
                    (one.question.category, one.score) for one in answers if one.system == system
                ).items()
            },
            "questions": [one.as_json() for one in answers if one.system == system],
        }
        for system, scores in _by_system(answers).items()
    }


# -- the sets --------------------------------------------------------------------------------------


class Run(NamedTuple):
    """What every set needs, and what they leave behind."""

    folder: Path
    data: Path
    encoders: dict[str, Encode]
    quick: bool
    bulk: bool
    bars: list[Bar]
    results: dict[str, Any]


def measure_locomo(run: Run) -> None:
    stores = data.locomo(run.data)[: 1 if run.quick else None]
    answers = ask(stores, run.folder / "locomo", run.encoders, bulk=run.bulk)
    print_set("LoCoMo, one memory per turn", answers)
    ours = mean(_by_system(answers)[OURS])
    run.bars.extend(
        [
            at_least("LoCoMo R@5", ours.r5, 0.73),
            at_least("LoCoMo R@10", ours.r10, 0.82),
            at_least("LoCoMo NDCG@10", ours.ndcg, 0.62),
        ]
    )
    run.results["locomo"] = results(answers)
    found = None if run.quick else outside(run.data, run.folder / "outside")
    if found:
        run.results["locomo_outside"] = found
        print(f"the data folder's own scorer: {' / '.join(map(number, found))}")
        difference = abs(found[1] - ours.r5)
        run.bars.append(Bar("the scorer's R@5 is ours", "= ours", found[1], difference < 0.001))


def measure_sessions(run: Run) -> None:
    """Each project by itself; the floor of silence was chosen with both in view."""
    for place, project in enumerate(data.sessions(run.data)):
        answers = ask_sessions(project, run.folder / f"sessions-{place}", run.encoders)
        print_set(f"session retrieval, one memory per session: {project.name}", answers)
        systems = {name: mean(scores) for name, scores in _by_system(answers).items()}
        ours, plain = systems[OURS], systems[BM25]
        run.bars.extend(
            [
                at_least(f"{project.name}: hit@5, of BM25", ours.hit5, round(plain.hit5, 4)),
                at_least(f"{project.name}: MRR, of BM25", ours.mrr, round(plain.mrr, 4)),
            ]
        )
        run.results[f"sessions {project.name}"] = results(answers)


def measure_beam(run: Run) -> None:
    _beam(run, "BEAM, all messages", "beam", 0.52, users_only=False)
    _beam(run, "BEAM, user messages", "beam_user", 0.59, users_only=True)


def _beam(run: Run, title: str, name: str, wanted: float, *, users_only: bool) -> None:
    stores = data.beam(run.data, users_only=users_only)[: 2 if run.quick else None]
    answers = ask(stores, run.folder / name, run.encoders, bulk=run.bulk)
    print_set(title, answers)
    newer = print_newer(answers)
    run.bars.append(at_least(f"{title}: R@5", mean(_by_system(answers)[OURS]).r5, wanted))
    run.results[name] = {**results(answers), "newer": newer}


SETS: dict[str, Callable[[Run], None]] = {
    "locomo": measure_locomo,
    "sessions": measure_sessions,
    "beam": measure_beam,
}


def encoders() -> dict[str, Encode]:
    found = {"static": static_encode()}
    minilm = minilm_encode()
    if minilm is None:
        say("no MiniLM row: sentence-transformers or its model is not installed")
    else:
        found["MiniLM"] = minilm
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Measure how well recall finds what answers a question.",
        epilog="Exits with 1 if a bar was missed.",
    )
    data.add_option(parser)
    parser.add_argument("--only", choices=SETS, help="one set instead of all")
    parser.add_argument("--bulk", action="store_true", help="write the files of a store at once")
    add_options(parser)
    options = parser.parse_args()
    start = time.perf_counter()
    with workplace() as folder:
        run = Run(folder, data.folder(options), encoders(), options.quick, options.bulk, [], {})
        for name in [options.only] if options.only else SETS:
            SETS[name](run)
    finish(run.bars, run.results, options, start)


if __name__ == "__main__":
    main()
