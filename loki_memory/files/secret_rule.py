"""A secret's place in a text, and the rule by which a format of secrets is found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple


class Secret(NamedTuple):
    """The position of a secret in a text, and its kind."""

    kind: str
    start: int
    end: int


class Rule(NamedTuple):
    """A format: every match of `pattern` contains one of `marks` and has to be `accepted`.

    Group 1 is the secret if there is a group, else the whole match. The pattern stays a string
    that `re` compiles once its mark occurs: most never do, and the import stays cheap.
    """

    kind: str
    marks: tuple[str, ...]
    pattern: str
    accepted: Callable[[str], bool] = bool


def matches(rules: Iterable[Rule], searched: str, text: str) -> Iterator[Secret]:
    for rule in rules:
        if any(mark in searched for mark in rule.marks):
            for match in re.finditer(rule.pattern, searched, re.ASCII):
                start, end = match.span(match.lastindex or 0)
                if rule.accepted(text[start:end]):
                    yield Secret(rule.kind, start, end)


def lowered(text: str) -> str:
    """The text in lower case with every character in its place; a dotted capital I would grow."""
    return text.replace("\u0130", "I").lower()
