"""The tokenizer of the bundled model: WordPiece over the lines of vocab.txt.

A question has a dozen words, and a dictionary of all 31,861 lines costs 7 ms in a fresh process:
`find` builds one only of the lines that begin like the token, `all` of every line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING
from unicodedata import category, normalize

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CONTINUED = "##"  # begins a token inside a word
_INSIDE = 1 << 16


class Vocabulary:
    """Tokens and their numbers."""

    def __init__(self, path: str, first: int | None = None) -> None:
        """Read the lines of a file, or the first of them."""
        with open(path, "rb") as file:
            self._text = file.read() + b"\n"
        self._ends = np.flatnonzero(np.frombuffer(self._text, np.uint8) == ord("\n"))[:first]
        self._text = self._text[: self._ends[-1] + 1]
        self._starts = np.append(0, self._ends[:-1] + 1)
        self._beginnings = self._pairs()
        self._alike: dict[int, dict[str, int]] = {}

    def all(self) -> dict[str, int]:
        lines = self._text.decode().split("\n")[:-1]
        return dict(zip(lines, range(len(lines)), strict=True))

    def find(self, token: str) -> int | None:
        beginning = _beginning(token)
        alike = self._alike.get(beginning)
        if alike is None:
            alike = self._alike[beginning] = self._beginning_so(beginning)
        return alike.get(token)

    def _pairs(self) -> NDArray[np.uint32]:
        """The `_beginning` of each line."""
        pairs = np.ndarray(len(self._text) - 1, "<u2", self._text, strides=(1,))
        beginnings: NDArray[np.uint32] = pairs[self._starts].astype(np.uint32)
        inside = np.flatnonzero(beginnings == _pair(_CONTINUED))
        beginnings[inside] = pairs[self._starts[inside] + len(_CONTINUED)]
        beginnings[inside] += _INSIDE
        return beginnings

    def _beginning_so(self, beginning: int) -> dict[str, int]:
        numbers = np.flatnonzero(self._beginnings == beginning)
        places = zip(self._starts[numbers].tolist(), self._ends[numbers].tolist(), strict=True)
        lines = [self._text[start:end].decode() for start, end in places]
        return dict(zip(lines, numbers.tolist(), strict=True))


def _beginning(token: str) -> int:
    """The first two bytes of a token, the end of its line among them, as one number."""
    if token.startswith(_CONTINUED):
        return _pair(token[len(_CONTINUED) :]) + _INSIDE
    return _pair(token)


def _pair(token: str) -> int:
    return int.from_bytes((token[:2] + "\n").encode()[:2], "little")


# -- text to token ids, as BERT does ---------------------------------------------------------------


# BERT drops these, and Python takes them for spaces.
_NO_SPACE = re.compile("[\x0b\x0c\x1c-\x1f\x85]")
_DROPPED = "\0"
# Written in a text literally, these are tokens. [UNK] is for words that no vocabulary has.
_SPECIAL = re.compile(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])")
_UNKNOWN = "[UNK]"
_LONGEST_WORD = 100  # as in BERT: a longer one is unknown
# Words and short chunks between spaces repeat; long ones do not.
_KEPT, _KEPT_LENGTH = 50_000, 64
# More different words than a question has: from here on the whole vocabulary is quicker.
_MANY_WORDS = 60
# As in BERT, and as in its tokenisers: the seventh block lacks its first characters.
_IDEOGRAPHS = (
    range(0x3400, 0x4DC0),
    range(0x4E00, 0xA000),
    range(0xF900, 0xFB00),
    range(0x20000, 0x2A6E0),
    range(0x2A700, 0x2B740),
    range(0x2B740, 0x2B820),
    range(0x2B920, 0x2CEB0),
    range(0x2F800, 0x2FA20),
)


class WordPiece:
    """A vocabulary, and texts as numbers of its tokens."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._chunks = _Chunks(vocabulary)

    def tokens(self, text: str) -> list[int]:
        chunks = _NO_SPACE.sub(_DROPPED, text).split()
        return list(chain.from_iterable(map(self._chunks.__getitem__, chunks)))


class _Seen(dict[str, tuple[int, ...]]):
    """A cache of the tokens of texts, up to a limit."""

    def keep(self, text: str, tokens: tuple[int, ...]) -> tuple[int, ...]:
        if len(self) >= _KEPT:
            self.clear()
        if len(text) <= _KEPT_LENGTH:
            self[text] = tokens
        return tokens


class _Chunks(_Seen):
    """The text between two spaces."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._words = _Words(vocabulary)
        self._spelling = _Spelling()

    def __missing__(self, chunk: str) -> tuple[int, ...]:
        words = self._marked(chunk) if "[" in chunk else self._spelled(chunk)
        return self.keep(chunk, tuple(chain.from_iterable(map(self._words.__getitem__, words))))

    def _marked(self, chunk: str) -> list[str]:
        """The words of a chunk in which special tokens may stand."""
        parts = _SPECIAL.split(chunk)
        return [w for p in parts for w in ([p] if _SPECIAL.match(p) else self._spelled(p))]

    def _spelled(self, chunk: str) -> list[str]:
        plain = chunk if chunk.isascii() else normalize("NFD", chunk)
        return plain.translate(self._spelling).split()


class _Words(_Seen):
    """A word as BERT splits text."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._vocabulary = vocabulary
        self._find: Callable[[str], int | None] = vocabulary.find

    def __missing__(self, word: str) -> tuple[int, ...]:
        if self._find == self._vocabulary.find and len(self) >= _MANY_WORDS:
            self._find = self._vocabulary.all().get
        return self.keep(word, self._pieces(word))

    def _pieces(self, word: str) -> tuple[int, ...]:
        """The longest piece that the word begins with, and so on; nothing if one is missing."""
        find, pieces, start, mark = self._find, list[int](), 0, ""
        if len(word) > _LONGEST_WORD or word == _UNKNOWN:
            return ()
        while start < len(word):
            for end in range(len(word), start, -1):
                if (piece := find(mark + word[start:end])) is not None:
                    break
            else:
                return ()
            pieces.append(piece)
            start, mark = end, "##"
        return tuple(pieces)


class _Spelling(dict[int, str]):
    """The normal form of each character, computed when it is met first."""

    def __missing__(self, code: int) -> str:
        self[code] = written = _written(chr(code))
        return written


def _written(char: str) -> str:
    kind = category(char)
    if kind in {"Cc", "Cf", "Co", "Cs", "Mn"} or char == "\N{REPLACEMENT CHARACTER}":
        return ""
    if kind[0] == "P" or (char.isascii() and not char.isalnum()) or _is_ideograph(char):
        return f" {char} "
    return char.lower()


def _is_ideograph(char: str) -> bool:
    return any(ord(char) in block for block in _IDEOGRAPHS)
