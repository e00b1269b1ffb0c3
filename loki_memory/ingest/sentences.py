"""Sentences of prose in Markdown: paragraphs, list items and table rows, without code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FENCE = re.compile(r"^\s*(?:```|~~~).*?(?:^\s*(?:```|~~~)\s*$|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"\s*#{1,6}\s")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,2}[.)])\s+(?:\[[ xX]\]\s+)?")
_QUOTE = re.compile(r"\s*>+\s?")
_RULE = re.compile(r"\s*(?:[-=*_]\s*){3,}$|\s*\|?[\s:|-]+\|[\s:|-]*$")
_END = re.compile(r"(?<=[.!?])[\"')\]*_`]*\s+(?=[\"'(\[*_]*[A-Z0-9`])")
_WRAPPED = 72  # characters at which most authors break a line
_OPEN = re.compile(r"[,;:(\u2013\u2014-]$|\b(?:and|or|the|an?|of|to|in|for|with|by|that|is|are)$")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no)\.|\b[A-Z]\.)[\"')\]*_`]*$")


def sentences(text: str) -> Iterator[str]:
    """Sentences in the order of the text.

    >>> list(sentences("# Plan\\n- use `go vet`,\\n  not lint. It is slow.\\n\\n| a | b |"))
    ['use `go vet`, not lint.', 'It is slow.', 'a — b']
    """
    for block in _blocks(_FENCE.sub("\n\n", text)):
        yield from _split(block)


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs, items with their continuation lines, and table rows; headings are left out."""
    lines: list[str] = []
    for raw in text.splitlines():
        line = _QUOTE.sub("", raw, count=1) if raw.lstrip().startswith(">") else raw
        item = _ITEM.match(line)
        if item or not line.strip() or _HEADING.match(line) or line.lstrip().startswith("|"):
            yield from _joined(lines)
            lines = []
        if _HEADING.match(line) or _RULE.match(line):
            continue
        if line.lstrip().startswith("|"):
            cells = (cell.strip() for cell in line.strip().strip("|").split("|"))
            yield " — ".join(filter(None, cells))
            continue
        if lines and begins_anew(lines[-1].strip(), line.strip()):
            yield from _joined(lines)
            lines = []
        lines.append(line[item.end() :] if item else line)
    yield from _joined(lines)


def begins_anew(before: str, line: str) -> bool:
    """Check if a line begins a sentence after one that has no end.

    It begins with a capital, and its first word would have had room in the line before.

    >>> begins_anew("Local dev mode: use the wrapper", "Default mode: use the binary")
    True
    """
    if not before or not line[:1].isupper() or before.endswith((".", "!", "?")):
        return False
    has_room = len(before) + 1 + len(line.split(maxsplit=1)[0]) <= _WRAPPED
    return has_room and not _OPEN.search(before)


def _joined(lines: list[str]) -> Iterator[str]:
    block = " ".join(" ".join(lines).split())
    if block:
        yield block


def _split(block: str) -> Iterator[str]:
    """Split a block at the ends of sentences, but not after an abbreviation."""
    begin = 0
    for end in _END.finditer(block):
        if not _ABBREVIATION.search(block[begin : end.start()]):
            yield block[begin : end.end()].strip()
            begin = end.end()
    if rest := block[begin:].strip():
        yield rest
