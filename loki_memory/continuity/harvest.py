"""Notes of the agent in CONTINUITY.md under its own headings, as learnings and facts.

A note is a bullet with everything indented below it, a row of a table, or a paragraph. Bullets
that are parts of one mistake ("What went wrong: …", "Root cause: …", "Prevention: …") are one note,
together with their heading. The same note in another layout gives the same text: whitespace is
folded, bold and italics are removed, code spans stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from loki_memory.continuity.block import outside

SHORTEST = 12  # bytes: less is a heading, a tick or a name
LONGEST = 2_000  # characters; a longer note is a report, of which the beginning is kept

_MISTAKES = r"(?:mistakes?(?: made)?|lessons?(?: learn(?:ed|t))?|learnings)"
_KEY = r"(?:(?:key|main|important|major|critical|recent|past|new|our|project|session) )*"
_TAIL = (
    r"(?:$|[(:].*| (?:[(\u2013\u2014-]|(?:this|so far|from|of|for|in|during|to date|made|log)\b).*)"
)
_KINDS = {
    "learning": re.compile(
        rf"{_KEY}{_MISTAKES}(?:(?: and |, | ?/ ?)(?:{_MISTAKES}|learning))*{_TAIL}"
    ),
    "fact": re.compile(
        rf"{_KEY}(?:(?:design|technical|tech|architecture|architectural|implementation) )?"
        rf"decisions?{_TAIL}"
    ),
}
_GENERATED = re.compile(r"(?:relevant memories \(auto|mistakes to avoid \(from)")
_NUMBERING = re.compile(r"(?:\d+(?:\.\d+)*[.):]?|[ivx]+[.)])\s+")

_BULLET = re.compile(r"(\s*)(?:[-*+•]|\d{1,3}[.)])(?:\s+(.*)|$)")
_BREAK = re.compile(r"\s*(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})")
_ROW = re.compile(r"\s*\|(.*?)\|?\s*")
_CELLS = re.compile(r"(?<!\\)\|")
_DELIMITER = re.compile(r"\s*\|?(?:\s*:?-+:?\s*\|)*\s*:?-+:?\s*\|?\s*")
_QUOTE = re.compile(r"^\s*>\s?")
_CODE = re.compile(r"`[^`]*`")
_CHECKBOX = re.compile(r"^\[[ xX]\]\s+")
_EMPHASIS = re.compile(r"(?<![\w*/])(\*{1,3})(?=[^\s*/])([^*]+?)(?<=[^\s*])\1(?![\w*])")
_SLANTED = re.compile(r"(?<!\w)_(?=[^\s_])([^_]+?)(?<=[^\s_])_(?!\w)")
_STRUCK = re.compile(r"~~[^~]+~~[.\s]*")
_SENTENCE = re.compile(r"[.!?\u3002\uff01\uff1f](?=\s|$)")

# Labels of parts of one note. The first ones can open a note, the others only continue one.
_OPENING = (
    r"what (?:went wrong|happened|i (?:did|tried))|mistake|problem|issue|error|bug|symptom|context|"
    r"date|when|decision|observation|failure|attempt(?:ed)?"
)
_FURTHER = (
    r"(?:root )?causes?|why(?: it (?:happened|failed))?|reason(?:ing)?|rationale|impact|effect|"
    r"fix(?:ed)?|solution|resolution|workaround|prevention|how to (?:prevent|avoid)(?: it)?|"
    r"lessons?(?: learn(?:ed|t))?|learnings?|learned|takeaway|action|next time|consequences?|"
    r"alternatives?(?: considered)?|trade-?offs?|status|correct approach|what (?:worked|to do)"
)
_PART = re.compile(rf"(?:({_OPENING})|({_FURTHER}))\s*:", re.IGNORECASE)

# Placeholders for "nothing noted yet": the words of templates and of tidy agents.
_NOTHING = re.compile(
    r"(?:n/?a|tbd|todo|tba|empty|pending|fill (?:this )?in|\.{3}|…)\W*|"
    r"to be (?:filled|determined|added)\W*|"
    r"(?:none|nothing)(?:\W*|\s*[-\u2013\u2014(,;:.].{0,60})|"
    r"(?:none|nothing)\W+(?:yet|so far|recorded|noted|known|found|made|new|this|for now|"
    r"at th(?:e|is)|to (?:report|date))\b.{0,60}|"
    r".{0,40}\bno (?:\w+ )?(?:mistakes?|errors?|learnings?|lessons?|decisions?|entries|issues?)"
    r"(?: \w+)? (?:yet|so far|recorded|made|noted|found|logged|this)\b.{0,40}|"
    r".{0,120}\b(?:update|fill|edit|use|maintain|append to|add to) this section\b.{0,200}",
    re.IGNORECASE,
)
_BLANKS = re.compile(r"\[[^\[\]]*\]|\{[^{}]*\}|<[^<>]*>")


class Noted(NamedTuple):
    """A note that the agent wrote."""

    section: str
    text: str
    kind: str  # learning or fact


class NotePart(NamedTuple):
    """A bullet, row or paragraph, with its continuation lines."""

    form: str  # "bullet", "row" or "paragraph"
    indent: int
    texts: list[str]


def harvest(text: bytes) -> list[Noted]:
    """Extract the notes of a CONTINUITY.md in order; our own block is skipped."""
    plain = outside(text).decode("utf-8", "replace").removeprefix("\ufeff")
    heads = outline(plain.replace("\r\n", "\n").replace("\r", "\n"))
    return [
        Noted(_plain(section), note, kind)
        for section, kind, head in _sections(heads)
        for note in notes(head, "" if head.title == section else head.title)
    ]


def _sections(heads: Iterable[Heading]) -> Iterator[tuple[str, str, Heading]]:
    """Yield the headings that belong to a section of notes, with its title and kind.

    A deeper heading belongs to the section above it, unless it has a kind itself.
    """
    path: list[tuple[int, str, str]] = []  # level, section, kind
    for head in heads:
        while path and path[-1][0] >= head.level:
            path.pop()
        section, kind = path[-1][1:] if path else ("", "")
        if (own := _kind(head.title)) is not None:
            section, kind = head.title, own
        path.append((head.level, section, kind))
        if kind:
            yield section, kind, head


def _kind(title: str) -> str | None:
    """The kind of notes below a heading; empty if they are not notes, None if it has no kind."""
    name = _name(title)
    if _GENERATED.match(name):
        return ""
    return next((kind for kind, names in _KINDS.items() if names.fullmatch(name)), None)


def _name(title: str) -> str:
    """`## 3. 🧠 **Mistakes & Learnings**` -> `mistakes and learnings`."""
    text = " ".join(title.lower().replace("&", " and ").replace("*", "").replace("_", " ").split())
    text = re.sub(r"^[^\w]+|[^\w)]+$", "", text)
    return re.sub(r"^[^\w]+", "", _NUMBERING.sub("", text, count=1))


def notes(head: Heading, title: str) -> Iterator[str]:
    """Yield the notes below a heading, each as one line; `title` may open the first one."""
    parts = _parts(head.lines)
    if not parts and head.level == BOLD_LEVEL and not title.endswith(":"):
        parts, title = [NotePart("paragraph", 0, [title])], ""
    title = _plain(title).rstrip(": ")
    for group in _together(parts):
        texts = [text for text in map(_text, group) if _says_something(text)]
        if texts and title and (group[0].form == "paragraph" or _PART.match(texts[0])):
            texts.insert(0, f"{title}:")
            title = ""  # it opens one note, not all of them
        note = _cut(_joined(texts))
        if len(note.encode()) >= SHORTEST and "\ufffd" not in note:
            yield note


def _together(parts: Iterable[NotePart]) -> Iterator[list[NotePart]]:
    """Group parts by their note: "Fix: …" belongs to the mistake above it."""
    group: list[NotePart] = []
    seen: set[str] = set()  # labels of the group
    is_over = False  # after its cause or its lesson, the next mistake is another note
    for part in parts:
        label = _PART.match(_plain(part.texts[0]))
        name = label[0].lower() if label else ""
        goes_on = bool(label and (label[2] or (seen and not is_over)))
        if not (group and goes_on and name not in seen):
            yield group
            group, seen = [], set()
        group.append(part)
        seen |= {name} - {""}
        is_over = bool(label and label[2])
    yield group


def _parts(lines: Iterable[str]) -> list[NotePart]:
    """Bullets, rows and paragraphs; a paragraph that only introduces the next is left out."""
    parts: list[NotePart] = []
    is_open, after_gap = False, False
    for line, below in pairwise([*map(_unquoted, lines), ""]):
        bullet = _BULLET.fullmatch(line)
        if not line.strip() or _BREAK.fullmatch(line):
            after_gap, is_open = True, is_open and not line.strip()
            continue
        if row := _ROW.fullmatch(line):
            parts += _row(row[1]) * (not _DELIMITER.fullmatch(line) and not _heads_table(below))
            is_open = False
        elif bullet and is_open and _is_below(len(bullet[1]), parts[-1]):
            parts[-1].texts.append(bullet[2] or "")
        elif bullet:
            parts.append(NotePart("bullet", len(bullet[1]), [bullet[2] or ""]))
            is_open = True
        elif is_open and (not after_gap or _is_below(_indent(line), parts[-1])):
            if len(parts[-1].texts[-1]) < LONGEST:  # the rest would be cut off
                parts[-1].texts[-1] += f" {line.strip()}"
        else:
            parts.append(NotePart("paragraph", 0, [line.strip()]))
            is_open = True
        after_gap = False
    return [part for part in parts if not _leads_in(part)]


def _row(cells: str) -> list[NotePart]:
    texts = (cell.strip().replace("\\|", "|") for cell in _CELLS.split(cells))
    return [NotePart("row", 0, [" | ".join(filter(None, texts))])]


def _heads_table(below: str) -> bool:
    return "|" in below and bool(_DELIMITER.fullmatch(below))


def _is_below(indent: int, part: NotePart) -> bool:
    """Check if a line with this indentation belongs to a bullet; one space more is a slip."""
    return part.form == "bullet" and indent > part.indent + 1


def _leads_in(part: NotePart) -> bool:
    return part.form == "paragraph" and part.texts[-1].rstrip("*_ ").endswith(":")


def _unquoted(line: str) -> str:
    line = line.expandtabs(4)
    return _QUOTE.sub("", line)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _text(part: NotePart) -> str:
    return _joined(filter(None, map(_plain, part.texts)))


def _joined(texts: Iterable[str]) -> str:
    """Join texts into one line: parts that do not end a clause are set off by semicolons."""
    line = ""
    for text in texts:
        line += f"{'' if not line else ' ' if line[-1] in '.:;!?,' else '; '}{text}"
    return line


def _plain(text: str) -> str:
    """One line without emphasis or checkbox; empty if all of it was struck out."""
    text = _CHECKBOX.sub("", " ".join(text.replace("\0", "").split()), count=1)
    if _STRUCK.fullmatch(text):
        return ""
    code = iter(_CODE.findall(text))
    text = _SLANTED.sub(r"\1", _EMPHASIS.sub(r"\2", _CODE.sub("\0", text)))
    return re.sub("\0", lambda _: next(code), text)


def _says_something(text: str) -> bool:
    bare = text.strip(" ()[]{}<>.:!-\u2013\u2014")
    return bool(re.search(r"\w", _BLANKS.sub("", text)) and not _NOTHING.fullmatch(bare))


def _cut(text: str) -> str:
    """Cut a note to LONGEST characters: whole sentences of it, or else whole words."""
    if len(text) <= LONGEST:
        return text
    head = text[:LONGEST]
    ends = [match.end() for match in _SENTENCE.finditer(head)]
    return head[: ends[-1]] if ends else head.rpartition(" ")[0] or head


# -- The outline of a Markdown file: its headings, and the plain lines below each ------------------


_FENCE = re.compile(r"\s*(?:[-*+]\s+)?(`{3,}|~{3,})([^`]*)")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*")
# `**Second week:**` or `**Key Decisions**`; a whole sentence in bold is a sentence.
_BOLD = re.compile(r"(\*\*|__)(?!\s)([^*]+:|(?:[^*\s]+\s+){0,3}[^*\s]*[^*\s.!?])\1(:?)\s*")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*")
_PLAIN = re.compile(r" {0,3}(?![-*+>|#]\s|\d+[.)]\s|[|>#])\S")
BOLD_LEVEL = 7  # a line in bold counts as a heading, below every real one


class Heading(NamedTuple):
    """A heading with its lines, down to the next heading of any level."""

    level: int
    title: str
    lines: list[str]


def outline(text: str) -> list[Heading]:
    """The headings in order; lines before the first one have level 0 and no title."""
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
    """Check if a line underlines the heading above it, and so is not text."""
    return not head.lines and head.level in {1, 2} and bool(_UNDERLINE.fullmatch(line))


def _without_code(lines: list[str]) -> Iterator[str]:
    """All lines outside of code fences; of a fence without an end only its line is dropped."""
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
