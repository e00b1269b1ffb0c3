"""Is recall silent when the store has no answer, and only then?

    python benchmarks/recall/silence.py --data FOLDER [--quick] [--out FILE]

Questions about another conversation, put to this one with the names exchanged, have no answer
here; neither have BEAM's abstention questions, which are about the right topic. For every
question recall says how certain it is; the table shows, floor by floor, how often it would be
silent. LOKI_RECALL_FLOOR sets the floor (in hundredths) that the last line is measured at.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import data
from data import Question, Store, speakers
from measures import auc, below
from report import add_options, finish, number, print_lines, say, workplace
from systems import Ours

FLOORS = [hundredths / 100 for hundredths in range(6, 52, 2)]
FOREIGN = 200  # questions of others that a store is asked at most
SHOWN = 5


class Group(NamedTuple):
    """Questions of one sort, the same in all but what they are asked of."""

    name: str
    answerable: bool


OWN, FOREIGN_ONES = Group("LoCoMo own", True), Group("LoCoMo foreign", False)
BEAM_OWN, BEAM_FOREIGN = Group("BEAM own", True), Group("BEAM foreign", False)
ABSTENTION = Group("BEAM abstention", False)
GROUPS = (FOREIGN_ONES, OWN, BEAM_FOREIGN, BEAM_OWN, ABSTENTION)


class Answer(NamedTuple):
    group: Group
    store: str
    question: str
    certainty: float
    silent: bool

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "group": self.group.name, "certainty": round(self.certainty, 4)}


# -- questions -------------------------------------------------------------------------------------


def locomo_questions(stores: Sequence[Store], store: Store) -> Iterator[tuple[Group, str]]:
    for question in store.answerable:
        yield OWN, question.text
    for other, question in _sample(stores, store):
        yield FOREIGN_ONES, renamed(question.text, speakers(other), speakers(store))


def beam_questions(stores: Sequence[Store], store: Store) -> Iterator[tuple[Group, str]]:
    for question in store.answerable:
        yield BEAM_OWN, question.text
    for _, question in _sample(stores, store):
        yield BEAM_FOREIGN, question.text
    for question in store.questions:
        if question.category == "abstention":
            yield ABSTENTION, question.text


def _sample(stores: Sequence[Store], store: Store) -> list[tuple[Store, Question]]:
    """Questions of the other stores, evenly spread over them."""
    others = [(one, asked) for one in stores if one is not store for asked in one.answerable]
    return others[:: max(1, -(-len(others) // FOREIGN))]


def renamed(text: str, old: Sequence[str], new: Sequence[str]) -> str:
    """The text with one conversation's names in place of the other's."""
    names = dict(zip(old, new, strict=False))
    return re.sub("|".join(rf"\b{re.escape(name)}\b" for name in names), _name(names), text)


def _name(names: dict[str, str]) -> Any:
    return lambda match: names[match[0]]


# -- asking ----------------------------------------------------------------------------------------


def ask(store: Store, folder: Path, asked: Iterator[tuple[Group, str]]) -> Iterator[Answer]:
    ours = Ours(store.documents, folder)
    for group, text in asked:
        hits = ours.recalled(text, k=SHOWN)
        yield Answer(group, store.name, text, hits.certainty, not hits)
    ours.close()


def answers(from_data: Path, folder: Path, *, quick: bool) -> list[Answer]:
    found: list[Answer] = []
    for questions, stores, few in (
        (locomo_questions, data.locomo(from_data), 1),
        (beam_questions, data.beam(from_data), 2),
    ):
        for store in stores[: few if quick else None]:
            say(f"{store.name} …")
            found += ask(store, folder / store.name, questions(stores, store))
    return found


# -- the curve -------------------------------------------------------------------------------------


def print_curve(found: Sequence[Answer]) -> None:
    certainties = {
        group: [one.certainty for one in found if one.group is group] for group in GROUPS
    }
    silent = {group: [one.silent for one in found if one.group is group] for group in GROUPS}
    lines = [
        (f"{floor:.2f}", *(number(below(certainties[group], floor)) for group in GROUPS))
        for floor in FLOORS
    ]
    lines.append(("as set", *(number(sum(silent[group]) / len(silent[group])) for group in GROUPS)))
    lines.append(("n", *(str(len(silent[group])) for group in GROUPS)))
    print("share of questions without an answer shown, by floor:\n")
    print_lines(("floor", *(group.name for group in GROUPS)), lines)
    print()
    for own, foreign in ((OWN, FOREIGN_ONES), (BEAM_OWN, BEAM_FOREIGN), (BEAM_OWN, ABSTENTION)):
        print(separation(foreign, own, certainties[foreign], certainties[own]))


def separation(foreign: Group, own: Group, low: Sequence[float], high: Sequence[float]) -> str:
    floor = sorted(low)[min(len(low) - 1, int(0.8 * len(low)))]
    return (
        f"{own.name} against {foreign.name}: AUC {number(auc(low, high))}; "
        f"false silence at 80 % right silence {number(below(high, floor))} (floor {floor:.2f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure when recall is silent.")
    data.add_option(parser)
    add_options(parser)
    options = parser.parse_args()
    start = time.perf_counter()
    with workplace() as folder:
        found = answers(data.folder(options), folder, quick=options.quick)
    print_curve(found)
    finish((), {"questions": [one.as_json() for one in found]}, options, start)


if __name__ == "__main__":
    main()
