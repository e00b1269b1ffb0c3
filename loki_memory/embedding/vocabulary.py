"""The tokens that a model knows: the lines of vocab.txt, and the number of each.

One question has a dozen words, and a dictionary of all 31,861 lines costs 7 ms in a fresh process:
`find` makes one only of the lines that begin as the token does, `all` of every line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CONTINUED = "##"  # begins a token that stands inside a word
_INSIDE = 1 << 16


class Vocabulary:
    """Tokens and their numbers."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            self._text = file.read() + b"\n"
        self._ends = np.flatnonzero(np.frombuffer(self._text, np.uint8) == ord("\n"))
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
        """Per line, what `_beginning` gives for it."""
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
