"""The outline of a Markdown file: its headings, and the plain lines below each of them.

Code blocks and comments are left out: what stands in them is quoted, not said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_FENCE = re.compile(r"\s*(?:[-*+]\s+)?(`{3,}|~{3,})([^`]*)")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*")
# `**Second week:**` or `**Key Decisions**`; a whole sentence in bold is a sentence.
_BOLD = re.compile(r"(\*\*|__)(?!\s)([^*]+:|(?:[^*\s]+\s+){0,3}[^*\s]*[^*\s.!?])\1(:?)\s*")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*")
_PLAIN = re.compile(r" {0,3}(?![-*+>|#]\s|\d+[.)]\s|[|>#])\S")
BOLD_LEVEL = 7  # a line in bold stands in for a heading, below every real one


class Heading(NamedTuple):
    """A heading with its lines, down to the next heading of any level."""

    level: int
    title: str
    lines: list[str]


def outline(text: str) -> list[Heading]:
    """The headings in order; what stands before the first one has level 0 and no title."""
    lines = _without_comments("\n".join(_without_code(text.split("\n")))).split("\n")
    found = [Heading(0, "", [])]
    for at, line in enumerate(lines):
        below = lines[at + 1] if at + 1 < len(lines) else ""
        above = found[-1].lines[-1] if found[-1].lines else ""
        if head := _heading(above, line, below):
            found.append(head)
        elif not _is_underline(found[-1], line):
            found[-1].lines.append(line)
    return found


def _heading(above: str, line: str, below: str) -> Heading | None:
    if match := _ATX.fullmatch(line):
        return Heading(len(match[1]), match[2] or "", [])
    if match := _BOLD.fullmatch(line):
        return Heading(BOLD_LEVEL, match[2] + match[3], [])
    underline = _UNDERLINE.fullmatch(below)
    if underline and not above.strip() and _PLAIN.match(line):
        return Heading(1 if underline[1][0] == "=" else 2, line.strip(), [])
    return None


def _is_underline(head: Heading, line: str) -> bool:
    """The line below a heading of one or two underlined lines has done its work."""
    return not head.lines and head.level in {1, 2} and bool(_UNDERLINE.fullmatch(line))


def _without_code(lines: list[str]) -> Iterator[str]:
    """All lines outside of fences; a fence that is never closed is a line too much, no more."""
    hopeless: dict[str, int] = {}  # a mark -> the length from which on it is not closed again
    at = 0
    while at < len(lines):
        mark = _FENCE.fullmatch(lines[at])
        if not mark:
            yield lines[at]
        elif len(mark[1]) < hopeless.get(mark[1][0], len(mark[1]) + 1):
            end = _closing(lines, at, mark[1])
            if end < 0:
                hopeless[mark[1][0]] = len(mark[1])
            at = max(at, end)
        at += 1


def _closing(lines: list[str], at: int, mark: str) -> int:
    for below in range(at + 1, len(lines)):
        line = lines[below].strip()
        if len(line) >= len(mark) and line == mark[0] * len(line):
            return below
    return -1


def _without_comments(text: str) -> str:
    kept: list[str] = []
    rest = text
    while True:
        start = rest.find("<!--")
        end = rest.find("-->", start + 4)
        if start < 0 or end < 0:
            return "".join([*kept, rest])
        kept.append(rest[:start])
        rest = rest[end + 3 :]
