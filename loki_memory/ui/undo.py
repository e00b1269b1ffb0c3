"""Undo: the last changes that were made from the page, and how to take each back."""

from __future__ import annotations

from collections.abc import Callable
from secrets import token_urlsafe
from typing import NamedTuple

_KEPT = 100  # changes; the files and git have all of them


class UndoableChange(NamedTuple):
    """A change that was made; `words` say which, and `undo` takes it back."""

    key: str
    words: str
    undo: Callable[[], object] | None


class UndoStack:
    """The changes of one server, the latest last."""

    def __init__(self) -> None:
        self._changes: dict[str, UndoableChange] = {}

    def push(self, words: str, undo: Callable[[], object] | None = None) -> str:
        """Keep a change, and return the key by which a page finds it."""
        key = token_urlsafe(8)
        self._changes[key] = UndoableChange(key, words, undo)
        for oldest in list(self._changes)[:-_KEPT]:
            del self._changes[oldest]
        return key

    def find(self, key: str) -> UndoableChange | None:
        return self._changes.get(key)

    def take(self, key: str) -> UndoableChange | None:
        """The change with this key, which can be undone once."""
        return self._changes.pop(key, None)
