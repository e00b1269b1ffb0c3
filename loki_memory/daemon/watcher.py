"""Watch a workspace: work on it whenever its files change, and at intervals anyway.

Files are compared at the start, after every file event, and at intervals, for changes without an
event. A workspace that is gone ends the work: nothing may be written there again.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.daemon import protocol
from loki_memory.daemon.background import Background, BackgroundState
from loki_memory.errors import InvalidConfig
from loki_memory.files.layout import Layout
from loki_memory.workspace import Workspace

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver


_MS = 1000
_LAST_WORDS_SECONDS = 1.5  # for a round to end: a caller of stop waits for at most 2 s


class WatcherState(NamedTuple):
    """The state of a workspace's watcher."""

    process: int
    since: str
    gets_events: bool  # of changes by the kernel; if not, it looks at intervals
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
        polls_only = bool(workspace.config.get("watch.poll"))
        self._listener = EventListener(
            self._file_events, memory_folders(workspace.layout), polls_only=polls_only
        )
        self._ended, self.has_failed = ended, False
        self.answered = 0
        self._thread = Thread(target=self._watch, name="watch", daemon=True)

    def start(self) -> None:
        self._listener.renew()
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
            self._listener.gets_events,
            self._idle_minutes,
            self._background.standing,
            self.answered,
        )

    def is_current(self) -> bool:
        """Check if every change that the kernel reported was taken in."""
        return self._is_ready and self._listener.gets_events and not self._file_events.is_set()

    def _watch(self) -> None:
        try:
            while not self._stopping.is_set() and self._is_there():
                with self.turn:
                    self._round()
                wait = self._pauses.scan if self._listener.gets_events else self._pauses.poll
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
        self._listener.renew()
        self._background.round(time.monotonic(), self._stopping.is_set)
        self._is_ready = True
        with suppress(InvalidConfig):  # the round reports it; until then the old pauses hold
            self._pauses = Pauses.of(self._workspace)


def memory_folders(layout: Layout) -> list[tuple[Path, bool]]:
    """The folders to listen to: memory, private memory, and `.loki` itself without its folders."""
    return [(layout.memory, True), (layout.local / "memory", True), (layout.loki, False)]


# -- file events, from the kernel or at intervals --------------------------------------------------

# An event means "something changed" and nothing more; the watcher then compares the files. So it
# does not matter which event was lost, doubled or late. Where the kernel drops events because there
# are too many at once, `watchdog` rescans the folders and logs that, which counts as an event too.

_BURST = 10  # times the quiet period: after that a burst is handled while it goes on
_OVERFLOW_LOG = "watchdog.observers"
# File systems on which the kernel does not report changes by other machines or the host.
_SILENT = ("9p", "cifs", "drvfs", "fuse", "nfs", "smb", "vboxsf", "virtiofs", "vmhgfs")


class FileEvents:
    """A flag that any thread may set, any number of times, and one thread waits for."""

    def __init__(self) -> None:
        self._flag = Event()

    def notify(self) -> None:
        self._flag.set()

    def is_set(self) -> bool:
        """Check if the flag was set since the last wait."""
        return self._flag.is_set()

    def wait(self, seconds: float, quiet: float) -> bool:
        """Wait for an event, then until there is none for a while: a burst counts as one.

        Returns False if there was none in all the time.
        """
        if not self._flag.wait(seconds):
            return False
        latest = time.monotonic() + _BURST * quiet
        while time.monotonic() < latest:
            self._flag.clear()
            if not self._flag.wait(quiet):
                break
        self._flag.clear()
        return True


class EventListener:
    """Folders to listen to, and the flag to set when they change."""

    def __init__(
        self, file_events: FileEvents, folders: Iterable[tuple[Path, bool]], *, polls_only: bool
    ) -> None:
        """`folders`: each with True if all below it counts too. `polls_only`: only poll."""
        self._file_events = file_events
        self._folders = list(folders)
        self._polls_only = polls_only or any(_is_silent(path) for path, _ in self._folders)
        self._observer: BaseObserver | None = None
        self._watched: list[tuple[int, int]] = []

    @property
    def gets_events(self) -> bool:
        """Check if changes are reported by the kernel; if not, the watcher polls."""
        return self._observer is not None

    def renew(self) -> None:
        """Listen, and listen anew if a folder was replaced since."""
        there = [(path, deep) for path, deep in self._folders if path.is_dir()]
        marks = [(s.st_dev, s.st_ino) for s in (os.stat(path) for path, _ in there)]
        if self._polls_only or (self.gets_events and marks == self._watched):
            return
        self.close()
        self._observer, self._watched = _observer(self._file_events, there), marks
        self._polls_only = not self.gets_events

    def close(self) -> None:
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()
            self._observer = None


def _observer(file_events: FileEvents, folders: Iterable[tuple[Path, bool]]) -> BaseObserver | None:
    """Start an observer; None if the kernel has no room for more watches."""
    from watchdog import events
    from watchdog.observers import Observer

    class Notifying(events.FileSystemEventHandler):
        def on_any_event(self, event: events.FileSystemEvent) -> None:
            if not is_noise(os.fsdecode(event.dest_path or event.src_path)):
                file_events.notify()

    changes: list[type[events.FileSystemEvent]] = [
        events.FileCreatedEvent,
        events.FileModifiedEvent,
        events.FileMovedEvent,
        events.FileDeletedEvent,
        events.DirCreatedEvent,
        events.DirMovedEvent,
        events.DirDeletedEvent,
    ]
    observer = Observer()
    try:
        for path, deep in folders:
            observer.schedule(Notifying(), str(path), recursive=deep, event_filter=changes)
        observer.start()
    except OSError:
        observer.unschedule_all()
        return None
    _notify_on_overflow(file_events)
    return observer


def is_noise(path: str) -> bool:
    """Check if a file is not memory: a lock, or a temporary file that will be renamed."""
    return os.path.basename(path).startswith(".")


def _notify_on_overflow(file_events: FileEvents) -> None:
    class Overflow(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002 - logging's signature
            file_events.notify()

    logger = logging.getLogger(_OVERFLOW_LOG)
    logger.handlers = [
        handler for handler in logger.handlers if type(handler).__name__ != Overflow.__name__
    ]
    logger.addHandler(Overflow(logging.WARNING))


# -- file systems --------------------------------------------------------------------------------


def _is_silent(path: Path) -> bool:
    """Check if files under a path may change without an event of this kernel."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return file_system(os.path.realpath(path), mounts).startswith(_SILENT)


def file_system(path: str, mounts: str) -> str:
    """The type of the file system of a path; the last mount over a folder counts."""
    best, kind = "", ""
    for point, name in _mounted(mounts):
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, name
    return kind


def _mounted(mounts: str) -> Iterator[tuple[str, str]]:
    """Mount points and types, as in `36 35 98:0 /inside /point options … - type source …`."""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if len(fields) > 4 and kinds[0]:  # noqa: PLR2004
            point: Any = fields[4]
            yield point.replace("\\040", " "), kinds[0]
