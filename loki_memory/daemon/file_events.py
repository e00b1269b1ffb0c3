"""File events: wake the watcher when files change, by the kernel's events or else at intervals.

An event means "something changed" and nothing more; the watcher then compares the files. So it does
not matter which event was lost, doubled or late. Where the kernel drops events because there are
too many at once, `watchdog` rescans the folders and logs that, which counts as an event too.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver

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
        self, file_events: FileEvents, folders: Iterable[tuple[Path, bool]], *, is_deaf: bool
    ) -> None:
        """`folders`: each with True if all below it counts too. `is_deaf`: only poll."""
        self._file_events = file_events
        self._folders = list(folders)
        self._is_deaf = is_deaf or any(_is_silent(path) for path, _ in self._folders)
        self._observer: BaseObserver | None = None
        self._heard: list[tuple[int, int]] = []

    @property
    def hears(self) -> bool:
        """Check if changes are reported by the kernel; if not, the watcher polls."""
        return self._observer is not None

    def attend(self) -> None:
        """Listen, and listen anew if a folder was replaced since."""
        there = [(path, deep) for path, deep in self._folders if path.is_dir()]
        marks = [(s.st_dev, s.st_ino) for s in (os.stat(path) for path, _ in there)]
        if self._is_deaf or (self.hears and marks == self._heard):
            return
        self.close()
        self._observer, self._heard = _observer(self._file_events, there), marks
        self._is_deaf = not self.hears

    def close(self) -> None:
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()
            self._observer = None


def _observer(file_events: FileEvents, folders: Iterable[tuple[Path, bool]]) -> BaseObserver | None:
    """Start an observer; None if the kernel has no room for more watches."""
    from watchdog import events
    from watchdog.observers import Observer

    class Ringing(events.FileSystemEventHandler):
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
            observer.schedule(Ringing(), str(path), recursive=deep, event_filter=changes)
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
