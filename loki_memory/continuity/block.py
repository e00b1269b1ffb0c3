"""Our block in CONTINUITY.md: find it, replace it, and touch nothing else.

    <!-- loki-memory:begin k7f3q0a1b2 (generated; lines written in here are moved below) -->
    …
    <!-- loki-memory:end -->

A marker is on a line of its own. The block is the first begin with an end after it and no other
marker between them. Every other marker is text: a begin without end, an end without begin, the
outer ones of a nest, one with added words. Text stays where and as it is, so the content of a
damaged block stays in the file, and a new block is added. One exception: behind the block, another
one whose seal still fits is a copy of ours and is removed.

The begin carries a seal, a hash of the lines that we wrote. If it fits, all lines are ours. If it
does not, lines were added here: the lines that do not look like ours are foreign if the seal fits
without them; otherwise so is every line that the new block does not have. Foreign lines move below
the block, in order, byte for byte. So nothing is lost, and placing a block twice is placing it
once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from loki_memory.models.ids import MINTED_LENGTH, encode

_BEGIN = "<!-- loki-memory:begin {} (generated; lines written in here are moved below) -->"
_END = "<!-- loki-memory:end -->"
# Later wordings are added here, so that blocks of earlier versions are still found. Words may be
# missing (an agent that copies the file abridges), but none may be added: they would be lost.
_WORDS = frozenset(re.findall(r"[a-z]+", _BEGIN.partition("begin")[2]))
_BEGINS = re.compile(rb"<!-- loki-memory:begin\b(.*)-->\s*")
_ENDS = re.compile(rb"<!-- loki-memory:end -->\s*")
_SEAL = re.compile(rf"[0-9a-z]{{{MINTED_LENGTH}}}")

_LINES = re.compile(rb"[^\n]*\n|[^\n]+")
_BULLET = re.compile(rb"\A[*+](?= )")
_OURS = re.compile(rb"- \[(?:skill: [a-z0-9-]+|[a-z][0-9A-Za-z_-]+)\] ")
_FRAME = re.compile(
    rb"## (?:How This Project Works|"
    rb"Relevant Memories \(Auto-Retrieved\)|Mistakes to Avoid \(From Learnings\)|"
    rb"Open Handoffs|Ledger)"
    rb"|_(?:None shown|Nothing in memory is about this yet|And \d+ more: `loki-mem recall`)\._"
)
_BOM = b"\xef\xbb\xbf"
# The head of a file, above a new block: front matter, empty lines, and the title.
_HEAD = re.compile(
    rb"(?:---[ \t]*\r?\n(?:[^\n]*\n)*?---[ \t]*\r?\n)?(?:[ \t\r]*\n)*(?:#[ \t][^\n]*(?:\n|\Z))?"
)
_NEW = """\
# Continuity

{}
<!-- What is noted under these two headings is taken into memory. -->

## Mistakes & Learnings

## Key Decisions
"""


class FoundBlock(NamedTuple):
    """A file, split at our block."""

    before: list[bytes]
    seal: str
    inside: list[bytes]
    end: bytes  # its line end
    after: list[bytes]


def sealed(body: str) -> str:
    """Put markers around a body of whole lines."""
    return f"{_BEGIN.format(_hash(_lines(body.encode())))}\n{body}{_END}\n"


def place(existing: bytes | None, block: str) -> bytes:
    """Replace our block in a file, or add it: below the title, where it is read first.

    The block takes the line ends of a file that has CRLF throughout.
    """
    bom = _BOM if existing and existing.startswith(_BOM) else b""
    text = (existing or b"")[len(bom) :]
    if not text:
        return bom + _NEW.format(block).encode()
    found = _find(_lines(text))
    return bom + (_replaced(found, block) if found else _added(text, block))


def has_block(text: bytes | None) -> bool:
    """Check if a file has a block of ours."""
    return text is not None and _find(_lines(text.removeprefix(_BOM))) is not None


def outside(text: bytes) -> bytes:
    """The text of a file that is not in a block of ours."""
    kept: list[bytes] = []
    rest = _lines(text.removeprefix(_BOM))
    while found := _find(rest):
        kept += found.before
        rest = found.after
    return b"".join(kept + rest)


def _replaced(found: FoundBlock, block: str) -> bytes:
    before, after = b"".join(found.before), b"".join(_without_copies(found.after))
    foreign = b"".join(_foreign(found, block))
    around = before + foreign + after
    end = _line_end(around) if b"\n" in around else found.end
    return before + _with_ends(block, end) + foreign + after


def _added(text: bytes, block: str) -> bytes:
    head = _HEAD.match(text)
    at = head.end() if head else 0
    before, after, end = text[:at], text[at:], _line_end(text)
    if before and not before.endswith(b"\n"):
        before += end
    if before.strip() and not before.endswith((b"\n\n", b"\n\r\n")):
        before += end
    gap = b"" if not after or after.startswith((b"\n", b"\r\n")) else end
    return before + _with_ends(block, end) + gap + after


def _find(lines: Sequence[bytes]) -> FoundBlock | None:
    begin, seal = -1, ""
    for at, line in enumerate(lines):
        if (mark := _begins(line)) is not None:
            begin, seal = at, mark
        elif _ENDS.fullmatch(line):
            if begin >= 0:
                end = _line_end(b"".join(lines[begin:at]))
                inside = list(lines[begin + 1 : at])
                return FoundBlock(list(lines[:begin]), seal, inside, end, list(lines[at + 1 :]))
            begin = -1
    return None


def _begins(line: bytes) -> str | None:
    """The seal of a begin marker, empty if it was left out; None if the line is no marker."""
    match = _BEGINS.fullmatch(line)
    if not match:
        return None
    words = match[1].decode(errors="replace").replace("(", " ").replace(")", " ").split()
    seal = words.pop(0) if words and _SEAL.fullmatch(words[0]) else ""
    return seal if all(word.strip(";,.:") in _WORDS for word in words) else None


def _foreign(found: FoundBlock, block: str) -> list[bytes]:
    """The lines inside the block that are not ours, with the empty ones between them."""
    if _hash(found.inside) == found.seal:
        return []
    forms = [_form(line) for line in found.inside]
    known = set(map(_form, _lines(block.encode())))
    theirs = [not (form in known or _FRAME.fullmatch(form)) for form in forms]
    unlike = [new and not _OURS.match(form) for new, form in zip(theirs, forms, strict=True)]
    ours = [line for line, new in zip(found.inside, unlike, strict=True) if not new]
    return _runs(found.inside, unlike if _hash(ours) == found.seal else theirs)


def _runs(lines: Sequence[bytes], theirs: Sequence[bool]) -> list[bytes]:
    """The foreign lines; an empty line only between two adjacent ones."""
    kept: list[bytes] = []
    empty: list[bytes] = []
    for line, foreign in zip(lines, theirs, strict=True):
        if not line.strip():
            empty.append(line)
        elif foreign:
            kept += [*empty, line] if kept else [line]
            empty = []
        else:
            empty = []
    return kept


def _without_copies(lines: Iterable[bytes]) -> list[bytes]:
    """The lines without blocks whose seal fits; removing one may join another."""
    kept: list[bytes] = []
    open_: list[tuple[int, str]] = []  # markers in `kept`; one without seal closes nothing
    for line in lines:
        kept.append(line)
        if (seal := _begins(line)) is not None:
            open_.append((len(kept) - 1, seal))
        elif _ENDS.fullmatch(line):
            if open_ and open_[-1][1] == _hash(kept[open_[-1][0] + 1 : -1]):
                del kept[open_.pop()[0] :]
            else:
                open_.append((len(kept) - 1, ""))
    return kept


def _hash(lines: Iterable[bytes]) -> str:
    import hashlib  # 3 ms, and not needed to start

    text = b"\n".join(filter(None, map(_form, lines)))
    return encode(hashlib.sha256(text).digest(), MINTED_LENGTH)


def _form(line: bytes) -> bytes:
    """Normalise a line as formatters do: other bullets, escapes and spaces make no other line."""
    words = line.replace(b"\\", b"").split() or line.split()
    return _BULLET.sub(b"-", b" ".join(words))


def _lines(text: bytes) -> list[bytes]:
    return _LINES.findall(text)


def _line_end(text: bytes) -> bytes:
    count = text.count(b"\n")
    return b"\r\n" if count and count == text.count(b"\r\n") else b"\n"


def _with_ends(block: str, end: bytes) -> bytes:
    return block.encode().replace(b"\n", end)
