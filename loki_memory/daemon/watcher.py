"""Watch a workspace: look after it whenever its files change, and now and then anyway.

One process per workspace does so, the one that holds the lock; a kernel lock, so that nobody has to
judge whether the holder of an old one is still alive. Files are compared at the start, after every
ring of the bell, and at intervals for what the bell did not tell.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import NamedTuple

from loki_memory.daemon import protocol
from loki_memory.daemon.background import Adding, Background, BackgroundState
from loki_memory.daemon.file_events import EventListener, FileEvents
from loki_memory.errors import AlreadyWatched, InvalidConfig, StoreBusy
from loki_memory.files import disk
from loki_memory.files.layout import Layout
from loki_memory.files.lock import locked

_MS = 1000
_LAST_WORDS_SECONDS = 1.5  # for a round to end: who says stop waits for at most 2 s


class WatcherState(NamedTuple):
    """How the watcher of a workspace is doing."""

    process: int
    since: str
    hears: bool  # of changes by the kernel; if not, it looks at intervals
    standing: BackgroundState


class Pauses(NamedTuple):
    """How long the watcher waits, in seconds."""

    scan: float
    poll: float
    quiet: float

    @classmethod
    def of(cls, workspace: Adding) -> Pauses:
        config = workspace.config
        quiet = config.get("watch.debounce_ms") / _MS
        return cls(config.get("watch.scan_seconds"), config.get("watch.poll_seconds"), quiet)


def place(layout: Layout, ending: str) -> Path:
    """A file of the watcher. Worktrees share a local zone, and have a watcher each."""
    return layout.local / "watch" / f"{protocol.name_of(layout.loki)}.{ending}"


@contextmanager
def leading(layout: Layout) -> Iterator[None]:
    """Be the one that watches; raises AlreadyWatched if another process is."""
    path = place(layout, "lock")
    disk.make_folder(path.parent)
    with ExitStack() as held:
        try:
            held.enter_context(locked(path, 0))
        except StoreBusy:
            raise AlreadyWatched(layout.root) from None
        yield


def is_watched(layout: Layout) -> bool:
    """Whether a process watches the workspace."""
    try:
        with locked(place(layout, "lock"), 0):
            return False
    except FileNotFoundError:
        return False
    except StoreBusy:
        return True


class Watcher:
    """A thread that looks after a workspace. Whoever else works in this process takes turns."""

    def __init__(
        self, workspace: Adding, tell: Callable[[str], None], ended: Callable[[], None]
    ) -> None:
        """`tell` is for the log; `ended` is called when the thread ends, however it does."""
        self.turn = Lock()  # held by a round; by whoever else uses the process for the workspace
        self._workspace = workspace
        self._since = workspace.now()
        self._bell, self._stopping, self._is_ready = FileEvents(), Event(), False
        self._background = Background(workspace, tell, time.monotonic())
        self._pauses = Pauses.of(workspace)
        is_deaf = bool(workspace.config.get("watch.poll"))
        self._ears = EventListener(self._bell, _folders(workspace.layout), is_deaf=is_deaf)
        self._ended, self.has_failed = ended, False
        self._thread = Thread(target=self._watch, name="watch", daemon=True)

    def start(self) -> None:
        self._ears.attend()
        self._thread.start()

    def stop(self) -> None:
        """End; a round that takes too long is left where it is: every write of it is whole."""
        self._stopping.set()
        self._bell.ring()
        self._thread.join(_LAST_WORDS_SECONDS)

    def state(self) -> WatcherState:
        return WatcherState(os.getpid(), self._since, self._ears.hears, self._background.standing)

    def is_current(self) -> bool:
        """Whether every change so far was taken in, as far as the kernel tells."""
        return self._is_ready and self._ears.hears and not self._bell.is_rung()

    def _watch(self) -> None:
        try:
            while not self._stopping.is_set():
                with self.turn:
                    self._round()
                wait = self._pauses.scan if self._ears.hears else self._pauses.poll
                self._bell.wait(self._background.pause(wait), self._pauses.quiet)
            self._ears.close()
        except BaseException:
            self.has_failed = True
            raise
        finally:
            self._ended()

    def _round(self) -> None:
        self._ears.attend()
        self._background.round(time.monotonic(), self._stopping.is_set)
        self._is_ready = True
        with suppress(InvalidConfig):  # told by the round; until it is mended, the old pauses hold
            self._pauses = Pauses.of(self._workspace)


def _folders(layout: Layout) -> list[tuple[Path, bool]]:
    """What is listened to: memory, private memory, and what lies directly in `.loki`."""
    return [(layout.memory, True), (layout.local / "memory", True), (layout.loki, False)]
