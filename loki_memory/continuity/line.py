"""A memory as one line of Markdown that cannot be anything else.

Memory text is data that anybody may have written. Whatever it holds, it stays on its line, behind
its label: it opens no heading, list, code block, comment or HTML element, loads no picture, and
shows every character that a reader could be misled by leaving out.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from loki_memory.models.ids import ID
from loki_memory.models.kinds import KINDS

TEXT_LIMIT = 300  # two sentences; five such mistakes fit into half of the usual 1,000 tokens
NOTE_LIMIT = 60
GOAL_LIMIT = 120  # enough to see what was asked; the prompt itself may be pages
_READ = 4_000  # characters looked at: enough for TEXT_LIMIT after folding, whatever the text's size
_SKILL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_BLANK = {"Cc", "Zl", "Zp", "Zs"}
# Marks that only choose how their neighbour is drawn, and the invisible "tag" characters: both
# have been used to hide text from people that models read.
_HIDDEN = re.compile("[\u034f\ufe00-\ufe0f\U000e0000-\U000e0fff]")
_BACKTICKS = re.compile(r"(?:\\*`)+")
_OPENS_TAG = re.compile(r"(?<!\\)((?:\\\\)*)(<(?=[A-Za-z/!?|])|(?<=!)\[)")


class Line(NamedTuple):
    """One memory in the block."""

    id: str
    kind: str
    text: str
    note: str = ""


def bullet(line: Line) -> str:
    """`- [sem-001] text (note)`; empty if nothing of the text can be shown."""
    text = one_line(line.text, TEXT_LIMIT)
    note = one_line(line.note, NOTE_LIMIT)
    return labelled(_label(line), f"{text} ({note})" if note else text) if text else ""


def labelled(label: str, text: str) -> str:
    return f"- [{label}] {text}"


def one_line(text: str, limit: int) -> str:
    return _inert(_cut(_folded(text[:_READ]), limit))


def _label(line: Line) -> str:
    """The id, if it has the shape of one; else the kind: a label never carries free text."""
    if line.kind == "skill" and _SKILL.fullmatch(line.id):
        return f"skill: {line.id}"
    if ID.fullmatch(line.id):
        return line.id
    return line.kind if line.kind in KINDS else "memory"


def _folded(text: str) -> str:
    """All whitespace, line separators and controls as single spaces; invisible characters gone."""
    if not (text.isascii() and text.isprintable()):
        text = "".join(map(_shown, _HIDDEN.sub("", text)))
    return " ".join(text.split())


def _shown(character: str) -> str:
    category = unicodedata.category(character)
    if category in _BLANK:
        return " "
    if category == "Cs":  # half a surrogate pair cannot be written as UTF-8
        return "\ufffd"
    return "" if category == "Cf" else character


def _cut(text: str, limit: int) -> str:
    """At most `limit` characters, ending at a word where there is one in the last third."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    end = head.rfind(" ", limit * 2 // 3)
    return (head[:end] if end > 0 else head).rstrip(" ,;:-") + "…"


def _inert(text: str) -> str:
    """The text with its code spans closed, and nothing that a Markdown reader would act on.

    Runs of backticks become single ones, and one without a partner an apostrophe, so that code is
    what stands between an odd backtick and the next; there `<` is safe, elsewhere it is escaped.
    A comment is broken everywhere: it is the one thing that means the same inside code to those
    who look for it with a regular expression.
    """
    text = _BACKTICKS.sub("`", text.replace("<!--", "<! --"))
    if text.count("`") % 2:
        start, _, rest = text.rpartition("`")
        text = f"{start}'{rest}"
    parts = text.split("`")
    parts[::2] = [_OPENS_TAG.sub(r"\1\\\2", part) for part in parts[::2]]
    return "`".join(parts)
