"""Cut a text into passages, the units of search."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Measured on long chat messages: shorter pieces lose their context, longer ones blur.
_WHOLE = 120  # words up to which a text is one piece
_PIECE = 80  # words of a piece, to the end of the sentence
_LONGEST = 160  # … but no longer than this
_MOST = 400  # pieces of one memory: some 32,000 words
# Where a script has no spaces, 20 characters count as a word; no word has more than 100.
_SPACELESS = "\u0e00-\u1fff\u3000-\uffff"
_WORD = re.compile(rf"[{_SPACELESS}]{{1,20}}\s*|[^\s{_SPACELESS}]{{1,100}}\s*")
_SENTENCE_ENDS = (".", "!", "?", ":", ";", "\u3002", "\uff01", "\uff1f", "\u2026")


def pieces(text: str) -> list[str]:
    """The passages of a text, in order; none if it is empty."""
    words = _WORD.findall(text)
    if len(words) <= _WHOLE:
        return [text.strip()] if words else []
    return list(_cut(words))[:_MOST]


def _cut(words: list[str]) -> Iterator[str]:
    piece: list[str] = []
    for word in words:
        piece.append(word)
        if len(piece) >= _PIECE and (len(piece) >= _LONGEST or _is_end(word)):
            yield "".join(piece).strip()
            piece = []
    if piece:
        yield "".join(piece).strip()


def _is_end(word: str) -> bool:
    """Check if a sentence or a line ends with this word."""
    return "\n" in word or word.rstrip().endswith(_SENTENCE_ENDS)
