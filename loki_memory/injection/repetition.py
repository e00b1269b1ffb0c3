"""Lines that say nothing which an earlier line has not said: one lesson is told once.

A routine that sessions follow and the rule that somebody stated about it are two memories and one
lesson. A line repeats another if all its content words are there too, whatever their endings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from loki_memory.injection.line import ASKED

_MARK = re.compile(rf"^- \[[^\]]*\] (?:{ASKED})?|\((?:candidate|\d+ episodes?)(?:, [^()]*)?\)$")
_EMPHASIS = frozenset({"always", "please", "every", "each", "sure", "must", "should", "first"})
_NEGATION = re.compile(r"\b(?:never|not|no|without|avoid|instead)\b|n't\b", re.IGNORECASE)
_RUNS = re.compile(r"- \[[^\]]*\] Run `([^`]+)`")
_STEM = 6  # letters: commit, committing, committed
_LEAST = 3  # words of a line that can be compared


def repeats(line: str, earlier: str) -> bool:
    """Check if a line says nothing that an earlier line has not said.

    >>> routine = "- [fact-1] Before a commit, run `make lint` and `make test`."
    >>> repeats("- [fact-2] Please always run `make lint` before committing", routine)
    True
    >>> repeats("- [fact-4] Run `make lint && make test` to verify code style", routine)
    True
    >>> repeats("- [fact-3] Never run `make lint` before committing", routine)
    False
    """
    if (run := _RUNS.match(line)) and all(part in earlier for part in run[1].split(" && ")):
        return True
    said = _words(line)
    if len(said) < _LEAST or not said <= _words(earlier):
        return False
    return bool(_NEGATION.search(line)) == bool(_NEGATION.search(earlier))


def fullest(lines: Sequence[str]) -> list[str]:
    """The lines without those of which another one says all, and more."""
    return [
        line
        for line in lines
        if not any(repeats(line, other) and not repeats(other, line) for other in lines)
    ]


def _words(line: str) -> set[str]:
    from loki_memory.recall.question import ask

    words = ask(_MARK.sub("", line)).words
    return {word[:_STEM] for word in words if word not in _EMPHASIS}
