"""Watch a workspace: work on it whenever its files change, and at intervals anyway.

Files are compared at the start, after every file event, and at intervals, for changes without an
event. A workspace that is gone ends the work: nothing may be written there again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import NamedTuple

from loki_memory.daemon import protocol
from loki_memory.daemon.background import Background, BackgroundState
from loki_memory.daemon.file_events import EventListener, FileEvents
from loki_memory.errors import InvalidConfig
from loki_memory.files.layout import Layout
from loki_memory.workspace import Workspace

_MS = 1000
_LAST_WORDS_SECONDS = 1.5  # for a round to end: a caller of stop waits for at most 2 s


class WatcherState(NamedTuple):
    """The state of a workspace's watcher."""

    process: int
    since: str
    hears: bool  # of changes by the kernel; if not, it looks at intervals
    idle_minutes: int  # after which it ends by itself; 0: a user started it, and ends it
    standing: BackgroundState
    answered: int = 0  # commands and hooks of others


class Pauses(NamedTuple):
    """The waiting times of the watcher, in seconds."""

    scan: float
    poll: float
    quiet: float

    @classmethod
    def of(cls, workspace: Workspace) -> Pauses:
        config = workspace.config
        quiet = config.get("watch.debounce_ms") / _MS
        return cls(config.get("watch.scan_seconds"), config.get("watch.poll_seconds"), quiet)


class Watcher:
    """A thread that works on a workspace; other users of the process take turns with it."""

    def __init__(
        self,
        workspace: Workspace,
        log: Callable[[str], None],
        ended: Callable[[], None],
        idle_minutes: int = 0,
    ) -> None:
        """`log` takes lines; `ended` is called when the thread ends, for whatever reason."""
        self.turn = Lock()  # held by a round, and by a command that runs in this process
        self._workspace, self._idle_minutes, self._log = workspace, idle_minutes, log
        self._name = protocol.name_of(workspace.layout.loki)
        self._since = workspace.now()
        self._file_events, self._stopping, self._is_ready = FileEvents(), Event(), False
        self._background = Background(workspace, log, time.monotonic())
        self._pauses = Pauses.of(workspace)
        is_deaf = bool(workspace.config.get("watch.poll"))
        self._listener = EventListener(
            self._file_events, memory_folders(workspace.layout), is_deaf=is_deaf
        )
        self._ended, self.has_failed = ended, False
        self.answered = 0
        self._thread = Thread(target=self._watch, name="watch", daemon=True)

    def start(self) -> None:
        self._listener.attend()
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a round that takes too long is abandoned: its writes are atomic."""
        self._stopping.set()
        self._file_events.notify()
        self._thread.join(_LAST_WORDS_SECONDS)

    def state(self) -> WatcherState:
        return WatcherState(
            os.getpid(),
            self._since,
            self._listener.hears,
            self._idle_minutes,
            self._background.standing,
            self.answered,
        )

    def is_current(self) -> bool:
        """Check if every change that the kernel reported was taken in."""
        return self._is_ready and self._listener.hears and not self._file_events.is_set()

    def _watch(self) -> None:
        try:
            while not self._stopping.is_set() and self._is_there():
                with self.turn:
                    self._round()
                wait = self._pauses.scan if self._listener.hears else self._pauses.poll
                self._file_events.wait(self._background.pause(wait), self._pauses.quiet)
            self._listener.close()
        except BaseException:
            self.has_failed = True
            raise
        finally:
            self._ended()

    def _is_there(self) -> bool:
        """Check if the workspace is still the folder that it was at the start."""
        try:
            return protocol.name_of(self._workspace.layout.loki) == self._name
        except OSError:
            self._log("the workspace is gone")
            return False

    def _round(self) -> None:
        self._listener.attend()
        self._background.round(time.monotonic(), self._stopping.is_set)
        self._is_ready = True
        with suppress(InvalidConfig):  # the round reports it; until then the old pauses hold
            self._pauses = Pauses.of(self._workspace)


def memory_folders(layout: Layout) -> list[tuple[Path, bool]]:
    """The folders to listen to: memory, private memory, and `.loki` itself without its folders."""
    return [(layout.memory, True), (layout.local / "memory", True), (layout.loki, False)]
