"""The parts that all pages of one server share.

They are the workspace, the changes that can be taken back, the open connections of pages, and
values that take long to compute.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from secrets import token_urlsafe
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from loki_memory.ui.security import Secrets
from loki_memory.ui.templates import NAVIGATION, NavigationEntry

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

T = TypeVar("T")

_UNDOABLE = 100  # changes; the files and git have all of them
_OPENED = ": the connection is open\n\n"
_MOST_DERIVED = 300  # values, such as the history of as many beliefs
_DERIVED: WeakKeyDictionary[Workspace, tuple[object, dict[str, Any]]] = WeakKeyDictionary()


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
        for oldest in list(self._changes)[:-_UNDOABLE]:
            del self._changes[oldest]
        return key

    def find(self, key: str) -> UndoableChange | None:
        return self._changes.get(key)

    def take(self, key: str) -> UndoableChange | None:
        """The change with this key, which can be undone once."""
        return self._changes.pop(key, None)


class Broadcast:
    """The open pages, told by server-sent events that memory changed.

    An event says no more than that; the page then asks for what it shows. Nothing runs between
    events.
    """

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._closed = False

    def notify(self) -> None:
        """Wake every connection; any thread may call this."""
        for flag, loop in list(self._waiting.items()):
            loop.call_soon_threadsafe(flag.set)

    def close(self) -> None:
        """End every connection, so that the server can stop."""
        self._closed = True
        self.notify()

    def follow(self, wait: Callable[[], bool]) -> Thread:
        """Notify whenever `wait` returns True, in a thread that ends with the process."""
        thread = Thread(target=self._follow, args=(wait,), name="live", daemon=True)
        thread.start()
        return thread

    def _follow(self, wait: Callable[[], bool]) -> None:
        while not self._closed:
            if wait():
                self.notify()

    async def events(self) -> AsyncIterator[str]:
        """The events for one connection."""
        flag = asyncio.Event()
        self._waiting[flag] = asyncio.get_running_loop()
        try:
            yield _OPENED
            while not self._closed:
                await flag.wait()
                flag.clear()
                yield "event: changed\ndata: \n\n"
        finally:
            del self._waiting[flag]


class UiSite(NamedTuple):
    """The parts that all pages of one server share."""

    workspace: Workspace
    secrets: Secrets
    broadcast: Broadcast
    undo: UndoStack
    worker: ThreadPoolExecutor
    read_only: bool = False
    watcher_state: Callable[[], str] = lambda: "stopped"  # stopped, idle, ingesting, …
    navigation: Sequence[NavigationEntry] = NAVIGATION

    def close(self) -> None:
        """End live updates, and let go of the thread of the pages."""
        self.broadcast.close()
        self.worker.shutdown()


def derived(workspace: Workspace, name: str, compute: Callable[[], T]) -> T:
    """The value of this name; computed again once memory, its uses, git or the day changed."""
    workspace.home.ensure("read")
    state = (*(home.stamp() for home in workspace.homes.readable()), workspace.now()[:10])
    kept = _DERIVED.get(workspace)
    if kept is None or kept[0] != state or len(kept[1]) >= _MOST_DERIVED:
        kept = _DERIVED[workspace] = (state, {})
    if name not in kept[1]:
        kept[1][name] = compute()
    value: T = kept[1][name]
    return value


def recompute(workspace: Workspace) -> None:
    """Forget all values: something changed that is no memory, such as a file of another kind."""
    _DERIVED.pop(workspace, None)
