"""Error signatures: what stays the same when an error comes again.

The line that says what went wrong is found among the lines around it, and what differs from one
occurrence to the next (numbers, addresses, paths, moments) is masked. What stands in quotes names
the thing that failed: the signature keeps it, the broader class masks it too.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_LONGEST = 240  # an error line that is longer says the rest in data
_LINES = 400  # of a log: the first and the last lines tell what failed
_EXCEPTION = re.compile(r"^[\w.]*(?:Error|Exception|Interrupt|Exit)\b\s*(?::|$|\[)")
_TRACEBACK = "Traceback (most recent call last):"
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_MARGIN = re.compile(r"^E\s{2,}")  # pytest's, before what was raised
# Where a compiler points to: `src/a.ts:12:5 - `, `a.ts(12,5): `, `./main.go:10:2: `.
_WHERE = re.compile(r"^(?:[A-Za-z]:)?[\w./\\@+-]+\.\w+(?::\d+(?::\d+)?|\(\d+,\d+\))\s*[:-]\s+")
# What has dotted names of which the last part says what is meant: `T1.name` is `name`.
_DOTTED = re.compile(
    r"\b(?:module|package|import|class|column|table|field|attribute)\b", re.IGNORECASE
)
_COMPLAINT = re.compile(
    r"\b(?:error|exception|fail(?:ed|ure|s|ing)?|fatal|panic(?:ked)?|abort(?:ed)?|cannot|can't|"
    r"could not|couldn't|unable|not found|no such|does not|doesn't|denied|refused|unknown|"
    r"undefined|unresolved|invalid|illegal|missing|unexpected|unsupported|ambiguous|duplicate|"
    r"conflicts?|timed? ?out|expected|mismatch|overflow|violat(?:es|ion)|already exists|"
    r"not (?:allowed|permitted|supported|defined|installed|recognized))\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"(?<!\w)'[^'\n]{0,120}'|\"[^\"\n]{0,120}\"|`[^`\n]{0,120}`"
    "|\u2018[^\u2019\n]{0,120}\u2019"
)
_MASKS = (
    (re.compile(r"https?://\S+"), "<url>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?Z?\b"), "<time>"),
    (re.compile(r"\b(?=[0-9a-f-]*\d)[0-9a-f]{7,}(?:-[0-9a-f]{4,})*\b", re.IGNORECASE), "<hex>"),
    (re.compile(r"(?:[A-Za-z]:)?(?:[\w.@~+-]*[/\\])+([\w.@+-]*)"), r"<path>\1"),
    (re.compile(r"0x[0-9a-f]+", re.IGNORECASE), "<hex>"),
    (re.compile(r"\d+"), "<n>"),
)


class Signature(NamedTuple):
    """An error in two grains."""

    exact: str  # with the names that it complains about
    broad: str  # without them


def signature(error: str) -> Signature | None:
    """The signature of an error message or of the output that holds one; None if it is empty."""
    line = _WHERE.sub("", salient(error))
    if not line:
        return None
    is_dotted = _DOTTED.search(line) is not None
    quoted = [_masked(text[1:-1]) for text in _QUOTED.findall(line)]
    broad = _masked(_QUOTED.sub("<name>", line))
    exact = broad
    for text in quoted:
        last = text.rpartition(".")[2] if is_dotted and "<path>" not in text else ""
        exact = exact.replace("<name>", last or text, 1)
    return Signature(exact, broad)


def salient(error: str) -> str:
    """The line that says what went wrong: the exception, else the first complaint, else the
    first line.
    """
    lines = [line for line in _COLOUR.sub("", error).splitlines() if line.strip()]
    if len(lines) > _LINES:
        lines = [*lines[: _LINES // 2], *lines[-_LINES // 2 :]]
    raised = _raised(lines)
    lines = [_MARGIN.sub("", line.strip()[:_LONGEST]) for line in lines]
    raised += [line for line in lines if _EXCEPTION.match(line)]
    if raised:
        return raised[-1].strip()[:_LONGEST]
    return next(filter(_COMPLAINT.search, lines), lines[0] if lines else "")


def _raised(lines: list[str]) -> list[str]:
    """What stands at the end of each traceback, whatever its name."""
    found: list[str] = []
    inside = False
    for line in lines:
        if line.strip() == _TRACEBACK:
            inside = True
        elif inside and not line[0].isspace():
            found.append(line)
            inside = False
    return found


def _masked(text: str) -> str:
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return " ".join(text.lower().split())
