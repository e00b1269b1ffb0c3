"""Proposals of a source of knowledge: tasks of the project with their commands, and facts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

COMMANDS, CONVENTIONS = "How to work here", "Conventions and surprises"
HISTORY, RULES = "Reasons from the git history", "Rules in instruction files"
GROUPS = (COMMANDS, CONVENTIONS, HISTORY, RULES)  # in the order in which a plan prints them

# How a task is known, the surest first.
SCRIPT, CI_STEP, HOOKS, CONFIGURED = 1, 2, 3, 4

_PLAIN = re.compile(r"[\w@%+=:,./'\"\[\]{}()&|<>!*?~# -]+")
_AT_LEAST = re.compile(r">=\s*v?(\d+(?:\.[1-9]\d*)*)(?:\.0)*")


class Task(NamedTuple):
    """A command that does one of the project's recurring jobs."""

    purpose: str  # test, lint, build, …
    command: str
    source: str  # the file that defines it
    rank: int = SCRIPT
    language: str = ""  # empty where it serves the whole project
    runs: str = ""  # the command behind a script
    is_part: bool = False  # `test:unit`: does a part of its job


class Proposal(NamedTuple):
    """A fact that a project's files or history state."""

    text: str
    type: str  # convention, rule, decision, gotcha
    group: str
    sources: tuple[str, ...]  # paths, or a short commit id
    worth: int
    is_quoted: bool = False  # its words are another person's, not ours
    is_foreign: bool = False  # … of a person who is not the user
    commit: str = ""


def convention(text: str, source: str, worth: int, *others: str) -> Proposal:
    return Proposal(text, "convention", CONVENTIONS, (source, *others), worth)


def gotcha(text: str, source: str, worth: int) -> Proposal:
    return Proposal(text, "gotcha", CONVENTIONS, (source,), worth)


def required(what: str, spec: str) -> str:
    """A sentence about the version that a manifest asks for.

    >>> required("Node.js", ">= 18.0.0"), required("PHP", "^8.1")
    ('Node.js 18 or newer is required.', 'The required PHP is `^8.1`.')
    """
    least = _AT_LEAST.fullmatch(spec.strip())
    return (
        f"{what} {least[1]} or newer is required." if least else f"The required {what} is `{spec}`."
    )


def quoted(*names: str) -> str:
    """Names as code in a sentence: `a`, `b` and `c`."""
    *first, last = [f"`{name}`" for name in names]
    return f"{', '.join(first)} and {last}" if first else last


def is_plain(text: str, longest: int = 80) -> bool:
    """Check if a name or command of a file can stand in a sentence as it is.

    >>> is_plain("pytest -n auto"), is_plain("echo `id`"), is_plain("a\\nb")
    (True, False, False)
    """
    return len(text) <= longest and bool(_PLAIN.fullmatch(text))


def plain(names: Iterable[object], longest: int = 80) -> list[str]:
    """The names that can stand in a sentence, of some that need not be texts."""
    return [name for name in names if isinstance(name, str) and is_plain(name, longest)]
