"""Gates: what an answer of a language model must pass before anybody reads it.

An answer may put things otherwise and nothing else. It names no code, path, option or number that
the input does not, turns no statement around, and passes what every learned text passes: the lint
of lessons, the search for secrets, and the search for text that addresses its reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from loki_memory.files.redaction import find_secrets
from loki_memory.models.fence import defused
from loki_memory.models.lesson_text import objection
from loki_memory.models.prompt_injection import gives_instructions, pipes_download
from loki_memory.models.text import stem

LONGEST = 300  # characters: the length of a line that is told
LONGEST_NAME = 60
Lint = Callable[[str], str]  # why a text says nothing specific; empty if it does

_CODE = re.compile(r"`([^`]*)`")
_NAME = re.compile(  # outside of backquotes: what only code, a file system or a count has
    r"(?<![\w-])-{1,2}[A-Za-z][\w-]*"  # an option
    r"|[\w.@~-]*/[\w./@~*-]+"  # a path or an address
    r"|\b\w+(?:\.\w+)+\b(?:\(\))?|\b\w*_\w+\b|\b[a-z]+[A-Z]\w*\b|\b\w+\(\)"
    r"|\b[A-Z][a-z0-9]+[A-Z]\w*\b|\b[A-Z]{2,}\d*\b|\b\w*\d[\w.]*\b"
)
_RULE = re.compile(r"\(([a-z][\w-]+)\)")  # of a linter, after its complaint
_ABBREVIATIONS = frozenset({"e.g", "i.e", "etc"})
_NEGATES = re.compile(
    r"\b(?:not|no|never|none|cannot|without|avoid\w*|unless|instead|neither|nor|leave out|only"
    r"|fails?|failed|refus\w+|reject\w*|lacks?|missing|unknown|invalid|unexpected)\b|n't\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z]{3,}")
_EVERYDAY = frozenset(
    re.findall(
        r"\w+",
        "about after also and any are because been before but can could does for from get has "
        "have how into its may must need needs only other our should than that the their them "
        "then there these they this those use used uses using was were what when where which "
        "while will with would you your instead rather",
    )
)
_SUPPORT = 0.5  # of the words of an answer: fewer taken from the input tell another story


def refusal(text: str, given: str, lint: Lint, *, sums_up: bool = False) -> str:
    """Why an answer is not used; empty if it passes every gate.

    What sums up several statements may leave out names and conditions of any one of them.

    >>> said = "`gh pr diff --stat` fails: unknown flag. Use `gh pr diff --name-only`."
    >>> refusal("`gh pr diff` has no `--stat`; use `--name-only` instead.", said, lambda text: "")
    ''
    >>> refusal("`gh pr diff` has no `--stat`; use `--summary` instead.", said, lambda text: "")
    'names --summary, which the input does not'
    """
    reasons = (
        *(_form(text, LONGEST), _danger(text), _invention(text, given)),
        *("" if sums_up else _distortion(text, given), _digression(text, given)),
        *(objection(text), lint(text)),
    )
    return next(filter(None, reasons), "")


def refused_name(name: str, given: str) -> str:
    """Why a name of a topic is not used; empty if it passes."""
    reasons = (_form(name, LONGEST_NAME), _danger(name), _invention(name, given))
    return next(filter(None, reasons), "")


def _form(text: str, longest: int) -> str:
    if not text.strip() or not text.isprintable():
        return "is not one line of text"
    return f"is longer than {longest} characters" if len(text) > longest else ""


def _danger(text: str) -> str:
    if find_secrets(text):
        return "holds a secret"
    if defused(text) != text or gives_instructions(text):
        return "addresses its reader as an instruction would"
    return "pipes a download into a shell" if pipes_download(text) else ""


def _invention(text: str, given: str) -> str:
    """Name the first piece of code, path, option or number that the input does not have.

    Code between backquotes must stand there as a whole: a command that is put together from words
    of the input is another command.
    """
    known = " ".join(given.split())
    found = (name for name in _names(text) if not _occurs(name, known))
    unknown = next(found, "")
    return f"names {unknown}, which the input does not" if unknown else ""


def _names(text: str) -> Iterator[str]:
    yield from (" ".join(code.split()) for code in _CODE.findall(text) if code.strip())
    for found in _NAME.finditer(_CODE.sub(" ", text)):
        name = found[0].rstrip(".,:;")
        if name.casefold() not in _ABBREVIATIONS:
            yield name


def _occurs(name: str, known: str) -> bool:
    pattern = rf"(?<![\w-]){re.escape(name)}(?!\w)" if name[0].isalnum() else re.escape(name)
    return re.search(pattern, known) is not None


def _distortion(text: str, given: str) -> str:
    """Why an answer does not say what the input says; empty if it seems to."""
    about = [*_names(given), *_NAME.findall(given), *_RULE.findall(given)]
    if about and not any(_occurs(name, text) for name in about):
        return "names nothing of what it is about"
    if bool(_NEGATES.search(text)) != bool(_NEGATES.search(given)):
        return "may turn around what is said"
    return ""


def _digression(text: str, given: str) -> str:
    words, known = _content(text), _content(given)
    is_supported = not words or len(words & known) >= _SUPPORT * len(words)
    return "" if is_supported else "says what the input does not"


def _content(text: str) -> set[str]:
    words = (word.casefold() for word in _WORD.findall(text))
    return {stem(word) for word in words if word not in _EVERYDAY}
