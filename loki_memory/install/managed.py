"""Text that we put into files of others, marked so that it can be found, renewed and removed.

A block is enclosed by two marks, and a file of our own ends with one. Either carries a digest of
our text. While the digest matches, the text may be renewed or removed, in any clone and by any
later version. Where it does not match, somebody changed the text, and it is theirs.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import NamedTuple

from loki_memory.errors import InvalidConfig

_DIGITS = 16


class Comment(NamedTuple):
    """The syntax of a one-line comment, and the word that a seal begins with."""

    opens: str
    closes: str
    word: str = "written"

    def says(self, words: str) -> str:
        return f"{self.opens}loki-mem:{words}{self.closes}"


MARKDOWN = Comment("<!-- ", " -->")
HASH = Comment("# ", "")
PUBLISHED = Comment("<!-- ", " -->", "published")


class Block(NamedTuple):
    """Our block in a text, the text around it, and whether the block is unchanged."""

    before: str
    body: str
    after: str
    untouched: bool


def sealed(text: str, comment: Comment = MARKDOWN) -> str:
    """Seal a text: append the line that says it is ours."""
    return f"{text.rstrip()}\n\n{_seal(text, comment)}\n"


def is_sealed(text: str, comment: Comment = MARKDOWN) -> bool:
    """Check if a text is ours and unchanged."""
    body, _, seal = text.rstrip().rpartition("\n")
    return seal == _seal(body, comment)


def _seal(text: str, comment: Comment) -> str:
    digest = sha256(text.replace("\r\n", "\n").strip().encode()).hexdigest()[:_DIGITS]
    return comment.says(f"{comment.word} {digest}")


def find(text: str, comment: Comment, where: str) -> Block | None:
    """Find our block in a text; raises InvalidConfig where the marks are not one pair."""
    begin, end = comment.says("begin"), comment.says("end")
    begins, ends = _lines(text, begin), _lines(text, end)
    if not begins and not ends:
        return None
    if len(begins) != 1 or len(ends) != 1 or begins[0].start() > ends[0].start():
        odd = (begins or ends)[-1]
        line = text.count("\n", 0, odd.start()) + 1
        raise InvalidConfig(
            f"{where}:{line}",
            f"`{begin}` and `{end}` must stand there once each, in this order. Nothing was "
            "written; mend the marks and repeat.",
        )
    body = text[begins[0].end() : ends[0].start()].strip("\r\n")
    return Block(
        text[: begins[0].start()], body, text[ends[0].end() :], is_sealed(body + "\n", comment)
    )


def _lines(text: str, mark: str) -> list[re.Match[str]]:
    return list(re.finditer(rf"^{re.escape(mark)}[ \t]*(?=\r?$)", text, re.MULTILINE))


def with_block(text: str, body: str, comment: Comment, where: str) -> str:
    """Return the text with our block: renewed in its place, else at the end.

    A block that was changed by hand stays as it is.
    """
    found = find(text, comment, where)
    if found is not None and not found.untouched:
        return text
    line = _line_break(text)
    block = f"{comment.says('begin')}\n{sealed(body, comment)}{comment.says('end')}"
    block = block.replace("\n", line)
    if found is not None:
        return found.before + block + found.after
    if not text:
        return block + line
    # The block ends with a line break if the text did: so its removal restores the text.
    return text + line + block + line if text.endswith(line) else text + line + line + block


def without_block(text: str, comment: Comment, where: str) -> str:
    """Return the text without our block; a block that was changed by hand stays."""
    found = find(text, comment, where)
    if found is None or not found.untouched:
        return text
    line = _line_break(text)
    if not found.after:
        return found.before.removesuffix(line + line)
    before = found.before
    if before.endswith(line + line):
        before = before.removesuffix(line)
    return before + found.after.removeprefix(line)


def _line_break(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
