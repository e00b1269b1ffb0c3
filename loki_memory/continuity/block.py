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
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.injection.line import (
    GOAL_LIMIT,
    TEXT_LIMIT,
    BulletLine,
    bullet,
    labelled,
    one_line,
)
from loki_memory.injection.told import distinct_texts
from loki_memory.models.fence import fenced
from loki_memory.models.ids import MINTED_LENGTH, encode
from loki_memory.models.text import BYTES_PER_TOKEN
from loki_memory.resources import template

if TYPE_CHECKING:
    from jinja2 import Template


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


# -- what matters now, within a budget of tokens ---------------------------------------------------


# The order in which sections take lines, and the share of the bytes that each may fill then.
# Mistakes come first, with room for five long ones in the usual 1,000 tokens: avoiding them saves
# most. Ledgers and handoffs are short and cannot be searched for. Relevant memories fill the rest,
# and then every section that still has lines.
_TURNS = (
    ("standing", 0.2),
    ("mistakes", 0.5),
    ("ledger", 0.1),
    ("handoffs", 0.1),
    ("memories", 1.0),
    ("standing", 1.0),
    ("mistakes", 1.0),
    ("ledger", 1.0),
    ("handoffs", 1.0),
)

Lists = Mapping[str, Sequence[str]]


class Now(NamedTuple):
    """The content of the block for one agent; every list best first."""

    goal: str
    memories: Sequence[BulletLine]
    mistakes: Sequence[BulletLine]  # anti-patterns and learnings
    handoffs: Sequence[BulletLine] = ()  # open ones to this agent, or to all
    ledger: Sequence[str] = ()  # "current task: task-7", "blocked by: …", "next: …"
    standing: Sequence[BulletLine] = ()  # routine, preferences and rules, whatever the goal is


def render(now: Now, budget: int) -> str:
    """Render the block with its markers, within `budget` tokens; equal input gives equal bytes.

    Lines are whole or left out, and the last line counts those left out. A budget too small for
    that gives up the goal, then all but the markers; these alone (about 30 tokens) are rendered
    however small the budget is, because a block without markers could not be found again.
    """
    lists = _bullets(now)
    goal = one_line(now.goal, GOAL_LIMIT)
    goal = goal and labelled("goal", goal)
    total = _count(lists)
    for head, more in ((goal, 0), (goal, total), ("", total)):
        room = _room(budget, head, lists, more)
        kept = _fill(lists, room)
        left = total - _count(kept)
        if room >= 0 and (more or not left):
            return _block(head, kept, left)
    return sealed("")


def _count(lists: Lists) -> int:
    return sum(map(len, lists.values()))


def _bullets(now: Now) -> dict[str, list[str]]:
    ledger = (one_line(entry, TEXT_LIMIT) for entry in now.ledger)
    standing = distinct_texts(map(bullet, now.standing))
    memories = distinct_texts([*standing, *map(bullet, now.memories)])
    return {
        "standing": standing,
        "memories": [line for line in memories if line not in standing],
        "mistakes": distinct_texts(map(bullet, now.mistakes)),
        "handoffs": list(filter(None, map(bullet, now.handoffs))),
        "ledger": [labelled("ledger", entry) for entry in ledger if entry],
    }


def _room(budget: int, goal: str, lists: Lists, more: int) -> int:
    """The bytes that are left for lines, never more than the lines have."""
    shape = {name: [""] * bool(lines) for name, lines in lists.items()}  # headings take room too
    return budget * BYTES_PER_TOKEN - len(_block(goal, shape, more).encode())


def _fill(lists: Lists, room: int) -> dict[str, Sequence[str]]:
    """The first lines of every list, as many as fit."""
    taken = dict.fromkeys(lists, 0)
    whole = room
    for name, share in _TURNS:
        costs = [len(line.encode()) + 1 for line in lists[name][taken[name] :]]
        turn = min(room, max(int(share * whole), costs[0] if costs else 0))
        for cost in costs:
            turn -= cost
            if turn < 0:
                break
            room -= cost
            taken[name] += 1
    return {name: lines[: taken[name]] for name, lines in lists.items()}


def _block(goal: str, lists: Lists, more: int) -> str:
    return sealed(f"{fenced(_template().render(goal=goal, more=more, **lists))}\n")


@cache
def _template() -> Template:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    environment = SandboxedEnvironment(
        undefined=StrictUndefined,
        autoescape=False,  # Markdown, and `line` has made every text inert
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.from_string(template("continuity.md.j2"))
