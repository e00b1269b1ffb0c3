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

_BURST = 10  # times the quiet that is waited for: then the burst is looked at while it goes on
_OVERFLOW_LOG = "watchdog.observers"
# File systems on which the kernel does not tell what other machines or the host change.
_SILENT = ("9p", "cifs", "drvfs", "fuse", "nfs", "smb", "vboxsf", "virtiofs", "vmhgfs")


class FileEvents:
    """Rung by anybody, any number of times; one waits for it."""

    def __init__(self) -> None:
        self._rung = Event()

    def ring(self) -> None:
        self._rung.set()

    def is_rung(self) -> bool:
        """Whether it rang since somebody last woke up from waiting."""
        return self._rung.is_set()

    def wait(self, seconds: float, quiet: float) -> bool:
        """Wait for a ring, then until there is none for a while: a burst is one ring.

        False if there was none in all the time.
        """
        if not self._rung.wait(seconds):
            return False
        latest = time.monotonic() + _BURST * quiet
        while time.monotonic() < latest:
            self._rung.clear()
            if not self._rung.wait(quiet):
                break
        self._rung.clear()
        return True


class EventListener:
    """Folders that are listened to, and the bell that is rung for them."""

    def __init__(
        self, bell: FileEvents, folders: Iterable[tuple[Path, bool]], *, is_deaf: bool
    ) -> None:
        """`folders`: each with whether all below it counts too. `is_deaf`: do not even try."""
        self._bell = bell
        self._folders = list(folders)
        self._is_deaf = is_deaf or any(_is_silent(path) for path, _ in self._folders)
        self._observer: BaseObserver | None = None
        self._heard: list[tuple[int, int]] = []

    @property
    def hears(self) -> bool:
        """Whether a change rings; if not, only the clock does."""
        return self._observer is not None

    def attend(self) -> None:
        """Listen, and listen anew if a folder was made anew since."""
        there = [(path, deep) for path, deep in self._folders if path.is_dir()]
        marks = [(s.st_dev, s.st_ino) for s in (os.stat(path) for path, _ in there)]
        if self._is_deaf or (self.hears and marks == self._heard):
            return
        self.close()
        self._observer, self._heard = _observer(self._bell, there), marks
        self._is_deaf = not self.hears

    def close(self) -> None:
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()
            self._observer = None


def _observer(bell: FileEvents, folders: Iterable[tuple[Path, bool]]) -> BaseObserver | None:
    """None if the kernel has no room for more watches."""
    from watchdog import events
    from watchdog.observers import Observer

    class Ringing(events.FileSystemEventHandler):
        def on_any_event(self, event: events.FileSystemEvent) -> None:
            if not is_noise(os.fsdecode(event.dest_path or event.src_path)):
                bell.ring()

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
    _ring_on_overflow(bell)
    return observer


def is_noise(path: str) -> bool:
    """Whether a file is none of memory: locks, and what is written beside and then renamed."""
    return os.path.basename(path).startswith(".")


def _ring_on_overflow(bell: FileEvents) -> None:
    class Overflow(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002 - logging's signature
            bell.ring()

    logger = logging.getLogger(_OVERFLOW_LOG)
    logger.handlers = [one for one in logger.handlers if type(one).__name__ != Overflow.__name__]
    logger.addHandler(Overflow(logging.WARNING))


# -- file systems --------------------------------------------------------------------------------


def _is_silent(path: Path) -> bool:
    """Whether changes under a path may come about without this kernel."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return file_system(os.path.realpath(path), mounts).startswith(_SILENT)


def file_system(path: str, mounts: str) -> str:
    """The type of the file system that a path lies on; the last mount over a folder counts."""
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
