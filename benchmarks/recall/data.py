"""The sets of questions that recall is measured on, read from the data folder.

Each becomes stores: documents in their order, and questions whose answers (`gold`) are documents.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

FOLDER_VARIABLE = "LOKI_BENCH_DATA"


class Document(NamedTuple):
    """What becomes one memory."""

    id: str
    text: str
    by: str | None
    session: str
    at: str


class Question(NamedTuple):
    id: str
    text: str
    gold: frozenset[str]  # ids of documents; empty if nothing answers it
    category: str
    older: frozenset[str] = frozenset()  # statements that were replaced …
    newer: frozenset[str] = frozenset()  # … and those that replace them


class Store(NamedTuple):
    """One conversation, and what is asked about it."""

    name: str
    documents: list[Document]
    questions: list[Question]

    @property
    def answerable(self) -> list[Question]:
        return [question for question in self.questions if question.gold]


class Asked(NamedTuple):
    """A session's first prompt, asked at the moment that the session began."""

    question: Question
    at: str


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get(FOLDER_VARIABLE),
        help=f"the folder with locomo/, beam/ and the others (default: ${FOLDER_VARIABLE})",
    )


def folder(options: argparse.Namespace) -> Path:
    """The data folder that was named; ends the program if there is none."""
    if options.data is None or not options.data.is_dir():
        sys.exit(f"no data: name its folder with --data or {FOLDER_VARIABLE}")
    return Path(options.data)


# -- LoCoMo ----------------------------------------------------------------------------------------

CATEGORIES = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}


def locomo(data: Path) -> list[Store]:
    """Conversations of two people; a document is a turn."""
    turns = _by("conv", _lines(data / "locomo" / "turns.jsonl"))
    questions = _by("conv", _lines(data / "locomo" / "questions.jsonl"))
    return [
        Store(
            name,
            [_turn(turn, number) for number, turn in enumerate(group)],
            [_locomo_question(row, {turn["id"] for turn in group}) for row in questions[name]],
        )
        for name, group in turns.items()
    ]


def _turn(turn: Mapping[str, Any], number: int) -> Document:
    day = datetime.strptime(turn["date"].split(" on ")[1], "%d %B, %Y")  # noqa: DTZ007 - UTC
    session = f"{turn['conv']}-{turn['session']}"
    return Document(turn["id"], turn["text"], turn["speaker"], session, _moment(day, number))


def _locomo_question(row: Mapping[str, Any], ids: set[str]) -> Question:
    gold = frozenset(row["evidence"]) & ids
    return Question(row["qid"], row["question"], gold, CATEGORIES[row["category"]])


def speakers(store: Store) -> list[str]:
    """Who talks, in the order of appearance."""
    return list(dict.fromkeys(one.by for one in store.documents if one.by))


# -- BEAM ------------------------------------------------------------------------------------------


def beam(data: Path, *, users_only: bool = False) -> list[Store]:
    """Long chats with an assistant; a document is a message, a session one sitting."""
    chats = _by("chat", _lines(data / "beam" / "turns.jsonl.gz"))
    questions = _by("chat", _lines(data / "beam" / "questions.jsonl"))
    return [
        _chat(name, messages, questions[name], users_only=users_only)
        for name, messages in chats.items()
    ]


def _chat(name: str, messages: list[Any], questions: list[Any], *, users_only: bool) -> Store:
    documents = [
        document
        for document in _messages(name, messages)
        if document.by == "user" or not users_only
    ]
    ids = {document.id for document in documents}
    return Store(name, documents, [_beam_question(row, ids) for row in questions])


def _messages(chat: str, messages: list[Any]) -> Iterator[Document]:
    """Only the first message of a sitting has a date; the others follow it."""
    day = datetime(2024, 1, 1)  # noqa: DTZ001 - UTC
    for message in messages:
        if message["time"]:
            day = datetime.strptime(message["time"], "%B-%d-%Y")  # noqa: DTZ007 - UTC
        yield Document(
            str(message["id"]),
            message["text"],
            message["role"],
            f"{chat}-{message['batch']}",
            _moment(day, message["id"]),
        )


def _beam_question(row: Mapping[str, Any], ids: set[str]) -> Question:
    gold = frozenset(map(str, row["evidence"])) & ids
    older, newer = _replaced(row["category"], row["source_chat_ids"])
    if not (older and newer <= ids and older <= ids):
        older = newer = frozenset()
    return Question(row["qid"], row["question"], gold, row["category"], older, newer)


_NOTHING: frozenset[str] = frozenset()


def _replaced(category: str, sources: Any) -> tuple[frozenset[str], frozenset[str]]:
    """(older, newer) where a question rests on two statements of different moments."""
    if category not in {"knowledge_update", "contradiction_resolution"} or not sources:
        return _NOTHING, _NOTHING
    one, other = sorted(sources.values(), key=max)
    if max(one) >= min(other):
        return _NOTHING, _NOTHING
    return frozenset(map(str, one)), frozenset(map(str, other))


# -- sessions --------------------------------------------------------------------------------------


class Project(NamedTuple):
    """Coding sessions of one project, both lists in the order of time."""

    name: str
    documents: list[Document]
    asked: list[Asked]  # each may only see documents with an earlier `at`


def sessions(data: Path) -> list[Project]:
    """Sessions as what was asked in them, and which earlier ones touched the same files."""
    rows = defaultdict(list)
    for row in _lines(data / "claude_transcripts" / "sessions.jsonl.gz"):
        if row["prompts"] and row["start"]:
            rows[row["project"]].append(row)
    questions = defaultdict(list)
    for row in _lines(data / "session_retrieval" / "queries.jsonl"):
        questions[row["project"]].append(_asked(row))
    return [
        Project(
            name,
            sorted(map(_session, rows[name]), key=lambda document: (document.at, document.id)),
            sorted(asked, key=lambda one: (one.at, one.question.id)),
        )
        for name, asked in questions.items()
    ]


def _session(row: Mapping[str, Any]) -> Document:
    return Document(row["session"], row["prompts"], None, row["session"], row["start"])


def _asked(row: Mapping[str, Any]) -> Asked:
    question = Question(row["qid"], row["query"], frozenset(row["relevant"]), "sessions")
    return Asked(question, row["time"])


# -- reading ---------------------------------------------------------------------------------------


def _lines(path: Path) -> list[Any]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _by(key: str, rows: Iterable[Any]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = defaultdict(list)
    for name, group in groupby(rows, itemgetter(key)):
        groups[name].extend(group)
    return groups


def _moment(day: datetime, number: int) -> str:
    """A day, with the place in the sequence as seconds, so that order is kept."""
    return f"{day + timedelta(seconds=number):%Y-%m-%dT%H:%M:%SZ}"
