"""Signals that a question shares with memories besides words: errors, files, symbols, ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.index.search import marked, marked_failures, marked_warnings, touching

if TYPE_CHECKING:
    from loki_memory.index.index import Index

# What is added to a score, which is about 1 for the best match of words and meaning.
_NAMED = 10.0  # a memory that the question names comes first
_SAME_ERROR, _LIKE_ERROR = 1.0, 0.15
_SAME_RULE = 2.0  # a warning about it says more than the episodes that met it
_FAILED = 0.1  # who met the same error and failed knows less about it than who got over it
_SAME_FILE, _SAME_SYMBOL = 0.3, 0.1  # times how rare it is
_ERROR_SIGNS = ("Error:", "error:", "Exception:", "fatal:", "panic:")
_CROWD = 2000  # memories beyond which what they share says nothing


class SharedSignals(NamedTuple):
    """A memory that has something in common with the question."""

    row: int
    worth: float
    why: str
    is_sure: bool = True  # whether it is reason enough to answer; a name of code alone is not


def shared(
    index: Index,
    total: int,
    *,
    text: str,
    named: Sequence[int],
    error: str,
    files: Sequence[str],
) -> list[SharedSignals]:
    """All memories that share something, of a store of `total`.

    An error that was pasted into the question counts like one that was given apart.
    """
    error = error or (text if any(sign in text for sign in _ERROR_SIGNS) else "")
    return [
        *(SharedSignals(row, _NAMED, "its id") for row in named),
        *_same_error(index, error),
        *_same_files(index, files, total),
        *_same_symbols(index, text, total),
    ]


def _same_error(index: Index, error: str) -> Iterator[SharedSignals]:
    if not error:
        return
    from loki_memory.models.error_signature import signature  # its patterns take 2 ms to compile

    warned = _same_rule(index, error)
    yield from warned.values()
    found = signature(error)
    if found is None:
        return
    exact = [row for row in marked(index, f"error:{found.exact}", _CROWD) if row not in warned]
    failed = marked_failures(index, f"error:{found.exact}")
    for row in exact:
        worth = _SAME_ERROR - (_FAILED if row in failed else 0.0)
        yield SharedSignals(row, worth, f"same error signature: {found.exact}")
    like = set(marked(index, f"errors:{found.broad}", _CROWD)) - {*exact, *warned}
    yield from (
        SharedSignals(row, _LIKE_ERROR, f"same kind of error: {found.broad}")
        for row in sorted(like)
    )


def _same_rule(index: Index, error: str) -> dict[int, SharedSignals]:
    """The warnings about the rules of linters and compilers that an error names, by row."""
    from loki_memory.models.diagnostics import findings, rule

    named = [finding.kind for finding in findings(error)] or [rule(error)]
    return {
        row: SharedSignals(row, _SAME_RULE, f"the same rule: {name}")
        for name in dict.fromkeys(filter(None, named))
        for row in marked_warnings(index, f"rule:{name}", _CROWD)
    }


def _same_files(index: Index, files: Sequence[str], total: int) -> Iterator[SharedSignals]:
    for path in dict.fromkeys(path.removeprefix("./") for path in files):
        rows = touching(index, path, _CROWD)
        worth = _SAME_FILE * _rare(len(rows), total)
        yield from (SharedSignals(row, worth, f"file {path}") for row in rows)


def _same_symbols(index: Index, text: str, total: int) -> Iterator[SharedSignals]:
    if text.islower() and text.replace(" ", "").isalnum():
        return
    from loki_memory.models.text import symbols

    for name in symbols(text):
        rows = marked(index, f"symbol:{name}", _CROWD)
        worth = _SAME_SYMBOL * _rare(len(rows), total)
        yield from (SharedSignals(row, worth, f"names {name}", is_sure=False) for row in rows)


def _rare(sharers: int, total: int) -> float:
    """1 for what one memory has, one half for what all have."""
    if sharers < 1 or total < 2:  # noqa: PLR2004
        return 1.0
    return 0.5 + 0.5 * max(0.0, log(total / sharers) / log(total))
