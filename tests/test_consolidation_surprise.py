"""Surprise: what tells something new is stored, and what repeats or says nothing is not."""

from __future__ import annotations

import csv
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import pytest

from loki_memory.consolidation.snapshot import Thresholds
from loki_memory.consolidation.surprise import WEIGHTS, surprise

GOLDEN = Path(__file__).parent / "golden" / "surprise.tsv"
HELD_OUT = GOLDEN.with_name("surprise_held_out.tsv")  # written before anything was tried on it


class Row(NamedTuple):
    """One utterance of the golden table."""

    known: str
    before: str
    utterance: str
    verdict: str
    least: str
    most: str


def golden() -> list[Row]:
    with GOLDEN.open(encoding="utf-8", newline="") as lines:
        return [Row(*row) for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)][1:]


def known_in(row: Row) -> list[str]:
    return row.known.split(" | ") if row.known else []


@pytest.mark.parametrize("row", golden(), ids=lambda row: f"{row.utterance} ({row.verdict})")
def test_each_utterance_is_stored_or_discarded_as_people_would(row: Row) -> None:
    found = surprise(row.utterance, known_in(row), row.before)
    assert (found.score >= Thresholds().surprise) == (row.verdict == "store"), found
    assert float(row.least) <= found.score <= float(row.most), found


def test_most_utterances_of_other_wording_are_judged_as_people_would() -> None:
    with HELD_OUT.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    right = [
        (surprise(text, [known] if known else [], before).score >= Thresholds().surprise)
        == (verdict == "store")
        for known, before, text, verdict in rows
    ]
    assert sum(right) >= 0.9 * len(right)


def test_the_table_has_utterances_of_both_kinds() -> None:
    verdicts = [row.verdict for row in golden()]
    assert len(verdicts) >= 80
    assert min(verdicts.count("store"), verdicts.count("discard")) >= 40


@pytest.mark.parametrize("row", [row for row in golden() if row.verdict == "store"])
def test_what_was_stored_is_refused_the_second_time(row: Row) -> None:
    again = surprise(row.utterance, [*known_in(row), row.utterance], row.before)
    assert again.novelty == 0


def test_a_repeat_is_refused_however_specific_and_insistent_it_is() -> None:
    text = "NEVER call `os.fork()` in src/pool.py, it hangs with 32 threads!"
    found = surprise(text, [text], "Let us talk about colours")
    assert (found.specificity, found.emphasis, found.context_switch) == (1, 1, 1)
    assert found.score < Thresholds().surprise


def test_the_weights_are_those_of_the_five_factors() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1)
    assert list(WEIGHTS.values()) == [0.40, 0.25, 0.20, 0.10, 0.05]


def test_the_order_of_what_is_known_does_not_matter() -> None:
    known = ["I prefer Python", "Use tabs", "We deploy on Fridays"]
    found = {surprise("Actually, use spaces", order).score for order in permutations(known)}
    assert len(found) == 1


def test_what_an_agent_tells_of_the_code_contradicts_no_choice() -> None:
    known = ["Use tabs"]
    assert surprise("Use spaces", known).contradiction == 1
    assert surprise("Use spaces", known, type_="gotcha").contradiction == 0
